"""What a change leaves behind is kept as it was, byte for byte, and makes the change a lesser one."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, strategies as st

from gpuplan.compiler.backends.gpu_operator import config_map_names, device_plugin, mig_parted
from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.base.plain import Body
from gpuplan.compiler.manifests import Identity, identity_of
from gpuplan.compiler.pipeline.rendering import artifacts
from gpuplan.compiler.planning.node_list import Node
from gpuplan.compiler.planning.plan import Plan
from gpuplan.features.changes.evidence import Evidence
from gpuplan.features.changes.retaining import Keeper, judge_retained, keepers, leftovers
from gpuplan.features.changes.states import ClusterState, compare
from tests.plans import CLUSTER, a_cluster, a_plan

MIG_POOL = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: a100}
spec:
  gpu: A100-80GB
  nodes: {count: 2, gpusPerNode: 8, namePattern: "a100-[0-9]+"}
  sharing: {mig: {layout: mixed}}
"""
LAYOUT = """\
apiVersion: gpuplan.dev/v1
kind: MigLayout
metadata: {name: NAME}
spec:
  gpu: A100-80GB
  DIVISION
"""
SHARED_POOL = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: NAME}
spec:
  gpu: A100-80GB
  nodes: {count: 2, gpusPerNode: 8, namePattern: "a100-[0-9]+"}
  sharing: {SHARING}
  topology: [example.com/rack]
"""
TENANT = """\
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: NAME}
spec:
  namespaces: [research]
  quotas: [{pool: shared, guaranteed: 4}]
"""


def a_mig_plan(division: str, *more: str) -> Plan:
    """A pool with a layout of this division, beside other documents."""
    layout = LAYOUT.replace("NAME", "mixed").replace("DIVISION", division)
    return a_plan("---\n".join((CLUSTER, MIG_POOL, layout, *more)))


def a_shared_plan(*more: str, name: str = "shared", sharing: str = "timeSlicing: {replicas: 4}") -> Plan:
    return a_plan("---\n".join((CLUSTER, SHARED_POOL.replace("NAME", name).replace("SHARING", sharing), *more)))


def a_kueue_plan(*more: str, tenant: str = "research") -> Plan:
    pool = SHARED_POOL.replace("NAME", "shared").replace("SHARING", "timeSlicing: {replicas: 4}")
    return a_plan("---\n".join((a_cluster("kind: kueue"), pool, TENANT.replace("NAME", tenant), *more)))


def texts(found: tuple[Keeper, ...]) -> tuple[str, ...]:
    return tuple(keeper.text for keeper in found)


def entry(plan: Plan, name: str) -> str:
    """The text of an entry of the mig-parted file."""
    [text] = mig_parted.data(plan).values()
    lines = text.splitlines()
    start = lines.index(f"  {name}:")
    end = next(
        (n for n, line in enumerate(lines) if n > start and not line.startswith("  -") and line[:4] != "    "), None
    )
    return "\n".join(lines[start:end])


def change_class(old: Plan, new: Plan) -> ChangeClass:
    return compare((ClusterState.of(old, artifacts(old)),), (ClusterState.of(new, artifacts(new)),)).worst


# --- Layouts -----------------------------------------------------------------------------------------------------

PROFILES = st.sampled_from(["1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"])
INSTANCES = st.dictionaries(PROFILES, st.integers(1, 7), min_size=1)
DEVICES = st.lists(
    st.tuples(st.sets(st.integers(0, 7), min_size=1) | st.just("all"), st.none() | INSTANCES), min_size=1, max_size=3
)


def inline(instances: Mapping[str, int]) -> str:
    return f"{{{', '.join(f'{name}: {count}' for name, count in instances.items())}}}"


def device(gpus: set[int] | str, instances: Mapping[str, int] | None) -> str:
    where = gpus if isinstance(gpus, str) else list(gpus)
    what = "enabled: false" if instances is None else f"instances: {inline(instances)}"
    return f"{{gpus: {where}, {what}}}"


DIVISIONS = st.one_of(
    INSTANCES.map(lambda instances: f"instances: {inline(instances)}"),
    DEVICES.map(lambda devices: f"devices: [{', '.join(device(*item) for item in devices)}]"),
)


@given(DIVISIONS)
def test_an_entry_that_was_edited_is_kept_byte_for_byte(division: str) -> None:
    old = a_mig_plan(division)
    edited = a_mig_plan("instances: {1g.5gb: 1}")
    [name] = [layout.config_name for layout in old.mig_layouts]

    new = a_mig_plan("instances: {1g.5gb: 1}", *texts(tuple(keepers(old, edited))))

    assert entry(new, name) == entry(old, name)
    assert [item.name for item in new.retained] == [name]
    assert tuple(keepers(old, new)) == ()


def test_the_document_says_what_the_policy_said() -> None:
    old, edited = a_mig_plan("instances: {3g.40gb: 2}"), a_mig_plan("instances: {1g.10gb: 7}")

    [keeper] = keepers(old, edited)

    assert keeper.path == "overlays/test/retained/mixed-d9c2814c.yaml"
    assert keeper.title == "`nvidia.com/mig.config: mixed-d9c2814c`"
    assert keeper.text.splitlines()[1:] == [
        "apiVersion: gpuplan.dev/v1",
        "kind: Retained",
        "metadata:",
        "  name: mixed-d9c2814c",
        "spec:",
        "  migLayout:",
        "    configName: mixed-d9c2814c",
        "    gpu: A100-80GB",
        "    instances:",
        '      "3g.40gb": 2',
        '  until: "`kubectl get nodes -l nvidia.com/mig.config=mixed-d9c2814c` lists no node"',
    ]


def test_gpus_that_no_entry_names_stay_whole() -> None:
    old = a_mig_plan("devices: [{gpus: [0, 1], instances: {3g.40gb: 2}}]")
    [name] = [layout.config_name for layout in old.mig_layouts]
    edited = a_mig_plan("instances: {1g.10gb: 7}")

    [keeper] = keepers(old, edited)

    assert "gpusPerNode: 8" in keeper.text
    assert entry(a_mig_plan("instances: {1g.10gb: 7}", keeper.text), name) == entry(old, name)


def test_an_edit_in_place_is_no_longer_a_matter_of_two_steps() -> None:
    old, edited = a_mig_plan("instances: {3g.40gb: 2}"), a_mig_plan("instances: {1g.10gb: 7}")
    kept = a_mig_plan("instances: {1g.10gb: 7}", *texts(tuple(keepers(old, edited))))

    assert change_class(old, edited) is ChangeClass.TWO_STEP
    assert change_class(old, kept) is ChangeClass.REPARTITION


SPARE = LAYOUT.replace("NAME", "spare").replace("DIVISION", "instances: {1g.10gb: 7}")


def test_a_layout_that_no_pool_uses_any_more_is_kept_for_nodes_that_lag() -> None:
    old, new = a_mig_plan("instances: {3g.40gb: 2}", SPARE), a_mig_plan("instances: {3g.40gb: 2}")
    (keeper,) = keepers(old, new)
    kept = a_mig_plan("instances: {3g.40gb: 2}", keeper.text)

    assert "kubectl get nodes -l nvidia.com/mig.config=spare-2d7d978e" in keeper.text
    assert entry(kept, "spare-2d7d978e") == entry(old, "spare-2d7d978e")
    assert change_class(old, new) is ChangeClass.TWO_STEP
    assert tuple(keepers(kept, a_mig_plan("instances: {3g.40gb: 2}"))) == ()


def test_a_layout_is_kept_as_its_last_pool_leaves_it_though_the_policies_still_have_it() -> None:
    """So that whoever deletes or edits it a commit later does no harm to nodes whose labels lag."""
    old = a_mig_plan("devices: [{gpus: [0, 1], instances: {3g.40gb: 2}}]", SPARE)
    moved = MIG_POOL.replace("layout: mixed", "layout: spare")
    layout = LAYOUT.replace("NAME", "mixed").replace("DIVISION", "devices: [{gpus: [0, 1], instances: {3g.40gb: 2}}]")
    [name] = [item.config_name for item in old.mig_layouts if item.name == "mixed"]

    (keeper,) = keepers(old, a_plan("---\n".join((CLUSTER, moved, layout, SPARE))))
    left = a_plan("---\n".join((CLUSTER, moved, layout, SPARE, keeper.text)))
    removed = a_plan("---\n".join((CLUSTER, moved, SPARE, keeper.text)))

    assert entry(left, name) == entry(removed, name) == entry(old, name)
    assert tuple(judge_retained(left)) == tuple(keepers(left, removed)) == ()
    assert tuple(leftovers(old, left)) == ()
    assert [item.until for item in leftovers(left, left)] == [
        f"`kubectl get nodes -l nvidia.com/mig.config={name}` lists no node"
    ]


def test_a_layout_of_a_removed_pool_is_kept_though_no_other_pool_has_its_gpus() -> None:
    old = a_mig_plan("instances: {3g.40gb: 2}")
    layout = LAYOUT.replace("NAME", "mixed").replace("DIVISION", "instances: {3g.40gb: 2}")
    kept = texts(tuple(keepers(old, a_plan(f"{CLUSTER}---\n{layout}"))))

    removed = a_plan("---\n".join((CLUSTER, *kept)))

    assert entry(removed, "mixed-d9c2814c") == entry(old, "mixed-d9c2814c")


def test_a_layout_of_a_model_that_no_pool_has_may_go() -> None:
    other = SPARE.replace("A100-80GB", "H100-80GB")

    assert tuple(keepers(a_mig_plan("instances: {3g.40gb: 2}", other), a_mig_plan("instances: {3g.40gb: 2}"))) == ()


def test_a_retained_layout_counts_among_the_resources_of_the_cluster() -> None:
    """Nodes publish it until they are set up again, and tenants without a quota on it must not have it."""
    from gpuplan.compiler.planning.grants import gpu_resources

    old, edited = a_mig_plan("instances: {3g.40gb: 2}"), a_mig_plan("instances: {1g.10gb: 7}")

    assert "nvidia.com/mig-3g.40gb" not in gpu_resources(edited)
    kept = a_mig_plan("instances: {1g.10gb: 7}", *texts(tuple(keepers(old, edited))))
    assert "nvidia.com/mig-3g.40gb" in gpu_resources(kept)


# --- Configurations of the device plugin -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sharing",
    [
        "exclusive: {}",
        "timeSlicing: {replicas: 4, rename: false, failRequestsGreaterThanOne: false}",
        "mps: {replicas: 3}",
        "mig: {instances: {1g.10gb: 7}, timeSlicing: {replicas: 2}}",
        "mig: {instances: {1g.10gb: 7}, strategy: single}",
    ],
)
def test_the_configuration_of_a_renamed_pool_is_kept_byte_for_byte(sharing: str) -> None:
    old, renamed = (a_shared_plan(name=name, sharing=sharing) for name in ("old", "new"))

    kept = tuple(keepers(old, renamed))
    new = a_shared_plan(*texts(kept), name="new", sharing=sharing)

    assert device_plugin.data(new)["old"] == device_plugin.data(old)["old"]
    assert "overlays/test/retained/device-plugin-old.yaml" in [keeper.path for keeper in kept]
    assert tuple(keepers(old, new)) == ()


def test_a_key_with_a_dot_makes_a_name_that_a_document_can_have() -> None:
    rollout = "  rollout: {sharing: {exclusive: {}}, nodes: [a100-1]}\n"
    pool = SHARED_POOL.replace("NAME", "shared").replace("SHARING", "timeSlicing: {replicas: 4}")
    old, done = a_plan(f"{CLUSTER}---\n{pool}{rollout}"), a_shared_plan(sharing="exclusive: {}")

    assert [(keeper.path, keeper.title) for keeper in keepers(old, done)] == [
        ("overlays/test/retained/device-plugin-shared.yaml", "`nvidia.com/device-plugin.config: shared`"),
        (
            "overlays/test/retained/device-plugin-shared-rollout-a9bbfe55.yaml",
            "`nvidia.com/device-plugin.config: shared.rollout`",
        ),
    ]


def key_of_nodes(plan: Plan) -> str:
    [pool] = plan.pools
    return pool.labels["nvidia.com/device-plugin.config"]


def test_a_pools_name_goes_on_to_mean_what_it_meant_and_the_pool_gets_another_key() -> None:
    old, edited = a_shared_plan(), a_shared_plan(sharing="exclusive: {}")

    [keeper] = keepers(old, edited)
    new = a_shared_plan(keeper.text, sharing="exclusive: {}")

    assert key_of_nodes(new) == "shared.c0fcc87"
    assert device_plugin.data(new) == {
        "shared": device_plugin.data(old)["shared"],
        "shared.c0fcc87": device_plugin.data(edited)["shared"],
    }
    assert tuple(keepers(old, new)) == ()
    assert "pool `shared` is removed or shares its GPUs so again, and `kubectl get nodes -l" in keeper.text


def test_what_a_pool_did_in_between_is_kept_as_well() -> None:
    first, second = a_shared_plan(), a_shared_plan(sharing="exclusive: {}")
    name = texts(tuple(keepers(first, second)))
    second = a_shared_plan(*name, sharing="exclusive: {}")
    third = a_shared_plan(*name, sharing="timeSlicing: {replicas: 2}")

    [between] = keepers(second, third)

    assert "key: shared.c0fcc87" in between.text
    assert key_of_nodes(a_shared_plan(*name, between.text)) == "shared"


def test_a_meaning_that_somebody_deletes_is_written_again() -> None:
    first, second = a_shared_plan(), a_shared_plan(sharing="exclusive: {}")
    [name] = keepers(first, second)
    retained = a_shared_plan(name.text, sharing="exclusive: {}")

    assert texts(tuple(keepers(retained, second))) == (name.text,)


def test_a_meaning_that_labels_hang_on_is_not_left_over() -> None:
    first, second = a_shared_plan(), a_shared_plan(sharing="exclusive: {}")
    [name] = keepers(first, second)
    retained, again = a_shared_plan(name.text, sharing="exclusive: {}"), a_shared_plan(name.text)

    assert tuple(leftovers(retained, retained)) == ()
    assert [(item.title, item.until) for item in leftovers(retained, again)] == [
        ("`nvidia.com/device-plugin.config: shared`", "")
    ]


def test_the_strategy_of_the_cluster_arrives_with_the_file_and_changes_no_keys() -> None:
    """Kept as it was, `{version: v1}` would mean no MIG at all once each pool says its own strategy."""
    mixed = CLUSTER.replace("version: v26.7.0", "version: v26.7.0, migStrategy: mixed")
    documents = MIG_POOL, LAYOUT.replace("NAME", "mixed").replace("DIVISION", "instances: {3g.40gb: 2}")
    one, other = (a_plan("---\n".join((cluster, *documents))) for cluster in (mixed, CLUSTER))

    assert device_plugin.data(one) != device_plugin.data(other)
    assert tuple(keepers(one, other)) == tuple(keepers(other, one)) == ()


def test_configurations_are_kept_where_no_pool_is_left() -> None:
    empty = a_plan(CLUSTER)

    new = a_plan("---\n".join((CLUSTER, *texts(tuple(keepers(a_shared_plan(), empty))))))

    assert config_map_names(empty).device_plugin == ""
    assert config_map_names(new).device_plugin.startswith("gpuplan-device-plugin-")


# --- Queues ------------------------------------------------------------------------------------------------------


def test_a_queue_that_is_removed_is_kept_on_hold() -> None:
    old, renamed = a_kueue_plan(), a_kueue_plan(tenant="science")

    [keeper] = keepers(old, renamed)

    assert keeper.path == "overlays/test/retained/clusterqueue-research.yaml"
    assert "      kind: ClusterQueue\n" in keeper.text
    assert "        stopPolicy: Hold\n" in keeper.text
    assert tuple(keepers(old, a_kueue_plan(keeper.text, tenant="science"))) == ()


def test_without_kueue_all_that_it_holds_on_to_is_kept() -> None:
    pool = SHARED_POOL.replace("NAME", "shared").replace("SHARING", "timeSlicing: {replicas: 4}")
    documents = ("---\n".join((CLUSTER, pool, TENANT.replace("NAME", "research"))),)

    kept = tuple(keepers(a_kueue_plan(), a_plan(*documents)))

    assert [keeper.title for keeper in kept] == [
        "Topology `shared`",
        "ResourceFlavor `shared`",
        "ClusterQueue `research`",
        "LocalQueue `default` in namespace `research`",
    ]
    new = a_plan("---\n".join((*documents, *texts(kept))))
    assert [getattr(item.what, "folder", "") for item in new.retained] == [
        "scheduling",
        "namespaces/research",
        "scheduling",
        "scheduling",
    ]


def a_queue(kind: str, *, work: object = 0, policy: str = "Hold", flavor: str = "", name: str = "") -> Body:
    space = {"namespace": "research"} if kind == "LocalQueue" else {}
    known = {"LocalQueue": "default", "ClusterQueue": "research"}
    groups = [{"flavors": [{"name": "another"}, {"name": flavor}]}]
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": kind,
        "metadata": {"name": name or known.get(kind, "shared"), **space},
        "spec": {"stopPolicy": policy, "resourceGroups": groups},
        "status": {"reservingWorkloads": work},
    }


def needed(*objects: Body, nodes: int = 2) -> dict[str, tuple[str, ...] | None]:
    """What a dump shows of each thing that is left of Kueue, with so many nodes of the pool."""
    pool = SHARED_POOL.replace("NAME", "shared").replace("SHARING", "timeSlicing: {replicas: 4}")
    documents = ("---\n".join((CLUSTER, pool, TENANT.replace("NAME", "research"))),)
    kept = tuple(keepers(a_kueue_plan(), a_plan(*documents)))
    plan = a_plan("---\n".join((*documents, *texts(kept))))
    listed = tuple(Node(f"a100-{number}", plan.pools[0].labels) for number in range(1, nodes + 1))
    known = {identity_of(body): body for body in objects}
    evidence = Evidence(plan, listed, plan, known, frozenset({Identity("kueue.x-k8s.io", "ClusterQueue", "", "other")}))
    return {item.title.partition(" ")[0]: item.needing for item in leftovers(plan, plan, evidence) if item.is_object}


OTHER = a_queue("ClusterQueue", name="other")


@pytest.mark.parametrize("kind", ["ClusterQueue", "LocalQueue"])
@pytest.mark.parametrize(
    ("work", "policy", "needing"),
    [
        (0, "Hold", ()),
        (0, "HoldAndDrain", ()),
        (0, "None", None),
        (3, "Hold", ("work that it let in",)),
        (None, "Hold", None),
        (True, "Hold", None),
    ],
)
def test_a_dump_shows_whether_a_queue_has_work(
    kind: str, work: object, policy: str, needing: tuple[str, ...] | None
) -> None:
    found = needed(a_queue(kind, work=work, policy=policy))

    assert found[kind] == needing
    assert {value for key, value in found.items() if key != kind} == {None}


def test_a_dump_with_all_queues_shows_whether_one_names_a_flavor() -> None:
    queue = a_queue("ClusterQueue", flavor="shared")

    assert needed(queue, OTHER)["ResourceFlavor"] == ("ClusterQueue `research`",)
    assert needed(a_queue("ClusterQueue"), OTHER)["ResourceFlavor"] == ()
    assert needed(a_queue("ClusterQueue"))["ResourceFlavor"] is None, "the policies have another queue"


def test_objects_beside_too_few_nodes_prove_nothing() -> None:
    """They may be another cluster's."""
    assert set(needed(a_queue("ClusterQueue"), OTHER, nodes=1).values()) == {None}


def test_a_queue_of_a_namespace_that_goes_goes_with_it() -> None:
    gone = a_plan(
        "---\n".join(
            (a_cluster("kind: kueue"), SHARED_POOL.replace("NAME", "shared").replace("SHARING", "exclusive: {}"))
        )
    )

    assert "LocalQueue `default` in namespace `research`" not in [
        keeper.title for keeper in keepers(a_kueue_plan(), gone)
    ]


# --- Names -------------------------------------------------------------------------------------------------------


def test_a_name_that_is_taken_gets_a_digest() -> None:
    other = (
        "apiVersion: gpuplan.dev/v1\nkind: Retained\nmetadata: {name: clusterqueue-research}\n"
        "spec:\n  devicePluginConfig: {key: other, config: {version: v1}}\n  until: never\n"
    )

    [keeper] = keepers(a_kueue_plan(), a_kueue_plan(other, tenant="science"))

    assert keeper.path == "overlays/test/retained/clusterqueue-research-102fe754.yaml"


def test_nothing_is_kept_of_what_does_not_change() -> None:
    assert tuple(keepers(a_kueue_plan(), a_kueue_plan())) == ()
