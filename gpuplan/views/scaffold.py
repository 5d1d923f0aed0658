"""The starter platform that `gpuplan init` writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import resources
from importlib.resources.abc import Traversable

from gpuplan.views.json_findings import json_text
from gpuplan.views.schemas import schema_text

CLUSTER_FOLDER = "overlays/cluster/"
GIT_ATTRIBUTES = ".gitattributes"
NO_LINE_ENDS = "# What gpuplan wrote stays as it is, also where Git changes line ends.\nout/** -text\n"
SCHEMAS = {"policy": ".gpuplan/policy.schema.json", "overlay": ".gpuplan/overlay.schema.json"}
EDITOR = ".vscode/settings.json"
"""Where VS Code, and editors that follow it, look for settings of a folder."""
FILES = {
    "policy": ("policies/**/*.yaml", "policies/**/*.yml"),
    "overlay": ("overlays/**/*.yaml", "overlays/**/*.yml", "!overlays/*/kustomize/**"),
}
"""The files that each schema is for; what is hand-written for kustomize is no policy."""


def scaffold(cluster: str) -> dict[str, str]:
    """The files by path, with one cluster of that name."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)  # noqa: S701 - not HTML
    files = {
        path.replace(CLUSTER_FOLDER, f"overlays/{cluster}/"): environment.from_string(text).render(cluster=cluster)
        for path, text in _templates(resources.files("gpuplan.views") / "scaffold", "")
    }
    schemas = {path: schema_text(name) for name, path in SCHEMAS.items()}
    return files | {GIT_ATTRIBUTES: NO_LINE_ENDS} | schemas | {EDITOR: editor_settings(SCHEMAS)}


def editor_settings(schemas: Mapping[str, str]) -> str:
    """Which schema is for which files, as the YAML language server reads it from the settings of an editor.

    A line `# yaml-language-server: $schema=` is for one document and not for those after it.
    """
    return json_text({"yaml.schemas": {path: [*FILES[name]] for name, path in schemas.items()}})


def _templates(folder: Traversable, path: str) -> Iterator[tuple[str, str]]:
    for item in sorted(folder.iterdir(), key=lambda item: item.name):
        if item.is_dir():
            yield from _templates(item, f"{path}{item.name}/")
        else:
            yield f"{path}{item.name}", item.read_text(encoding="utf-8")
