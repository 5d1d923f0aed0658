"""The pools that work of namespaces can run in, by what its pods select and tolerate and what the nodes have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

from gpuplan.compiler.backends.workloads.pods import REQUIRED
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import inside, mapping, parts_with, sequence, text, value_at
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.catalog.operators import is_tolerated
from gpuplan.compiler.manifests.selectors import matches
from gpuplan.compiler.planning.plan import Plan
from gpuplan.features.live.dump import Dump, Item, publishes, units_in
from gpuplan.features.live.queues.model import Matching


class Asking(NamedTuple):
    """An object whose pods ask for units of a resource, and where these can run.

    ``pools`` are those that have a node for them. Without any, ``node`` is a node for them that is in no pool.
    """

    work: Item
    resource: str
    units: int
    pools: tuple[str, ...]
    node: Item | None


class Placing:
    """The places of the work of a dump, by namespace."""

    def __init__(self, dump: Dump, plan: Plan) -> None:
        self.dump, matching = dump, Matching(dump, plan)
        self._pool_of = {node.name: pool.name for pool in plan.pools for node in matching.nodes_of(pool)}
        self._nodes = dump.of_kind("", "Node")
        self._known = {unit.resource for pool in plan.pools for unit in pool.units}
        self._fitting: dict[str, list[Item]] = {}
        """The nodes that take pods, by what places them: most pods of a cluster are placed alike."""

    @cached_property
    def by_namespace(self) -> Mapping[str, list[Asking]]:
        found: dict[str, list[Asking]] = {}
        for work in self.dump.objects if self._nodes else ():
            phase = text(inside(work.body, "status").get("phase"))
            if work.namespace and phase not in ("Succeeded", "Failed"):
                found.setdefault(work.namespace, []).extend(self._asking(work))
        return found

    def units_by_pool(self, namespace: str, resource: str) -> Mapping[str, int]:
        """Return how many units of a resource work of a namespace asks for that runs in one pool alone."""
        by_pods: Counter[str] = Counter()
        by_others: Counter[str] = Counter()
        for asking in self.by_namespace.get(namespace, ()):
            if asking.resource == resource and len(asking.pools) == 1:
                (by_pods if asking.work.kind == "Pod" else by_others)[asking.pools[0]] += asking.units
        return by_pods | by_others

    def _asking(self, work: Item) -> Iterator[Asking]:
        number = next((units_in(n) for field in _NUMBERS if (n := inside(work.body, "spec").get(field)) is not None), 1)
        for _, pods in parts_with(work.body, "containers"):
            asked: Counter[str] = Counter()
            for container in map(mapping, sequence(pods.get("containers"))):
                limits, requests = (inside(container, "resources", kind) for kind in ("limits", "requests"))
                for resource, amount in {**requests, **limits}.items():
                    asked[resource] += units_in(amount) if resource in self._known or _GPU.match(resource) else 0
            for resource, units in asked.items():
                nodes = self._nodes_for(pods, resource) if units else ()
                pools = dict.fromkeys(self._pool_of[node.name] for node in nodes if node.name in self._pool_of)
                if nodes:
                    yield Asking(work, resource, max(number, 1) * units, tuple(pools), None if pools else nodes[0])

    def _nodes_for(self, pods: Mapping[str, object], resource: str) -> Sequence[Item]:
        key = repr([resource, *(pods.get(field) for field in _PLACED_BY)])
        if key not in self._fitting:
            self._fitting[key] = [node for node in self._nodes if publishes(node, resource) and _fits(pods, node)]
        return self._fitting[key]


_PLACED_BY: Final = ("nodeName", "nodeSelector", "affinity", "tolerations")
_NUMBERS: Final = ("replicas", "parallelism")
_GPU: Final = regex(r"nvidia\.com/(gpu|mig-)")


def _fits(pods: Mapping[str, object], node: Item) -> bool:
    """Whether kube-scheduler may put pods on a node, as far as the dump shows it.

    A taint with the name of a resource is tolerated: where a node group has one, the API server's admission plugin
    ExtendedResourceToleration adds the toleration (`plugin/pkg/admission/extendedresourcetoleration/admission.go` of
    kubernetes/kubernetes). Taints of Kubernetes itself come and go with the state of a node.
    """
    if name := text(pods.get("nodeName")):
        return name == node.name
    if matches({"matchLabels": inside(pods, "nodeSelector")}, node.labels) is False:
        return False
    terms = sequence(value_at(pods, ("affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms")))
    places = (("matchFields", {"metadata.name": node.name}), ("matchExpressions", node.labels))
    verdicts = (
        any(matches({"matchExpressions": mapping(term).get(key)}, values) is False for key, values in places)
        for term in terms
    )
    if terms and all(verdicts):
        return False
    tolerations = sequence(pods.get("tolerations"))
    for taint in map(mapping, sequence(inside(node.body, "spec").get("taints"))):
        key, value, effect = (text(taint.get(field)) for field in ("key", "value", "effect"))
        is_lasting = not key.startswith("node.kubernetes.io/") and not publishes(node, key)
        if is_lasting and effect != "PreferNoSchedule" and not is_tolerated(tolerations, key, value, effect):
            return False
    return True
