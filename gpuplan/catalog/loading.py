"""Reads the catalog's data files, one GPU model each, no sooner than somebody asks for the model."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from gpuplan.catalog.models import Engines, Gpu, LegacyName, PciDevice, Placement, Product, Profile, Source
from gpuplan.diagnostics import GpuplanError
from gpuplan.documents import read_data
from gpuplan.wording import listing

_SUFFIX = ".yaml"


@cache
def load() -> Catalog:
    """The catalog that comes with gpuplan; the same object for the whole process."""
    folder = Path(__file__).with_name("data")  # importlib.resources would cost 4 ms of every start
    files = {_id(file.name): file for file in folder.iterdir() if file.name.endswith(_SUFFIX)}
    return Catalog(dict(sorted(files.items())))


class Catalog:
    """GPU models by id.

    The file names are the index (``a100-80gb.yaml`` is ``A100-80GB``), so a build parses only the models it names.
    """

    def __init__(self, files: Mapping[str, Path]) -> None:
        self._files = files
        self._gpus: dict[str, Gpu] = {}
        self._suggestions: dict[str, tuple[str, ...]] = {}

    def ids(self) -> tuple[str, ...]:
        """Every model's id, sorted."""
        return tuple(self._files)

    def find(self, name: str) -> Gpu | None:
        """The model with exactly this id."""
        gpu = self._gpus.get(name)
        if gpu is None and (file := self._files.get(name)):
            gpu = self._gpus[name] = read_gpu(file.read_text(encoding="utf-8"))
        return gpu

    def get(self, name: str) -> Gpu:
        """The model with exactly this id, or trouble that names the nearest ones."""
        gpu = self.find(name)
        if gpu is None:
            near = self.suggest(name)
            hint = f"did you mean {listing(near, last='or')}?" if near else "`gpuplan catalog` lists the models"
            raise GpuplanError(f"no GPU model `{name}` in the catalog", hint)
        return gpu

    def all(self) -> tuple[Gpu, ...]:
        """Every model, sorted by id; parses all files."""
        return tuple(self.get(id_) for id_ in self._files)

    def suggest(self, name: str) -> tuple[str, ...]:
        """Ids that a misspelt name may stand for, best first; parses all files, so only for findings."""
        if name not in self._suggestions:
            from gpuplan.catalog.suggestions import suggest

            self._suggestions[name] = suggest(name, self.all())
        return self._suggestions[name]


def read_gpu(text: str) -> Gpu:
    """Make a model of a data file's text."""
    raw: dict[str, Any] = read_data(text)
    mig: dict[str, Any] = raw.get("mig") or {}
    major, minor = raw["compute_capability"].split(".")
    return Gpu(
        id=raw["id"],
        name=raw["name"],
        architecture=raw["architecture"],
        compute_capability=(int(major), int(minor)),
        memory_gib=raw["memory_gib"],
        memory_mib=raw.get("memory_mib"),
        supports_mig=bool(mig),
        incomplete_reason=mig.get("incomplete", ""),
        compute_slices=mig.get("compute_slices", 0),
        memory_slices=mig.get("memory_slices", 0),
        engines=Engines(**mig.get("engines", {})),
        profiles=tuple(_profile(row) for row in mig.get("profiles", ())),
        legacy_names={row["name"]: LegacyName(**row) for row in mig.get("legacy_names", ())},
        min_drivers=mig.get("min_drivers", {}),
        products=tuple(Product(**row) for row in raw["products"]),
        pci=tuple(PciDevice(**row) for row in raw["pci"]),
        notes=tuple(raw.get("notes", ())),
        uncertain=tuple(raw.get("uncertain", ())),
        sources=tuple(Source(key, citation) for key, citation in raw["sources"].items()),
        read_on=raw["read_on"],
    )


def _profile(row: dict[str, Any]) -> Profile:
    size: int = row["memory_slices"]
    return Profile(
        name=row["name"],
        compute_slices=row["compute_slices"],
        memory_slices=size,
        memory_gib=row.get("memory_gib"),
        memory_mib=row.get("memory_mib"),
        max_instances=row["max_instances"],
        placements=tuple(Placement(start, size) for start in row["starts"]),
        sm=row.get("sm"),
        ce=row.get("ce"),
        dec=row.get("dec"),
        enc=row.get("enc"),
        jpeg=row.get("jpeg"),
        ofa=row.get("ofa"),
        sources=tuple(row["sources"]),
        derived=tuple(row.get("derived", ())),
    )


def _id(file_name: str) -> str:
    return file_name.removesuffix(_SUFFIX).upper()
