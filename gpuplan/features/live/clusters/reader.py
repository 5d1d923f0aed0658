"""A dump as it is read for one cluster: what has been used of it, and what cannot be said of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from gpuplan.compiler import catalog
from gpuplan.compiler.admission.policies import CLAIMS_POLICY
from gpuplan.compiler.base.credentials import holds_credential
from gpuplan.compiler.base.diagnostics import Origin, Path
from gpuplan.compiler.base.plain import mapping, sequence, text, value_at
from gpuplan.compiler.documents import Document, read_text
from gpuplan.compiler.manifests import to_yaml
from gpuplan.compiler.planning import resolve
from gpuplan.compiler.planning.plan import POOL_LABEL, Plan
from gpuplan.compiler.planning.sync_names import FLUX_SSA, SYNC_OPTIONS
from gpuplan.compiler.policy import parse
from gpuplan.compiler.policy.models import API_VERSION
from gpuplan.features.live.dump import Dump, Item, is_named, texts_of
from gpuplan.features.live.findings import Reports

Spec = dict[str, Any]

ARGOCD: Final = "argoproj.io"
FLUX: Final = "kustomize.toolkit.fluxcd.io"
HELM: Final = "helm.toolkit.fluxcd.io"
ABOUT_PROJECT: Final = "GPU configuration of the cluster "
"""The beginning of the description of an AppProject that gpuplan writes."""


class Reader:
    """A dump, read for one cluster; ``cluster`` is the name that gpuplan's own objects give it."""

    def __init__(self, dump: Dump, cluster: str) -> None:
        self.dump = dump
        self.cluster = cluster
        self.reports = Reports()
        self.sources: dict[str, None] = {}

    def use(self, *sources: Item | Document) -> None:
        """Note the sources of the cluster's document."""
        for item in sources:
            source = item.source if isinstance(item, Item) else item.file.path
            self.sources[source] = None

    def say(self, row: str, at: Origin | None = None, **values: object) -> None:
        """Report a row of `findings.yaml` at a place, or at the beginning of the dump."""
        places = (at, *(item.at for item in self.dump.objects[:1]), *(item.origin for item in self.dump.others[:1]))
        self.reports.say(row, next(filter(None, places), None), "Cluster", **values)

    @cached_property
    def documents(self) -> tuple[tuple[Document, Mapping[str, Any]], ...]:
        """Those that are no objects, with their data."""
        return tuple((document, mapping(document.data)) for document in self.dump.others)

    @cached_property
    def kinds(self) -> frozenset[tuple[str, str]]:
        """Group and kind of all objects."""
        return frozenset((item.group, item.kind) for item in self.dump.objects)

    @cached_property
    def groups(self) -> frozenset[str]:
        return frozenset(group for group, _ in self.kinds)

    @cached_property
    def nodes(self) -> tuple[Item, ...]:
        """Nodes as a cluster tells of them; those that somebody is to apply have no state."""
        return tuple(item for item in self.dump.of_kind("", "Node") if mapping(item.body.get("status")))

    @cached_property
    def applied_nodes(self) -> tuple[Item, ...]:
        """Nodes that gpuplan labels, as it writes them or as they are after that."""
        return tuple(
            item
            for item in self.dump.of_kind("", "Node")
            if POOL_LABEL in item.labels and (SYNC_OPTIONS in item.annotations or FLUX_SSA in item.annotations)
        )

    @cached_property
    def rules(self) -> tuple[Item, ...]:
        """The NodeFeatureRules of pools that gpuplan writes."""
        found = (item for item in self.dump.objects if item.kind == "NodeFeatureRule")
        return tuple(item for item in found if item.name.startswith(_OF_POOLS))

    @cached_property
    def node_groups(self) -> tuple[Mapping[str, Any], ...]:
        """The rows of the table for those who label nodes outside of the cluster."""
        tables = (data for _, data in self.documents if "nodeGroups" in data and "formatVersion" in data)
        return tuple(mapping(row) for table in tables for row in sequence(table.get("nodeGroups")))

    @cached_property
    def taints(self) -> frozenset[tuple[str, str]]:
        """Key and effect of all taints that pools have."""
        listed = [*self.pool_taints, *(sequence(part(item.body, "spec", "taints")) for item in self.nodes)]
        found = (mapping(taint) for taints in listed for taint in taints)
        return frozenset((text(taint.get("key")), text(taint.get("effect"))) for taint in found)

    @cached_property
    def pool_taints(self) -> tuple[Sequence[Any], ...]:
        """Those of each pool, as gpuplan writes them."""
        return tuple(sequence(pool.get("taints")) for pool in (*self.pool_rules, *self.node_groups))

    @cached_property
    def label_keys(self) -> frozenset[str]:
        """Keys of the labels that rules of pools put on nodes."""
        return frozenset(str(key) for rule in self.pool_rules for key in mapping(rule.get("labels")))

    @cached_property
    def pool_rules(self) -> tuple[Mapping[str, Any], ...]:
        """The rules within these."""
        return tuple(mapping(rule) for item in self.rules for rule in sequence(part(item.body, "spec", "rules")))

    @cached_property
    def prometheus_rules(self) -> tuple[Item, ...]:
        """Those that gpuplan writes."""
        found = self.dump.of_kind("monitoring.coreos.com", "PrometheusRule")
        return tuple(item for item in found if item.name.startswith("gpuplan-"))

    @cached_property
    def has_claims(self) -> bool:
        """Whether gpuplan has pods claim devices."""
        return any(item.name == CLAIMS_POLICY for item in self.dump.objects)

    def is_own_project(self, project: Item) -> bool:
        return part(project.body, "spec", "description") == f"{ABOUT_PROJECT}{self.cluster}"

    def applications(self) -> Iterator[tuple[Item, Mapping[str, Any], list[Mapping[str, Any]]]]:
        """Yield each Application with its spec and its sources, and ApplicationSets by their template."""
        for item in self.dump.of_kind(ARGOCD, "Application", "ApplicationSet"):
            spec = mapping(item.body.get("spec"))
            if item.kind == "ApplicationSet":
                spec = mapping(part(spec, "template", "spec"))
            sources = [mapping(spec.get("source")), *map(mapping, sequence(spec.get("sources")))]
            yield item, spec, [source for source in sources if source]

    def repository_of(self, release: Item, chart: object) -> str | None:
        """Return the URL of the HelmRepository that a HelmRelease has a chart from; None if the dump has none."""
        name = text(part(chart, "sourceRef", "name"))
        found = self.dump.find("source.toolkit.fluxcd.io", "HelmRepository", name, release.namespace)
        return text(part(found.body, "spec", "url")) if found else None

    def config_map(self, start: str) -> Item | None:
        """Return the ConfigMap of gpuplan's own whose name is this, or begins so and ends in a digest."""
        found = (item for item in self.dump.of_kind("", "ConfigMap") if is_named(item.name, start))
        return next(found, None)


_OF_POOLS: Final = ("gpuplan-pool-", "gpuplan-openshift-pool-")


def part(body: object, *route: str) -> object:
    """Return the value at a route, or None."""
    return value_at(body, route)


def rules_in(items: Iterable[Item]) -> Iterator[Mapping[str, Any]]:
    """Yield the rules of Prometheus in objects."""
    for item in items:
        for group in sequence(part(item.body, "spec", "groups")):
            yield from map(mapping, sequence(part(group, "rules")))


def cleaned(labels: object) -> dict[str, str]:
    """Labels without those that tools write on what they apply."""
    return {key: value for key, value in texts_of(labels).items() if not key.startswith(_OF_TOOLS)}


_OF_TOOLS: Final = ("argocd.argoproj.io/", "kustomize.toolkit.fluxcd.io/", "app.kubernetes.io/instance")


def differing(fields: Mapping[str, tuple[object, object]]) -> Spec:
    """Return the fields whose first value is given and is not the second one, which holds without the field."""
    return {key: value for key, (value, usual) in fields.items() if value is not None and value != usual}


def less(values: Mapping[str, Any], expected: Mapping[str, Any], *, by_item: bool = False) -> Spec:
    """Return the values that differ from those expected; with ``by_item``, of a list the items that it adds."""
    found: Spec = {}
    for key, value in values.items():
        there = expected.get(key)
        if isinstance(value, Mapping) and isinstance(there, Mapping):
            if inner := less(value, there, by_item=by_item):
                found[key] = inner
        elif by_item and isinstance(value, list) and isinstance(there, list):
            if added := [item for item in value if item not in there]:
                found[key] = added
        elif key not in expected or value != there:
            found[key] = value
    return found


def plan_of(spec: Mapping[str, Any], cluster: str) -> Plan | None:
    """Return the plan of a cluster without pools and tenants, to see what a back end makes of a document."""
    body = {"apiVersion": API_VERSION, "kind": "Cluster", "metadata": {"name": cluster}, "spec": dict(spec)}
    documents, _ = read_text("cluster.yaml", to_yaml(body))
    found = [parse(document) for document in documents]
    return resolve(found[0], (), catalog.load())[0] if found and found[0].policy else None


def credentials_in(value: object, route: Path = ()) -> Iterator[Path]:
    """Yield the routes of texts that look like credentials."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from credentials_in(inner, (*route, str(key)))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from credentials_in(inner, (*route, index))
    elif isinstance(value, str) and holds_credential(value):
        yield route


def without(value: Any, route: Path) -> Any:  # noqa: ANN401 - plain data
    """Plain data less what is at a route; whatever holds it stays."""
    first, rest = route[0], route[1:]
    if isinstance(value, Mapping):
        kept = {key: without(inner, rest) if key == first and rest else inner for key, inner in value.items()}
        return kept if rest else {key: inner for key, inner in kept.items() if key != first}
    if isinstance(value, list):
        kept_items = [without(inner, rest) if index == first and rest else inner for index, inner in enumerate(value)]
        return kept_items if rest else [inner for index, inner in enumerate(kept_items) if index != first]
    return value


def is_written(obj: Item | None) -> bool:
    """Whether gpuplan wrote an object that holds others: whoever deletes it is asked."""
    return obj is not None and "Delete=confirm" in obj.annotations.get(SYNC_OPTIONS, "")


def only(values: Iterable[str]) -> str:
    """Return the value, if it is one and the same."""
    found = set(values) - {""}
    return found.pop() if len(found) == 1 else ""
