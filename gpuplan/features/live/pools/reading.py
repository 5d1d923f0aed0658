"""Make drafts of pools of what a dump says of their nodes, with the layouts, models and files that these name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, count as numbers
from typing import Any, Final

from gpuplan.compiler.base.diagnostics import Severity
from gpuplan.compiler.planning.discovered import is_of_mig_devices
from gpuplan.compiler.planning.dra import DRA_PLUGIN_LABEL
from gpuplan.compiler.planning.plan import DEVICE_PLUGIN_CONFIG_LABEL, MIG_CONFIG_LABEL, MIG_MANAGER_LABEL, POOL_LABEL
from gpuplan.compiler.planning.schedulers.kai import NODE_POOL_LABEL
from gpuplan.compiler.policy.models import NodeLabels
from gpuplan.features.live.clusters import node_labels
from gpuplan.features.live.clusters.reader import Reader
from gpuplan.features.live.draft import Draft, Found
from gpuplan.features.live.dump import Dump
from gpuplan.features.live.pools.claims import Kept, Part, read_claims
from gpuplan.features.live.pools.delivering import read_disruption
from gpuplan.features.live.pools.divisions import Entry, read_entries
from gpuplan.features.live.pools.files import DEVICE_PLUGIN, MIG_MANAGER, read_files
from gpuplan.features.live.pools.grouping import Group, group
from gpuplan.features.live.pools.keys import Keys
from gpuplan.features.live.pools.machines import Taint, read_machines
from gpuplan.features.live.pools.models import board_of, unknown_models
from gpuplan.features.live.pools.observing import (
    tell_of_drivers,
    tell_of_flavor,
    tell_of_gke,
    tell_of_mixtures,
    tell_of_published,
    tell_of_unknown,
    tell_of_unserved,
)
from gpuplan.features.live.pools.operator import Operator, read_operator
from gpuplan.features.live.pools.sharing import Shared, Sharing
from gpuplan.features.live.pools.surroundings import Surroundings
from gpuplan.features.live.pools.telling import Told
from gpuplan.features.live.rules import LAYOUT_NOT_SAID

Spec = dict[str, Any]


def read_pools(dump: Dump) -> Found:
    """All that a dump says of pools."""
    return _Reading(dump).found()


class _Reading:
    """What is read of a dump first, and the drafts that are made of it."""

    def __init__(self, dump: Dump) -> None:
        self.dump, self.told = dump, Told()
        operator, machines = read_operator(dump), read_machines(dump)
        live = tuple(machines.live.values())
        claims, self.kept = read_claims(dump, machines)
        self.surroundings = Surroundings(dump, live)
        is_external = node_labels(Reader(dump, "")) is NodeLabels.EXTERNAL
        flavors = self.surroundings.flavors_of_nodes
        groups = group(claims, live, flavors, are_labelled_by_others=is_external)
        self.groups = tuple(found for found in groups if not tell_of_gke(found, self.told))
        self.boards = {found.pool: board_of(found) for found in self.groups}
        files = read_files(dump, operator, DEVICE_PLUGIN, self.told)
        self.sharing = Sharing(
            operator, files, self._entries(operator), self.groups, self.boards, self.surroundings, self.told
        )

    def _entries(self, operator: Operator) -> dict[str, Entry]:
        """The entries of the MIG manager's files; what it refuses of them is told."""
        entries, others = read_entries(read_files(self.dump, operator, MIG_MANAGER, self.told))
        for file, problem in (
            *others,
            *((entry.file, found) for entry in entries.values() for found in entry.problems),
        ):
            self.told.say(
                LAYOUT_NOT_SAID,
                file.place(*problem.route),
                problem.message,
                label=problem.label,
                notes=("one bad entry fails the file, and with it all nodes",),
                help=problem.help,
                severity=Severity.ERROR,
            )
        return dict(entries)

    def found(self) -> Found:
        tell_of_mixtures(self.groups, self.told)
        tell_of_unserved(self.groups, self.told)
        shared = {found.pool: self.sharing.of_pool(found) for found in self.groups}
        keys = Keys(self.sharing, shared)
        pools = [self._pool(found, shared[found.pool], keys) for found in self.groups]
        drafts = [
            *unknown_models(self.groups, self.boards, self.told),
            *self.sharing.layouts.rest(),
            *filter(None, pools),
            *keys.retained(),
            *map(_retained_nodes, self.kept),
        ]
        drafts = [*_once(drafts)]
        keys.tell()
        tell_of_drivers(self.dump, self.told)
        remarked = (replace(draft, remarks=(*draft.remarks, *self.told.remarks(draft.title))) for draft in drafts)
        return Found(tuple(remarked), tuple(self.told.diagnostics))

    # --- Pools ---

    def _pool(self, found: Group, shared: Sequence[Shared], keys: Keys) -> Draft | None:
        board = self.boards[found.pool]
        if board is None:
            tell_of_unknown(found, self.told)
            return None
        first = found.claim.first
        names = keys.kept(found)
        names |= self.surroundings.flavor_name(found.pool, found.machines)
        if flavor := self.surroundings.fixed_flavor(found.pool, found.machines):
            tell_of_flavor(found, flavor, self.told)
        spec: Spec = {"gpu": board.name, "nodes": self._nodes(found, shared[0]), "sharing": shared[0].spec}
        given = {
            "names": names,
            "nodeLabels": _more_labels(first) if found.is_claimed else {},
            "taints": [_taint(taint) for taint in first.taints],
            "allocation": "dra" if first.labels.get(DRA_PLUGIN_LABEL) == "true" else None,
            **self.surroundings.of_pool(found.pool, found.machines),
            "disruption": read_disruption(self.dump, found.pool),
            "rollout": self._rollout(found, shared),
        }
        spec |= {field: value for field, value in given.items() if value}
        sources = [part.source for part in found.claim.parts]
        sources += [machine.source for machine in found.machines[:1] if found.is_claimed]
        read = [self.sharing.read_by(part) for part in shared]
        sources += [self.sharing.files[key].source for key in read if key in self.sharing.files]
        tell_of_published(found, board, spec, shared[0], self.told)
        return Draft("Pool", found.pool, spec, tuple(dict.fromkeys(sources)))

    def _nodes(self, found: Group, shared: Shared) -> Spec:
        parts = found.claim.parts
        pattern, selector = parts[0].pattern, dict(parts[0].selector)
        is_open = bool(pattern or selector) or (parts[0].asks_for_boards and not parts[0].names)
        names = [] if is_open else sorted({name for part in parts for name in part.names})
        number = sum(part.count for part in parts) or len(names) or len(found.machines) or 1
        nodes: Spec = {"count": number, "gpusPerNode": self._gpus_per_node(found, shared)}
        if pattern:
            nodes["namePattern"] = pattern
        elif names:
            nodes["names"] = names
        if selector:
            nodes["selector"] = selector
        if any(part.asks_for_boards for part in parts):
            nodes["matchBoards"] = True
        return nodes | self.surroundings.per_node(found.pool, found.machines, number)

    def _gpus_per_node(self, found: Group, shared: Shared) -> int:
        """What the table says or labels count; where these count MIG devices, or nothing, what follows from those."""
        if stated := max((part.gpus_per_node for part in found.claim.parts), default=0):
            return stated
        whole = [machine.counted for machine in found.machines if not is_of_mig_devices(machine.product)]
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
        seen = max((machine.counted or sum(machine.published.values()) for machine in found.machines), default=0)
        return max(seen // per_gpu, 1)

    def _rollout(self, found: Group, shared: Sequence[Shared]) -> Spec | None:
        if len(shared) < _WITH_ROLLOUT:
            return None
        return {"sharing": shared[1].spec, "nodes": sorted(found.claim.parts[1].names)}


_WITH_ROLLOUT: Final = 2

_OWN_LABELS: Final = frozenset(
    (
        POOL_LABEL,
        DEVICE_PLUGIN_CONFIG_LABEL,
        MIG_CONFIG_LABEL,
        MIG_MANAGER_LABEL,
        DRA_PLUGIN_LABEL,
        NODE_POOL_LABEL,
    )
)


def _once(drafts: Iterable[Draft]) -> Iterator[Draft]:
    """Documents under names of their own: keys and entries that differ may become one name."""
    taken: set[str] = set()
    for draft in drafts:
        others = (f"{draft.name}-{number}" for number in numbers(2))
        name = next(found for found in chain((draft.name,), others) if f"{draft.kind} {found}" not in taken)
        taken.add(f"{draft.kind} {name}")
        yield draft if name == draft.name else replace(draft, name=name)


def _more_labels(part: Part) -> dict[str, str]:
    """What a pool gives its nodes beside what gpuplan gives them."""
    return {label: value for label, value in sorted(part.labels.items()) if label not in _OWN_LABELS}


def _taint(taint: Taint) -> dict[str, str]:
    key, effect, value = taint
    return {"key": key, **({"value": value} if value else {}), "effect": effect}


def _retained_nodes(kept: Kept) -> Draft:
    part = kept.part
    pool = part.labels.get(POOL_LABEL, "")
    nodes: Spec = (
        {"pool": pool, "namePattern": part.pattern} if part.pattern else {"pool": pool, "names": list(part.names)}
    )
    if part.except_names:
        nodes["exceptNames"] = list(part.except_names)
    nodes["labels"] = dict(part.labels)
    until = f"`kubectl get nodes -l {POOL_LABEL}={pool} -o name` prints none of these nodes."
    return Draft("Retained", kept.name, {"nodes": nodes, "until": until}, (part.source,))
