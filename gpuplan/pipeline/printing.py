"""Print what was built as one stream of objects, for programs that take no folders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpuplan.diagnostics import GpuplanError
from gpuplan.planning.plan import Component

if TYPE_CHECKING:
    from gpuplan.pipeline import Build


def print_stream(build: Build, folders: Sequence[str] = ()) -> bytes:
    """Every object of a build as one YAML stream, or those of some folders: of stages, or of one pool or namespace.

    Plain files are not in it. Where a hand-written Component has a say in those folders there is trouble rather than a
    stream that lacks it: whoever prunes by the stream would take away what the Component adds.
    """
    for plan in build.report.plans:
        for component in plan.components:
            if not folders or any(_has_a_say(component, folder) for folder in folders):
                cluster = plan.cluster.name
                raise GpuplanError(
                    f"`{component.folder}/` changes what cluster `{cluster}` applies, and only kustomize can say how",
                    f"build `out/{cluster}/{component.stage}/` with kustomize, or leave that stage out with `--stage`",
                )
    chosen = [path for path in build.objects if not folders or any(_is_in(path, folder) for folder in folders)]
    return b"".join(b"---\n" + build.tree[path] for path in chosen)


def _has_a_say(component: Component, folder: str) -> bool:
    stage, _, part = folder.partition("/")
    return component.stage == stage and (not part or component.part in (None, part))


def _is_in(path: str, folder: str) -> bool:
    """Paths are of the output, folders of the cluster."""
    return path.partition("/")[2].startswith(f"{folder}/")
