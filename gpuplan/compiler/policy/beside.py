"""Kinds of documents that are given to a command and lie in no platform: features hand them in."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from gpuplan import handed_in
from gpuplan.compiler.base.faces import imported
from gpuplan.compiler.policy.models import Document


@cache
def beside_platforms() -> Mapping[str, type[Document]]:
    """Return the model of each such kind, by its name."""
    return {kind.__name__: kind for kind in imported(handed_in.DOCUMENTS)}


def command_for(kind: str) -> str | None:
    """Return the command that a document of such a kind is given to; None for any other kind."""
    return dict(zip(beside_platforms(), handed_in.DOCUMENTS.values(), strict=True)).get(kind)
