"""What a back end is: it turns one cluster's plan into objects."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from gpuplan.manifests import File, Manifest
from gpuplan.manifests.templates import filled, read_rows
from gpuplan.planning.plan import Plan

Artifact = Manifest | File


class Backend(Protocol):
    """Reads the plan alone, knows no other back end, and does nothing but answer objects and files.

    The order of the answers does not matter; two back ends that answer the same object are a bug.
    """

    def render(self, plan: Plan) -> Iterable[Artifact]: ...


def text_of(name: str, **values: str) -> str:
    """What a file that is generated says to its readers."""
    return filled(read_rows(Path(__file__).with_name("texts.yaml"))[name], values)
