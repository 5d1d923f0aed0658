"""The starter platform that `gpuplan init` writes."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable

from gpuplan.views.schemas import schema_text

CLUSTER_FOLDER = "overlays/cluster/"
GIT_ATTRIBUTES = ".gitattributes"
NO_LINE_ENDS = "# What gpuplan wrote stays as it is, also where Git changes line ends.\nout/** -text\n"
SCHEMAS = {"policy": ".gpuplan/policy.schema.json", "overlay": ".gpuplan/overlay.schema.json"}


def scaffold(cluster: str) -> dict[str, str]:
    """The files by path, with one cluster of that name."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)  # noqa: S701 - not HTML
    files = {
        path.replace(CLUSTER_FOLDER, f"overlays/{cluster}/"): environment.from_string(text).render(cluster=cluster)
        for path, text in _templates(resources.files("gpuplan.views") / "scaffold", "")
    }
    return files | {GIT_ATTRIBUTES: NO_LINE_ENDS} | {path: schema_text(name) for name, path in SCHEMAS.items()}


def _templates(folder: Traversable, path: str) -> Iterator[tuple[str, str]]:
    for item in sorted(folder.iterdir(), key=lambda item: item.name):
        if item.is_dir():
            yield from _templates(item, f"{path}{item.name}/")
        else:
            yield f"{path}{item.name}", item.read_text(encoding="utf-8")
