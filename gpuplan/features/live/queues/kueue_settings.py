"""What Kueue's queues say beside numbers: the namespaces that may use them, and settings of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from gpuplan.compiler.base.diagnostics import Finding
from gpuplan.compiler.base.plain import inside, mapping, sequence, text
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.manifests.selectors import holds, terms_of
from gpuplan.compiler.planning.kueue import DEFAULT_QUEUE
from gpuplan.compiler.planning.plan import TENANT_LABEL
from gpuplan.features.live.dump import Dump, Item
from gpuplan.features.live.queues.model import KUEUE_GROUP, cohort_of
from gpuplan.features.live.queues.told import Told

_KNOWN = frozenset(
    ("cohort", "cohortName", "fairSharing", "namespaceSelector", "parent", "parentName", "resourceGroups")
)
"""What is read elsewhere."""

_TAKEN = "the sync takes the field from whoever set it"
"""A sync leaves a field alone that it does not write, unless what set it was the same tool, or `kubectl apply`."""
_LOST: Mapping[str, tuple[object, str]] = {
    "admissionChecks": ([], f"work starts when these checks have passed, and without them where {_TAKEN}"),
    "admissionChecksStrategy": ({}, f"work starts when these checks have passed, and without them where {_TAKEN}"),
    "admissionScope": ({}, f"what teams used before counts for them, and does not where {_TAKEN}"),
    "queueingStrategy": ("BestEffortFIFO", "work that fits is now admitted before older work that does not"),
    "stopPolicy": ("None", f"it is stopped, and admits work where {_TAKEN}"),
}
"""What has no counterpart, with the value that says nothing, and what changes."""


def tell_settings(item: Item, told: Told, *, will_evict: bool | None) -> None:
    """A finding for each setting of a ClusterQueue or a Cohort that does not stay.

    ``will_evict`` says whether queues evict work for that of a higher class from now on; None where that is not known.
    """
    spec = inside(item.body, "spec")
    for field, value in spec.items():
        plain, change = _LOST.get(field, (None, ""))
        if field in _KNOWN or value in (None, plain):
            continue
        if field in _LOST:
            told.lost(item, _finding(item, field, change))
        elif field not in _OWN:
            told.lost(item, _finding(item, field, "gpuplan does not know this field"))
    if item.kind == "ClusterQueue":
        _tell_preemption(item, told, will_evict=will_evict)
        if any(len(sequence(mapping(group).get("flavors"))) > 1 for group in sequence(spec.get("resourceGroups"))):
            _tell_fungibility(item, told)


def _finding(item: Item, field: str, change: str) -> Finding:
    return Finding(
        item.at / "spec" / field,
        f"{item.title} has `{field}`, which no policy says",
        label="not carried over",
        notes=(change,),
        help="keep it as a patch in a Component in `overlays/<cluster>/kustomize/scheduling/`",
    )


# --- What gpuplan says of all queues -----------------------------------------------------------------------------

_OWN = frozenset(("preemption", "flavorFungibility"))


def _tell_preemption(item: Item, told: Told, *, will_evict: bool | None) -> None:
    """Absent means `Never` (`apis/kueue/v1beta2/clusterqueue_types.go` of Kueue v0.19.2)."""
    found = inside(item.body, "spec", "preemption")
    reclaims = found.get("reclaimWithinCohort") or "Never"
    borrows = inside(found, "borrowWithinCohort").get("policy") or "Never"
    within = found.get("withinClusterQueue") or "Never"
    if reclaims != "Any" and cohort_of(item):
        _tell_own(item, told, "reclaimWithinCohort", "a tenant takes back its guarantee from any borrower")
    if borrows != "Never":
        _tell_own(item, told, "borrowWithinCohort", "a borrower evicts others for its fair share alone")
    if within not in ("Never", "LowerPriority"):
        _tell_own(item, told, "withinClusterQueue", "of one team only work of a lower class is evicted")
    elif within == "LowerPriority" and will_evict is False:
        _tell_own(item, told, "withinClusterQueue", "no priority class of the policies evicts another")
    elif within == "Never" and will_evict:
        _tell_own(item, told, "withinClusterQueue", "work of a higher class evicts that of a lower one of its team")


def _tell_own(item: Item, told: Told, field: str, change: str) -> None:
    place = item.at / "spec" / "preemption"
    finding = Finding(
        place / field if field in inside(item.body, "spec", "preemption") else item.at / "spec",
        f"{item.title} has another `{field}` than gpuplan writes",
        label="gpuplan's own holds from the first sync on",
        notes=(change,),
        help="keep it as a patch in a Component in `overlays/<cluster>/kustomize/scheduling/`, if it has to stay",
    )
    told.otherwise(item, finding)


def _tell_fungibility(item: Item, told: Told) -> None:
    found = inside(item.body, "spec", "flavorFungibility")
    if found.get("whenCanBorrow") == found.get("whenCanPreempt") == "TryNextFlavor":
        return
    finding = Finding(
        item.at / "spec" / "flavorFungibility" if found else item.at / "spec",
        f"{item.title} has another `flavorFungibility` than gpuplan writes",
        label="gpuplan's own holds from the first sync on",
        notes=("a tenant's own idle units come first, in whatever pool, then those of others, and evictions last",),
        help="keep it as a patch in a Component in `overlays/<cluster>/kustomize/scheduling/`, if it has to stay",
    )
    told.otherwise(item, finding)


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

    def __init__(self, dump: Dump, queues: Sequence[Item], told: Told) -> None:
        self._dump, self._told = dump, told
        self._queues = {item.name: item for item in queues}
        self._chosen = self._choose()

    def of(self, queue: Item) -> Namespaces:
        found = self._chosen.get(queue.name, {})
        is_by_label = TENANT_LABEL in inside(queue.body, "spec", "namespaceSelector", "matchLabels")
        names = sorted(found) or sorted(_named(queue))
        called = Counter(item.name for item in found.values()).most_common(1)
        local_queue = called[0][0] if called else ""
        for namespace, item in sorted(found.items()):
            if item.name != local_queue:
                self._tell_name(namespace, item, local_queue)
        return Namespaces(tuple(names), is_by_label, local_queue, tuple(found[name] for name in sorted(found)))

    def tenant_of(self, queue: str) -> str:
        """The tenant whose label all of its namespaces carry, empty where they do not agree."""
        names = self._chosen.get(queue, {})
        objects = [self._dump.find("", "Namespace", name) for name in names]
        found = {item.labels.get(TENANT_LABEL, "") for item in objects if item}
        return found.pop() if len(found) == 1 else ""

    def _choose(self) -> Mapping[str, Mapping[str, Item]]:
        """By ClusterQueue the namespaces that have a LocalQueue for it, each with that one.

        One that takes work that names none is beside any other: the other is what work names.
        """
        found: dict[str, dict[str, Item]] = {}
        taken: dict[str, tuple[Item, str]] = {}
        items = self._dump.of_kind(KUEUE_GROUP, "LocalQueue")
        for item in sorted(items, key=lambda item: (item.name == DEFAULT_QUEUE, item.namespace, item.name)):
            queue = self._queues.get(text(inside(item.body, "spec").get("clusterQueue")))
            if queue is None or not item.namespace:
                continue
            if not self._selects(queue, item.namespace):
                self._tell_unselected(item, queue)
                continue
            self._tell_more(item)
            other, of = taken.setdefault(item.namespace, (item, queue.name))
            if other is item:
                found.setdefault(queue.name, {})[item.namespace] = item
            elif of != queue.name or item.name != DEFAULT_QUEUE:
                self._tell_second(item, other, queue)
        return found

    def _selects(self, queue: Item, namespace: str) -> bool:
        """Whether its selector selects a namespace; what the dump does not say is thought to be so."""
        selector = inside(queue.body, "spec").get("namespaceSelector")
        found = self._dump.find("", "Namespace", namespace)
        labels = {**(found.labels if found else {}), _NAME: namespace}
        known = labels.keys() if found is None else None
        terms = [*terms_of(mapping(selector))]
        return not any(
            holds(term, labels) is False for term in terms if known is None or text(term.get("key")) in known
        )

    def _tell_second(self, item: Item, other: Item, queue: Item) -> None:
        is_same = inside(other.body, "spec").get("clusterQueue") == queue.name
        finding = Finding(
            item.at,
            f"{item.title} is the second one there",
            label=f"`{other.name}` was read",
            notes=(
                "a namespace has one LocalQueue, of the tenant that it belongs to"
                if is_same
                else f"it is for ClusterQueue `{queue.name}`; a namespace belongs to one tenant",
            ),
            help=f"move work that names it to `{other.name}`"
            if is_same
            else f"give the team of `{queue.name}` a namespace of its own",
        )
        self._told.lost(item, finding)
        self._told.note_on(queue, finding)

    def _tell_unselected(self, item: Item, queue: Item) -> None:
        finding = Finding(
            item.at,
            f"{item.title} is for a ClusterQueue that does not select its namespace",
            label=f"nothing in it was admitted to `{queue.name}`",
            help="add the namespace to the `namespaces` of the tenant, if it is to use the queue",
        )
        self._told.broken(item, finding)
        self._told.note_on(queue, finding)

    def _tell_name(self, namespace: str, item: Item, local_queue: str) -> None:
        finding = Finding(
            item.at,
            f"{item.title} is called `{local_queue}` in other namespaces of its team",
            label="one name for all of them",
            notes=("a tenant's LocalQueues have one name (`names.localQueue`)",),
            help=f"move work in `{namespace}` to `{local_queue}`",
        )
        self._told.lost(item, finding)

    def _tell_more(self, item: Item) -> None:
        spec = inside(item.body, "spec")
        for field in spec.keys() - {"clusterQueue"}:
            if spec[field] in (None, "None"):
                continue
            finding = Finding(
                item.at / "spec" / field,
                f"{item.title} has `{field}`",
                label="no policy says it of a LocalQueue",
                help="keep it as a patch in a Component in `overlays/<cluster>/kustomize/namespaces/`",
            )
            self._told.lost(item, finding)


def _named(queue: Item) -> Iterator[str]:
    """The namespaces that a selector has by their names."""
    for term in sequence(inside(queue.body, "spec", "namespaceSelector").get("matchExpressions")):
        if mapping(term).get("key") == _NAME and mapping(term).get("operator") == "In":
            yield from (name for name in map(text, sequence(mapping(term).get("values"))) if name)
