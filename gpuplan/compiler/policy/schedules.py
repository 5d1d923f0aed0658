"""Schedules of windows: the form that Argo CD reads, and the windows that people say in other words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.values import Value

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_DAYS_OF_SHORT_MONTHS = {2: 29, 4: 30, 6: 30, 9: 30, 11: 30}


class Fault(Value):
    """A fault of a schedule, and what to write instead."""

    reason: str
    instead: str


class _FaultError(Exception):
    """A fault somewhere in a schedule."""


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
    """Return why the schedule cannot be read or never comes, or None.

    The grammar is that of https://github.com/robfig/cron v3 with five fields, as Argo CD parses sync windows
    (`SyncWindow.Validate` in pkg/apis/application/v1alpha1/types.go): Sunday is 0 and never 7, ranges do not wrap.
    """
    fault, meant = _find_fault(schedule), window_meant(schedule).get("schedule")
    return Fault(fault.reason, f"write `{meant}`") if fault and meant else fault


def _find_fault(schedule: str) -> Fault | None:
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
        raise _FaultError(f"the range `{span}` runs backwards", f"write a range within {field.least} to {field.most}")
    return range(low, (field.most if slash and not dash else high) + 1, step)


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else None


def _range_of(field: _Field) -> str:
    names = f", or {field.words[0]} to {field.words[-1]}" if field.words else ""
    return f"write {field.least} to {field.most}{names}"


# --- In other words --------------------------------------------------------------------------------------------------


def window_meant(text: str) -> Mapping[str, str]:
    """Return the fields of the window that a text means, such as `Sat 02:00-06:00`; none if nobody can tell.

    The schedule is valid. The duration is missing where the text does not say when the window ends.
    """
    words = _SHORT.sub(lambda word: _SPANS.get(word[0][:5], "sun-sat"), text.strip().lower())
    if cron := _cron(_MACROS.get(text.strip(), words)):
        return {"schedule": cron}
    clocks = [*_CLOCK.finditer(words)]
    times = [
        int(clock[1]) % (12 if clock[3] else 24) * 60 + int(clock[2] or 0) + 720 * (clock[3] == "pm")
        for clock in clocks
    ]
    rest = _CLOCK.sub(" ", words)
    length, rest = _LENGTH.search(rest), _LENGTH.sub(" ", rest)
    spans = [*_DAYS.finditer(rest)]
    if not (times or spans) or len(times) > 2 or _FILLING.sub("", _DAYS.sub("", rest)):
        return {}
    begin, end = (*times, *times[-1:], 0, 0)[:2] if times else (0, 0)
    minutes = (end - begin) % 1440 or 1440
    if len(times) == 2 and len(spans) == 1 and spans[0][2] and words.rindex(spans[0][2]) > clocks[0].end():
        first, last = (_WEEKDAYS.index(day) for day in spans[0].groups())  # from a day's hour to another day's
        days, minutes = str(first), ((last - first) * 1440 + end - begin) % 10080
    else:
        days = ",".join(_forward("-".join(filter(None, span.groups()))) for span in spans)
    schedule = {"schedule": f"{begin % 60} {begin // 60} * * {'*' if days in ('', 'sun-sat') else days}"}
    if length:
        return {**schedule, "duration": f"{length[1]}{length[2]}"}
    hours, minutes = divmod(minutes, 60)
    return (
        {**schedule, "duration": f"{hours}h" * bool(hours) + f"{minutes}m" * bool(minutes)}
        if len(times) != 1
        else schedule
    )


def _cron(text: str) -> str:
    """Return the schedule that was most likely meant by one with seconds, with Sunday as 7, or over a week's end."""
    parts = text.split()
    *others, days = parts[1:] if len(parts) > len(_FIELDS) and parts[0] == "0" else parts or [""]
    schedule = " ".join((*others, ",".join(map(_forward, days.split(",")))))
    return schedule if _find_fault(schedule) is None else ""


def _forward(span: str) -> str:
    """Return days of the week as Argo CD counts them: Sunday as 0, and no range over the end."""
    days = [day for end in span.split("-") if (day := _WEEKDAY.number(end)) is not None]
    if len(days) != span.count("-") + 1 or (days == sorted(days) and days[-1] <= _WEEKDAY.most):
        return span
    last = days[-1] + 7 * (days[-1] < days[0])
    return ",".join(dict.fromkeys(str(day % 7) for day in range(days[0], last + 1)))


_MACROS: Final = {"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *"}
_SHORT: Final = regex(r"\b(week(ends?|days?)|workdays?|daily|nightly|every ?(day|night))\b")
_SPANS: Final = {"weeke": "sat-sun", "weekd": "mon-fri", "workd": "mon-fri"}
_NAMES: Final = "|".join(_WEEKDAYS)
_DAYS: Final = regex(rf"\b({_NAMES})[a-z]*(?:\s*(?:-|to|through)\s*({_NAMES})[a-z]*)?")
_CLOCK: Final = regex(r"\b([01]?[0-9]|2[0-4])(?::([0-5][0-9])|(?=\s*[ap]m))\s*(am|pm)?\b")
_LENGTH: Final = regex(r"\b([0-9]{1,4})\s*(h|m)[a-z]*\b")
_FILLING: Final = regex(r"\b(and|at|between|each|every|for|from|on|till|to|until)\b|[\s,;-]")
