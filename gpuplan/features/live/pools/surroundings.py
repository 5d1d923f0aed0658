"""The settings of pools in objects of schedulers, drivers, DRA, Argo CD and Flux."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from itertools import chain, count, pairwise
from typing import Any, Final

from gpuplan.compiler.backends.kueue.cells import PLENTY
from gpuplan.compiler.backends.workloads.bodies import FRACTION as PART_OF_GPU, GPU_MEMORY
from gpuplan.compiler.base.plain import inside, mapping, parts_with, sequence, text, value_at
from gpuplan.compiler.catalog import Gpu
from gpuplan.compiler.manifests import parse_quantity
from gpuplan.compiler.manifests.quantities import byte_quantity, quantity
from gpuplan.compiler.planning.discovered import GPU_RESOURCE
from gpuplan.compiler.planning.dra import class_name
from gpuplan.compiler.planning.grants import FRACTION
from gpuplan.compiler.planning.hand_files import is_zero
from gpuplan.compiler.planning.plan import POOL_LABEL, WORKLOAD_LABEL, Counted, Stage
from gpuplan.compiler.planning.sync_names import REVISION
from gpuplan.features.live.dump import Dump, Item
from gpuplan.features.live.pools.nodes import Machine
from gpuplan.features.live.queues.model import root_cohort

_KUEUE: Final = "kueue.x-k8s.io"
_KAI: Final = "kai.scheduler"


class Surroundings:
    """Objects about pools that are not about their nodes."""

    def __init__(self, dump: Dump, machines: Sequence[Machine]) -> None:
        self._dump = dump
        self._flavors = [item for item in dump.of_kind(_KUEUE, "ResourceFlavor") if self._counts_gpus(item)]
        own = {machine.name: dict(machine.labels) for machine in machines}
        self._machines = own.keys()
        # One of further nodes, as of all, is no pool's: the pool's labels in it would keep all work off them.
        nodes = {**{node.name: node.labels for node in dump.of_kind("", "Node")}, **own}.items()
        self._members = {
            item.name: frozenset(
                name for name, labels in nodes if inside(item.body, "spec", "nodeLabels").items() <= labels.items()
            )
            for item in self._flavors
        }
        self._granted = _granted(dump)
        self._fallbacks = dict(_fallbacks(dump))

    # --- Kueue ---

    def _counts_gpus(self, flavor: Item) -> bool:
        if POOL_LABEL in inside(flavor.body, "spec", "nodeLabels"):
            return True
        for queue in self._dump.of_kind(_KUEUE, "ClusterQueue", "Cohort"):
            for group in map(mapping, sequence(inside(queue.body, "spec").get("resourceGroups"))):
                names = {text(mapping(part).get("name")) for part in sequence(group.get("flavors"))}
                covered = map(text, sequence(group.get("coveredResources")))
                if flavor.name in names and any(name.startswith(_NVIDIA) for name in covered):
                    return True
        return False

    @property
    def flavors_of_nodes(self) -> Mapping[str, tuple[str, ...]]:
        """The flavors of each node."""
        found: dict[str, tuple[str, ...]] = {}
        for name, members in sorted(self._members.items()):
            for node in members:
                found[node] = (*found.get(node, ()), name)
        return found

    @property
    def names_of_nodes(self) -> Mapping[str, str]:
        """The names that people have for the pools of nodes: of node pools of Run:ai, or else of flavors."""
        known = {
            item.name
            for item in self._flavors
            if self._members[item.name] <= self._machines and not inside(item.body, "spec").get("topologyName")
        }
        named = {node: names[0] for node, names in self.flavors_of_nodes.items() if len(names) == 1}
        found = {node: name for node, name in named.items() if name in known and "default" not in name}
        for pool in (item for group in _RUNAI for item in self._dump.of_kind(group, "NodePool")):
            key, value = (text(inside(pool.body, "spec").get(field)) for field in ("labelKey", "labelValue"))
            nodes = (node for node in self._dump.of_kind("", "Node") if key and node.labels.get(key) == value)
            found |= dict.fromkeys((node.name for node in nodes), pool.name)
        return found

    def _find_flavor(self, pool: str, machines: Sequence[Machine]) -> Item | None:
        """Return the flavor that is for the nodes of a pool and for no others."""
        for item in self._flavors:
            if inside(item.body, "spec", "nodeLabels").get(POOL_LABEL) == pool:
                return item
        own = frozenset(machine.name for machine in machines)
        return next((item for item in self._flavors if own and self._members[item.name] == own), None)

    def flavor_name(self, pool: str, machines: Sequence[Machine]) -> dict[str, str]:
        """Return the name of a pool's flavor if it is not the pool's own; no other flavor is overwritten."""
        found = self._find_flavor(pool, machines) if self.fixed_flavor(pool, machines) is None else None
        taken = {item.name for item in self._dump.of_kind(_KUEUE, "ResourceFlavor")}
        free = (name for name in chain((pool,), (f"{pool}-{number}" for number in count(2))) if name not in taken)
        name = found.name if found else next(free)
        return {"resourceFlavor": name} if name != pool else {}

    def fixed_flavor(self, pool: str, machines: Sequence[Machine]) -> Item | None:
        """Return the flavor of a pool, where the API server would refuse what gpuplan writes into it.

        One that names a topology keeps that, its labels and its tolerations for good (rules of
        `apis/kueue/v1beta2/resourceflavor_types.go` of Kueue v0.19.2).
        """
        found = self._find_flavor(pool, machines)
        spec = inside(found.body, "spec") if found else {}
        is_ours = spec.get("topologyName") == pool and inside(spec, "nodeLabels").get(POOL_LABEL) == pool
        return None if is_ours or not text(spec.get("topologyName")) else found

    def per_node(self, pool: str, machines: Sequence[Machine], nodes: int) -> dict[str, str]:
        """Return the CPU and memory of a node, where the cohort above all others has what nobody is guaranteed of a
        pool's.

        Guarantees of queues and what is left to cohorts add up to what all nodes have for pods of tenants. Without
        queues it is what the node of the pool with the least has, if quotas promise no more than these nodes have.
        """
        flavor = self._find_flavor(pool, machines)
        root = self._dump.find(_KUEUE, "Cohort", root_cohort(self._dump)) if flavor else None
        if flavor is None or root is None:
            queues = (*self._dump.of_kind(_KUEUE, "ClusterQueue"), *self._dump.of_kind("scheduling.run.ai", "Queue"))
            return {} if queues else self._room(machines, nodes)
        found = {}
        for resource, spelt in ((Counted.CPU.value, quantity), (Counted.MEMORY.value, byte_quantity)):
            if any(_nominal(root, flavor.name, resource)):
                holders = self._dump.of_kind(_KUEUE, "Cohort", "ClusterQueue")
                total = sum(amount for item in holders for amount in _nominal(item, flavor.name, resource))
                each = total / nodes
                found[resource] = spelt(int(each) if each == int(each) else each)  # type: ignore[arg-type]
        return found

    def _room(self, machines: Sequence[Machine], nodes: int) -> dict[str, str]:
        found: dict[str, str] = {}
        for resource, spelt in ((Counted.CPU.value, quantity), (Counted.MEMORY.value, byte_quantity)):
            amounts = [parse_quantity(machine.room.get(resource, "")) for machine in machines]
            known = [amount for amount in amounts if amount is not None]
            least = min(known) if known and len(known) == len(amounts) else None
            if least is not None and self._promised(resource) <= least * nodes:
                found[resource] = spelt(int(least) if least == int(least) else least)  # type: ignore[arg-type]
        return found

    def _promised(self, resource: str) -> Decimal:
        """Return the sum of all quotas of namespaces on a resource, requests or limits."""
        hard = [inside(item.body, "spec", "hard") for item in self._dump.of_kind("", "ResourceQuota")]
        keys = (resource, f"requests.{resource}", f"limits.{resource}")
        amounts = [[parse_quantity(str(part[key])) or Decimal(0) for key in keys if key in part] for part in hard]
        return sum((max(listed, default=Decimal(0)) for listed in amounts), Decimal(0))

    # --- All ---

    def of_pool(self, pool: str, machines: Sequence[Machine]) -> dict[str, Any]:
        """Fields of a pool, in their order; empty ones are not said."""
        shards = [inside(item.body, "spec") for item in self._dump.of_kind(_KAI, "SchedulingShard")]
        shard = next((spec for spec in shards if spec.get("partitionLabelValue") == pool), {})
        placement = text(inside(shard, "placementStrategy").get("gpu"))
        flavor = self._find_flavor(pool, machines)
        named = text(inside(flavor.body, "spec").get("topologyName")) if flavor else ""
        kueues = self._dump.find(_KUEUE, "Topology", named) if named else None
        found = kueues or self._dump.find(_KAI, "Topology", pool)
        levels = sequence(inside(found.body, "spec").get("levels")) if found else ()
        drivers = [inside(item.body, "spec") for item in self._dump.of_kind("nvidia.com", "NVIDIADriver")]
        own = next((spec for spec in drivers if inside(spec, "nodeSelector").get(POOL_LABEL) == pool), {})
        driver = {"version": text(own.get("version")), "kernelModules": text(own.get("kernelModuleType"))}
        return {
            "placement": placement if placement in ("binpack", "spread") else None,
            "topology": [label for level in levels if (label := text(mapping(level).get("nodeLabel")))],
            "fallback": self._fallbacks.get(pool),
            "driver": {field: value for field, value in driver.items() if value},
        }

    def claimed_profiles(self, gpu: Gpu) -> list[str]:
        """Return the profiles of a model that pods may claim."""
        classes = {item.name for item in self._dump.of_kind("resource.k8s.io", "DeviceClass")}
        return [profile.name for profile in gpu.profiles if class_name(gpu, profile.name) in classes]

    # --- Fractions ---

    def is_fraction(self, pool: str) -> bool:
        """Whether GPUs of a pool are handed out in parts: granted so, or granted to nobody as a whole."""
        granted = self._granted.get(pool, frozenset())
        if FRACTION in granted:
            return True
        is_granted_elsewhere = any(FRACTION in found for found in self._granted.values())
        values = [mapping(document.data) for document in self._dump.others]  # where KAI-Scheduler is told to
        values += [inside(item.body, "spec") for item in self._dump.of_kind(_KAI, "Config")]
        values += [inside(item.body, "spec", "values") for item in self._dump.of_kind(_HELM, "HelmRelease")]
        shares = any(inside(part, "global").get("gpuSharing") is True for part in values) or self._is_asked_in_parts
        return shares and GPU_RESOURCE not in granted and not is_granted_elsewhere

    @cached_property
    def _is_asked_in_parts(self) -> bool:
        """Whether work asks KAI-Scheduler for parts of GPUs and none asks for whole ones."""
        if not self._dump.of_kind(_QUEUES, "Queue"):
            return False
        found = [part for item in self._dump.objects for _, part in parts_with(item.body, "annotations", "resources")]
        has_parts = any(not {PART_OF_GPU, GPU_MEMORY}.isdisjoint(inside(part, "annotations")) for part in found)
        return has_parts and not any(GPU_RESOURCE in inside(part, "resources", "limits") for part in found)


_QUEUES: Final = "scheduling.run.ai"
_RUNAI: Final = ("run.ai", "kai.resources")
_NVIDIA: Final = "nvidia.com/"
_HELM: Final = "helm.toolkit.fluxcd.io"


_PLENTY: Final = {"cpu": PLENTY[Counted.CPU] // 1000, "memory": PLENTY[Counted.MEMORY]}
"""In CPUs and bytes, as Kueue's objects have them."""


def _nominal(holder: Item, flavor: str, resource: str) -> Iterator[Decimal]:
    """Yield the quotas of a queue or a cohort on a resource, but for the number that stands for plenty."""
    for group in map(mapping, sequence(inside(holder.body, "spec").get("resourceGroups"))):
        for part in map(mapping, sequence(group.get("flavors"))):
            for cell in map(mapping, sequence(part.get("resources"))) if part.get("name") == flavor else ():
                amount = parse_quantity(str(cell.get("nominalQuota")))
                is_plenty = amount == _PLENTY[resource] and is_zero(cell.get("lendingLimit"))
                if cell.get("name") == resource and amount is not None and not is_plenty:
                    yield amount


def _fallbacks(dump: Dump) -> Iterator[tuple[str, str]]:
    """Pools with the next one that work of gpuplan may go to: its pods name them in order."""
    for item in dump.objects:
        if WORKLOAD_LABEL not in item.labels:
            continue
        for _, part in parts_with(item.body, "nodeSelectorTerms"):
            for term in map(mapping, sequence(part.get("nodeSelectorTerms"))):
                for asked in map(mapping, sequence(term.get("matchExpressions"))):
                    if asked.get("key") == POOL_LABEL:
                        yield from pairwise(filter(None, map(text, sequence(asked.get("values")))))


def _granted(dump: Dump) -> Mapping[str, frozenset[str]]:
    """Return by pool the units that parameters of gpuplan's admission policies grant to namespaces."""
    found: dict[str, frozenset[str]] = {}
    for item in dump.of_kind("", "ConfigMap"):
        lines = text(inside(item.body, "data").get("grants")).splitlines() if item.name.startswith("grants-") else ()
        for words in map(str.split, lines):
            if len(words) > 1:
                found[words[0]] = found.get(words[0], frozenset()) | {words[1]}
    return found


_ARGOCD: Final = "argoproj.io"
_GUARD: Final = "gpuplan-guard"
_NAME_LABEL: Final = "app.kubernetes.io/name"


def read_disruption(dump: Dump, pool: str) -> dict[str, Any]:
    """Return the `disruption` of a pool, so far as it is not the usual one. The path says which pool an object
    applies."""
    folder = f"/{Stage.PARTITIONS}/{pool}"
    found: dict[str, Any] = {}
    for item in dump.of_kind(_ARGOCD, "Application"):
        if text(value_at(item.body, ("spec", "source", "path"))).endswith(folder):
            is_ordered = REVISION in item.annotations  # a root starts its syncs
            if is_ordered or isinstance(value_at(item.body, ("spec", "syncPolicy", "automated")), Mapping):
                found["approval"] = "automatic"
            if windows := [*_windows(dump, item)]:
                found["windows"] = windows
    for item in dump.of_kind("kustomize.toolkit.fluxcd.io", "Kustomization"):
        is_open = value_at(item.body, ("spec", "suspend")) is not True
        if text(value_at(item.body, ("spec", "path"))).endswith(folder) and is_open:
            found["approval"] = "automatic"
    return found | _guard(dump, pool)


def _windows(dump: Dump, application: Item) -> Iterator[dict[str, Any]]:
    """Yield those that are for this Application alone; others are the project's own."""
    name = text(value_at(application.body, ("spec", "project")))
    for project in dump.of_kind(_ARGOCD, "AppProject"):
        if project.name != name:
            continue
        for window in map(mapping, sequence(inside(project.body, "spec").get("syncWindows"))):
            if window.get("applications") == [application.name] and window.get("kind") == "allow":
                zone = text(window.get("timeZone")) or "UTC"
                times = {"schedule": text(window.get("schedule")), "duration": text(window.get("duration"))}
                yield times | ({"timeZone": zone} if zone != "UTC" else {})


def _guard(dump: Dump, pool: str) -> dict[str, Any]:
    jobs, maps = (
        [item for item in items if (item.labels.get(_NAME_LABEL), item.labels.get(POOL_LABEL)) == (_GUARD, pool)]
        for items in (dump.of_kind("batch", "Job"), dump.of_kind("", "ConfigMap"))
    )
    route = ("spec", "template", "spec", "containers", 0, "image")
    image = text(value_at(jobs[0].body, route)) if jobs else ""
    timeout: dict[str, str] = {}
    for item in maps:
        try:
            settings = mapping(json.loads(text(inside(item.body, "data").get("settings.json"))))
        except (ValueError, RecursionError):
            continue
        seconds = settings.get("timeoutSeconds")
        if type(seconds) is int and seconds > 0:
            timeout = {"timeout": f"{seconds}s" if seconds % 60 else f"{seconds // 60}m"}
        break
    return {"guard": {"image": image, **timeout}} if image else {}
