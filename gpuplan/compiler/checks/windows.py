"""Maintenance windows: the schedules and time zones that Argo CD takes."""

from __future__ import annotations

import re

from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.base.wording import closest
from gpuplan.compiler.planning.projects import seconds

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_DAYS_OF_SHORT_MONTHS = {2: 29, 4: 30, 6: 30, 9: 30, 11: 30}


class Fault(Value):
    """What is wrong with a schedule, and what to write instead."""

    reason: str
    instead: str


class _FaultError(Exception):
    """Somewhere in a schedule is a fault."""


class _Field(Value):
    name: str
    least: int
    most: int
    words: tuple[str, ...] = ()

    def number(self, text: str) -> int | None:
        if text.lower() in self.words:
            return self.words.index(text.lower()) + self.least
        return _whole(text)


_DAY = _Field("day of month", 1, 31)
_MONTH = _Field("month", 1, 12, _MONTHS)
_WEEKDAY = _Field("day of week", 0, 6, _WEEKDAYS)
_FIELDS = (_Field("minute", 0, 59), _Field("hour", 0, 23), _DAY, _MONTH, _WEEKDAY)
_EXAMPLE = "write minute, hour, day of month, month and day of week: `0 2 * * 6` is Saturday at 02:00"


def find_schedule_fault(schedule: str) -> Fault | None:
    """Why the schedule cannot be read or never comes, or None.

    The grammar is that of https://github.com/robfig/cron v3 with five fields, as Argo CD parses sync windows
    (`SyncWindow.Validate` in pkg/apis/application/v1alpha1/types.go): Sunday is 0 and never 7, ranges do not wrap.
    """
    texts = schedule.split()
    if len(texts) != len(_FIELDS):
        return Fault(f"a schedule has five fields, this one has {len(texts)}", _EXAMPLE)
    try:
        fields = [
            {value for part in text.split(",") for value in _read(field, part)}
            for field, text in zip(_FIELDS, texts, strict=True)
        ]
    except _FaultError as error:
        return Fault(*error.args)
    _, _, days, months, _ = fields
    if texts[4][0] in "*?" and not any(min(days) <= _DAYS_OF_SHORT_MONTHS.get(month, _DAY.most) for month in months):
        return Fault("the window never opens: no month that it names has such a day", "write a day from 1 to 28")
    return None


def _read(field: _Field, text: str) -> range:
    span, slash, step_text = text.partition("/")
    step = _whole(step_text) if slash else 1
    if not step:
        raise _FaultError(f"`{text}`: the step is not a number above 0", "write a step such as `*/15`")
    low_text, dash, high_text = span.partition("-")
    if low_text in ("*", "?"):
        return range(field.least, field.most + 1, step)
    low, high = field.number(low_text), field.number(high_text or low_text)
    if low is None or high is None or (dash and not high_text):
        raise _FaultError(f"`{span}` is not a {field.name}", _range_of(field))
    if min(low, high) < field.least or max(low, high) > field.most:
        raise _FaultError(
            f"{field.name} {max(low, high) if low >= field.least else low} does not exist", _range_of(field)
        )
    if high < low:
        raise _FaultError(
            f"the range `{span}` runs backwards", f"write `{low_text}-{field.most},{field.least}-{high_text}`"
        )
    return range(low, (field.most if slash and not dash else high) + 1, step)


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else None


def _range_of(field: _Field) -> str:
    names = f", or {field.words[0]} to {field.words[-1]}" if field.words else ""
    return f"write {field.least} to {field.most}{names}"


# --- Durations ---------------------------------------------------------------------------------------------------


def find_duration_fault(duration: str) -> Fault | None:
    """Why no window is of this duration, or None."""
    return None if seconds(duration) else Fault("the window never opens", "write hours, such as `4h`")


# --- Time zones --------------------------------------------------------------------------------------------------

_AREAS = regex(
    "Africa|America|Antarctica|Arctic|Asia|Atlantic|Australia|Brazil|Canada|Chile|Etc|Europe|Indian|Mexico|Pacific|US"
)
_WITHOUT_AREA = regex(
    r"CET|CST6CDT|Cuba|EET|EST|EST5EDT|Egypt|Eire|GB|GB-Eire|GMT|GMT\+0|GMT-0|GMT0|Greenwich|HST|Hongkong|Iceland|Iran"
    r"|Israel|Jamaica|Japan|Kwajalein|Libya|MET|MST|MST7MDT|NZ|NZ-CHAT|Navajo|PRC|PST8PDT|Poland|Portugal|ROC|ROK"
    r"|Singapore|Turkey|UCT|UTC|Universal|W-SU|WET|Zulu"
)
_CITY = regex(r"[A-Z][A-Za-z_-]*(/[A-Z][A-Za-z_-]*)?|(GMT|UTC|UCT|GMT0|GMT[+-][0-9]{1,2})|[EMCP]ST[0-9][EMCP]DT")


def is_time_zone(name: str) -> bool:
    """Whether the name has the form of one; which cities there are depends on the version of the database."""
    area, slash, city = name.partition("/")
    if not slash:
        return bool(_WITHOUT_AREA.fullmatch(name))
    return bool(_AREAS.fullmatch(area) and _CITY.fullmatch(city))


def find_time_zone(name: str) -> str | None:
    """The time zone that a misspelt name may stand for."""
    area, slash, city = name.strip().partition("/")
    if not slash:
        return name.upper() if is_time_zone(name.upper()) else None
    close = closest(area.capitalize(), _AREAS.pattern.split("|"))
    better = f"{close}/{'/'.join(_capitalize(part) for part in city.split('/'))}"
    return better if close and is_time_zone(better) else None


def _capitalize(city: str) -> str:
    return "_".join(word[:1].upper() + word[1:] for word in re.split(r"[ _]+", city))
