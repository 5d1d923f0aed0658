"""Where facts of the catalog stand: the file and line of each, and who says so."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path as File
from typing import Any

from gpuplan.compiler.base.diagnostics import Location, Origin, Path, SourceFile
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.catalog.models import Gpu
from gpuplan.compiler.documents import Document, read_bytes


class CatalogFile(Value):
    """A file of the catalog, below this package; it is read when somebody asks where something stands in it."""

    name: str
    title: str = "catalog"

    def locate(self, path: Path, *, on_key: bool = False) -> Location:
        return _read(self.name).locate(path, on_key=on_key)

    def citation(self, path: Path) -> str:
        """Return the sources of a statement: those that its row names, or all of the file's; empty if there is none."""
        data = _read(self.name).data
        named = data.get("sources")
        if not isinstance(named, Mapping):
            return ""
        keys = _sources_of(data, path) or tuple(named)
        return "; ".join(str(named[key]) for key in keys if key in named)


def gpu_fact(gpu: Gpu, *route: str | int) -> Origin:
    """Where the catalog says something of a model: ``gpu_fact(gpu, "memory_gib")``."""
    return Origin(CatalogFile(f"data/{gpu.id.lower()}.yaml"), route)


def profile_fact(gpu: Gpu, profile: str) -> Origin:
    """Where the catalog says what a MIG profile of a model is."""
    names = [known.name for known in gpu.profiles]
    return gpu_fact(gpu, "mig", "profiles", *((names.index(profile),) if profile in names else ()))


def operator_fact(*route: str | int) -> Origin:
    """Where the catalog says something of the GPU Operator's releases: ``operator_fact("lines", 0, "cdi")``."""
    return Origin(CatalogFile("operator_data/releases.yaml"), route)


@cache
def _read(name: str) -> Document:
    file = SourceFile(f"gpuplan/compiler/catalog/{name}", (File(__file__).parent / name).read_text(encoding="utf-8"))
    return read_bytes(file.path, file.text.encode())[0][0]


def _sources_of(data: Any, path: Path) -> tuple[str, ...]:  # noqa: ANN401 - plain data
    """Those that the innermost row on the way names; the way is there."""
    found: tuple[str, ...] = ()
    for part in path:
        data = data[part]
        if isinstance(data, Mapping) and isinstance(data.get("sources"), list):
            found = tuple(map(str, data["sources"]))
    return found
