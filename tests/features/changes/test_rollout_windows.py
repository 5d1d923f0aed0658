"""Rollouts keep windows and approvals: no step empties a node while the sync that follows would be refused."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from gpuplan.features.changes.rollouts import Proposal, Wish, propose
from gpuplan.features.changes.views.rollout import rollout_as_data, shown_rollout
from gpuplan.terminal.schemas import schema
from gpuplan.terminal.text import PLAIN

REPOSITORY = Path(__file__).parents[3]
POOL, NODES = "a100-shared", "\n".join(f"gpu-a100-shared-{number}" for number in range(1, 5))
WINDOW = {"schedule": "0 2 * * 6", "duration": "4h", "timeZone": "Europe/Berlin"}
OPEN = "argocd app get gpu-partitions-prod-a100-shared | grep 'SyncWindow: *Sync Allowed'"
FLUX = {"labels": {"team": "gpu-platform"}}


def a_proposal(root: Path, *, cluster: dict[str, Any] | None = None, **disruption: object) -> Proposal:
    """The example's pool on its way to partitions, its guarantees out of the way."""
    for folder in ("policies", "overlays"):
        shutil.copytree(REPOSITORY / folder, root / folder)
    if cluster:
        own = root / "overlays/prod/cluster.yaml"
        (document,) = yaml.safe_load_all(own.read_text(encoding="utf-8"))
        spec = {key: value for key, value in (document["spec"] | cluster).items() if value is not None}
        own.write_text(yaml.safe_dump(document | {"spec": spec}), encoding="utf-8")
    nothing = {"quotas": [{"pool": POOL, "guaranteed": 0, "limit": "none"}]}
    tenants = [a_document("Tenant", name, nothing) for name in ("research", "development", "batch-inference")]
    text = yaml.safe_dump_all([*tenants, a_document("Pool", POOL, {"disruption": disruption})])
    (root / "overlays/prod/between.yaml").write_text(text, encoding="utf-8")
    wish = Wish(POOL, "seven-small", max_unavailable="2", listed={"": NODES})
    report, proposal = propose(root, ("prod",), wish)
    assert proposal is not None, report.diagnostics
    jsonschema.validate(rollout_as_data(proposal), schema("rollout"))
    return proposal


def a_document(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "gpuplan.dev/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def a_move(proposal: Proposal) -> tuple[dict[str, Any], list[str]]:
    """The first step that moves nodes: as data, and the headings of its page."""
    steps = rollout_as_data(proposal)["steps"]
    index = next(index for index, step in enumerate(steps) if step["kind"] == "move")
    page = shown_rollout(proposal, "table", PLAIN).split("\nStep ")[index + 1]
    headings = [line.strip() for line in page.splitlines()[1:] if line.startswith("  ") and not line.startswith("   ")]
    return steps[index], headings


def test_a_person_empties_nodes_within_the_window_after_the_merge(tmp_path: Path) -> None:
    step, headings = a_move(a_proposal(tmp_path, approval="manual", windows=[WINDOW]))
    assert step["before"][0] == OPEN
    when = "begin within Saturdays 02:00-06:00 Europe/Berlin"
    begin = f"{when}: until then Argo CD refuses the sync, and empty nodes would wait for it"
    assert headings == [
        "change in overlays/prod/between.yaml",
        "write overlays/prod/rollout-a100-shared.yaml",
        "build, commit, and merge",
        "when it can sync",
        begin,
        "take their pods off",
        "apply in this order",
        "wait",
        "let pods in again",
    ]
    operator, nodes = step["syncs"]
    assert (operator["applied_by"], operator["disturbs"], operator["windows"]) == ("gpu-operator-prod", [], [])
    assert nodes == {
        "folder": "partitions/a100-shared",
        "applied_by": "gpu-partitions-prod-a100-shared",
        "kind": "Application",
        "approval": "manual",
        "keeps_windows": True,
        "disturbs": ["a100-shared"],
        "windows": [{"schedule": "0 2 * * 6", "duration": "4h", "time_zone": "Europe/Berlin"}],
    }


def test_where_a_merge_is_synced_by_itself_nodes_are_emptied_before_it_and_within_the_window(tmp_path: Path) -> None:
    step, headings = a_move(a_proposal(tmp_path, approval="automatic", windows=[WINDOW]))
    assert step["before"][0] == OPEN
    assert headings[0].startswith("begin within Saturdays 02:00-06:00")
    assert headings[1] == "take their pods off"
    assert headings.index("build, commit, and merge") > 1


def test_without_a_window_nodes_may_be_emptied_at_any_time(tmp_path: Path) -> None:
    proposal = a_proposal(tmp_path, approval="manual", windows=[])
    step, headings = a_move(proposal)
    assert step["before"][0].startswith("kubectl cordon")
    assert not any(heading.startswith("begin within") for heading in headings)
    assert "gpu-partitions-prod-a100-shared: a person starts it\n" in shown_rollout(proposal, "table", PLAIN)


@pytest.mark.parametrize(
    "cluster",
    [{"argocd": None, "flux": FLUX}, {"argocd": None}, {"nodeLabels": "external"}],
    ids=["flux", "by hand", "labels by others"],
)
def test_where_nothing_keeps_a_window_the_reader_is_told_to(tmp_path: Path, cluster: dict[str, Any]) -> None:
    step, headings = a_move(a_proposal(tmp_path, cluster=cluster, approval="manual", windows=[WINDOW]))
    assert step["before"][0].startswith("kubectl cordon")
    assert step["syncs"][-1]["keeps_windows"] is False
    told = (
        "begin within Saturdays 02:00-06:00 Europe/Berlin, as pool a100-shared has it: nobody but you keeps this window"
    )
    assert told in headings
    assert headings.index(told) < headings.index("take their pods off")


def test_the_window_of_a_pool_with_mps_counts_where_its_daemons_restart(tmp_path: Path) -> None:
    """The operator's Application has no window: what it does to those nodes is for a person to time."""
    mps = tmp_path / "overlays/prod/mps.yaml"
    proposal = a_proposal(tmp_path, approval="manual")
    mps.write_text(
        "apiVersion: gpuplan.dev/v1\nkind: Pool\nmetadata: {name: h100-training}\n"
        "spec:\n  sharing: {timeSlicing: null, mps: {replicas: 2}}\n"
        f"  disruption: {{windows: [{yaml.safe_dump(WINDOW, default_flow_style=True).strip()}]}}\n",
        encoding="utf-8",
    )
    report, found = propose(tmp_path, ("prod",), Wish(POOL, "seven-small", max_unavailable="2", listed={"": NODES}))
    assert found is not None, report.diagnostics
    prepare = rollout_as_data(found)["steps"][0]
    assert prepare["syncs"][0]["disturbs"] == ["h100-training"]
    assert prepare["syncs"][0]["windows"] == [{"schedule": "0 2 * * 6", "duration": "4h", "time_zone": "Europe/Berlin"}]
    assert "as pool h100-training has it: nobody but you keeps this window" in shown_rollout(found, "table", PLAIN)
    assert rollout_as_data(proposal)["steps"][0]["syncs"][0]["disturbs"] == []
