"""The work of `gpuplan import`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial

import click

from gpuplan.features.live import views as view
from gpuplan.features.live.importing import adopt, write_import
from gpuplan.terminal.formats import Format, write_outputs
from gpuplan.terminal.full import verdict
from gpuplan.terminal.lists import contents, passed_over
from gpuplan.terminal.options import Output
from gpuplan.terminal.schemas import beside_policies
from gpuplan.terminal.session import Terminal


def import_(
    terminal: Terminal,
    dumps: Sequence[str],
    cluster: str,
    outputs: Sequence[Output],
    *,
    commands: bool,
    dry_run: bool,
    merge: bool,
) -> int:
    if commands:
        terminal.print(view.commands())
        return 0
    if not dumps:
        raise click.UsageError("Missing argument 'DUMP...': `gpuplan import --commands` says how to make one.")
    read = dict(contents(dumps))
    terminal = terminal.naming(read)
    imported = adopt(read, terminal.root, cluster, merges=merge, passed_over=passed_over(dumps))
    if dry_run:
        terminal.print(view.files(imported))
    elif imported.files:
        # The files of a new platform for Git and editors that are missing; none if there are policies.
        is_new = not any(os.path.lexists(terminal.root / name) for name in ("policies", "overlays"))
        files = beside_policies() if is_new else {}
        beside = {path: text for path, text in files.items() if not os.path.lexists(terminal.root / path)}
        write_import(imported, terminal.root, beside)
    if imported.report.diagnostics or outputs:
        theme, put = (terminal.err_theme, terminal.insist) if dry_run else (terminal.out_theme, terminal.print)
        write_outputs(terminal.root, outputs, Format.FULL, theme, put, partial(view.import_findings, imported))
        terminal.say(verdict(imported.report, terminal.err_theme))
    terminal.say(view.summary(imported, dry=dry_run))
    is_refused = imported.first_sync is not None and imported.first_sync.is_refused
    return 0 if imported.report.is_valid and not is_refused else 1
