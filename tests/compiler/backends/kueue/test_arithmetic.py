"""For any policy, what Kueue grants by its own arithmetic is what the policy says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from hypothesis import given, settings, strategies as st

from gpuplan.compiler.planning.plan import Plan, Quota, Tenant
from tests.compiler.backends.kueue.arithmetic import Key, Node, Tree, a_tree
from tests.compiler.backends.kueue.platform import manifests, platform, tenant
from tests.compiler.backends.kueue.webhook import refusals
from tests.platforms import document

CAPACITY = {("whole", "gpu"): 16, ("shared", "shared"): 64, ("split", "2g.20gb"): 32, ("split", "3g.40gb"): 16}
POOLS = "".join(
    document("Pool", name, f"gpu: A100-80GB, nodes: {{count: 2, gpusPerNode: 8}}, sharing: {sharing}")
    for name, sharing in [
        ("whole", "{exclusive: {}}"),
        ("shared", "{timeSlicing: {replicas: 4}}"),
        ("split", "{mig: {instances: {2g.20gb: 2, 3g.40gb: 1}}}"),
    ]
)


@dataclass(frozen=True)
class Drawn:
    policy: str
    plan: Plan = field(repr=False)
    tree: Tree = field(repr=False)


@st.composite
def policies(draw: st.DrawFn, *, is_flat: bool = False) -> Drawn:
    """Tenants within tenants whose guarantees fit, as the checks demand; limits and lending are any that they allow."""
    count = draw(st.integers(1, 6))
    above = [None if is_flat or not index else draw(st.none() | st.integers(0, index - 1)) for index in range(count)]
    left: dict[tuple[int | None, str, str], int] = {(None, *unit): capacity for unit, capacity in CAPACITY.items()}
    documents = []
    for index in range(count):
        quotas = []
        for pool, unit in draw(st.lists(st.sampled_from(sorted(CAPACITY)), unique=True)):
            holder = above[index]
            while holder is not None and (holder, pool, unit) not in left:
                holder = above[holder]
            guaranteed = draw(st.integers(0, left[holder, pool, unit]))
            left[holder, pool, unit] -= guaranteed
            left[index, pool, unit] = guaranteed
            limit = draw(st.just("none") | st.integers(guaranteed, guaranteed + 20))
            lendable = draw(st.just("") | st.integers(0, guaranteed).map(lambda number: f", lendable: {number}"))
            quotas.append(f"{{pool: {pool}, unit: {unit}, guaranteed: {guaranteed}, limit: {limit}{lendable}}}")
        parent = "" if above[index] is None else f"parent: t{above[index]}, "
        namespaces = f"n{index}" if index not in above or draw(st.booleans()) else ""
        documents.append(tenant(f"t{index}", f"{parent}namespaces: [{namespaces}], quotas: [{', '.join(quotas)}]"))
    plan = platform(*documents, pools=POOLS)
    return Drawn("".join(documents), plan, a_tree(manifests(plan)))


def key(quota: Quota) -> Key:
    assert quota.unit.resource
    return quota.pool.name, quota.unit.resource


def queues(drawn: Drawn) -> Iterator[tuple[Tenant, Quota, Node]]:
    for found in drawn.plan.tenants:
        for quota in found.quotas if found.name in drawn.tree.queues else ():
            yield found, quota, drawn.tree.queues[found.name]


def used(drawn: Drawn, name: str, unit: Key) -> int:
    """What a tenant and all within it use."""
    own = drawn.tree.queues[name].usage.get(unit, 0) if name in drawn.tree.queues else 0
    return own + sum(used(drawn, child.name, unit) for child in drawn.plan.tenants if child.parent == name)


def fill(drawn: Drawn, order: list[int]) -> None:
    """Let queues take what they can get, in any order and in any portions."""
    wanting = [(quota, queue) for _, quota, queue in queues(drawn)]
    for number in order if wanting else ():
        quota, queue = wanting[number % len(wanting)]
        queue.use(key(quota), min(number % 97, max(0, queue.available(key(quota)))))


takers = st.lists(st.integers(0, 10_000), max_size=40)


@settings(max_examples=150)
@given(policies())
def test_all_units_are_somebodys_or_everybodys(drawn: Drawn) -> None:
    for pool in drawn.plan.pools:
        for unit in pool.units:
            assert unit.resource
            cells = [node.cells.get((pool.name, unit.resource)) for node in drawn.tree.nodes]
            assert sum(cell.nominal for cell in cells if cell) == unit.capacity


@settings(max_examples=150)
@given(policies())
def test_a_tenant_alone_has_its_guarantee_and_at_most_its_limit(drawn: Drawn) -> None:
    parents = {found.parent for found in drawn.plan.tenants}
    for found, quota, queue in queues(drawn):
        reach = queue.potential(key(quota))
        assert quota.limit is None or reach <= quota.limit
        assert found.name in parents or reach >= quota.guaranteed


@settings(max_examples=150)
@given(policies(is_flat=True))
def test_a_tenant_alone_can_use_all_that_others_lend(drawn: Drawn) -> None:
    holding = list(queues(drawn))
    for found, quota, queue in holding:
        kept = sum(
            other.guaranteed - other.lendable
            for name, other, _ in holding
            if name != found and key(other) == key(quota)
        )
        most = quota.unit.capacity - kept
        assert queue.potential(key(quota)) == (most if quota.limit is None else min(most, quota.limit))


@settings(max_examples=150)
@given(policies())
def test_a_guarantee_is_there_when_all_others_use_theirs(drawn: Drawn) -> None:
    for _, quota, queue in queues(drawn):
        own = queue.cells[key(quota)].nominal
        others = [node for node in drawn.tree.queues.values() if node is not queue and key(quota) in node.cells]
        for node in others:
            node.use(key(quota), node.cells[key(quota)].nominal)
        assert queue.available(key(quota)) >= own
        for node in drawn.tree.nodes:
            node.usage.clear()


@settings(max_examples=150)
@given(policies(), takers)
def test_whoever_takes_what_there_is_stays_within_every_limit(drawn: Drawn, order: list[int]) -> None:
    fill(drawn, order)
    for found in drawn.plan.tenants:
        for quota in found.quotas:
            assert quota.limit is None or used(drawn, found.name, key(quota)) <= quota.limit
    for unit in {key(quota) for _, quota, _ in queues(drawn)}:
        (capacity,) = [
            found.capacity for pool in drawn.plan.pools for found in pool.units if (pool.name, found.resource) == unit
        ]
        assert sum(queue.usage.get(unit, 0) for queue in drawn.tree.queues.values()) <= capacity


@settings(max_examples=150)
@given(policies(), takers)
def test_nobody_takes_what_a_tenant_keeps_to_itself(drawn: Drawn, order: list[int]) -> None:
    fill(drawn, order)
    for _, quota, queue in queues(drawn):
        queue.use(key(quota), max(0, queue.available(key(quota))))
    for found in drawn.plan.tenants:
        for quota in found.quotas:
            everybody = sum(queue.usage.get(key(quota), 0) for queue in drawn.tree.queues.values())
            others = everybody - used(drawn, found.name, key(quota))
            assert others <= quota.unit.capacity - (quota.guaranteed - quota.lendable)


@settings(max_examples=60)
@given(policies())
def test_kueue_refuses_nothing(drawn: Drawn) -> None:
    assert [
        refusals(item.body.get("spec", {})) for item in manifests(drawn.plan) if refusals(item.body.get("spec", {}))
    ] == []
