"""Read which namespaces may use Kueue's queues: those that have a LocalQueue, and that the ClusterQueue selects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from gpuplan.compiler.base.diagnostics import Finding
from gpuplan.compiler.base.plain import inside, mapping, sequence, text
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.manifests.selectors import matches
from gpuplan.compiler.planning.kueue import DEFAULT_QUEUE
from gpuplan.compiler.planning.plan import TENANT_LABEL
from gpuplan.features.live.dump import Dump, Item
from gpuplan.features.live.queues.cohorts import KUEUE_GROUP
from gpuplan.features.live.queues.told import Told

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
        selector = inside(queue.body, "spec", "namespaceSelector")
        dumped = self._dump.find("", "Namespace", namespace)
        labels = {**(dumped.labels if dumped else {}), _NAME: namespace}
        return matches(selector, labels, None if dumped else (_NAME,)) is not False

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
