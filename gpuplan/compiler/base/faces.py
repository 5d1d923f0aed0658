"""Names that are imported when somebody asks for them, since a command's start shows every module."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any


def face(package: str, homes: Mapping[str, tuple[str, ...]]) -> Callable[[str], object]:
    """Return the `__getattr__` (PEP 562) of a package that finds each name in the module, below it, that has it.

    The package says the same to type checkers, by imports under `TYPE_CHECKING`.
    """
    modules = {name: module for module, names in homes.items() for name in names}

    def find(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{modules[name]}"), name)

    return find


def imported(entries: Iterable[str]) -> Iterator[Any]:
    """Yield what entries of `gpuplan.handed_in` name, as ``module:name``."""
    for module, _, name in (entry.partition(":") for entry in entries):
        yield getattr(import_module(module), name)
