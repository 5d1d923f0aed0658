"""Which schedules and time zones a maintenance window may have."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from gpuplan.compiler.checks.disruptions import find_duration_fault, find_time_zone, is_time_zone
from gpuplan.compiler.policy.schedules import find_schedule_fault, window_meant


@pytest.mark.parametrize(
    "schedule",
    [
        "0 2 * * 6",
        "*/15 0-6,22 1 jan-mar ?",
        "0 2 * * SAT",
        "0/5 * * * *",
        "0 0 30 2,4 *",
        "0 0 31 2 mon",
        "5 4 29 2 *",
    ],
)
def test_schedule_is_taken(schedule: str) -> None:
    assert find_schedule_fault(schedule) is None


@pytest.mark.parametrize(
    ("schedule", "reason", "instead"),
    [
        ("0 2 * *", "a schedule has five fields, this one has 4", "0 2 * * 6"),
        ("@daily", "a schedule has five fields, this one has 1", "write `0 0 * * *`"),
        ("0 0 2 * * 6", "a schedule has five fields, this one has 6", "write `0 2 * * 6`"),
        ("Sat 02:00", "a schedule has five fields, this one has 2", "write `0 2 * * sat`"),
        ("60 2 * * *", "minute 60 does not exist", "write 0 to 59"),
        ("0 24 * * *", "hour 24 does not exist", "write 0 to 23"),
        ("0 0 0 * *", "day of month 0 does not exist", "write 1 to 31"),
        ("0 2 * * 7", "day of week 7 does not exist", "write `0 2 * * 0`"),
        ("0 2 * * fri-mon", "the range `fri-mon` runs backwards", "write `0 2 * * 5,6,0,1`"),
        ("0 2 * 13 *", "month 13 does not exist", "or jan to dec"),
        ("a * * * *", "`a` is not a minute", "write 0 to 59"),
        ("*/0 * * * *", "`*/0`: the step is not a number above 0", "*/15"),
        ("0 0 31 4,6 *", "the window never opens", "1 to 28"),
    ],
)
def test_schedule_is_refused(schedule: str, reason: str, instead: str) -> None:
    fault = find_schedule_fault(schedule)
    assert fault is not None
    assert fault.reason.startswith(reason)
    assert instead in fault.instead


@pytest.mark.parametrize(
    ("said", "fields"),
    [
        ("Sun 22:00-02:00", {"schedule": "0 22 * * sun", "duration": "4h"}),
        ("Sat 02:00", {"schedule": "0 2 * * sat"}),
        ("weekends", {"schedule": "0 0 * * 6,0", "duration": "24h"}),
        ("Fri 22:00 - Mon 06:00", {"schedule": "0 22 * * 5", "duration": "56h"}),
        ("Saturday and Sunday 2am-6:30am", {"schedule": "0 2 * * sat,sun", "duration": "4h30m"}),
        ("every day at 02:00 for 4 hours", {"schedule": "0 2 * * *", "duration": "4h"}),
        ("0 2 * * 6", {"schedule": "0 2 * * 6"}),
        ("0 2 * * 5-7", {"schedule": "0 2 * * 5,6,0"}),
        ("first Sunday 02:00", {}),
        ("Sat 02:00 CEST", {}),
        ("60 2 * * *", {}),
        ("tbd", {}),
    ],
)
def test_a_window_in_words_is_read_whole_or_not_at_all(said: str, fields: dict[str, str]) -> None:
    assert window_meant(said) == fields


PARTS = (
    "sat",
    "Sun",
    "mon-fri",
    "weekends",
    "daily",
    "22:00",
    "24:00",
    "2am",
    "4h",
    "-",
    "to",
    "@weekly",
    "7",
    "*",
    "0",
)


@given(st.lists(st.sampled_from(PARTS), max_size=6).map(" ".join))
def test_no_schedule_is_proposed_that_would_be_refused(said: str) -> None:
    proposed = window_meant(said)
    assert not proposed or find_schedule_fault(proposed["schedule"]) is None


@pytest.mark.parametrize(
    ("last", "beyond"),
    [
        ("59 0 1 1 *", "60 0 1 1 *"),
        ("0 23 1 1 *", "0 24 1 1 *"),
        ("0 0 31 1 *", "0 0 32 1 *"),
        ("0 0 1 12 *", "0 0 1 13 *"),
        ("0 0 1 1 6", "0 0 1 1 7"),
        ("0 0 1 1 *", "0 0 0 1 *"),
        ("0 0 1 1 *", "0 0 1 0 *"),
        ("0 0 1 dec *", "0 0 1 dez *"),
        ("0 0 1 1 sat", "0 0 1 1 sam"),
        ("0-59 0 1 1 *", "0-60 0 1 1 *"),
        ("5-5 0 1 1 *", "5-4 0 1 1 *"),
        ("*/1 0 1 1 *", "*/0 0 1 1 *"),
        ("00000059 0 1 1 *", "000000059 0 1 1 *"),
    ],
)
def test_each_field_has_its_first_and_last(last: str, beyond: str) -> None:
    assert find_schedule_fault(last) is None
    assert find_schedule_fault(beyond) is not None


@pytest.mark.parametrize(
    ("month", "days"), list(zip(range(1, 13), (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31), strict=True))
)
def test_a_window_opens_on_the_last_day_of_a_month_and_on_none_beyond(month: int, days: int) -> None:
    assert find_schedule_fault(f"0 0 {days} {month} *") is None
    assert find_schedule_fault(f"0 0 {days + 1} {month} *") is not None


@pytest.mark.parametrize(
    ("schedule", "opens"),
    [
        ("0 0 28/3 2 *", True),
        ("0 0 30/3 2 *", False),
        ("0 0 30-31 2 *", False),
        ("0 0 30,1 2 *", True),
        ("0 0 30 feb,mar *", True),
        ("0 0 31 feb-apr/2 *", False),
        ("0 0 31 feb/2 *", True),
    ],
)
def test_of_several_days_and_months_one_is_enough(schedule: str, opens: bool) -> None:
    assert (find_schedule_fault(schedule) is None) is opens


@pytest.mark.parametrize(("duration", "opens"), [("1s", True), ("0h1m", True), ("0s", False), ("0h0m0s", False)])
def test_a_window_is_of_some_duration(duration: str, opens: bool) -> None:
    assert (find_duration_fault(duration) is None) is opens


@given(st.text("0123456789*/-,? jansun", max_size=20))
def test_any_text_is_taken_or_refused(schedule: str) -> None:
    fault = find_schedule_fault(schedule)
    assert fault is None or fault.reason


@pytest.mark.parametrize(
    "name",
    ["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "America/Port-au-Prince", "Etc/GMT+5", "CET", "Etc/UTC"],
)
def test_time_zone_is_known(name: str) -> None:
    assert is_time_zone(name)


@pytest.mark.parametrize(
    "name",
    [
        "CEST",
        "+02:00",
        "UTC+2",
        "Berlin",
        "Local",
        "europe/berlin",
        "",
        "Europe/",
        "Europe/New York",
        "Europe/Munich",
        "Asia/Mumbai",
        "Europe/Xyzzy",
    ],
)
def test_time_zone_is_unknown(name: str) -> None:
    assert not is_time_zone(name)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("europe/berlin", "Europe/Berlin"),
        ("America/new york", "America/New_York"),
        ("Eurpoe/Paris", "Europe/Paris"),
        ("utc", "UTC"),
        ("Europe/Munich", "Europe/Berlin"),
        ("Asia/Mumbai", "Asia/Kolkata"),
        ("Berlin", "Europe/Berlin"),
        ("Europe/Xyzzy", None),
        ("CEST", None),
        ("+02:00", None),
    ],
)
def test_misspelt_time_zone_is_found(name: str, meant: str | None) -> None:
    assert find_time_zone(name) == meant
