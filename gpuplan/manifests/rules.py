"""Rules on the objects of one cluster as files (GPU91x)."""

from __future__ import annotations

from typing import Final

from gpuplan.diagnostics import Family, Rule, Severity

OBJECT_WRITTEN_TWICE: Final = Rule(
    "GPU911",
    "object-written-twice",
    Severity.ERROR,
    Family.OBJECTS,
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
    Family.OBJECTS,
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

UNUSABLE_DEFINITION: Final = Rule(
    "GPU913",
    "unusable-definition",
    Severity.ERROR,
    Family.OBJECTS,
    """A CustomResourceDefinition given with `--crds` is none that objects can be checked by.

## Why
Objects are checked by the definitions that the cluster has. The API server refuses a definition that is not of the form
it asks for: one whose schema is not a mapping, whose pattern is no regular expression, or whose fields are nested
without an end. What the cluster would not take says nothing about the objects, so objects of its kind were not checked.

## Instead
Take the file anew from the release of the controller that it belongs to: from the folder `crds/` of its chart, or with
`kubectl get crd NAME -o yaml` from a cluster. Without the file, gpuplan counts those objects as not checked.
""",
    ignorable=False,
)

RULES: Final = (OBJECT_WRITTEN_TWICE, FILE_WRITTEN_TWICE, UNUSABLE_DEFINITION)
