"""The settings of pools in objects of schedulers, drivers, DRA, Argo CD and Flux."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any, Final

from gpuplan.compiler.backends.kueue.cells import PLENTY
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
        self._members = {
            item.name: frozenset(
                machine.name
                for machine in machines
                if inside(item.body, "spec", "nodeLabels").items() <= dict(machine.labels).items()
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
    def called(self) -> Mapping[frozenset[str], str]:
        """The names of flavors by their nodes; empty for one that can be no pool's. Without labels it is of any."""
        specs = {item.name: inside(item.body, "spec") for item in reversed(self._flavors)}
        named = {name: "" if text(spec.get("topologyName")) else name for name, spec in specs.items()}
        return {self._members[name]: called for name, called in named.items() if specs[name].get("nodeLabels")}

    def _find_flavor(self, pool: str, machines: Sequence[Machine]) -> Item | None:
        """Return the flavor that is for the nodes of a pool and for no others."""
        for item in self._flavors:
            if inside(item.body, "spec", "nodeLabels").get(POOL_LABEL) == pool:
                return item
        own = frozenset(machine.name for machine in machines)
        return next((item for item in self._flavors if own and self._members[item.name] == own), None)

    def flavor_name(self, pool: str, machines: Sequence[Machine]) -> dict[str, str]:
        found = self._find_flavor(pool, machines)
        is_kept = found is not None and found.name != pool and self.fixed_flavor(pool, machines) is None
        return {"resourceFlavor": found.name} if found is not None and is_kept else {}

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
        shares = any(inside(part, "global").get("gpuSharing") is True for part in values)
        return shares and GPU_RESOURCE not in granted and not is_granted_elsewhere


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
