"""Settings of Kueue's queues beside numbers, and the namespaces that may use the queues."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from gpuplan.compiler.base.plain import inside, mapping, sequence, text
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.manifests.selectors import matches
from gpuplan.compiler.planning.kueue import DEFAULT_QUEUE
from gpuplan.compiler.planning.plan import TENANT_LABEL
from gpuplan.features.live.dump import Dump, Item
from gpuplan.features.live.findings import Reports
from gpuplan.features.live.queues.model import KUEUE_GROUP, cohort_of

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
    "admissionScope": ({}, f"what teams used before counts for them, and does not where {_TAKEN}"),
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
        changes["withinClusterQueue"] = "of one team only work of a lower class is evicted"
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
        taken: dict[str, tuple[Item, str]] = {}
        items = dump.of_kind(KUEUE_GROUP, "LocalQueue")
        for item in sorted(items, key=lambda item: (item.name == DEFAULT_QUEUE, item.namespace, item.name)):
            queue = by_name.get(text(inside(item.body, "spec").get("clusterQueue")))
            if queue is None or not item.namespace:
                continue
            dumped = dump.find("", "Namespace", item.namespace)
            labels = {**(dumped.labels if dumped else {}), _NAME: item.namespace}
            # Without the namespace the dump does not show that the selector does not select it.
            if matches(inside(queue.body, "spec", "namespaceSelector"), labels, None if dumped else (_NAME,)) is False:
                reports.about("unselected-namespace", item, also=(queue,), queue=queue)
                continue
            spec = inside(item.body, "spec")
            for field in spec.keys() - {"clusterQueue"}:
                if spec[field] not in (None, "None"):
                    reports.about("local-queue-setting", item, "spec", field, field=field)
            other, of = taken.setdefault(item.namespace, (item, queue.name))
            if other is item:
                found.setdefault(queue.name, {})[item.namespace] = item
            elif of != queue.name or item.name != DEFAULT_QUEUE:
                is_same = inside(other.body, "spec").get("clusterQueue") == queue.name
                if is_same:
                    why = "a namespace has one LocalQueue, of the tenant that it belongs to"
                    help_ = f"move work that names it to `{other.name}`"
                else:
                    why = f"it is for ClusterQueue `{queue.name}`; a namespace belongs to one tenant"
                    help_ = f"give the team of `{queue.name}` a namespace of its own"
                reports.about("second-local-queue", item, also=(queue,), other=other, notes=(why,), help=help_)
        self._chosen = found

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
