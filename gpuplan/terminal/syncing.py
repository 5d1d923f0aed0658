"""When what is written is applied, in words: who starts a sync, and within which windows."""

from __future__ import annotations

from collections.abc import Iterable

from gpuplan.compiler.base.wording import joined
from gpuplan.compiler.planning.appliers import Applier
from gpuplan.compiler.policy.models import Window


def started(applier: Applier, *, is_one: bool = True) -> str:
    """``by itself``, or who starts it; ``is_one`` says that it is one, and not several that are started alike."""
    if not applier.is_automatic:
        return f"a person starts {'it' if is_one else 'them'}"
    if applier.root:
        return f"by `{applier.root}`, the GPU Operator first"
    return "by itself" if is_one else "by themselves"


def within(applier: Applier) -> str:
    """The windows, as the end of a sentence; empty where it may be synced at any time."""
    when = windows_text(applier.windows)
    if not when:
        return ""
    return f", within {when}" if applier.keeps_windows else f"; Flux does not keep the window {when}"


def windows_text(windows: Iterable[Window]) -> str:
    return joined([window_text(window) for window in windows], "or")


def window_text(window: Window) -> str:
    """```0 2 * * 6` for 4h, UTC``."""
    return f"`{window.schedule}` for {window.duration}, {window.time_zone}"
