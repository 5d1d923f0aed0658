"""Make drafts of pools of what a dump says of their nodes, with the layouts, models and files that these name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count as numbers
from typing import Any, Final

from gpuplan.compiler.base.plain import inside
from gpuplan.compiler.base.wording import count
from gpuplan.compiler.planning.discovered import (
    GKE_BOARD_LABEL,
    GKE_SHARING_LABELS,
    GPU_RESOURCE,
    MIG_STATE_LABEL,
    bare_product,
    is_of_mig_devices,
)
from gpuplan.compiler.planning.dra import DRA_PLUGIN_LABEL
from gpuplan.compiler.planning.plan import DEVICE_PLUGIN_CONFIG_LABEL, MIG_CONFIG_LABEL, MIG_MANAGER_LABEL, POOL_LABEL
from gpuplan.compiler.planning.schedulers.kai import NODE_POOL_LABEL
from gpuplan.compiler.policy.models import NodeLabels
from gpuplan.features.live.clusters import node_labels
from gpuplan.features.live.clusters.operators import read_operator
from gpuplan.features.live.clusters.reader import Reader
from gpuplan.features.live.drafts import Draft, Found
from gpuplan.features.live.dump import Dump, Item
from gpuplan.features.live.findings import Reports
from gpuplan.features.live.pools.files import DEVICE_PLUGIN, MIG_MANAGER, read_files
from gpuplan.features.live.pools.grouping import Board, Group, board_of, group, unknown_models
from gpuplan.features.live.pools.layouts import published_by, read_entries
from gpuplan.features.live.pools.nodes import Machine, read_claims, read_machines
from gpuplan.features.live.pools.sharing import Keys, Shared, Sharing
from gpuplan.features.live.pools.surroundings import Surroundings, read_disruption

Spec = dict[str, Any]


def read(dump: Dump) -> Found:
    """Return drafts of `Pool`, `MigLayout`, `Gpu` and `Retained`."""
    return _Reading(dump).drafts()


class _Reading:
    """The parts of a dump that are read first, and the drafts that are made of them."""

    def __init__(self, dump: Dump) -> None:
        self.dump, self.reports = dump, Reports()
        operator, machines = read_operator(dump), read_machines(dump)
        live = tuple(machines.live.values())
        claims, self.kept = read_claims(dump, machines)
        self.surroundings = Surroundings(dump, live)
        is_external = node_labels(Reader(dump, "")) is NodeLabels.EXTERNAL
        flavors, names = self.surroundings.flavors_of_nodes, self.surroundings.names_of_nodes
        groups = group(claims, live, flavors, names, are_labelled_by_others=is_external)
        self.groups = tuple(found for found in groups if not tell_of_gke(found, self.reports))
        self.boards = {found.pool: board_of(found) for found in self.groups}
        files = read_files(dump, operator, DEVICE_PLUGIN, self.reports)
        entries, problems = read_entries(read_files(dump, operator, MIG_MANAGER, self.reports))
        problems += tuple((entry.file, found) for entry in entries.values() for found in entry.problems)
        for file, problem in problems:
            self.reports.say("mig-file-refused", file.place(*problem.route), problem=problem)
        self.sharing = Sharing(operator, files, entries, self.groups, self.boards, self.surroundings, self.reports)

    def drafts(self) -> Found:
        tell_of_mixtures(self.groups, self.reports)
        tell_of_unserved(self.groups, self.reports)
        shared = {found.pool: self.sharing.of_pool(found) for found in self.groups}
        keys = Keys(self.sharing, shared)
        pools = [self._pool(found, shared[found.pool], keys) for found in self.groups]
        kept: list[Draft] = []
        for name, part in self.kept:
            pool = part.labels.get(POOL_LABEL, "")
            chosen: Spec = {"namePattern": part.pattern} if part.pattern else {"names": list(part.names)}
            excepted = {"exceptNames": list(part.except_names)} if part.except_names else {}
            until = f"`kubectl get nodes -l {POOL_LABEL}={pool} -o name` prints none of these nodes."
            spec = {"nodes": {"pool": pool, **chosen, **excepted, "labels": dict(part.labels)}, "until": until}
            kept.append(Draft("Retained", name, spec, (part.source,)))
        drafts = [
            *unknown_models(self.groups, self.boards, self.reports),
            *self.sharing.layouts.rest(),
            *filter(None, pools),
            *keys.retained(),
            *kept,
        ]
        taken: set[str] = set()
        for index, draft in enumerate(drafts):  # keys and entries that differ may become one name
            names = chain((draft.name,), (f"{draft.name}-{number}" for number in numbers(2)))
            name = next(found for found in names if f"{draft.kind} {found}" not in taken)
            taken.add(f"{draft.kind} {name}")
            drafts[index] = replace(draft, name=name)
        keys.tell()
        tell_of_drivers(self.dump, self.reports)
        remarked = (replace(draft, remarks=(*draft.remarks, *self.reports.remarks(draft.title))) for draft in drafts)
        return Found(tuple(remarked), tuple(self.reports.diagnostics))

    # --- Pools ---

    def _pool(self, group: Group, shared: Sequence[Shared], keys: Keys) -> Draft | None:
        board = self.boards[group.pool]
        if board is None:
            tell_of_unknown(group, self.reports)
            return None
        first = group.claim.first
        names = keys.kept(group)
        names |= self.surroundings.flavor_name(group.pool, group.machines)
        if flavor := self.surroundings.fixed_flavor(group.pool, group.machines):
            tell_of_flavor(group, flavor, self.reports)
        spec: Spec = {"gpu": board.name, "nodes": self._nodes(group, shared[0]), "sharing": shared[0].spec}
        labels = {label: value for label, value in sorted(first.labels.items()) if label not in _OWN_LABELS}
        given = {
            "names": names,
            "nodeLabels": labels if group.is_claimed else {},
            "taints": [
                {"key": key, **({"value": value} if value else {}), "effect": effect}
                for key, effect, value in first.taints
            ],
            "allocation": "dra" if first.labels.get(DRA_PLUGIN_LABEL) == "true" else None,
            **self.surroundings.of_pool(group.pool, group.machines),
            "disruption": read_disruption(self.dump, group.pool),
            "rollout": {"sharing": shared[1].spec, "nodes": sorted(group.claim.parts[1].names)} if shared[1:] else None,
        }
        spec |= {field: value for field, value in given.items() if value}
        sources = [part.source for part in group.claim.parts]
        sources += [machine.source for machine in group.machines[:1] if group.is_claimed]
        read = [self.sharing.read_by(part) for part in shared]
        sources += [self.sharing.files[key].source for key in read if key in self.sharing.files]
        tell_of_published(group, board, spec, shared[0], self.reports)
        return Draft("Pool", group.pool, spec, tuple(dict.fromkeys(sources)))

    def _nodes(self, group: Group, shared: Shared) -> Spec:
        parts = group.claim.parts
        pattern, selector = parts[0].pattern, dict(parts[0].selector)
        is_open = bool(pattern or selector) or (parts[0].asks_for_boards and not parts[0].names)
        names = [] if is_open else sorted({name for part in parts for name in part.names})
        number = sum(part.count for part in parts) or len(names) or len(group.machines) or 1
        nodes: Spec = {"count": number, "gpusPerNode": self._gpus_per_node(group, shared)}
        if pattern:
            nodes["namePattern"] = pattern
        elif names:
            nodes["names"] = names
        if selector:
            nodes["selector"] = selector
        if any(part.asks_for_boards for part in parts):
            nodes["matchBoards"] = True
        return nodes | self.surroundings.per_node(group.pool, group.machines, number)

    def _gpus_per_node(self, group: Group, shared: Shared) -> int:
        """Return the GPUs of a node: stated by the table, counted by labels, or worked out of the MIG devices."""
        if stated := max((part.gpus_per_node for part in group.claim.parts), default=0):
            return stated
        whole = [machine.counted for machine in group.machines if not is_of_mig_devices(machine.product)]
        if counted := Counter(filter(None, whole)).most_common(1):
            return counted[0][0]
        per_gpu = 1
        match shared.spec:
            case {"timeSlicing": {"replicas": int(shares)}} | {"mps": {"replicas": int(shares)}}:
                per_gpu = shares
            case {"mig": _}:
                per_gpu = sum(shared.division.get("instances", {}).values()) or 1
            case _:
                pass
        seen = max((machine.counted or sum(machine.published.values()) for machine in group.machines), default=0)
        return max(seen // per_gpu, 1)


_OWN_LABELS: Final = frozenset(
    (POOL_LABEL, DEVICE_PLUGIN_CONFIG_LABEL, MIG_CONFIG_LABEL, MIG_MANAGER_LABEL, DRA_PLUGIN_LABEL, NODE_POOL_LABEL)
)


# --- Nodes that differ -----------------------------------------------------------------------------------------


def tell_of_published(group: Group, board: Board, spec: Mapping[str, Any], shared: Shared, reports: Reports) -> None:
    """Nodes that publish something else than their label asks for, where that is known."""
    gpus, expected = spec["nodes"]["gpusPerNode"], dict[str, int]()
    match shared.spec:
        case {"exclusive": _}:
            expected = {GPU_RESOURCE: gpus}
        case {"timeSlicing": shares} | {"mps": shares}:
            name = GPU_RESOURCE if shares.get("rename") is False else f"{GPU_RESOURCE}.shared"
            expected = {name: gpus * shares["replicas"]}
        case {"mig": mig} if board.gpu is not None and "timeSlicing" not in mig:
            expected = published_by(group.claim.first.at, board.gpu, shared.division, gpus, shared.strategy)
        case _:
            pass
    if not expected or spec.get("rollout") or spec.get("allocation"):
        return
    wrong = [machine for machine in group.machines if machine.published and machine.published != expected]
    if not wrong:
        return
    first = wrong[0]
    state = first.labels.get(MIG_STATE_LABEL, "")
    reports.say(
        "publishes-otherwise",
        first.at / "status",
        f"Pool {group.pool}",
        notes=(
            f"as the nodes are labelled it is {_spelt(expected)}",
            *((f"`{MIG_STATE_LABEL}` is `{state}` there",) if state else ()),
        ),
        first=first,
        found=group,
        nodes=count(len(wrong), "node"),
        publish="publishes" if len(wrong) == 1 else "publish",
        published=_spelt(first.published),
    )


def tell_of_gke(group: Group, reports: Reports) -> bool:
    """Whether GKE's own device plugin shares the nodes' GPUs, as their node pool says: then no policy can."""
    first = next((machine for machine in group.machines if _gke_marks(machine)), None)
    if first is None or group.is_claimed:
        return False
    label = ", ".join(f"`{mark}: {first.labels[mark]}`" for mark in _gke_marks(first))
    reports.say("shared-by-gke", first.at / "metadata" / "labels", found=group, label=label)
    return True


def _gke_marks(machine: Machine) -> list[str]:
    return [mark for mark in GKE_SHARING_LABELS if machine.labels.get(mark)]


_WITHOUT_GKES_PLUGIN: Final = "gke-no-default-nvidia-gpu-device-plugin"
"""https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/google-gke.html"""


def tell_of_flavor(group: Group, flavor: Item, reports: Reports) -> None:
    """A flavor that cannot be the pool's."""
    reports.say("fixed-flavor", flavor.at / "spec" / "topologyName", f"Pool {group.pool}", flavor=flavor, found=group)


def tell_of_unknown(group: Group, reports: Reports) -> None:
    labels = group.machines[0].labels if group.machines else {}
    place = group.machines[0].at / "metadata" / "labels" if group.machines else group.claim.first.at
    notes = ["GPU Feature Discovery writes the label where the driver runs"]
    if labels.get(GKE_BOARD_LABEL):
        notes.append(f"GKE has a device plugin of its own; `{_WITHOUT_GKES_PLUGIN}=true` keeps it off nodes")
    label = "no `nvidia.com/gpu.product`" if group.machines else "none of its nodes is in the dump"
    reports.say("unknown-model", place, notes=notes, found=group, label=label)


def tell_of_drivers(dump: Dump, reports: Reports) -> None:
    """NVIDIADrivers that somebody else wrote for some nodes: they stay, and no pool says what they do."""
    for item in dump.of_kind("nvidia.com", "NVIDIADriver"):
        selector = inside(item.body, "spec", "nodeSelector")
        if selector and POOL_LABEL not in selector:
            reports.say("driver-of-others", item.at / "spec" / "nodeSelector", item=item)


_UNSERVED: Final = {
    ("nvidia.com/gpu.deploy.operands", "false"): "the GPU Operator runs nothing there",
    ("nvidia.com/gpu.workload.config", "vm-passthrough"): "with `sandboxWorkloads` its GPUs are for virtual machines",
    ("nvidia.com/gpu.workload.config", "vm-vgpu"): "with `sandboxWorkloads` its GPUs are for virtual machines",
}
"""Labels by which the operator leaves a node without a device plugin (`controllers/state_manager.go` there)."""


def tell_of_unserved(groups: Iterable[Group], reports: Reports) -> None:
    """Nodes of pools that hand out nothing, since a label takes them from the GPU Operator."""
    for found in groups:
        for (key, value), why in _UNSERVED.items():
            unserved = [machine for machine in found.machines if machine.labels.get(key) == value]
            if unserved:
                reports.say(
                    "unserved-nodes",
                    unserved[0].at / "metadata" / "labels" / key,
                    f"Pool {found.pool}",
                    first=unserved[0].name,
                    found=found,
                    nodes=count(len(unserved), "node"),
                    why=why,
                )


def tell_of_mixtures(groups: Iterable[Group], reports: Reports) -> None:
    """Pools of which not all nodes are alike."""
    for found in groups:
        products = Counter(bare_product(machine.product) for machine in found.machines if machine.product)
        counts = Counter(machine.counted for machine in found.machines if machine.counted)
        for what, others in (("GPU model", products), ("number of GPUs", counts)):
            if len(others) > 1:
                [(most, _), *rest] = others.most_common()
                reports.say(
                    "mixed-nodes",
                    found.machines[0].at,
                    f"Pool {found.pool}",
                    found=found,
                    most=most,
                    others=", ".join(str(value) for value, _ in rest),
                    what=what,
                )


def _spelt(resources: Mapping[str, int]) -> str:
    return ", ".join(f"{number}x `{name}`" for name, number in sorted(resources.items())) or "nothing"
