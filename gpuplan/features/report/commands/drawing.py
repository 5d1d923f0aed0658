"""The work of `gpuplan report`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from shlex import quote

import click

from gpuplan.compiler import pipeline
from gpuplan.compiler.base.diagnostics import GpuplanError, has_errors
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.features.changes import compare, verdict as verdict_of
from gpuplan.features.report.views.page import Follow, report_page, trouble_page
from gpuplan.terminal import full
from gpuplan.terminal.session import Terminal, refuse_links, write_named
from gpuplan.terminal.verbs import late

_serve_page = late("gpuplan.features.report.commands.following:serve")


def report(terminal: Terminal, clusters: Sequence[str], against: str, file: str, port: int | None) -> int:
    if port is not None:
        if file != "-":
            raise click.UsageError("--serve writes no file, and --output shows none: give one of them.")
        return _serve(terminal, clusters, against, port)
    if file in ("json", "yaml"):
        raise click.UsageError(f"the page is HTML: type `gpuplan show -o {file}`, or `gpuplan report -o report.html`.")
    if file == "-" and sys.stdout.isatty():
        raise GpuplanError("the page is HTML, and stdout is a terminal", "type `gpuplan report -o report.html`")
    if file != "-":  # before a large platform is planned in vain
        folder = Path(file).parent
        refuse_links(terminal.root, file)
        if not folder.is_dir():
            raise GpuplanError(f"there is no folder `{folder}` for the page", f"type `mkdir -p {quote(str(folder))}`")
    made = _made(terminal, clusters, against, None)
    if file == "-":
        terminal.print(made.text)
    else:
        write_named(terminal.root, file, made.text)
    terminal.say(made.verdict)
    return 0 if made.is_right else 1


class _Made(NamedTuple):
    """A page, the verdict on it, and whether nothing has errors."""

    text: str
    verdict: str
    is_right: bool


def _made(terminal: Terminal, clusters: Sequence[str], against: str, follow: Follow | None) -> _Made:
    result = pipeline.validate(terminal.root, clusters)
    diff = compare(terminal.root, clusters, against=against) if against else None
    text = report_page(result, diff, terminal.out_theme, follow=follow)
    verdict = full.verdict(result, terminal.err_theme) + (f"{verdict_of(diff)}\n" if diff else "")
    return _Made(text, verdict, result.is_valid and not (diff and has_errors(diff.findings)))


def _serve(terminal: Terminal, clusters: Sequence[str], against: str, port: int) -> int:
    def page(nonce: str, state: str) -> str:
        follow = Follow(nonce, state)
        try:
            return _made(terminal, clusters, against, follow).text
        except GpuplanError as error:  # a file that is half written is whole a moment later
            return trouble_page(error, follow)
        except OSError as error:  # and so is a folder that has just gone
            return trouble_page(GpuplanError(f"`{error.filename}`: {str(error.strerror).lower()}"), follow)

    _serve_page(terminal, port, page)
    return 0
