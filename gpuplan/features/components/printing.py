"""Print what was built as one stream of objects, for programs that take no folders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from posixpath import dirname, normpath
from typing import TYPE_CHECKING

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.documents import read_bytes
from gpuplan.compiler.manifests.kustomization import FILE_NAME

if TYPE_CHECKING:
    from gpuplan.compiler.pipeline import Build
    from gpuplan.features.components.kustomize import Sources


def print_stream(
    build: Build, folders: Sequence[str] = (), *, root: Path = Path(), out: str = "out", kustomize: str = ""
) -> bytes:
    """Every object of a build as one YAML stream, or those of some folders: of stages, or of one pool or namespace.

    Plain files are not in it. What hand-written Components have a say in is built by kustomize; ``root``, ``out`` and
    ``kustomize`` are as they were for the build. Where that cannot be, there is trouble rather than a stream that lacks
    it: whoever prunes by the stream would take away what a Component adds.
    """
    inside = tuple(f"{folder}/" for folder in folders) or ""
    chosen = {path: data for path, data in build.tree.items() if path.partition("/")[2].startswith(inside)}
    lists = [path for path in chosen if path.endswith(f"/{FILE_NAME}")]
    patched = sorted(dirname(path) for path in lists if b"\ncomponents:\n" in chosen[path])
    ours = [path for path in build.objects if path in chosen and dirname(path) not in patched]
    texts = [chosen[path] for path in ours]
    if patched:
        generated = {dirname(path) for path in build.objects}
        texts += _built(patched, generated, build, root.resolve(), out, kustomize)
    return b"".join(b"---\n" + text for text in texts if text)


def _built(
    patched: Sequence[str], generated: set[str], build: Build, root: Path, out: str, program: str
) -> list[bytes]:
    """Build each folder with kustomize. A folder with generated objects must not become empty."""
    from gpuplan.features.components import kustomize
    from gpuplan.features.components.final import read_objects

    command = kustomize.find_program(program)
    if command is None:
        raise GpuplanError(
            f"hand-written Components change what is in `{out}/{patched[0]}/`, and only kustomize can say how",
            "install kustomize or kubectl, or leave that folder out with `--stage`",
        )
    files = {f"{out}/{path}": data for path, data in build.tree.items() if dirname(path) in patched}
    with kustomize.laid_out(root, files, _needed(patched, build, root, out)) as scratch:
        results = kustomize.build(command, [scratch.path(f"{out}/{folder}") for folder in patched], scratch.home)
    built = [(folder, result) for folder, result in zip(patched, results, strict=True) if result is not None]
    for folder, result in sorted(built, key=lambda pair: isinstance(pair[1], str)):
        objects = read_objects(result)
        if isinstance(objects, kustomize.Refusal):
            raise GpuplanError(f"kustomize cannot build `{out}/{folder}/`: it says {objects.message}")
        if not objects and folder in generated:
            raise GpuplanError(
                f"kustomize makes no objects of `{out}/{folder}/`, where there are some",
                "a sync with pruning would delete them: let a Component leave one object, or change the policy instead",
            )
    return [result.encode() for _, result in built if isinstance(result, str)]


def _needed(patched: Sequence[str], build: Build, root: Path, out: str) -> Sources:
    """Return the files that the Components of these folders are built from. Trouble if some are not here."""
    from gpuplan.compiler.planning.hand_files import HandFiles
    from gpuplan.features.components.needs import Finder, all_sources

    finder = Finder(root, HandFiles())
    needs = []
    for folder in patched:
        path = f"{folder}/{FILE_NAME}"
        documents, _ = read_bytes(f"{out}/{path}", build.tree[path])
        listed = [(item.origin / "components", item.data["components"]) for item in documents]
        for at, component in ((at / index, value) for at, values in listed for index, value in enumerate(values)):
            found = finder.find(normpath(f"{out}/{folder}/{component}"), at)
            obstacles = [*(item.shown for item in found.obstacles), *found.remote]
            if obstacles:
                file = obstacles[0].at.locate().file.path
                raise GpuplanError(
                    f"`{out}/{folder}/` cannot be built: {obstacles[0].message}, in {file}", obstacles[0].help
                )
            if doubt := found.doubt():
                raise GpuplanError(
                    f"`{out}/{folder}/` cannot be built: `{doubt}` may need a network, which nothing here prevents",
                    "leave that folder out with `--stage`",
                )
            needs.append(found)
    return all_sources(needs)
