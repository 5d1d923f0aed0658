"""The parts of Kueue's queues: the cells of what pools hand out, settings beside numbers, and namespaces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction as Ratio
from functools import cached_property
from typing import Any

from gpuplan.compiler.backends.kueue.cells import Cell, Cells, Key
from gpuplan.compiler.base.diagnostics import Origin, Severity
from gpuplan.compiler.base.plain import grouped, inside, mapping, sequence, text
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.base.wording import joined
from gpuplan.compiler.manifests import Identity, exact_quantity
from gpuplan.compiler.manifests.selectors import matches
from gpuplan.compiler.planning.amounts import LEAST_BYTES, amount_of, portion_of
from gpuplan.compiler.planning.discovered import GPU_RESOURCE
from gpuplan.compiler.planning.kueue import DEFAULT_QUEUE, counted_resource
from gpuplan.compiler.planning.plan import TENANT_LABEL, Counted, Plan, Pool, Unit
from gpuplan.features.live.dump import Dump, Item, publishes, texts_of
from gpuplan.features.live.findings import Reports, report
from gpuplan.features.live.queues.model import COUNTED, KUEUE_GROUP, Matching, cohort_of
from gpuplan.features.live.rules import QUEUE_NOT_SAID, QUEUE_WITHOUT_EFFECT

_OF_NODES = frozenset((*COUNTED, "ephemeral-storage"))
"""The resources that every node has."""


class _Quota(NamedTuple):
    """The quota of a queue on a resource of a flavor, as it is written."""

    at: Origin
    flavor: str
    flavor_at: Origin
    resource: str
    cell: Cell


class CellReader(Value, eq=False):
    """The cells of queues and cohorts, by pools of the plan in place of flavors."""

    dump: Dump
    plan: Plan
    matching: Matching
    reports: Reports

    @cached_property
    def _told_of(self) -> set[Identity]:
        """Flavors of which something was said that is said once."""
        return set()

    def is_left_alone(self, queue: Item) -> bool:
        """Whether work without GPUs in a queue would be kept off the nodes that it runs on.

        A flavor of a pool has labels of that pool, and what a queue counts of CPU it counts by a flavor
        (`podSetAssignments` in `pkg/scheduler/flavorassigner/flavorassigner.go` of Kueue v0.19.2).
        """
        counted: dict[str, set[str]] = {}
        places: dict[str, Origin] = {}
        for quota in self._written(queue):
            counted.setdefault(quota.flavor, set()).add(quota.resource)
            places.setdefault(quota.flavor, quota.flavor_at)
        for name, resources in counted.items():
            flavor = self.dump.find(KUEUE_GROUP, "ResourceFlavor", name)
            node = self._node_beside(flavor) if flavor else None
            counts_gpus = any("/" in resource and resource not in _OF_NODES for resource in resources)
            if flavor and node and counts_gpus and not _OF_NODES.isdisjoint(resources):
                self.reports.say(
                    "flavor-of-all-nodes", places[name], queue.identity, item=queue, flavor=flavor, node=node
                )
                return True
        return False

    def _node_beside(self, flavor: Item) -> Item | None:
        """Return a node of a flavor that is in no pool, if the flavor is of nodes of a pool as well."""
        labels = node_labels(flavor)
        pools = self.matching.pools_of(labels)
        own = {node.name for pool in pools for node in self.matching.nodes_of(pool)}
        nodes = (node for node in self.dump.of_kind("", "Node") if labels.items() <= node.labels.items())
        return next((node for node in nodes if own and node.name not in own), None)

    def read(self, holder: Item) -> Cells:
        """Return those of a ClusterQueue or a Cohort, in the order of its flavors.

        CPU, memory and pods count where the queue has units of the pool.
        """
        quotas = sorted(self._written(holder), key=lambda quota: quota.resource in _OF_NODES)  # beside units
        found: dict[Key, Cell] = {}
        twice: set[Key] = set()
        divided: set[str] = set()
        for quota in quotas:
            is_of_nodes = quota.resource in _OF_NODES
            pools = self._pools(holder, quota, [pool for pool, _ in found] if is_of_nodes else None)
            if len(pools) > 1 and quota.flavor not in divided:
                divided.add(quota.flavor)
                names = joined([f"`{name}`" for name in pools])
                self.reports.say("one-quota-for-pools", quota.flavor_at, holder.identity, item=holder, names=names)
            for name, cell in _parts(quota, pools).items():
                key = name, quota.resource
                if key in found and key not in twice:
                    twice.add(key)
                    self.reports.say("several-flavors", quota.flavor_at, holder.identity, item=holder, pool=name)
                found[key] = _sum(found[key], cell) if key in found else cell
        order = dict.fromkeys(pool for pool, _ in found)
        return {key: found[key] for pool in order for key in found if key[0] == pool}

    def _written(self, holder: Item) -> Iterator[_Quota]:
        at = holder.at / "spec" / "resourceGroups"
        for index, group in enumerate(sequence(inside(holder.body, "spec").get("resourceGroups"))):
            for number, flavor in enumerate(map(mapping, sequence(mapping(group).get("flavors")))):
                place = at / index / "flavors" / number
                for count, quota in enumerate(map(mapping, sequence(flavor.get("resources")))):
                    resource, here = text(quota.get("name")), place / "resources" / count
                    stated = {name: quota.get(name) for name in ("nominalQuota", "borrowingLimit", "lendingLimit")}
                    amounts = {
                        name: None if value is None else _amount(resource, value) for name, value in stated.items()
                    }
                    lacking = (name for name, amount in amounts.items() if amount is None)
                    field = next((name for name in lacking if name == "nominalQuota" or stated[name] is not None), None)
                    if field is not None:
                        wrong = here / field if stated[field] is not None else here
                        say, whose = self.reports.say, holder.identity
                        say("quota-is-no-number", wrong, whose, field=field, item=holder, resource=resource)
                    elif resource:
                        nominal, borrowing, lending = amounts.values()
                        cell = Cell(nominal or 0, borrowing, lending)
                        yield _Quota(here, text(flavor.get("name")), place / "name", resource, cell)

    # --- Pools

    def _pools(self, holder: Item, quota: _Quota, among: Sequence[str] | None) -> Mapping[str, Ratio]:
        """Return the pools that a quota is on, with what each counts for; of those ``among`` where it is of nodes."""
        flavor = self.dump.find(KUEUE_GROUP, "ResourceFlavor", quota.flavor)
        if flavor is None:
            named = self.plan.find_pool(quota.flavor)
            pools = [named] if named else []
        else:
            pools = [*self.matching.pools_of(node_labels(flavor))]
            if not pools:
                labels, every = node_labels(flavor), self.dump.of_kind("", "Node")
                nodes = [node for node in every if labels.items() <= node.labels.items()]
                if every and not nodes:
                    self._tell_once("flavor-of-no-node", holder, flavor, "nodeLabels")
                    return {}
                lost = (node for node in nodes if among is None and publishes(node, quota.resource))
                if quota.cell.nominal > 0 and (node := next(lost, None)):
                    self.reports.say(
                        "quota-outside-pools", quota.at, holder.identity, item=holder, quota=quota, node=node
                    )
            else:
                self._tell_taints(holder, flavor, pools)
            if node := self._node_beside(flavor):
                self._tell_once("flavor-of-more-nodes", holder, flavor, "nodeLabels", node=node)
        if among is not None:
            held = {pool.name: Ratio(pool.nodes.count) for pool in pools if pool.name in among}
            if among and not held and (quota.cell.nominal > 0 or bool(cohort_of(holder) and quota.cell.borrowing != 0)):
                severity = Severity.ERROR if holder.kind == "ClusterQueue" else None
                say = self.reports.say
                say("compute-without-gpus", quota.at, holder.identity, severity=severity, item=holder, quota=quota)
            return held if quota.resource in COUNTED else {}
        found = {
            pool.name: Ratio(sum(unit.capacity for unit in units_of(pool, quota.resource)))
            for pool in pools
            if units_of(pool, quota.resource)
        }
        if not found and pools and quota.cell.nominal > 0:  # a group is a rectangle: 0 fills its gaps, borrowed or not
            names = joined([f"`{pool.name}`" for pool in pools])
            offered = joined(
                [f"`{name}`" for pool in pools for unit in pool.units if (name := counted_resource(pool, unit))]
            )
            is_ours = quota.resource.startswith(GPU_RESOURCE.partition("/")[0])
            self.reports.say(
                "not-handed-out",
                quota.at,
                holder.identity,
                rule=(QUEUE_WITHOUT_EFFECT if is_ours else QUEUE_NOT_SAID).code,
                notes=(f"its nodes are pool {names}" + (f", which hands out {offered}" if offered else ""),),
                item=holder,
                quota=quota,
            )
        return found

    # --- What cannot be said

    def _tell_once(self, row: str, holder: Item, flavor: Item, field: str, **values: Any) -> None:  # noqa: ANN401 - as `report`
        """Report a flavor once, with a remark on each queue that has it."""
        diagnostic = report(row, flavor.at / "spec" / field, item=flavor, **values)
        self.reports.remark(holder.identity, diagnostic.finding.message)
        if flavor.identity not in self._told_of:
            self._told_of.add(flavor.identity)
            self.reports.add(diagnostic, flavor.identity)

    def _tell_taints(self, holder: Item, flavor: Item, pools: Sequence[Pool]) -> None:
        """Report what a flavor says of taints and its pool does not."""
        spec = inside(flavor.body, "spec")
        known = {taint.key for pool in pools for taint in pool.taints}
        others = [
            found for found in map(mapping, sequence(spec.get("tolerations"))) if text(found.get("key")) not in known
        ]
        if sequence(spec.get("nodeTaints")):
            route, what = "nodeTaints", "names taints that pods have to tolerate by themselves"
            change = "from the first sync on Kueue adds tolerations of the pool's taints to all pods that it admits"
        elif others:
            route, what = "tolerations", "tolerates taints that no node of its pool has"
            change = "from the first sync on Kueue adds tolerations of the pool's taints alone"
        else:
            return
        self._tell_once("flavor-taints", holder, flavor, route, what=what, notes=(change,))


def node_labels(flavor: Item) -> Mapping[str, str]:
    """Return the labels of the nodes that a flavor is of; none where it is of all."""
    return texts_of(inside(flavor.body, "spec", "nodeLabels"))


def units_of(pool: Pool, resource: str) -> list[Unit]:
    """Return the units of a pool that Kueue counts by a resource: several under strategy `single`."""
    return [unit for unit in pool.units if counted_resource(pool, unit) == resource]


def _parts(quota: _Quota, pools: Mapping[str, Ratio]) -> Mapping[str, Cell]:
    """Divide a quota that is on several pools among them."""
    if len(pools) < 2:
        return dict.fromkeys(pools, quota.cell)
    weights = pools if sum(pools.values()) else dict.fromkeys(pools, Ratio(1))
    total = sum(weights.values(), Ratio(0))
    numbers = [
        dict.fromkeys(pools) if amount is None else portion_of(int(amount), weights, total) for amount in quota.cell
    ]
    return {name: Cell(numbers[0][name] or 0, numbers[1][name], numbers[2][name]) for name in pools}


def _sum(one: Cell, other: Cell) -> Cell:
    borrowing = None if one.borrowing is None or other.borrowing is None else one.borrowing + other.borrowing
    lent = [cell.nominal if cell.lending is None else cell.lending for cell in (one, other)]
    is_bounded = one.lending is not None or other.lending is not None
    return Cell(one.nominal + other.nominal, borrowing, sum(lent) if is_bounded else None)


def _amount(resource: str, value: object) -> int | None:
    """Millicores, bytes or devices; what is finer is rounded up, as Kueue does. None for what is no number of them."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    number = exact_quantity(str(value))
    if number is None or number < 0:
        return None
    if resource in COUNTED:
        amount = amount_of(COUNTED[resource], str(value))
        return None if resource == Counted.MEMORY and 0 < amount < LEAST_BYTES else amount
    return int(number) if number == int(number) else None


# --- Settings and namespaces -----------------------------------------------------------------------------------

_KNOWN = frozenset(
    (
        *("cohort", "cohortName", "fairSharing", "namespaceSelector", "parent", "parentName", "resourceGroups"),
        *("preemption", "flavorFungibility"),
    )
)
"""The fields that other readers read, and those that gpuplan writes alike for all queues."""

_TAKEN = "the sync takes the field from whoever set it"
"""A sync leaves a field alone that it does not write, unless what set it was the same tool, or `kubectl apply`."""
_LOST: Mapping[str, tuple[object, str]] = {
    "admissionChecks": ([], f"work starts when these checks have passed, and without them where {_TAKEN}"),
    "admissionChecksStrategy": ({}, f"work starts when these checks have passed, and without them where {_TAKEN}"),
    "admissionScope": ({}, f"earlier use of teams counts, and does not where {_TAKEN}"),
    "queueingStrategy": ("BestEffortFIFO", "work that fits is now admitted before older work that does not"),
    "stopPolicy": ("None", f"it is stopped, and admits work where {_TAKEN}"),
}
"""The fields that no policy has: the value that says nothing, and the effect of losing another."""


def tell_settings(holder: Item, reports: Reports, *, will_evict: bool | None) -> None:
    """A finding for each setting of a ClusterQueue or a Cohort that does not stay.

    ``will_evict`` says whether queues evict work for that of a higher class from now on; None where that is not known.
    """
    spec = inside(holder.body, "spec")
    for field, value in spec.items():
        plain, change = _LOST.get(field, (None, "gpuplan does not know this field"))
        if field not in _KNOWN and value not in (None, plain):
            reports.about("queue-setting", holder, "spec", field, field=field, notes=(change,))
    if holder.kind != "ClusterQueue":
        return
    # Absent means `Never` (`apis/kueue/v1beta2/clusterqueue_types.go` of Kueue v0.19.2).
    found = inside(spec, "preemption")
    within = found.get("withinClusterQueue") or "Never"
    changes: dict[str, str] = {}
    if (found.get("reclaimWithinCohort") or "Never") != "Any" and cohort_of(holder):
        changes["reclaimWithinCohort"] = "a tenant takes back its guarantee from any borrower"
    if (inside(found, "borrowWithinCohort").get("policy") or "Never") != "Never":
        changes["borrowWithinCohort"] = "a borrower evicts others for its fair share alone"
    if within not in ("Never", "LowerPriority"):
        changes["withinClusterQueue"] = "within a team only work of a lower class is evicted"
    elif within == "LowerPriority" and will_evict is False:
        changes["withinClusterQueue"] = "no priority class of the policies evicts another"
    elif within == "Never" and will_evict:
        changes["withinClusterQueue"] = "work of a higher class evicts that of a lower one of its team"
    for field, change in changes.items():
        at = holder.at / "spec" / "preemption" / field if field in found else holder.at / "spec"
        reports.about("gpuplan-sets-otherwise", holder, at=at, field=field, notes=(change,))
    fungibility = inside(spec, "flavorFungibility")
    is_ours = fungibility.get("whenCanBorrow") == fungibility.get("whenCanPreempt") == "TryNextFlavor"
    groups = sequence(spec.get("resourceGroups"))
    if not is_ours and any(len(sequence(mapping(group).get("flavors"))) > 1 for group in groups):
        at = holder.at / "spec" / "flavorFungibility" if fungibility else holder.at / "spec"
        reports.about("flavor-fungibility", holder, at=at)


_NAME = "kubernetes.io/metadata.name"
_QUEUE_LABEL = "kueue.x-k8s.io/queue-name"


def _cluster_queue_of(local: Item) -> str:
    return text(inside(local.body, "spec").get("clusterQueue"))


class Namespaces(Value):
    """The namespaces of a queue, sorted; ``is_by_label`` says that those that carry a tenant's label are its as well.

    ``local_queue`` is what the LocalQueues are called; ``sources`` are these.
    """

    names: tuple[str, ...]
    is_by_label: bool
    local_queue: str
    sources: tuple[Item, ...]


class NamespaceReader:
    """The namespaces of ClusterQueues; each is one tenant's."""

    def __init__(self, dump: Dump, queues: Sequence[Item], reports: Reports) -> None:
        self._dump, self._reports = dump, reports
        by_name = {item.name: item for item in queues}
        found: dict[str, dict[str, Item]] = {}
        of_namespaces = grouped((item.namespace, item) for item in dump.of_kind(KUEUE_GROUP, "LocalQueue"))
        for namespace, items in sorted(of_namespaces.items()):
            leading = [(item, queue) for item in items if (queue := by_name.get(_cluster_queue_of(item)))]
            usable = [(item, queue) for item, queue in leading if namespace and self._selects(queue, item)]
            default = next((item for item in items if item.name == DEFAULT_QUEUE), None)
            if usable and default and all(item is not default for item, _ in usable):
                others = tuple(queue for _, queue in usable)
                reports.about(
                    "default-leads-elsewhere",
                    default,
                    "spec",
                    "clusterQueue",
                    also=others,
                    to=_cluster_queue_of(default),
                )
            elif usable:
                # Its `clusterQueue` cannot be changed (`apis/kueue/v1beta2/localqueue_types.go` of Kueue v0.19.2).
                chosen = _cluster_queue_of(default) if default else self._most_used(usable)
                same = sorted((item for item, queue in usable if queue.name == chosen), key=lambda item: item.name)
                local = next((item for item in same if item.name != DEFAULT_QUEUE), same[0])
                found.setdefault(chosen, {})[namespace] = local
                self._tell_others(local, usable)
        self._chosen = found

    def _selects(self, queue: Item, local: Item) -> bool:
        """Whether a queue may take work of the namespace of a LocalQueue.

        Without the namespace the dump does not show that the selector does not select it.
        """
        dumped = self._dump.find("", "Namespace", local.namespace)
        labels = {**(dumped.labels if dumped else {}), _NAME: local.namespace}
        selector = inside(queue.body, "spec", "namespaceSelector")
        if matches(selector, labels, None if dumped else (_NAME,)) is False:
            self._reports.about("unselected-namespace", local, also=(queue,), queue=queue)
            return False
        return True

    def _most_used(self, usable: Sequence[tuple[Item, Item]]) -> str:
        """Return the ClusterQueue that most work of a namespace is in, or the first LocalQueue leads to."""
        work = [item for item in self._dump.objects if item.namespace == usable[0][0].namespace]
        used = Counter(item.labels.get(_QUEUE_LABEL, "") for item in work)
        return max(sorted(usable, key=lambda pair: pair[0].name), key=lambda pair: used[pair[0].name])[1].name

    def _tell_others(self, first: Item, usable: Sequence[tuple[Item, Item]]) -> None:
        """Report settings of the LocalQueues of a namespace, and those that are not its tenant's."""
        for item, queue in sorted(usable, key=lambda pair: pair[0].name):
            spec, chosen = inside(item.body, "spec"), _cluster_queue_of(first)
            for field in spec.keys() - {"clusterQueue"}:
                if spec[field] not in (None, "None"):
                    self._reports.about("local-queue-setting", item, "spec", field, field=field)
            if queue.name != chosen:
                self._reports.about("queue-of-two-teams", item, also=(queue,), other=first, chosen=chosen, queue=queue)
            elif item is not first and item.name != DEFAULT_QUEUE:
                self._reports.about("second-local-queue", item, also=(queue,), other=first)

    def of(self, queue: Item) -> Namespaces:
        found = self._chosen.get(queue.name, {})
        is_by_label = TENANT_LABEL in inside(queue.body, "spec", "namespaceSelector", "matchLabels")
        terms = map(mapping, sequence(inside(queue.body, "spec", "namespaceSelector").get("matchExpressions")))
        by_name = [term for term in terms if term.get("key") == _NAME and term.get("operator") == "In"]
        selected = [text(name) for term in by_name for name in sequence(term.get("values"))]
        names = sorted(found) or sorted(filter(None, selected))
        called = Counter(item.name for item in found.values()).most_common(1)
        local_queue = called[0][0] if called else ""
        for namespace, item in sorted(found.items()):
            if item.name != local_queue:
                self._reports.about("other-local-queue-name", item, local_queue=local_queue, namespace=namespace)
        return Namespaces(tuple(names), is_by_label, local_queue, tuple(found[name] for name in sorted(found)))

    def tenant_of(self, queue: str) -> str:
        """Return the tenant whose label all of its namespaces carry, empty where they do not agree."""
        names = self._chosen.get(queue, {})
        objects = [self._dump.find("", "Namespace", name) for name in names]
        found = {item.labels.get(TENANT_LABEL, "") for item in objects if item}
        return found.pop() if len(found) == 1 else ""
