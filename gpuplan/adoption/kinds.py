"""What of a dump no reader reads."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.adoption.dump import Dump
from gpuplan.adoption.rules import NOT_READ
from gpuplan.diagnostics import Diagnostic, Finding
from gpuplan.manifests.kinds.imported import READ
from gpuplan.wording import count, count_kinds


def unread(dump: Dump) -> Iterator[Diagnostic]:
    """A note of the kinds in a dump that no reader reads, with how many objects each has."""
    others = [item for item in dump.objects if (item.group, item.kind) not in READ]
    if not others:
        return
    finding = Finding(
        others[0].at,
        f"no policy is made of {count(len(others), 'object')} of the dump",
        label="the first of them",
        notes=(f"these are {count_kinds(item.kind for item in others)}",),
        help="keep what belongs to the platform as a Component in `overlays/<cluster>/kustomize/`",
    )
    yield NOT_READ.report(finding)
