"""Rules on the objects of one cluster as files (GPU91x)."""

from __future__ import annotations

from typing import Final

from gpuplan.diagnostics import Rule, Severity

OBJECT_WRITTEN_TWICE: Final = Rule(
    "GPU911",
    "object-written-twice",
    Severity.ERROR,
    """The same object comes out twice for one cluster.

## Why
An object is known to a cluster by group, kind, namespace and name, whatever file it is in. Of two files for one object
the cluster keeps what was applied last, and kustomize refuses to build a folder that has both.

## Instead
Rename one of the things that the two were made for. When their names differ already, this is a bug in gpuplan: report
it with the two names.
""",
    ignorable=False,
)

FILE_WRITTEN_TWICE: Final = Rule(
    "GPU912",
    "file-written-twice",
    Severity.ERROR,
    """Two different objects, or an object and a plain file, come out under one file name.

## Why
Files are named for kind and name, so that a reviewer finds them. Two objects of one kind and name in one folder, which
differ by namespace or group alone, would overwrite each other.

## Instead
Rename one of the things that the two were made for. When their names differ already, this is a bug in gpuplan: report
it with the two names.
""",
    ignorable=False,
)

RULES: Final = (OBJECT_WRITTEN_TWICE, FILE_WRITTEN_TWICE)
