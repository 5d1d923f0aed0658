"""Steps of a rollout as files: each of them loads, is valid and builds, and the next begins where it ends."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpuplan.compiler.backends.gpu_operator.device_plugin import configurations
from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.pipeline import build, validate
from gpuplan.compiler.planning.plan import Plan
from gpuplan.features.changes.comparing import Side, SideKind, choose_sides, compare_sides
from gpuplan.features.changes.edits import Action, Edit, write
from gpuplan.features.changes.rollouts import Proposal, Refusal, RolloutPlan, StepKind, Wish, find_uncommitted, propose
from gpuplan.features.changes.views.rollout import rollout_as_data, shown_rollout
from gpuplan.terminal.text import PLAIN

REPOSITORY = Path(__file__).parents[3]
SHARED = tuple(f"gpu-a100-shared-{number}" for number in range(1, 5))
OVERLAY = "overlays/prod/rollout-a100-shared.yaml"
NO_GUARANTEES = "".join(
    f"""\
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {{name: {tenant}}}
spec:
  quotas:
    - {{pool: a100-shared, guaranteed: 0, limit: none}}
"""
    for tenant in ("research", "development", "batch-inference")
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The example platform, where nobody is guaranteed shares of `a100-shared`."""
    for folder in ("policies", "overlays"):
        shutil.copytree(REPOSITORY / folder, tmp_path / folder)
    (tmp_path / "overlays/prod/guarantees.yaml").write_text(NO_GUARANTEES, encoding="utf-8")
    return tmp_path


def a_wish(to: str = "", *, back: bool = False, at_once: int = 2, pool: str = "a100-shared") -> Wish:
    return Wish(pool, to, back=back, max_unavailable=str(at_once), listed={"": "\n".join(SHARED)})


def proposed(root: Path, wish: Wish, cluster: str = "prod") -> Proposal:
    report, proposal = propose(root, (cluster,), wish)
    assert proposal is not None, report.diagnostics
    return proposal


def kinds(proposal: Proposal) -> list[str]:
    assert isinstance(proposal.outcome, RolloutPlan)
    return [step.kind.value for step in proposal.outcome.steps]


def go(root: Path, wish: Wish, steps: int = 99) -> list[dict[str, dict[str, str]]]:
    """The labels of the nodes after each step; every step is written, judged and built."""
    seen = []
    for _ in range(steps):
        proposal = proposed(root, wish)
        if not proposal.edits:
            break
        write(root, proposal.edits[0])
        built = build(root, ("prod",))
        assert [item.code for item in built.report.diagnostics if item.severity != "note"] == []
        seen.append(labels_of_nodes(built.tree, "prod/partitions/a100-shared/"))
    return seen


def labels_of_nodes(tree: Mapping[str, bytes], folder: str) -> dict[str, dict[str, str]]:
    """What NFD makes of the rules: every node has the labels of exactly one."""
    (text,) = (data for path, data in tree.items() if path.startswith(folder) and "nodefeaturerule" in path)
    rules = yaml.safe_load(text)["spec"]["rules"]
    found = {}
    for name in SHARED:
        (rule,) = (rule for rule in rules if matches(rule, name))
        found[name] = rule["labels"]
    return found


def matches(rule: dict[str, Any], name: str) -> bool:
    names = [term for term in rule["matchFeatures"] if term["feature"] == "system.name"]
    return all(holds(term["matchExpressions"]["nodename"], name) for term in names)


def holds(match: dict[str, Any], name: str) -> bool:
    if match["op"] == "InRegexp":
        return any(re.search(pattern, name) for pattern in match["value"])
    return bool((name in match["value"]) == (match["op"] == "In"))


def values(labels: dict[str, dict[str, str]], key: str) -> list[str]:
    return [
        labels[name][f"nvidia.com/{key}"].rpartition("-")[0] or labels[name][f"nvidia.com/{key}"] for name in SHARED
    ]


def test_from_shares_to_partitions_step_by_step(root: Path) -> None:
    first = proposed(root, a_wish("seven-small"))
    assert kinds(first) == ["prepare", "move", "move", "settle"]
    write(root, first.edits[0])

    seen = go(root, a_wish(), 1) + go(root, a_wish(), 1) + go(root, a_wish("seven-small"))
    configs = [values(labels, "mig.config") for labels in seen]
    keys = [[labels[name]["nvidia.com/device-plugin.config"] for name in SHARED] for labels in seen]

    assert configs == [["seven-small", "seven-small", "all", "all"], ["seven-small"] * 4, ["seven-small"] * 4]
    moved, own = "a100-shared.26e351e", "a100-shared"
    assert keys == [[moved, moved, own, own], [moved] * 4, [moved] * 4]
    assert seen[-1] == seen[-2]
    assert proposed(root, a_wish("seven-small")).edits == ()


def test_no_label_names_a_configuration_that_is_not_there(root: Path) -> None:
    write(root, proposed(root, a_wish("seven-small")).edits[0])
    while (proposal := proposed(root, a_wish("seven-small"))).edits:
        write(root, proposal.edits[0])
        tree = build(root, ("prod",)).tree
        labels = labels_of_nodes(tree, "prod/partitions/a100-shared/")
        maps = [yaml.safe_load(data) for path, data in tree.items() if "gpu-operator/configmap" in path]
        keys = {key for body in maps for key in body["data"]}
        layouts = {
            name
            for body in maps
            if "config.yaml" in body["data"]
            for name in yaml.safe_load(body["data"]["config.yaml"]).get("mig-configs", ())
        }
        assert {found["nvidia.com/device-plugin.config"] for found in labels.values()} <= keys
        assert {found["nvidia.com/mig.config"] for found in labels.values()} <= layouts


def test_between_the_first_and_the_last_move_the_operators_files_stay(root: Path) -> None:
    """So that no pod of the operator restarts on nodes that a step does not touch."""
    files = []
    for wish in (a_wish("seven-small"), a_wish(), a_wish()):
        write(root, proposed(root, wish).edits[0])
        tree = build(root, ("prod",)).tree
        files.append({path: data for path, data in tree.items() if path.startswith("prod/gpu-operator/")})
    assert files[0] == files[1] == files[2]


def test_back_from_the_middle_leaves_nothing_behind(root: Path) -> None:
    before = build(root, ("prod",)).tree
    go(root, a_wish("seven-small"), 2)

    assert kinds(proposed(root, a_wish(back=True))) == ["return", "forget"]
    go(root, a_wish(back=True), 2)

    assert not (root / OVERLAY).exists()
    assert build(root, ("prod",)).tree == before


def test_back_from_the_end_leaves_nothing_behind(root: Path) -> None:
    go(root, a_wish("seven-small"))
    assert not (root / OVERLAY).exists()
    go(root, a_wish("time-slicing=3"))
    assert not (root / OVERLAY).exists()


def test_what_a_step_writes(root: Path) -> None:
    go(root, a_wish("seven-small"), 2)
    assert (root / OVERLAY).read_text(encoding="utf-8") == (
        "# Step 2 of 4 of `gpuplan rollout`, which replaces this file by the next one.\n"
        "apiVersion: gpuplan.dev/v1\n"
        "kind: Pool\n"
        "metadata:\n"
        "  name: a100-shared\n"
        "spec:\n"
        "  rollout:\n"
        "    sharing:\n"
        "      mig:\n"
        "        layout: seven-small\n"
        "    nodes:\n"
        "    - gpu-a100-shared-1\n"
        "    - gpu-a100-shared-2\n"
        "---\n"
        "apiVersion: gpuplan.dev/v1\n"
        "kind: Retained\n"
        "metadata:\n"
        "  name: device-plugin-a100-shared\n"
        "spec:\n"
        "  devicePluginConfig:\n"
        "    key: a100-shared\n"
        "    config:\n"
        "      version: v1\n"
        "      sharing:\n"
        "        timeSlicing:\n"
        "          renameByDefault: true\n"
        "          failRequestsGreaterThanOne: true\n"
        "          resources:\n"
        "          - name: nvidia.com/gpu\n"
        "            replicas: 3\n"
        '  until: "pool `a100-shared` is removed or shares its GPUs so again, and `kubectl get nodes -l '
        'nvidia.com/device-plugin.config=a100-shared` lists no node"\n'
    )


def test_the_same_step_is_proposed_as_long_as_it_is_not_written(root: Path) -> None:
    assert proposed(root, a_wish("seven-small")).edits == proposed(root, a_wish("seven-small")).edits


def test_guarantees_on_what_goes_are_named(root: Path) -> None:
    (root / "overlays/prod/guarantees.yaml").unlink()
    refusal = proposed(root, a_wish("seven-small")).outcome
    assert isinstance(refusal, Refusal)
    (shortage,) = refusal.shortages
    assert (shortage.unit, shortage.guaranteed) == ("shared", 72)
    assert shortage.holders == (("batch-inference", 12), ("development", 24), ("research", 36))


def test_what_names_a_unit_that_goes_is_listed(root: Path) -> None:
    left = proposed(root, a_wish("seven-small")).left_over
    assert {(item.kind, item.name, item.unit) for item in left} == {
        ("Tenant", "batch-inference", "shared"),
        ("Tenant", "development", "shared"),
        ("Tenant", "research", "shared"),
        ("Workload", "evaluation", "shared"),
    }


PLATFORM = """\
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata: {name: prod}
spec: {kubernetes: "1.34", gpuOperator: {install: helm, version: v26.7.0}, nodeLabels: LABELS, scheduler: {kind: KIND}}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: a100-shared}
spec:
  gpu: A100-80GB
  nodes: {count: 4, gpusPerNode: 8, NODES}
  sharing: FROM
  ALLOCATION
---
apiVersion: gpuplan.dev/v1
kind: MigLayout
metadata: {name: seven-small}
spec: {gpu: A100-80GB, instances: {1g.10gb: 7}}
"""
INLINE, PATTERN = "{mig: {instances: {3g.40gb: 2}}}", 'namePattern: "gpu-a100-shared-[0-9]+"'


def a_platform(
    root: Path,
    sharing: str,
    *,
    nodes: str = PATTERN,
    labels: str = "nfd",
    scheduler: str = "kubernetes",
    allocation: str = "devicePlugin",
) -> Path:
    text = PLATFORM.replace("FROM", sharing).replace("NODES", nodes).replace("LABELS", labels)
    text = text.replace("KIND", scheduler).replace("ALLOCATION", f"allocation: {allocation}")
    cluster, _, policies = text.partition("---\n")
    for path, part in (("overlays/prod/cluster.yaml", cluster), ("policies/all.yaml", policies)):
        (root / path).parent.mkdir(parents=True)
        (root / path).write_text(part, encoding="utf-8")
    return root


@pytest.mark.parametrize("labels", ["nfd", "external"])
@pytest.mark.parametrize("nodes", [PATTERN, f"names: [{', '.join(SHARED)}]"])
@pytest.mark.parametrize("sharing", ["{timeSlicing: {replicas: 3}}", INLINE])
def test_only_steps_that_move_nodes_are_said_to_repartition(
    tmp_path: Path, sharing: str, nodes: str, labels: str
) -> None:
    """What is written in the end is written otherwise, and no node has anything else."""
    root, before = a_platform(tmp_path / "platform", sharing, nodes=nodes, labels=labels), tmp_path / "before"
    classes = []
    while (proposal := proposed(root, a_wish("seven-small"))).edits:
        assert isinstance(proposal.outcome, RolloutPlan)
        shutil.copytree(root, before)
        write(root, proposal.edits[0])
        found = compare_sides(*choose_sides(root, against=str(before)))
        moves = bool(proposal.outcome.steps[0].nodes)
        classes.append((moves, found.worst))
        changes = [impact.change for impact in found.impacts]
        assert not [change.what for change in changes if "join" in change.what]
        assert [change.nodes.names for change in changes if change.nodes and change.needs_drain] == (
            [proposal.outcome.steps[0].nodes] if moves else []
        )
        shutil.rmtree(before)
    assert {found for moves, found in classes if moves} == {ChangeClass.REPARTITION}
    assert all(found.rank < ChangeClass.REPARTITION.rank for moves, found in classes if not moves)


@pytest.mark.parametrize(
    ("scheduler", "allocation", "message"),
    [
        ("kubernetes", "dra", "allocated by DRA, which has no time slices"),
        ("kai", "devicePlugin", "does not count the shares of pool `a100-shared`"),
    ],
)
def test_a_target_that_would_be_an_error_is_refused_before_its_first_step(
    tmp_path: Path, scheduler: str, allocation: str, message: str
) -> None:
    root = a_platform(tmp_path, INLINE, scheduler=scheduler, allocation=allocation)
    with pytest.raises(GpuplanError, match=f"`--to time-slicing=2` would be an error: .*{message}"):
        propose(root, ("prod",), a_wish("time-slicing=2"))


# --- Files of the user's own -----------------------------------------------------------------------------------------


def test_an_overlay_of_the_users_own_is_changed_where_it_stands(root: Path) -> None:
    """`dev` changes the pool already, and an overlay has one document for it."""
    wish = Wish("a100-shared", "seven-small", listed={"": "gpu-a100-shared-1"})
    for tenant in ("development", "research"):
        path = root / "overlays/dev/policies.yaml"
        text = path.read_text(encoding="utf-8")
        path.write_text(re.sub(rf"(name: {tenant}\n(?:.*\n){{2}}.*guaranteed: )[0-9]+", r"\g<1>0, limit: 2", text))
    proposal = proposed(root, wish, "dev")
    changed = [step[0] for step in proposal.edits]
    assert {(edit.path, edit.action, edit.is_by_hand) for edit in changed} == {
        ("overlays/dev/policies.yaml", Action.CHANGE, False)
    }
    assert next(yaml.safe_load_all(changed[1].text))["spec"] == {
        "rollout": {"sharing": {"mig": {"layout": "seven-small"}}, "nodes": ["gpu-a100-shared-1"]}
    }


def test_a_file_that_says_more_than_a_step_is_not_replaced(root: Path) -> None:
    head = "apiVersion: gpuplan.dev/v1\nkind: Pool\nmetadata: {name: a100-shared}\n"
    (root / OVERLAY).write_text(f"{head}spec: {{nodeLabels: {{example.com/a: b}}}}\n", encoding="utf-8")
    (edit,) = proposed(root, a_wish("seven-small")).edits[0]
    assert (edit.path, edit.action, edit.is_by_hand) == (OVERLAY, Action.CHANGE, True)


def test_a_file_is_written_at_once_or_not_at_all(root: Path) -> None:
    write(root, [Edit("overlays/prod/new.yaml", Action.WRITE, "a: b\n")])
    assert (root / "overlays/prod/new.yaml").read_text(encoding="utf-8") == "a: b\n"
    assert [path.name for path in (root / "overlays/prod").iterdir() if path.name.startswith(".")] == []


def test_a_step_that_is_not_committed_is_known(root: Path) -> None:
    def git(*arguments: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *who, *arguments], cwd=root, check=True, capture_output=True)

    assert not find_uncommitted(root, proposed(root, a_wish("seven-small")))
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "platform")
    assert not find_uncommitted(root, proposed(root, a_wish("seven-small")))
    go(root, a_wish("seven-small"), 1)
    assert find_uncommitted(root, proposed(root, a_wish()))
    git("add", ".")
    git("commit", "-qm", "step")
    assert not find_uncommitted(root, proposed(root, a_wish()))


# --- Nodes -----------------------------------------------------------------------------------------------------------


def test_nodes_are_taken_from_what_kubectl_lists_in_the_order_of_their_numbers(root: Path) -> None:
    names = ["gpu-a100-shared-10", "gpu-a100-shared-9", "gpu-other-1", "gpu-a100-shared-2", "gpu-a100-shared-1"]
    items = [{"kind": "Node", "metadata": {"name": name, "labels": {}}} for name in names]
    wish = a_wish("seven-small", at_once=1)._replace(listed={"": json.dumps({"kind": "List", "items": items})})
    outcome = proposed(root, wish).outcome
    assert isinstance(outcome, RolloutPlan)
    assert [name for step in outcome.steps if step.kind is StepKind.MOVE for name in step.nodes] == [
        "gpu-a100-shared-1",
        "gpu-a100-shared-2",
        "gpu-a100-shared-9",
        "gpu-a100-shared-10",
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"listed": None}, "pool `a100-shared` does not say which nodes it has"),
        ({"listed": {"": "gpu-a100-shared-1\nother\n"}}, "pool `a100-shared` counts 4 nodes, and 1 are listed"),
        ({"listed": {"": "{"}}, "this is no list of nodes: it is not JSON: "),
        ({"listed": {"": '{"items": [1]}'}}, "this is no list of nodes: its `items` is no list of objects"),
        ({"to": "seven-smal"}, "`seven-smal` is no layout"),
        ({"to": "time-slicing=0"}, "`time-slicing=0` is no layout"),
        ({"to": ""}, "pool `a100-shared` has no rollout to go on with"),
        ({"pool": "a100-shard"}, "there is no pool `a100-shard`"),
        ({"max_unavailable": "", "batch": 2}, "`--batch 2` is more than the 1"),
    ],
)
def test_a_wish_that_cannot_be_understood(root: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(GpuplanError, match=re.escape(message)):
        propose(root, ("prod",), a_wish("seven-small")._replace(**change))


def test_a_pool_of_several_clusters_goes_its_way_in_one(root: Path) -> None:
    with pytest.raises(GpuplanError, match=r"pool `a100-shared` is in 3 clusters"):
        propose(root, (), a_wish("seven-small"))


@pytest.mark.parametrize(("share", "batch"), [("50%", 2), ("25%", 1), ("10%", 1), ("100%", 4), ("3", 3), ("9", 4)])
def test_how_many_go_together(root: Path, share: str, batch: int) -> None:
    outcome = proposed(root, a_wish("seven-small")._replace(max_unavailable=share)).outcome
    assert isinstance(outcome, RolloutPlan)
    assert len(outcome.steps[1].nodes) == batch


def test_nothing_is_proposed_on_policies_with_errors(root: Path) -> None:
    (root / "overlays/prod/guarantees.yaml").write_text(NO_GUARANTEES.replace("a100-shared", "a100-shard"))
    report, proposal = propose(root, ("prod",), a_wish("seven-small"))
    assert (report.is_valid, proposal) == (False, None)


# --- What `gpuplan diff` says of the steps -----------------------------------------------------------------------

WITHOUT_ITS_WORKLOAD = """\
apiVersion: gpuplan.dev/v1
kind: Workload
metadata: {name: evaluation, $patch: delete}
"""


def classes(root: Path, wish: Wish, old: Path) -> list[tuple[StepKind, ChangeClass]]:
    """Each step, and the worst class of all that differs by it."""
    found = []
    while (proposal := proposed(root, wish)).edits:
        assert isinstance(proposal.outcome, RolloutPlan)
        shutil.rmtree(old, ignore_errors=True)
        shutil.copytree(root, old)
        write(root, proposal.edits[0])
        diff = compare_sides(Side(SideKind.FOLDER, "old", old), Side.work_tree(root), ("prod",))
        found.append((proposal.outcome.steps[0].kind, diff.worst))
    return found


@pytest.mark.parametrize("node_labels", ["nfd", "external"])
@pytest.mark.parametrize(
    ("to", "of_a_move"), [("seven-small", ChangeClass.REPARTITION), ("exclusive", ChangeClass.PLUGIN_RESTART)]
)
def test_each_step_is_called_what_it_is(
    root: Path, tmp_path_factory: pytest.TempPathFactory, to: str, of_a_move: ChangeClass, node_labels: str
) -> None:
    """To settle, no node is set up anew; the old unit cannot be asked for any more."""
    (root / "overlays/prod/without.yaml").write_text(WITHOUT_ITS_WORKLOAD, encoding="utf-8")
    cluster = root / "overlays/prod/cluster.yaml"
    cluster.write_text(cluster.read_text().replace("\nspec:\n", f"\nspec:\n  nodeLabels: {node_labels}\n", 1))
    moved = [(StepKind.MOVE, of_a_move), (StepKind.MOVE, of_a_move), (StepKind.SETTLE, ChangeClass.ADMISSION)]
    old = tmp_path_factory.mktemp("before") / "old"
    assert classes(root, a_wish(to), old) == [(StepKind.PREPARE, ChangeClass.PLUGIN_RESTART), *moved]
    assert classes(root, a_wish("time-slicing=3"), old) == [(StepKind.PREPARE, ChangeClass.PLUGIN_RESTART), *moved]


def test_the_way_back_from_the_middle_is_called_what_it_is(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    go(root, a_wish("seven-small"), 2)
    assert classes(root, a_wish(back=True), tmp_path_factory.mktemp("before") / "old") == [
        (StepKind.RETURN, ChangeClass.REPARTITION),
        (StepKind.FORGET, ChangeClass.ADMISSION),
    ]


# --- What steps do beside their nodes ----------------------------------------------------------------------------

MPS = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: h100-training}
spec: {sharing: {timeSlicing: null, mps: {replicas: 2}}}
"""


def test_where_mps_daemons_restart_a_step_says_so_and_has_pods_taken_off(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """What makes keys known, or forgets them, changes the device plugin's file, with which all daemons restart."""
    (root / "overlays/prod/mps.yaml").write_text(MPS, encoding="utf-8")
    selector = "--selector='nvidia.com/device-plugin.config in (h100-training)'"
    for step in rollout_as_data(proposed(root, a_wish("seven-small")))["steps"]:
        changes_file = step["kind"] in {"prepare", "settle"}
        assert step["restarts_mps"] == (["h100-training"] if changes_file else [])
        assert any(selector in command for command in step["before"]) == changes_file
        assert any(selector in command for command in step["after"]) == changes_file

    page = shown_rollout(proposed(root, a_wish("seven-small")), "table", PLAIN)
    assert "Step 1 of 4: make MIG seven-small (mixed) known; MPS daemons restart, and end what runs there" in page
    assert "nothing changes on nodes" not in page

    (root / "overlays/prod/without.yaml").write_text(WITHOUT_ITS_WORKLOAD, encoding="utf-8")
    old = tmp_path_factory.mktemp("before") / "old"
    assert dict(classes(root, a_wish("seven-small"), old)) == {
        StepKind.PREPARE: ChangeClass.REPARTITION,
        StepKind.MOVE: ChangeClass.REPARTITION,
        StepKind.SETTLE: ChangeClass.REPARTITION,
    }


def test_nodes_that_got_mps_themselves_are_among_those_whose_daemons_restart(root: Path) -> None:
    def restarts(to: str) -> dict[str, list[str]]:
        return {step["kind"]: step["restarts_mps"] for step in rollout_as_data(proposed(root, a_wish(to)))["steps"]}

    cluster = root / "overlays/prod/cluster.yaml"  # with an operator whose MPS daemons start
    cluster.write_text(cluster.read_text(encoding="utf-8").replace("v26.7.0", "v25.10.1"), encoding="utf-8")
    overlay = root / "overlays/prod/mps.yaml"
    overlay.write_text(MPS.replace("h100-training", "a100-shared"), encoding="utf-8")
    assert restarts("seven-small") == {"prepare": ["a100-shared"], "move": [], "settle": []}

    (root / "overlays/prod/without.yaml").write_text(WITHOUT_ITS_WORKLOAD, encoding="utf-8")
    overlay.write_text(
        MPS.replace("h100-training", "a100-shared").replace("mps: {replicas: 2}", "mig: {layout: seven-small}")
    )
    go(root, a_wish("mps=2"))
    key = next(pool for pool in plan_of(root).pools if pool.name == "a100-shared").keys.own
    assert restarts("seven-small") == {"prepare": [key], "move": [], "settle": []}
    go(root, a_wish("seven-small"), 3)
    assert restarts("seven-small") == {"settle": []}


def test_no_label_moves_at_the_end_of_a_rollout(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """All that nodes name stays in the operator's files, so the order in which Argo CD syncs them does no harm."""
    (root / "overlays/prod/without.yaml").write_text(WITHOUT_ITS_WORKLOAD, encoding="utf-8")
    shared = root / "policies/pools/shared.yaml"
    documents = [
        {**body, "spec": {**body["spec"], "disruption": {"approval": "automatic"}}}
        if body["metadata"]["name"] == "a100-shared"
        else body
        for body in yaml.safe_load_all(shared.read_text())
    ]
    shared.write_text(yaml.safe_dump_all(documents))
    assert not any(step["needs_person"] for step in rollout_as_data(proposed(root, a_wish("seven-small")))["steps"])

    go(root, a_wish("seven-small"), 3)
    old = tmp_path_factory.mktemp("before") / "old"
    shutil.copytree(root, old)
    before = configurations(plan_of(root))
    write(root, proposed(root, a_wish()).edits[0])
    report = validate(root, ("prod",), against=str(old))
    assert [item.code for item in report.diagnostics if item.is_error] == []
    after = configurations(plan_of(root))
    assert before.keys() - after.keys() == {"a100-shared"}
    assert after.items() <= before.items()


def plan_of(root: Path) -> Plan:
    return validate(root, ("prod",), kustomize="off").plans[0]


def test_a_pool_of_one_node_goes_from_shares_to_partitions_in_steps(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The way that an error on the direct edit names."""
    one = "apiVersion: gpuplan.dev/v1\nkind: Pool\nmetadata: {name: a100-shared}\nspec: {nodes: {count: 1}}\n"
    (root / "overlays/prod/one.yaml").write_text(one, encoding="utf-8")
    wish = a_wish("seven-small")._replace(listed={"": SHARED[0]})
    assert kinds(proposed(root, wish)) == ["prepare", "move", "settle"]
