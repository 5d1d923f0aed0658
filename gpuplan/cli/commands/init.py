"""`gpuplan init`."""

from __future__ import annotations

import os
from pathlib import Path
from shlex import quote

import click

from gpuplan.compiler.base.patterns import regex
from gpuplan.terminal.session import Terminal
from gpuplan.terminal.verbs import option, verb

_NAME = regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_README = "README.md"
_OURS = ("policies", "overlays", ".gpuplan")
"""What the starter brings along whole, and would not be a starter beside something else."""


def _check_name(_: click.Context, parameter: click.Parameter, name: str) -> str:
    if not _NAME.fullmatch(name):
        raise click.BadParameter("use lower-case letters, digits and `-`.", param=parameter)
    return name


@verb("init", shows_pages=True)
@click.argument("folder", metavar="[DIR]", type=click.Path(file_okay=False, path_type=Path), default=Path())
@option("--cluster", default="dev", metavar="NAME", callback=_check_name, help="The first cluster [default: dev].")
def command(terminal: Terminal, folder: Path, cluster: str) -> None:
    """Write a small starter platform.

    It is commented, and validates and builds as it stands. No file is ever overwritten: a README.md, a .gitattributes
    and settings of an editor that are there stay, and where there are policies or overlays already nothing is written.

    \b
      gpuplan init .
      gpuplan init platform --cluster prod
    """
    from gpuplan.compiler.pipeline.writing import create_all
    from gpuplan.terminal.named import refuse_links
    from gpuplan.terminal.schemas import EDITOR, GIT_ATTRIBUTES, scaffold

    target = terminal.root / folder
    refuse_links(terminal.root, target, "name where it leads")
    _refuse_existing(target)
    kept = [path for path in (_README, GIT_ATTRIBUTES, EDITOR) if os.path.lexists(target / path)]
    files = {path: text for path, text in scaffold(cluster).items() if path not in kept}
    create_all(target, files)
    names = [path for path in files if not path.startswith(".")]
    terminal.say("".join(f"created {target / name}\n" for name in names))
    if GIT_ATTRIBUTES in kept:
        terminal.say(f"add `out/** -text` to {target / GIT_ATTRIBUTES}, so that Git changes no line ends there\n")
    enter = "" if target.resolve() == Path.cwd() else f"cd {quote(str(target))} && "
    terminal.say(f"next: {enter}gpuplan validate && gpuplan build\n")


def _refuse_existing(target: Path) -> None:
    from gpuplan.compiler.base.diagnostics import GpuplanError

    for name in _OURS:
        if os.path.lexists(target / name):  # a link that leads nowhere is there, too
            raise GpuplanError(f"`{target / name}` exists already, so nothing was written", "name another folder")
