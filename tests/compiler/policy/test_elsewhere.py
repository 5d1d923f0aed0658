"""Fields that policies have under no name point to the page that says how it is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuplan.compiler.policy.data.elsewhere import FIELDS
from gpuplan.compiler.policy.elsewhere import Said
from gpuplan.compiler.policy.fields import nested_model
from gpuplan.compiler.policy.homes import find_said
from gpuplan.compiler.policy.models import KINDS
from tests.every import every, every_row

ROOT = Path(__file__).parents[3]
TOLD = [(kind, said, name) for kind, table in FIELDS.items() for said, names in table.items() for name in names.split()]


@every(sorted({said for _, said, _ in TOLD}), lambda said: said.page)
def test_each_page_is_there(said: Said) -> None:
    assert (ROOT / said.page.partition("#")[0]).is_file()


def test_a_name_is_told_once_for_a_kind() -> None:
    named = [(kind, name) for kind, _, name in TOLD]
    assert len(named) == len(set(named))


@every_row([(kind, name) for kind, _, name in TOLD], lambda kind, name: f"{kind} {name}")
def test_none_is_a_field_of_the_spec(kind: str, name: str) -> None:
    spec = nested_model(KINDS[kind], ("spec",))
    assert spec is not None
    assert name not in {field.alias for field in spec.model_fields.values()}


def test_a_sidecar_is_patched() -> None:
    said = find_said("Workload", "sidecars")
    assert said is not None
    assert said.how.startswith("in `podPatch`")


def test_a_strategy_is_patched_by_hand() -> None:
    said = find_said("Workload", "strategy")
    assert said is not None
    assert said.page == "docs/how-to/patch-what-gpuplan-writes.md"


@pytest.mark.parametrize(
    ("kind", "field", "how"),
    [
        (
            "Workload",
            "deadline",
            "in `training`, by `kind`, `pods`, `trials`, `gang`, `peers`, `elastic`, `topology` or `deadline`",
        ),
        ("Workload", "serviceType", "in `inference.service`, such as `{type: NodePort, nodePort: 30080}`"),
        (
            "Workload",
            "queueLength",
            "in `autoscaling`, by `requestsPerSecond`, `waitingRequests`, `cpuPercent`, `gpuPercent` or `query`",
        ),
        ("Workload", "readinessProbe", "in `inference`, by `probe`, `startup` and `liveness`"),
        ("Workload", "gpuMemory", "by `fraction`, such as `{memory: 10Gi}`"),
        ("Workload", "notebook", "by `workspace`, such as `{port: 8888, idle: 2h, runTime: 12h}`"),
        ("Pool", "instanceType", "by `nodes`: names, a pattern, labels or the board"),
    ],
)
def test_what_the_language_says_under_another_name_is_not_patched(kind: str, field: str, how: str) -> None:
    said = find_said(kind, field)
    assert said is not None
    assert said.how == how


def test_of_what_nobody_calls_so_nothing_is_said() -> None:
    assert find_said("Workload", "replicaz") is None
