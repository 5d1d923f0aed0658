"""What makes flux sync a cluster's folders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gpuplan.manifests import File, Manifest
from gpuplan.planning.plan import Plan

if TYPE_CHECKING:
    from gpuplan.delivery import Folder


def render(plan: Plan, folders: Sequence[Folder]) -> Iterator[Manifest | File]:  # noqa: ARG001 - written in the next step
    yield from ()
