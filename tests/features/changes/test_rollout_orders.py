"""Each step of a rollout is safe in any order of files and labels: what labels name is defined, and means the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from gpuplan.compiler.backends.gpu_operator import device_plugin, mig_parted
from gpuplan.compiler.pipeline import build, validate
from gpuplan.compiler.planning.plan import DEVICE_PLUGIN_CONFIG_LABEL, MIG_CONFIG_LABEL, Plan, Pool
from gpuplan.features.changes.edits import write
from gpuplan.features.changes.retaining import keepers, leftovers
from gpuplan.features.changes.rollouts import Wish, propose
from tests.features.changes.test_rollouts import PATTERN, SHARED, a_platform

OVERLAY = "overlays/prod/rollout-a100-shared.yaml"
SHARES, WHOLE, MPS = "{timeSlicing: {replicas: 3}}", "{exclusive: {}}", "{mps: {replicas: 2}}"
INLINE, NAMED = "{mig: {instances: {3g.40gb: 2}}}", "{mig: {layout: seven-small}}"
PARTLY = "{mig: {devices: [{gpus: [0, 1], instances: {3g.40gb: 2}}, {gpus: [2, 3, 4, 5, 6, 7], enabled: false}]}}"
WAYS = [
    (SHARES, "seven-small"),
    (WHOLE, "seven-small"),
    (MPS, "seven-small"),
    (INLINE, "seven-small"),
    (PARTLY, "time-slicing=2"),
    (NAMED, "exclusive"),
    (WHOLE, "time-slicing=2"),
    (NAMED, "mps=4"),
]
BACK = {SHARES: "time-slicing=3", WHOLE: "exclusive", MPS: "mps=2", NAMED: "seven-small"}


def a_wish(to: str = "", *, back: bool = False) -> Wish:
    return Wish("a100-shared", to, back=back, max_unavailable="3", listed={"": "\n".join(SHARED)})


def plan_of(root: Path) -> Plan:
    report = validate(root, ("prod",), kustomize="off")
    assert [item.code for item in report.diagnostics if item.is_error or item.code == "GPU720"] == []
    return report.plans[0]


def is_next_written(root: Path, wish: Wish) -> bool:
    _, proposal = propose(root, ("prod",), wish)
    assert proposal is not None
    for edit in proposal.edits[:1]:
        write(root, edit)
    return bool(proposal.edits)


def steps(root: Path, wish: Wish) -> Iterator[tuple[Plan, Plan]]:
    """The platform before and after each step, as it is taken."""
    before = plan_of(root)
    while is_next_written(root, wish):
        after = plan_of(root)
        yield before, after
        before = after


def labels(plan: Plan) -> set[tuple[str, str]]:
    """The labels that nodes have; a part without nodes has none."""
    parts: list[Pool] = [part for part in plan.parts if part.nodes.count]
    keys = (DEVICE_PLUGIN_CONFIG_LABEL, MIG_CONFIG_LABEL)
    return {(key, part.labels[key]) for part in parts for key in keys}


def meanings(plan: Plan) -> dict[tuple[str, str], object]:
    keys = device_plugin.configurations(plan).items()
    entries = mig_parted.configuration(plan)["mig-configs"].items()
    return {
        **{(DEVICE_PLUGIN_CONFIG_LABEL, key): config for key, config in keys},
        **{(MIG_CONFIG_LABEL, name): entry for name, entry in entries},
    }


def assert_safe(before: Plan, after: Plan) -> None:
    old, new = meanings(before), meanings(after)
    for label in labels(before) | labels(after):
        assert old[label] == new[label]
    assert [keeper.path for keeper in keepers(before, after) if labels(before) & {label_of(keeper.title)}] == []


def label_of(title: str) -> tuple[str, str]:
    label, _, value = title.strip("`").partition(": ")
    return label, value


def assert_same_but_named(start: Plan, end: Plan) -> None:
    """A key that nodes have had is never given another meaning, so the pool keeps the last one."""
    name = start.pools[0].labels[DEVICE_PLUGIN_CONFIG_LABEL]
    key = end.pools[0].spec.names.device_plugin_config
    assert device_plugin.data(end) == {str(key): device_plugin.data(start)[name]}
    assert mig_parted.data(end) == mig_parted.data(start)
    assert dict(labels(end)) == dict(labels(start)) | {DEVICE_PLUGIN_CONFIG_LABEL: key}


@pytest.mark.parametrize(("sharing", "to"), WAYS)
def test_every_step_there_is_safe_in_any_order(tmp_path: Path, sharing: str, to: str) -> None:
    root = a_platform(tmp_path, sharing)
    for before, after in steps(root, a_wish(to)):
        assert_safe(before, after)
    assert plan_of(root).pools[0].rollout is None


@pytest.mark.parametrize(("sharing", "to"), [way for way in WAYS if way[0] in BACK])
def test_every_step_back_from_the_end_is_safe_and_leaves_a_name(tmp_path: Path, sharing: str, to: str) -> None:
    root = a_platform(tmp_path, sharing)
    start = plan_of(root)
    assert [*steps(root, a_wish(to))]

    for before, after in steps(root, a_wish(BACK[sharing])):
        assert_safe(before, after)

    assert_same_but_named(start, plan_of(root))
    assert not (root / OVERLAY).exists()


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize(("sharing", "to"), WAYS)
def test_the_way_back_from_any_point_is_safe_and_leaves_nothing(
    tmp_path: Path, sharing: str, to: str, count: int
) -> None:
    root = a_platform(tmp_path, sharing)
    start = build(root, ("prod",)).tree
    taken = [*islice(steps(root, a_wish(to)), count)]
    if taken[-1][1].pools[0].rollout is None:
        return  # that is its end, from which another rollout leads back

    for before, after in steps(root, a_wish(back=True)):
        assert_safe(before, after)

    assert build(root, ("prod",)).tree == start


@pytest.mark.parametrize(("sharing", "to"), WAYS)
def test_the_last_steps_change_nothing_but_what_they_forget(tmp_path: Path, sharing: str, to: str) -> None:
    root = a_platform(tmp_path, sharing)
    taken = [*steps(root, a_wish(to))]
    [(before, after)] = [pair for pair in taken if pair[0].pools[0].rollout and not pair[1].pools[0].rollout]

    assert meanings(after).items() <= meanings(before).items()
    assert labels(before) == labels(after)


@pytest.mark.parametrize(("sharing", "to"), WAYS)
def test_the_end_is_the_direct_edit_without_what_it_retains(tmp_path: Path, sharing: str, to: str) -> None:
    root = a_platform(tmp_path / "rollout", sharing)
    start = plan_of(root)
    end = next(after for _, after in steps(root, a_wish(to)) if not after.pools[0].rollout)

    target = end.pools[0].spec.sharing.model_dump(mode="json", by_alias=True, exclude_none=True)
    direct = a_platform(tmp_path / "direct", json.dumps(target))
    for keeper in keepers(start, plan_of(direct)):
        (direct / keeper.path).parent.mkdir(parents=True, exist_ok=True)
        (direct / keeper.path).write_text(keeper.text)

    assert meanings(end).items() <= meanings(plan_of(direct)).items()
    assert labels(plan_of(direct)) == labels(end)


def test_a_third_way_keeps_what_nodes_had_until_it_has_settled(tmp_path: Path) -> None:
    root = a_platform(tmp_path, SHARES)
    start = plan_of(root)
    assert [*islice(steps(root, a_wish("seven-small")), 2)]

    for before, after in steps(root, a_wish("exclusive")):
        assert_safe(before, after)
    assert plan_of(root).pools[0].labels[DEVICE_PLUGIN_CONFIG_LABEL] == "a100-shared.c0fcc87"

    for before, after in steps(root, a_wish("time-slicing=3")):
        assert_safe(before, after)
    assert_same_but_named(start, plan_of(root))


def test_a_step_leaves_nothing_over_that_labels_hang_on(tmp_path: Path) -> None:
    root = a_platform(tmp_path, SHARES)
    for before, after in steps(root, a_wish("seven-small")):
        assert [*leftovers(before, after)] == []


# --- Rollouts of an earlier release ------------------------------------------------------------------------------

BEGUN = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: a100-shared}
spec: {rollout: {sharing: {mig: {layout: seven-small}}, nodes: [gpu-a100-shared-1]}}
"""


@pytest.mark.parametrize("sharing", [SHARES, WHOLE, INLINE, MPS])
def test_a_rollout_that_an_earlier_release_began_ends_safely(tmp_path: Path, sharing: str) -> None:
    root = a_platform(tmp_path, sharing, nodes=PATTERN)
    (root / OVERLAY).write_text(BEGUN)
    key = plan_of(root).parts[1].labels[DEVICE_PLUGIN_CONFIG_LABEL]

    for before, after in steps(root, a_wish("seven-small")):
        assert_safe(before, after)
        moved = [part for pool in after.pools if pool.rollout for part in [pool.rollout.moved]]
        assert {part.labels[DEVICE_PLUGIN_CONFIG_LABEL] for part in moved} <= {key}

    assert list(device_plugin.data(plan_of(root))) == ["a100-shared" if sharing == INLINE else "a100-shared.26e351e"]


def test_the_way_back_of_a_rollout_that_an_earlier_release_began_leaves_nothing(tmp_path: Path) -> None:
    root = a_platform(tmp_path, SHARES)
    start = build(root, ("prod",)).tree
    (root / OVERLAY).write_text(BEGUN)

    for before, after in steps(root, a_wish(back=True)):
        assert_safe(before, after)

    assert build(root, ("prod",)).tree == start


def test_a_rollout_that_an_earlier_release_settled_only_forgets(tmp_path: Path) -> None:
    root = a_platform(tmp_path, NAMED)
    retained = "kind: Retained\nmetadata: {name: a100-shared-rollout}\nspec:\n  until: no node names it\n"
    config = "  devicePluginConfig: {key: a100-shared.rollout, config: {version: v1, flags: {migStrategy: mixed}}}\n"
    start = build(root, ("prod",)).tree
    (root / OVERLAY).write_text(f"apiVersion: gpuplan.dev/v1\n{retained}{config}")

    assert [len(device_plugin.data(after)) for _, after in steps(root, a_wish("seven-small"))] == [1]
    assert build(root, ("prod",)).tree == start


def test_the_file_of_a_rollout_that_an_earlier_release_ended_goes(tmp_path: Path) -> None:
    """It kept the meaning of the pool's own name for good."""
    root = a_platform(tmp_path, NAMED)
    retained = "apiVersion: gpuplan.dev/v1\nkind: Retained\nmetadata: {name: device-plugin-a100-shared}\nspec:\n"
    config = "  until: never\n  devicePluginConfig: {key: a100-shared, config: {version: v1}}\n"
    (root / OVERLAY).write_text(retained + config)
    [(before, after)] = steps(root, a_wish()._replace(goes_on=True))

    assert_safe(before, after)
    assert labels(before) == labels(after)
    assert after.pools[0].spec.names.device_plugin_config == "a100-shared.26e351e"
    assert not (root / OVERLAY).exists()
    assert not is_next_written(root, a_wish()._replace(goes_on=True))
