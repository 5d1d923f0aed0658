"""Reads the catalog's data files, one GPU model each, no sooner than somebody asks for the model."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.base.wording import listing
from gpuplan.compiler.catalog.models import Engines, Gpu, LegacyName, PciDevice, Placement, Product, Profile, Source
from gpuplan.compiler.documents import read_data


@cache
def facts(folder: str, name: str) -> Any:  # noqa: ANN401 - whoever reads a file knows what it holds
    """The content of a file of facts beside the models."""
    return read_data((Path(__file__).with_name(folder) / name).read_text(encoding="utf-8"))


def find_board(product: str) -> Mapping[str, Any]:
    """Return the facts of a board beside the models, by its product label: `pci`, `memory`, `compute`; else nothing."""
    row: Mapping[str, Any] = facts("board_data", "boards.yaml").get(product.removeprefix("NVIDIA-"), {})
    return row


def frozen(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with its lists as tuples."""
    return {key: tuple(part) if isinstance(part, list) else part for key, part in row.items()}


@cache
def load() -> Catalog:
    """The catalog that comes with gpuplan; the same object for the whole process."""
    folder = Path(__file__).with_name("data")  # importlib.resources would cost 4 ms of every start
    files = {file.stem.upper(): file for file in folder.iterdir() if file.suffix == ".yaml"}
    return Catalog(dict(sorted(files.items())))


class Catalog:
    """GPU models by id.

    The file names are the index (``a100-80gb.yaml`` is ``A100-80GB``), so a build parses only the models it names.
    """

    def __init__(self, files: Mapping[str, Path]) -> None:
        self._files = files
        self._gpus: dict[str, Gpu] = {}
        self._suggestions: dict[str, tuple[str, ...]] = {}
        self._own: Mapping[str, Gpu] = {}

    def extended(self, described: Mapping[str, Gpu]) -> Catalog:
        """The same catalog, which is read once, with a platform's own models by id; none has the id of another."""
        if not described:
            return self
        found = Catalog(self._files)
        found._gpus, found._own = self._gpus, described
        return found

    def ids(self) -> tuple[str, ...]:
        """Every model's id, sorted."""
        return (*self._files, *sorted(self._own))

    def find(self, name: str) -> Gpu | None:
        """The model with exactly this id."""
        gpu = self._own.get(name) or self._gpus.get(name)
        if gpu is None and (file := self._files.get(name)):
            gpu = self._gpus[name] = _read(file)
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
        return tuple(self.get(id_) for id_ in self.ids())

    def suggest(self, name: str) -> tuple[str, ...]:
        """Ids that a misspelt name may stand for, best first; parses all files, so only for findings."""
        if name not in self._suggestions:
            from gpuplan.compiler.catalog.suggestions import suggest

            self._suggestions[name] = suggest(name, self.all())
        return self._suggestions[name]


def _read(file: Path) -> Gpu:
    try:
        return read_gpu(file.read_text(encoding="utf-8"))
    except (KeyError, TypeError) as error:
        error.add_note(f"a key is missing, misspelt or of another type in {file.name}")
        raise


def read_gpu(text: str) -> Gpu:
    """Make a model of a data file's text; a key that is missing or unknown is a ``KeyError`` or a ``TypeError``."""
    raw: dict[str, Any] = read_data(text)
    mig: dict[str, Any] = raw.pop("mig", None) or {}
    made = {
        "compute_capability": tuple(map(int, raw["compute_capability"].split("."))),
        "supports_mig": bool(mig),
        "incomplete_reason": mig.pop("incomplete", ""),
        "engines": Engines(**mig.get("engines", {})),
        "profiles": [_profile(row) for row in mig.get("profiles", ())],
        "legacy_names": {row["name"]: LegacyName(**row) for row in mig.get("legacy_names", ())},
        "products": [Product(**row) for row in raw["products"]],
        "pci": [PciDevice(**row) for row in raw["pci"]],
        "sources": [Source(*source) for source in raw["sources"].items()],
    }
    return Gpu(**frozen(raw | mig | made))


def _profile(row: dict[str, Any]) -> Profile:
    size: int = row["memory_slices"]
    placements = [Placement(start, size) for start in row.pop("starts")]
    return Profile(**frozen(row | {"placements": placements}))
