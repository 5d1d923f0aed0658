from __future__ import annotations

import pytest

from gpuplan.compiler.planning.plan import MIG_CONFIG_LABEL
from tests.compiler.backends.gpu_operator import mig_parted
from tests.compiler.backends.gpu_operator.rendered import a_cluster, a_pool, config_map, mig_parted_text
from tests.plans import a_plan, resolve_text

LAYOUT = """
apiVersion: gpuplan.dev/v1
kind: MigLayout
metadata: {name: large}
spec: {gpu: A100-80GB, instances: {3g.40gb: 2}}
"""


def test_the_file_of_two_layouts() -> None:
    plan = a_cluster(
        a_pool(
            "slices",
            "{mig: {devices: [{gpus: [1, 0], instances: {1g.10gb: 4, 3g.40gb: 1}}, {gpus: [2, 3], enabled: false}]}}",
            4,
        ),
        LAYOUT,
    )
    slices = plan.pools[0].labels[MIG_CONFIG_LABEL]
    large = plan.layouts[0].config_name
    assert (
        mig_parted_text(plan)
        == f"""\
version: v1
mig-configs:
  all-disabled:
  - devices: all
    mig-enabled: false
  {large}:
  - devices: all
    mig-enabled: true
    mig-devices:
      "3g.40gb": 2
  {slices}:
  - devices:
    - 1
    - 0
    mig-enabled: true
    mig-devices:
      "1g.10gb": 4
      "3g.40gb": 1
  - devices:
    - 2
    - 3
    mig-enabled: false
"""
    )


def test_the_operators_entry_for_new_nodes_is_there_without_any_layout() -> None:
    configs = mig_parted.parse(mig_parted_text(a_cluster(a_pool())))
    assert configs == {"all-disabled": [{"devices": "all", "mig-enabled": False}]}


def test_every_layout_is_there_used_or_not() -> None:
    plan = a_plan(LAYOUT)
    assert plan.layouts[0].config_name in mig_parted.parse(mig_parted_text(plan))


def test_the_key_is_the_one_that_the_operator_mounts() -> None:
    found = config_map(a_cluster(a_pool()), "gpuplan-mig-parted-")
    assert list(found["data"]) == ["config.yaml"]
    assert found["metadata"]["namespace"] == "gpu-operator"
    assert found["immutable"] is True


def test_entry_names_are_label_values_without_a_plus() -> None:
    plan = a_cluster(a_pool("a" * 50, "{mig: {instances: {1g.10gb+me: 1}}}"))
    assert all(mig_parted.LABEL_VALUE.fullmatch(name) for name in mig_parted.parse(mig_parted_text(plan)))


def test_a_node_label_names_an_entry() -> None:
    plan = a_cluster(a_pool("a", "{mig: {instances: {1g.10gb: 7}}}"), a_pool("b"))
    configs = mig_parted.parse(mig_parted_text(plan))
    assert [pool.labels[MIG_CONFIG_LABEL] in configs for pool in plan.pools] == [True, True]


# --- What checks refuse and users may suppress -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mig", "node"),
    [
        ("{instances: {1g.10gb: 3, 2g.20gb: 0}}", [{"1g.10gb": 3}, {"1g.10gb": 3}]),
        ("{instances: {7c.7g.80gb: 1}}", [{"7g.80gb": 1}, {"7g.80gb": 1}]),
        ("{instances: {2g.20gb: 0}}", [{}, {}]),
        ("{instances: {3g.40gb: 9}}", [{"3g.40gb": 9}, {"3g.40gb": 9}]),
        ("{devices: [{gpus: [0], instances: {7g.80gb: 1}}]}", [{"7g.80gb": 1}, None]),
        ("{devices: [{gpus: [0, 1], enabled: false, instances: {7g.80gb: 1}}]}", [None, None]),
        ("{devices: []}", [None, None]),
        ("{devices: [{gpus: [0, 1, 7], instances: {unknown-profile: 0, 7g.80gb: 1}}]}", [{"7g.80gb": 1}] * 2),
    ],
)
def test_what_cannot_be_applied_does_not_reach_the_file(mig: str, node: mig_parted.Node) -> None:
    plan, _ = resolve_text(a_pool(sharing=f"{{mig: {mig}}}", gpus=2))
    assert plan is not None
    configs = mig_parted.parse(mig_parted_text(plan))
    assert mig_parted.apply(configs[plan.pools[0].labels[MIG_CONFIG_LABEL]], 2) == node


def test_a_layout_that_several_pools_use_covers_the_largest_node() -> None:
    layout = LAYOUT.replace("instances: {3g.40gb: 2}", "devices: [{gpus: [0], instances: {3g.40gb: 2}}]")
    plan, _ = resolve_text(
        "---".join((layout, a_pool("a", "{mig: {layout: large}}", 4), a_pool("b", "{mig: {layout: large}}", 2)))
    )
    assert plan is not None
    entries = mig_parted.parse(mig_parted_text(plan))[plan.layouts[0].config_name]
    assert mig_parted.apply(entries, 2) == [{"3g.40gb": 2}, None]
    assert mig_parted.apply(entries, 4) == [{"3g.40gb": 2}, None, None, None]


# --- The rules themselves ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "mig-configs: {a: [{devices: all, mig-enabled: false}]}",
        "{version: v2, mig-configs: {a: [{devices: all, mig-enabled: false}]}}",
        "{version: v1, mig-configs: {}}",
        "{version: v1, mig-configs: {a: []}}",
        "{version: v1, other: 1, mig-configs: {a: [{devices: all, mig-enabled: false}]}}",
        "{version: v1, mig-configs: {a: [{devices: some, mig-enabled: false}]}}",
        "{version: v1, mig-configs: {a: [{devices: all, mig-enabled: true}]}}",
        "{version: v1, mig-configs: {a: [{devices: all, mig-enabled: false, mig-devices: {1g.5gb: 1}}]}}",
        "{version: v1, mig-configs: {a: [{devices: all, mig-enabled: true, mig-devices: {1g.5gb: 0}}]}}",
        "{version: v1, mig-configs: {a: [{devices: all, mig-enabled: true, mig-devices: {1g: 1}}]}}",
    ],
)
def test_mig_parted_refuses(text: str) -> None:
    with pytest.raises(mig_parted.RefusedError):
        mig_parted.parse(text)


BALANCED = """
apiVersion: gpuplan.dev/v1
kind: MigLayout
metadata: {{name: balanced-{name}}}
spec: {{gpu: {gpu}, instances: {instances}, configName: all-balanced}}
"""


def test_layouts_of_two_models_have_one_entry_by_their_boards() -> None:
    plan = a_cluster(
        BALANCED.format(name="80", gpu="A100-80GB", instances="{1g.10gb: 2, 3g.40gb: 1}"),
        BALANCED.format(name="a30", gpu="A30-24GB", instances="{1g.6gb: 2, 2g.12gb: 1}"),
    )
    entries = mig_parted.parse(mig_parted_text(plan))["all-balanced"]

    assert [(item["device-filter"], item["mig-devices"]) for item in entries] == [
        (["0x20B210DE", "0x20B510DE", "0x20F310DE", "0x20F510DE"], {"1g.10gb": 2, "3g.40gb": 1}),
        (["0x20B710DE"], {"1g.6gb": 2, "2g.12gb": 1}),
    ]


def test_layouts_of_two_models_that_say_the_same_need_no_filter() -> None:
    plan = a_cluster(
        BALANCED.format(name="80", gpu="A100-80GB", instances="{1g.10gb: 4}"),
        BALANCED.format(name="h100", gpu="H100-80GB", instances="{1g.10gb: 4}"),
    )
    assert mig_parted.parse(mig_parted_text(plan))["all-balanced"] == [
        {"devices": "all", "mig-enabled": True, "mig-devices": {"1g.10gb": 4}}
    ]
