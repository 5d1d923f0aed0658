"""When what is written is applied, in words: who starts a sync, and within which windows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.wording import joined
from gpuplan.compiler.planning.appliers import Applier, find_applier_to_nodes
from gpuplan.compiler.planning.plan import Plan, Pool
from gpuplan.compiler.planning.projects import seconds
from gpuplan.compiler.policy.models import Window
from gpuplan.terminal.data.legend import DAYS


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


def applied_to_nodes(plan: Plan, pool: Pool) -> str:
    """Return who starts changes of a pool's nodes, and when: ``a person starts it, within Sundays 22:00-02:00 UTC``."""
    applier = find_applier_to_nodes(plan, pool)
    when = windows_text(pool.windows)
    words = f"by hand{', within ' * bool(when)}{when}" if applier is None else f"{started(applier)}{within(applier)}"
    return words.replace("`", "")


def window_text(window: Window) -> str:
    """``Saturdays 02:00-06:00 UTC``. A schedule that is not weekly stays a cron expression."""
    weekly, length = _WEEKLY.fullmatch(window.schedule), seconds(window.duration) // 60
    if weekly is None or length >= _DAY:
        return f"`{window.schedule}` for {window.duration}, {window.time_zone}"
    first, last = (DAYS[int(day)] if day else "" for day in (weekly[3], weekly[5]))
    days = f"{first}{' to ' if weekly[4] == '-' else ' and '}{last}" if last else first or "every day"
    start = 60 * int(weekly[2]) + int(weekly[1])
    times = (f"{time // 60 % 24:02}:{time % 60:02}" for time in (start, start + length))
    return f"{days} {'-'.join(times)} {window.time_zone}"


_WEEKLY: Final = regex(r"([0-9]{1,2}) ([0-9]{1,2}) \* \* (?:\*|([0-7])(?:([-,])([0-7]))?)")
_DAY: Final = 24 * 60
