"""Print what was built as one stream of objects, for programs that take no folders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from posixpath import dirname, normpath
from typing import TYPE_CHECKING

from gpuplan.diagnostics import GpuplanError
from gpuplan.manifests.kustomization import FILE_NAME

if TYPE_CHECKING:
    from gpuplan.pipeline import Build


def print_stream(
    build: Build,
    folders: Sequence[str] = (),
    *,
    root: Path = Path(),
    out: str = "out",
    kustomize: str = "",
) -> bytes:
    """Every object of a build as one YAML stream, or those of some folders: of stages, or of one pool or namespace.

    Plain files are not in it. What hand-written Components have a say in is built by kustomize; ``root``, ``out`` and
    ``kustomize`` are as they were for the build. Where that cannot be, there is trouble rather than a stream that lacks
    it: whoever prunes by the stream would take away what a Component adds.
    """
    chosen = {path: data for path, data in build.tree.items() if not folders or _is_in(path, folders)}
    patched = sorted(dirname(path) for path, data in chosen.items() if _includes_components(path, data))
    ours = [path for path in build.objects if path in chosen and dirname(path) not in patched]
    texts = [chosen[path] for path in ours]
    if patched:
        texts += _built(patched, chosen, root.resolve(), out, kustomize)
    return b"".join(b"---\n" + text for text in texts if text)


def _is_in(path: str, folders: Sequence[str]) -> bool:
    """Paths are of the output, folders of the cluster."""
    return path.partition("/")[2].startswith(tuple(f"{folder}/" for folder in folders))


def _includes_components(path: str, data: bytes) -> bool:
    return path.endswith(f"/{FILE_NAME}") and b"\ncomponents:\n" in data


def _built(patched: Sequence[str], tree: dict[str, bytes], root: Path, out: str, program: str) -> list[bytes]:
    from gpuplan.kustomize import build, find_program, laid_out
    from gpuplan.pipeline.final import OFF

    command = None if program == OFF else find_program(program)
    if command is None:
        raise GpuplanError(
            f"hand-written Components change what is in `{out}/{patched[0]}/`, and only kustomize can say how",
            "install kustomize or kubectl, or leave that folder out with `--stage`",
        )
    files = {f"{out}/{path}": data for path, data in tree.items() if dirname(path) in patched}
    with laid_out(root, files, ("overlays",)) as copy:
        results = build(command, [Path(normpath(copy / out / folder)) for folder in patched])
    for folder, result in zip(patched, results, strict=True):
        if result.refusal:
            raise GpuplanError(f"kustomize cannot build `{out}/{folder}/`: {result.refusal}")
    return [result.text.encode() for result in results]
