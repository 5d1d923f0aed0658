"""The meaning of table headings that are terms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

LEGEND: Final[Mapping[str, str]] = {
    "ALL": "on all nodes of the pool",
    "LIMITS": "sum of all tenants'",
    "FREE": "guaranteed to no tenant",
    "LENDABLE": "lent while it is idle",
    "~": "an even part of a GPU, which nothing enforces",
    "CERTAIN": "available wherever tenants' pods run",
    "SHORT": "guaranteed, but missing",
    "UNUSABLE": "part of no unit",
    "AS WHOLE GPUS": "with a whole GPU for each pod",
    "SAVED": "by sharing, if all units are in use",
    "LACKING": "the resource that the new pod waits for",
    "RUNS AT LEAST": "before it may be evicted",
    "WHILE NODES ARE AWAY": "# in service, . away, | guaranteed",
}
"""A heading, and a sign that cells begin with, has one meaning, in whatever table it is."""

DAYS: Final = ("Sundays", "Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays", "Sundays")
"""The days of a cron expression, where Sunday is 0 and 7."""
