"""Where the device plugin's ConfigMap keeps its name, a change of one pool touches the nodes of that pool alone."""

from __future__ import annotations

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.features.changes.model import Change
from tests.features.changes import edits
from tests.features.changes.platform import Edit, Platform, between, state

POOL = ("Pool", "a100-shared")
NODES = "gpu-a100-shared-[0-9]+"


def keep(platform: Platform) -> None:
    platform.cluster("prod")["gpuOperator"]["devicePluginConfig"] = "fixed"


def beside_mps(platform: Platform) -> None:
    keep(platform)
    edits.time_slicing_to_mps(platform)


def other_mps_shares(platform: Platform) -> None:
    platform.spec("Pool", "h100-training", "overlays/prod")["sharing"]["mps"]["replicas"] = 3


def name_shares_as_gpus(platform: Platform) -> None:
    platform.spec("Pool", "h100-training", "overlays/prod")["sharing"]["mps"]["rename"] = False


def in_prod(edit: Edit, before: Edit = keep) -> list[Change]:
    return [change for change in between(state(before), state(before, edit)).changes if change.cluster == "prod"]


def of_the_operator(found: list[Change]) -> list[Change]:
    return [change for change in found if change.subject == ("Cluster", "prod")]


def test_other_replicas_restart_nothing_and_touch_the_pools_own_nodes() -> None:
    found = in_prod(edits.change_replicas_of_a_pool)
    assert {change.change_class for change in of_the_operator(found)} == {ChangeClass.METADATA}
    assert not any(change.daemon_sets for change in found)
    assert {change.subject for change in found if change.nodes is not None} == {POOL}


def test_the_file_is_told_of_by_its_keys() -> None:
    found = of_the_operator(in_prod(edits.change_replicas_of_a_pool))
    texts = [change.what for change in found]
    assert [text.partition("`")[0] for text in texts] == [
        "the device plugin's file gets ",
        "the device plugin's file loses ",
    ]
    assert all("`a100-shared." in text for text in texts)
    assert {change.effect for change in found} == {"nothing restarts: nodes read a key when their label names it"}


def test_daemons_of_mps_do_not_restart_for_another_pool() -> None:
    found = in_prod(edits.change_replicas_of_a_pool, beside_mps)
    assert ChangeClass.REPARTITION not in {change.change_class for change in found}


def test_a_pools_own_daemons_of_mps_restart_and_no_others() -> None:
    (found,) = (change for change in in_prod(other_mps_shares, beside_mps) if change.needs_drain)
    assert (found.subject, found.change_class) == (("Pool", "h100-training"), ChangeClass.TWO_STEP)
    assert not found.daemon_sets


def test_daemons_of_mps_restart_with_another_key_though_as_many_share() -> None:
    (found,) = (change for change in in_prod(name_shares_as_gpus, beside_mps) if change.needs_drain)
    assert found.what == "the device plugin's configuration of its nodes has another name"
    assert found.change_class is ChangeClass.TWO_STEP


def test_a_key_that_goes_while_nodes_name_it_is_told_of_with_their_pool() -> None:
    (found,) = (
        change for change in in_prod(edits.change_replicas_of_a_pool) if change.subject == POOL and change.nodes
    )
    assert found.change_class is ChangeClass.TWO_STEP
    assert found.effect.endswith(
        "vanishes while nodes still name it, as policies say (`--nodes FILE` shows which): nodes share GPUs as they "
        "did until their device plugin restarts, and it does not follow the label until its pod is deleted"
    )


def test_to_keep_the_name_from_now_on_restarts_all_that_reads_it_once() -> None:
    found = between(state(edits.time_slicing_to_mps), state(edits.time_slicing_to_mps, keep)).changes
    drains = [change for change in found if change.needs_drain]
    assert {change.change_class for change in drains} == {ChangeClass.REPARTITION, ChangeClass.TWO_STEP}
    assert all("nodes hand out" in change.effect for change in drains if change.change_class is ChangeClass.TWO_STEP)
    assert any("the device plugin's ConfigMap keeps its name from now on" in change.what for change in drains)
    assert any("nvidia-device-plugin-mps-control-daemon" in change.daemon_sets for change in drains)


def test_another_release_restarts_them_as_before() -> None:
    found = in_prod(edits.upgrade_an_operator_beside_mps, beside_mps)
    assert any("nvidia-device-plugin-mps-control-daemon" in change.daemon_sets for change in found)
