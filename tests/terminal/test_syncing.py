"""When changes are applied, in words."""

from __future__ import annotations

import pytest

from gpuplan.compiler.policy.models import Window
from gpuplan.terminal.plan import plan_page
from gpuplan.terminal.plan_json import plan_as_data
from gpuplan.terminal.syncing import window_text
from gpuplan.terminal.text import PLAIN
from tests.plans import CLUSTER, a_plan

POOLS = """\
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: serving}
spec:
  gpu: A100-80GB
  nodes: {count: 1, gpusPerNode: 8}
  sharing: {exclusive: {}}
  disruption: {windows: [{schedule: "0 22 * * 0", duration: 4h, timeZone: Europe/Warsaw}]}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: research}
spec:
  gpu: A100-80GB
  nodes: {count: 1, gpusPerNode: 8}
  sharing: {exclusive: {}}
  disruption: {approval: automatic}
"""
ARGOCD = "  argocd: {repoURL: https://git.example.com/gpu.git}\n"


@pytest.mark.parametrize(
    ("schedule", "duration", "words"),
    [
        ("0 2 * * 6", "4h", "Saturdays 02:00-06:00 UTC"),
        ("0 22 * * 7", "4h", "Sundays 22:00-02:00 UTC"),
        ("30 22 * * 1-5", "1h45m", "Mondays to Fridays 22:30-00:15 UTC"),
        ("0 20 * * 6,0", "2h", "Saturdays and Sundays 20:00-22:00 UTC"),
        ("0 3 * * *", "2h", "every day 03:00-05:00 UTC"),
        ("0 2 1 * *", "4h", "`0 2 1 * *` for 4h, UTC"),
        ("*/5 2 * * 6", "4h", "`*/5 2 * * 6` for 4h, UTC"),
        ("0 2 * * 6", "48h", "`0 2 * * 6` for 48h, UTC"),
        ("0 2 * * SAT", "4h", "`0 2 * * SAT` for 4h, UTC"),
    ],
)
def test_a_weekly_window_is_days_and_times(schedule: str, duration: str, words: str) -> None:
    assert window_text(Window(schedule=schedule, duration=duration, timeZone="UTC")) == words


def test_show_says_who_starts_changes_of_nodes_and_when() -> None:
    plan = a_plan(CLUSTER + ARGOCD + POOLS)

    page = plan_page(plan, PLAIN)

    assert "research  by itself\n" in page
    assert "serving   a person starts it, within Sundays 22:00-02:00 Europe/Warsaw\n" in page
    applied = {pool["name"]: pool["applied"] for pool in plan_as_data(plan)["pools"]}
    assert applied["serving"] == "a person starts it, within Sundays 22:00-02:00 Europe/Warsaw"


def test_a_pool_that_nothing_syncs_is_changed_by_hand_in_its_window() -> None:
    page = plan_page(a_plan(CLUSTER + POOLS), PLAIN)

    assert "serving   by hand, within Sundays 22:00-02:00 Europe/Warsaw\n" in page
