"""The work of `gpuplan drift`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from gpuplan.features.live.commands import FORMATS
from gpuplan.features.live.drifting import drift as compare
from gpuplan.features.live.views import notes, shown_drift, verdict
from gpuplan.terminal.formats import is_acceptable, write_findings, write_outputs
from gpuplan.terminal.lists import contents
from gpuplan.terminal.options import Output
from gpuplan.terminal.session import Terminal
from gpuplan.terminal.text import printable


def drift(
    terminal: Terminal,
    dumps: Sequence[str],
    cluster: str,
    kustomize: str,
    outputs: Sequence[Output],
    *,
    warnings_as_errors: bool,
) -> int:
    read = dict(contents(dumps))
    terminal = terminal.naming(read)
    drifting = compare(read, terminal.root, cluster, kustomize=kustomize)
    if not drifting.is_comparable:
        write_findings(terminal, drifting.report, (), to_stderr=True)
        return 2
    said = [f"{printable(note)}\n" for note in notes(drifting)]
    if drifting.doubt:
        terminal.say(said.pop(0))
    write_outputs(
        terminal.root, outputs, FORMATS[0], terminal.out_theme, terminal.print, partial(shown_drift, drifting)
    )
    if drifting.report.diagnostics:
        write_findings(terminal, drifting.report, (), to_stderr=True)
    terminal.say("".join(said))
    terminal.say(f"{printable(verdict(drifting))}\n")
    return 0 if not drifting.drifts and is_acceptable(drifting.report, warnings_as_errors=warnings_as_errors) else 1
