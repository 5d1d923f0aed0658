"""The last line of a run."""

from __future__ import annotations

from gpuplan.terminal.full import verdict
from gpuplan.terminal.text import PLAIN
from tests.terminal.builders import BROKEN, FIT, LIMIT, a_report


def test_nothing_found() -> None:
    assert verdict(a_report(files=12, clusters=("dev", "prod")), PLAIN) == "no findings in 12 files, 2 clusters\n"


def test_findings_are_counted_worst_first_and_the_worst_is_explained() -> None:
    report = a_report(LIMIT, BROKEN, FIT, files=3)

    assert (
        verdict(report, PLAIN) == "2 errors and 1 warning in 3 files, 1 cluster; `gpuplan explain GPU001` says more\n"
    )
