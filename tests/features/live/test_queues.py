"""Queues of Kueue and KAI-Scheduler become quotas and the tree of tenants."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings

from gpuplan.compiler.backends import kai, kueue, namespaces
from gpuplan.compiler.documents import Document
from gpuplan.compiler.manifests import Manifest, to_yaml
from gpuplan.compiler.pipeline import build
from gpuplan.compiler.pipeline.writing import document
from gpuplan.compiler.planning.plan import Plan, Pool
from gpuplan.features.live.dump import Dump, read_dump
from gpuplan.features.live.importing import Import, adopt, write_import
from gpuplan.features.live.queues import Queue, read
from gpuplan.features.live.queues.kai_units import Bounds, Capped, UnitBounds, divide, own_bounds
from tests.laws.properties.policies import Policy, policies
from tests.plans import a_plan

BACKENDS = {"kueue": kueue.render, "kai": kai.objects}


def dump_of(bodies: Iterable[Mapping[str, Any]]) -> Dump:
    dump, found = read_dump({"dump.yaml": "---\n".join(map(to_yaml, bodies)).encode()})
    assert not found
    return dump


def granted(plan: Plan) -> list[Mapping[str, Any]]:
    """What tells admission which units a tenant's pods may ask for."""
    found = [item.body for item in namespaces.render(plan)]
    return [body for body in found if body["kind"] == "ConfigMap"]


def queues_of(plan: Plan, scheduler: str) -> list[Mapping[str, Any]]:
    """The objects that count, in their order; what gpuplan adds to them for Argo CD and Flux is not in them."""
    found = [item.body for item in BACKENDS[scheduler](plan) if isinstance(item, Manifest)]
    return [body for body in found if not body["kind"].startswith("ValidatingAdmission")]


def as_served(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """With what Kueue's API server adds."""
    spec = dict(body.get("spec", {}))
    if body["kind"] in ("ClusterQueue", "LocalQueue"):
        spec["stopPolicy"] = "None"
    if body["kind"] == "ClusterQueue":
        spec["preemption"] = {**spec["preemption"], "borrowWithinCohort": {"policy": "Never"}}
    return {**body, "spec": spec}


def planned(policy: Policy, queues: Iterable[Queue]) -> Plan:
    """The plan of the same cluster and pools, with the tenants that were read; KAI's queues know no namespaces."""
    documents = [part for part in policy.text.split("---\n") if "kind: Tenant" not in part]
    own = {team.name: team.namespaces for team in policy.teams}
    for queue in queues:
        spec = {
            **({"parent": queue.parent} if queue.parent else {}),
            "namespaces": list(queue.namespaces or own[queue.tenant]),
            "quotas": [dict(quota) for quota in queue.quotas],
            **queue.spec,
        }
        documents.append(to_yaml(document("Tenant", queue.tenant, spec)))
    return a_plan("---\n".join(documents))


def assert_same(policy: Policy, scheduler: str) -> None:
    before = queues_of(policy.plan, scheduler)
    queues, found = read(dump_of([*map(as_served, before), *granted(policy.plan)]), policy.plan)
    told = [item.finding.message for item in found]
    assert [text for text in told if not text.startswith("queues are guaranteed")] == []  # drawn quotas need not fit
    again = planned(policy, queues)
    after = queues_of(again, scheduler)
    assert {(body["kind"], body["metadata"]["name"]): body for body in after} == {
        (body["kind"], body["metadata"]["name"]): body for body in before
    }


def counts_below(policy: Policy) -> bool:
    """Whether each parent has a tenant with quotas in it: no queue tells whose part one without quotas is."""
    parents = [team for team in policy.teams if policy.children(team.name)]
    return all(any(part.grants for part in policy.below(team) if part is not team) for team in parents)


@settings(max_examples=12, deadline=None)
@given(policies("kueue").filter(counts_below))
def test_kueues_queues_are_read_as_they_were_meant(policy: Policy) -> None:
    assert_same(policy, "kueue")


def is_clear(policy: Policy) -> bool:
    """Whether each team in a tree has one unit of a pool: of several a queue says what all of them come to in GPUs."""
    apart = [team for team in policy.teams if not team.parent and not policy.children(team.name)]
    held = [(team.name, grant.pool) for team in policy.teams if team not in apart for grant in team.grants]
    return len(held) == len(set(held))


@settings(max_examples=12, deadline=None)
@given(policies("kai").filter(counts_below).filter(is_clear))
def test_kais_queues_are_read_as_they_were_meant(policy: Policy) -> None:
    assert_same(policy, "kai")


# --- What others wrote -------------------------------------------------------------------------------------------

EXAMPLES = Path(__file__).parent / "examples"
OWN_CODES = frozenset(("GPU637", "GPU696", "GPU697", "GPU699", "GPU813", "GPU814", "GPU881"))
NEVER_WORKED = frozenset(
    ("refused.yaml", "nowhere.yaml", "no-nodes.yaml", "without-memory.yaml", "without-numbers.yaml")
)
OTHERWISE = NEVER_WORKED | {"one-flavor-for-all.yaml", "one-scheduler-for-all.yaml"}
"""Those whose numbers cannot stay."""
FIXED = {"tas-flavor": "tas-group"}
"""Flavors that cannot be changed since they name a topology, with those that take their place."""


def adopted(path: Path, root: Path) -> tuple[Import, list[Mapping[str, Any]]]:
    """What an import makes of an example, and the objects that are built of it."""
    imported = adopt({path.name: path.read_bytes()}, root, "test")
    write_import(imported, root)
    tree = build(root).tree
    assert tree, [item.finding.message for item in imported.report.diagnostics if item.is_error]
    files = [data for name, data in tree.items() if name.startswith("test/") and b"metadata:" in data]
    return imported, [body for data in files for body in yaml.load_all(data, yaml.CSafeLoader) if "metadata" in body]


def left_out(imported: Import) -> set[str]:
    """The names of objects that a finding is about as a whole: they stay as they are, beside what is built."""
    found = [item.finding.at for item in imported.report.diagnostics if item.code in OWN_CODES]
    return {at.source.data["metadata"]["name"] for at in found if isinstance(at.source, Document) and not at.path}


def expected(path: Path) -> list[tuple[int, str]]:
    """The lines that say which warnings and errors are expected there."""
    lines = enumerate(path.read_text().splitlines(), start=1)
    return [(number, code) for number, line in lines for code in line.partition("# expect: ")[2].split()]


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("k*/*.yaml")), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_an_example_becomes_policy_that_builds_to_the_same(path: Path, tmp_path: Path) -> None:
    imported, built = adopted(path, tmp_path)
    told = [item for item in imported.report.diagnostics if item.code in OWN_CODES and item.severity != "note"]
    places = [(item.finding.at.locate().span.start.line, item.code) for item in told]
    assert sorted(places) == expected(path)
    written = [*yaml.load_all(path.read_text(), yaml.CSafeLoader)]
    if path.name not in OTHERWISE:
        left = {key: meaning for key, meaning in meanings(written).items() if key[-1] not in left_out(imported)}
        assert {key: meaning for key, meaning in meanings(built).items() if key in left} == left


def test_a_pool_is_called_as_its_shard(tmp_path: Path) -> None:
    imported, built = adopted(EXAMPLES / "kai" / "shards.yaml", tmp_path)
    assert {draft.name for draft in imported.drafts if draft.kind == "Pool"} == {"training", "serving"}
    shards = {
        body["metadata"]["name"]: body["metadata"]["labels"]["kai.scheduler/node-pool"]
        for body in built
        if body["kind"] == "Queue"
    }
    assert shards["train-queue"] == shards["train-parent"] == "training"
    assert shards["serve-queue"] == shards["serve-parent"] == "serving"


def mixed(nodes: int) -> Pool:
    return a_plan(
        "apiVersion: gpuplan.dev/v1\nkind: Pool\nmetadata: {name: mixed}\nspec: {gpu: A100-80GB, nodes: {"
        f"count: {nodes}, "
        "gpusPerNode: 8, namePattern: 'n[0-9]+'}, sharing: {mig: {instances: {2g.20gb: 2, 3g.40gb: 1}}}}\n"
    ).pools[0]


def test_gpus_are_divided_by_what_there_is_of_each_unit() -> None:
    pool = mixed(160)
    assert divide(pool, ("2g.20gb", "3g.40gb"), Fraction(853 * 2 + 426 * 3)) == {"2g.20gb": 853, "3g.40gb": 426}
    assert divide(pool, ("3g.40gb",), Fraction(4)) is None


@pytest.mark.parametrize(
    ("are_limits", "bounds"),
    [
        (True, {"2g.20gb": UnitBounds(7, 7), "3g.40gb": UnitBounds(2, 10)}),
        (False, {"2g.20gb": UnitBounds(7, 9), "3g.40gb": UnitBounds(2, 2)}),
    ],
)
def test_gpus_are_divided_as_caps_of_namespaces_say(are_limits: bool, bounds: Mapping[str, UnitBounds]) -> None:
    amounts = {"2g.20gb": 7, "3g.40gb": 10 if are_limits else 2}
    whole = Bounds(Fraction(20), Fraction(44 if are_limits else 24))

    found = own_bounds(mixed(2), whole, None, {}, units=amounts, capped=Capped(amounts, are_limits))

    assert found == bounds


def test_caps_that_come_to_other_numbers_tell_nothing() -> None:
    whole = Bounds(Fraction(20), Fraction(44))

    found = own_bounds(mixed(2), whole, None, {}, capped=Capped({"2g.20gb": 7, "3g.40gb": 9}, are_limits=True))

    assert found == own_bounds(mixed(2), whole, None, {})


def test_a_queue_that_no_namespace_uses_is_told() -> None:
    plan = a_plan(POOL)
    queue = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": "idle"}}
    cell = {"name": "nvidia.com/gpu", "nominalQuota": 4}
    group = {"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "gpus", "resources": [cell]}]}
    found, told = read(dump_of([queue | {"spec": {"namespaceSelector": {}, "resourceGroups": [group]}}]), plan)
    assert found == ()
    assert [item.finding.message for item in told] == ["no namespace of the dump uses ClusterQueue `idle`"]


POOL = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: gpus}
spec: {gpu: A100-80GB, nodes: {count: 1, gpusPerNode: 8, names: [gpu-1]}, sharing: {exclusive: {}}}
"""


def test_most_examples_keep_names_and_numbers() -> None:
    """Of all that Kueue and KAI-Scheduler document, and that works: what is one number for several pools is divided."""
    working = [path.name for path in EXAMPLES.glob("k*/*.yaml") if path.name not in NEVER_WORKED]
    assert sum(name not in OTHERWISE for name in working) / len(working) >= 0.9


def meanings(bodies: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str, str], object]:
    """What objects say in numbers and names, by kind, namespace and name."""
    return {
        (body["kind"], body["metadata"].get("namespace", ""), body["metadata"]["name"]): MEANING[body["kind"]](
            body["spec"]
        )
        for body in bodies
        if body["kind"] in MEANING
    }


def cells_of(spec: Mapping[str, Any]) -> dict[tuple[str, str], tuple[str, str, str]]:
    """By flavor and resource the numbers; what fills the gaps of a group is none, and a queue alone borrows nothing."""
    found = {}
    is_alone = not (spec.get("cohortName") or spec.get("cohort"))
    for group in spec["resourceGroups"]:
        for flavor in group["flavors"]:
            for quota in flavor["resources"]:
                nominal, borrowing, lending = (
                    str(quota.get(field, default))
                    for field, default in (("nominalQuota", ""), ("borrowingLimit", "any"), ("lendingLimit", "all"))
                )
                if "/" in quota["name"] and (nominal, borrowing) != ("0", "0"):
                    limits = ("0", "all") if is_alone or (borrowing, lending) == ("0", "0") else (borrowing, lending)
                    found[FIXED.get(flavor["name"], flavor["name"]), quota["name"]] = (nominal, *limits)
    return found


MEANING: dict[str, Callable[[Mapping[str, Any]], object]] = {
    "ClusterQueue": cells_of,
    "LocalQueue": lambda spec: spec["clusterQueue"],
    "Queue": lambda spec: (spec.get("parentQueue"), spec.get("priority", 100), spec["resources"]),
}


TWO_POOLS = """
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata: {name: test}
spec:
  kubernetes: "1.34"
  gpuOperator: {install: helm, version: v26.7.0}
  scheduler: {kind: kueue}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: whole}
spec: {gpu: A100-80GB, nodes: {count: 1, gpusPerNode: 8}, sharing: {exclusive: {}}, nodeLabels: {example.com/a: whole}}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: cut}
spec:
  gpu: A100-80GB
  nodes: {count: 1, gpusPerNode: 8}
  sharing: {mig: {instances: {1g.10gb: 7}}}
  nodeLabels: {example.com/a: cut}
"""


@pytest.mark.parametrize(("filler", "codes"), [("0", []), ("4", ["GPU814"])])
def test_a_zero_fills_a_gap_and_a_number_there_never_worked(filler: str, codes: list[str]) -> None:
    flavors = [
        {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "ResourceFlavor",
            "metadata": {"name": name},
            "spec": {"nodeLabels": {"example.com/a": name}},
        }
        for name in ("whole", "cut")
    ]
    quotas = {"whole": ("16", "0"), "cut": (filler, "40")}
    queue = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": "lab"},
        "spec": {
            "cohortName": "all",
            "namespaceSelector": {},
            "resourceGroups": [
                {
                    "coveredResources": ["nvidia.com/gpu", "nvidia.com/mig-1g.10gb"],
                    "flavors": [
                        {
                            "name": name,
                            "resources": [
                                {"name": "nvidia.com/gpu", "nominalQuota": gpus},
                                {"name": "nvidia.com/mig-1g.10gb", "nominalQuota": slices},
                            ],
                        }
                        for name, (gpus, slices) in quotas.items()
                    ],
                }
            ],
        },
    }
    local = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "LocalQueue",
        "metadata": {"name": "default", "namespace": "lab"},
        "spec": {"clusterQueue": "lab"},
    }
    _, found = read(dump_of([*flavors, queue, local]), a_plan(TWO_POOLS))
    assert [item.code for item in found if "hands out" in item.finding.message] == codes
