"""The work of `gpuplan init`: the starter platform."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from shlex import quote

from jinja2 import Environment, StrictUndefined

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.pipeline.writing import create_all
from gpuplan.terminal.schemas import EDITOR, GIT_ATTRIBUTES, beside_policies
from gpuplan.terminal.session import Terminal, refuse_links

_README = "README.md"
_CLUSTER_FOLDER = "overlays/cluster/"
_OURS = ("policies", "overlays", ".gpuplan")
"""The folders that the starter writes whole: beside other files in them it would be no starter."""


def init(terminal: Terminal, folder: Path, cluster: str) -> None:
    target = terminal.root / folder
    refuse_links(terminal.root, target, "name where it leads")
    for name in _OURS:
        if os.path.lexists(target / name):  # a link that leads nowhere is there, too
            raise GpuplanError(f"`{target / name}` exists already, so nothing was written", "name another folder")
    kept = [path for path in (_README, GIT_ATTRIBUTES, EDITOR) if os.path.lexists(target / path)]
    files = {path: text for path, text in _scaffold(cluster).items() if path not in kept}
    create_all(target, files)
    names = [path for path in files if not path.startswith(".")]
    terminal.say("".join(f"created {target / name}\n" for name in names))
    if GIT_ATTRIBUTES in kept:
        terminal.say(f"add `out/** -text` to {target / GIT_ATTRIBUTES}, so that Git changes no line ends there\n")
    enter = "" if target.resolve() == Path.cwd() else f"cd {quote(str(target))} && "
    terminal.say(f"next: {enter}gpuplan validate && gpuplan build\n")


def _scaffold(cluster: str) -> dict[str, str]:
    """Return the files of a starter platform by path, with one cluster of that name."""
    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)  # noqa: S701 - not HTML
    folder = resources.files("gpuplan.cli") / "scaffold"
    files = {
        path.replace(_CLUSTER_FOLDER, f"overlays/{cluster}/"): environment.from_string(text).render(cluster=cluster)
        for path, text in _templates(folder, "")
    }
    return files | beside_policies()


def _templates(folder: Traversable, path: str) -> Iterator[tuple[str, str]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _templates(entry, f"{path}{entry.name}/")
        else:
            yield f"{path}{entry.name}", entry.read_text(encoding="utf-8")
