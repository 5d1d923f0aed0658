"""Make drafts of pools of what a dump says of their nodes, with the layouts, models and files that these name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, count as numbers
from typing import Any, Final

from gpuplan.compiler.base.wording import count
from gpuplan.compiler.planning.discovered import is_of_mig_devices
from gpuplan.compiler.planning.dra import DRA_PLUGIN_LABEL
from gpuplan.compiler.planning.plan import DEVICE_PLUGIN_CONFIG_LABEL, MIG_CONFIG_LABEL, MIG_MANAGER_LABEL, POOL_LABEL
from gpuplan.compiler.planning.schedulers.kai import NODE_POOL_LABEL
from gpuplan.compiler.policy.models import NodeLabels
from gpuplan.features.live.clusters import node_labels
from gpuplan.features.live.clusters.kubernetes import version
from gpuplan.features.live.clusters.operators import read_operator
from gpuplan.features.live.clusters.reader import Reader
from gpuplan.features.live.drafts import Draft, Found
from gpuplan.features.live.dump import Dump
from gpuplan.features.live.findings import Reports
from gpuplan.features.live.pools.files import DEVICE_PLUGIN, MIG_MANAGER, read_files
from gpuplan.features.live.pools.grouping import Group, Own, board_of, group, unknown_models
from gpuplan.features.live.pools.layouts import read_entries
from gpuplan.features.live.pools.nodes import read_claims, read_machines
from gpuplan.features.live.pools.sharing import Keys, Shared, Sharing
from gpuplan.features.live.pools.surroundings import Surroundings, read_disruption
from gpuplan.features.live.pools.telling import (
    tell_of_boards,
    tell_of_drivers,
    tell_of_flavor,
    tell_of_gke,
    tell_of_mixtures,
    tell_of_published,
    tell_of_rules,
    tell_of_spot,
    tell_of_stuck,
    tell_of_two_drivers,
    tell_of_unknown,
    tell_of_unserved,
)

Spec = dict[str, Any]


def read(dump: Dump, described: Sequence[Own] = ()) -> Found:
    """Return drafts of `Pool`, `MigLayout`, `Gpu` and `Retained`; ``described`` are models of the repository."""
    return _Reading(dump, described).drafts()


class _Reading:
    """The parts of a dump that are read first, and the drafts that are made of them."""

    def __init__(self, dump: Dump, described: Sequence[Own]) -> None:
        self.dump, self.reports = dump, Reports()
        operator, machines = read_operator(dump), read_machines(dump)
        live = tuple(machines.live.values())
        claims, self.kept = read_claims(dump, machines)
        nodes = dump.of_kind("", "Node")
        first = next(iter((*nodes, *dump.objects)), None)
        if first is not None and not live and not claims:
            self.reports.say("no-gpu-node", first.at, nodes=count(len(nodes), "node"))
        self.surroundings = Surroundings(dump, live)
        is_external = node_labels(Reader(dump, "")) is NodeLabels.EXTERNAL
        flavors, called = self.surroundings.flavors_of_nodes, self.surroundings.names_of_nodes
        every = group(claims, live, flavors, called, are_labelled_by_others=is_external)
        groups = [found for found in every if not tell_of_gke(found, self.reports)]
        served = {found.pool for found in groups if not found.is_claimed and _is_claimed_by_pods(found)}
        self.groups = tell_of_two_drivers(groups, served, version(Reader(dump, "")), self.reports)
        boards = {found.pool: board_of(found, described) for found in self.groups}
        self.models = unknown_models(self.groups, boards, described, self.reports)
        lacking = {pool for pool, board in boards.items() if board and board.name in self.models.lacking}
        self.groups = tuple(found for found in self.groups if found.pool not in lacking)
        self.boards = {found.pool: boards[found.pool] for found in self.groups}
        files = read_files(dump, operator, DEVICE_PLUGIN, self.reports)
        entries, problems = read_entries(read_files(dump, operator, MIG_MANAGER, self.reports))
        problems += tuple((entry.file, found) for entry in entries.values() for found in entry.problems)
        for file, problem in problems:
            self.reports.say("mig-file-refused", file.place(*problem.route), problem=problem)
        self.sharing = Sharing(operator, files, entries, self.groups, self.boards, self.surroundings, self.reports)
        self.sharing.leave_out()
        self.groups = self.sharing.groups

    def drafts(self) -> Found:
        tell_of_mixtures(self.groups, self.reports)
        tell_of_unserved(self.groups, self.reports)
        for found in self.groups:
            tell_of_stuck(found, self.reports)
            tell_of_boards(found, self.reports)
            tell_of_spot(found, self.reports)
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
        drafts = [*self.models.drafts, *self.sharing.layouts.rest(), *filter(None, pools), *keys.retained(), *kept]
        taken: set[str] = set()
        for index, draft in enumerate(drafts):  # keys and entries that differ may become one name
            names = chain((draft.name,), (f"{draft.name}-{number}" for number in numbers(2)))
            name = next(found for found in names if f"{draft.kind} {found}" not in taken)
            taken.add(f"{draft.kind} {name}")
            drafts[index] = replace(draft, name=name)
        keys.tell()
        tell_of_drivers(self.dump, self.reports)
        tell_of_rules(self.dump, self.reports)
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
            "allocation": "dra" if _is_claimed_by_pods(group) else None,
            **self.surroundings.of_pool(group.pool, group.machines),
            "disruption": read_disruption(self.dump, group.pool),
            "billing": {"term": "spot"} if group.machines and all(node.is_spot for node in group.machines) else None,
            "rollout": {"sharing": shared[1].spec, "nodes": sorted(group.claim.parts[1].names)} if shared[1:] else None,
        }
        spec |= {field: value for field, value in given.items() if value}
        sources = [part.source for part in group.claim.parts]
        sources += [machine.source for machine in group.machines[:1] if group.is_claimed]
        read = [part.key for part in shared]
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


def _is_claimed_by_pods(group: Group) -> bool:
    """Whether NVIDIA's driver for DRA hands out the nodes' GPUs."""
    return group.claim.first.labels.get(DRA_PLUGIN_LABEL) == "true"


_OWN_LABELS: Final = frozenset(
    (POOL_LABEL, DEVICE_PLUGIN_CONFIG_LABEL, MIG_CONFIG_LABEL, MIG_MANAGER_LABEL, DRA_PLUGIN_LABEL, NODE_POOL_LABEL)
)
