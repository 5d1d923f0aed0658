"""Read Kueue's queues and cohorts: the tree of tenants, and what each has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Final

from gpuplan.compiler.backends.kueue.cells import PLENTY, Cell, Cells, Key
from gpuplan.compiler.base.diagnostics import Severity
from gpuplan.compiler.base.plain import grouped, inside, mapping, read_text, sequence, text
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.base.wording import listing
from gpuplan.compiler.manifests import parse_quantity
from gpuplan.compiler.planning.amounts import as_number
from gpuplan.compiler.planning.grants import SYSTEM_NAMESPACE
from gpuplan.compiler.planning.kueue import DEFAULT_QUEUE, configuration
from gpuplan.compiler.planning.plan import Amount, Counted, Plan, Unit
from gpuplan.compiler.planning.preemption import evict_each_other
from gpuplan.compiler.planning.schedulers.kueue import KUEUE
from gpuplan.features.live.dump import Dump, Item
from gpuplan.features.live.findings import Reports
from gpuplan.features.live.queues.kueue_parts import CellReader, NamespaceReader, node_labels, tell_settings, units_of
from gpuplan.features.live.queues.model import (
    COUNTED,
    KUEUE_GROUP,
    Matching,
    Names,
    Queue,
    Read,
    Share,
    UnitShare,
    cohort_of,
    parents,
    quotas,
    root_cohort,
    tell_faults,
)


class _Holder(Value):
    """A tenant that is to be: a ClusterQueue, a cohort that others are in, or both.

    ``cells`` are the cells of the queue, ``shared`` those of the cohort. ``is_apart`` says that it gets nothing from
    others outside, and gives them nothing; ``borrows`` is false where a queue is in no cohort.
    """

    name: str
    parent: str = ""
    queue: Item | None = None
    cohort: Item | None = None
    is_divided: bool = False
    cells: Cells = field(default_factory=dict)
    shared: Cells = field(default_factory=dict)
    is_apart: bool = False
    borrows: bool = True

    @property
    def items(self) -> tuple[Item, ...]:
        return tuple(item for item in (self.cohort, self.queue) if item)

    @property
    def keys(self) -> tuple[Key, ...]:
        return tuple(dict.fromkeys((*self.cells, *self.shared)))


class Reader:
    """The queues and cohorts of Kueue in a dump, and the tenants that they become."""

    def __init__(self, dump: Dump, plan: Plan) -> None:
        self.dump, self.plan, self.reports = dump, plan, Reports()
        self.root, self.parents = root_cohort(dump), parents(dump)
        is_ours = any(item.namespace == SYSTEM_NAMESPACE for item in dump.of_kind("", "ConfigMap"))
        self.will_evict = None if is_ours else evict_each_other(plan.priority_classes)
        """Whether queues will evict for work of a higher class; None where tenants have classes of their own."""
        tell_faults(dump, plan, self.reports)
        if not is_ours:
            self._tell_configuration()
        self.matching = Matching(dump, plan)
        cells = CellReader(dump, plan, self.matching, self.reports)
        queues = [item for item in dump.of_kind(KUEUE_GROUP, "ClusterQueue") if not cells.is_left_alone(item)]
        found = [(item, cells.read(item)) for item in queues]
        self.counting = {item.name: (item, read) for item, read in found if any(self.units(key) for key in read)}
        for item, _ in found:
            if item.name not in self.counting:
                self.reports.about("idle-queue", item, why="counts nothing that a pool hands out")
        self.root_cells = cells.read(root) if (root := dump.find(KUEUE_GROUP, "Cohort", self.root)) else {}
        if root:
            self._tell_of_others(root)
        self.namespaces = NamespaceReader(dump, [item for item, _ in self.counting.values()], self.reports)
        used: dict[str, None] = {}  # the cohorts but the root that queues are in, and those above, the upper ones first
        for item, _ in self.counting.values():
            way, above = [], cohort_of(item)
            while above and above != self.root:
                way.append(above)
                above = self.parents.get(above, "")
            used |= dict.fromkeys(reversed(way))
        self.cohorts = {
            name: (item, cells.read(item) if item else {})
            for name in used
            for item in (dump.find(KUEUE_GROUP, "Cohort", name),)
        }
        for item in dump.of_kind(KUEUE_GROUP, "Cohort"):
            if item.name not in self.cohorts and item.name != self.root:
                self.reports.about("idle-queue", item, why="has no queue in it that counts GPUs")

    def _tell_configuration(self) -> None:
        """Report settings of Kueue's Configuration that gpuplan writes otherwise, and those that it does not write."""
        written = configuration(self.plan)
        for item in self.dump.of_kind("", "ConfigMap"):
            is_kueues = item.namespace in KUEUE.namespaces
            for settings in map(
                mapping, read_text(inside(item.body, "data").get(_CONFIGURATION) if is_kueues else None)
            ):
                at = item.at / "data" / _CONFIGURATION
                others = [key for key in settings if key not in written and key not in _OF_PROCESS]
                changed = [key for key in settings if key in written and settings[key] != written[key]]
                if others:
                    self.reports.about("kueue-setting-stays", item, at=at, keys=listing(others))
                if changed := [key for key in changed if key not in _OF_PROCESS]:
                    self.reports.about("kueue-setting-changes", item, at=at, keys=listing(changed))

    def queues(self) -> Iterator[Read]:
        """Yield the tenants that ClusterQueues and Cohorts stand for, each after the one that it is part of."""
        holders = {holder.name: holder for holder in self._holders()}
        children = grouped((holder.parent, holder) for holder in holders.values())
        sums: dict[str, Mapping[Key, Amount]] = {}
        shares: dict[str, Mapping[Key, Share]] = {}
        order, waiting = [], [*children.get("", ())]
        while waiting:
            order.append(waiting.pop())
            waiting += children.get(order[-1].name, ())
        for holder in reversed(order):
            below = [sums[child.name] for child in children.get(holder.name, ())]
            shares[holder.name] = self._shares(holder, below, holders)
            own = {key: share.guaranteed for key, share in shares[holder.name].items()}
            keys = {key: None for part in (own, *below) for key in part}
            sums[holder.name] = {key: own.get(key, sum(part.get(key, 0) for part in below)) for key in keys}
        tops = [sums[holder.name] for holder in children.get("", ())]
        self._tell_free({key: sum(part.get(key, 0) for part in tops) for part in tops for key in part}, holders, shares)
        for holder in holders.values():
            yield Read(self._queue(holder, shares[holder.name]), holder.items[-1] if holder.items else None)

    def units(self, key: Key) -> list[Unit]:
        pool = self.plan.find_pool(key[0])
        return units_of(pool, key[1]) if pool else []

    # --- The tree

    def _holders(self) -> Iterator[_Holder]:
        """Cohorts before queues. A queue in the cohort of its own name is what a parent's own namespaces have."""
        names = Names()
        tenants = {name: self.namespaces.tenant_of(name) or name for name in self.counting}
        joined: set[str] = set()
        called: dict[str, str] = {}
        for name, (item, shared) in self.cohorts.items():
            rest = next(
                (found for found, tenant in tenants.items() if tenant == name and self._is_rest(found, name)), ""
            )
            joined |= {rest}
            called[name] = names.give(name)
            above = self.parents.get(name, "")
            yield _Holder(
                called[name],
                called.get(above, ""),
                self.counting[rest][0] if rest else None,
                item,
                is_divided=True,
                cells=self.counting[rest][1] if rest else {},
                shared=shared,
                is_apart=not above,
            )
        several = len(self.counting) > 1
        for name, (item, own) in self.counting.items():
            if name not in joined:
                above = cohort_of(item)
                parent, is_apart = called.get(above, ""), not above and several
                name_of_it = names.give(tenants[name])
                yield _Holder(name_of_it, parent, item, cells=own, is_apart=is_apart, borrows=bool(above))

    def _is_rest(self, queue: str, cohort: str) -> bool:
        """Whether a queue has what its cohort leaves: bounds are the cohort's alone, and so are numbers the queue's."""
        item, cells = self.counting[queue]
        if cohort_of(item) != cohort or _weight(item) != 1:
            return False
        members = [found for found, _ in self.counting.values() if cohort_of(found) == cohort]
        is_shared = len(members) > 1 or any(self.parents.get(name) == cohort for name in self.cohorts)
        is_written = self.cohorts[cohort][0] is not None
        bounded = [key for key, cell in cells.items() if self.units(key) and cell[1:] != (None, None)]
        is_plain = all(cells[key] == _GAP for key in bounded)
        is_empty = all(cell.nominal == 0 for cell in self.cohorts[cohort][1].values())
        return (is_shared or is_written) and is_plain and is_empty

    # --- Numbers

    def _shares(
        self, holder: _Holder, below: Sequence[Mapping[Key, Amount]], holders: Mapping[str, _Holder]
    ) -> Mapping[Key, Share]:
        """Return a tenant's own quotas, in the order of its flavors; ``below`` are the sums of its children."""
        if not holder.is_divided:
            granted = self._granted(holder.cells, _GAP if holder.borrows else _OPEN, _GAP)
            found = {key: self._share_of(holder, key) for key in granted}
            compute = {
                key: self._share_of(holder, key) for key in holder.cells if self._is_counted(holder, key, holders)
            }
            return found | compute
        keys: Iterable[Key] = holder.keys
        if holder.is_apart:
            keys = {key: None for part in (holder.keys, *below) for key in part}
            granted = [key for key in keys if self.units(key)]
        elif holder.queue:
            granted = self._granted(holder.cells, _GAP, _GAP)
        else:
            granted = self._granted(holder.shared, _OPEN, _OPEN)
        counted = [
            key
            for key in keys
            if key[1] in COUNTED
            and (
                holder.is_apart
                or holder.shared.get(key, _OPEN) != _OPEN
                or _quota_of_rest(holder.cells.get(key, _OPEN), key)
            )
        ]
        return {key: self._within(holder, key, below) for key in (*granted, *counted)}

    def _share_of(self, holder: _Holder, key: Key) -> Share:
        nominal, borrowing, lending = holder.cells[key]
        if not holder.borrows:
            return Share(nominal, nominal, 0 if holder.is_apart else nominal)
        return Share(
            nominal, None if borrowing is None else nominal + borrowing, nominal if lending is None else lending
        )

    def _within(self, holder: _Holder, key: Key, below: Sequence[Mapping[Key, Amount]]) -> Share:
        """Return the quota of a parent: its own and those of its children."""
        shared, own = holder.shared.get(key, _OPEN), holder.cells.get(key, _OPEN)
        guaranteed = shared.nominal + _quota_of_rest(own, key) + sum(part.get(key, 0) for part in below)
        if holder.is_apart:
            return Share(guaranteed, guaranteed, 0)
        limit = None if shared.borrowing is None else guaranteed + shared.borrowing
        return Share(guaranteed, limit, guaranteed if shared.lending is None else shared.lending)

    def _granted(self, cells: Cells, *gaps: Cell) -> Sequence[Key]:
        """Return the cells that quotas stand for: those that are no gaps, and what gives every flavor and resource
        one."""
        keys = [key for key in cells if self.units(key)]
        chosen = {key for key in keys if cells[key] not in gaps}
        for key in keys:
            if not any(key[0] == pool for pool, _ in chosen):
                chosen.add(next((one for one in keys if one[0] == key[0] and _is_new(one, chosen)), key))
        for key in keys:
            if _is_new(key, chosen):
                chosen.add(key)
        return [key for key in keys if key in chosen]

    def _is_counted(self, holder: _Holder, key: Key, holders: Mapping[str, _Holder]) -> bool:
        """Whether a queue's cell of CPU, memory or pods bounds them; else it is there since all queues have one."""
        cell = holder.cells[key]
        if key[1] not in COUNTED or cell == Cell(PLENTY[COUNTED[key[1]]], None, 0):
            return False
        if cell != _OPEN:
            return True
        above = holders.get(holder.parent)
        while above and above.shared.get(key, _OPEN) == _OPEN:
            above = holders.get(above.parent)
        return above is None

    # --- Tenants

    def _queue(self, holder: _Holder, shares: Mapping[Key, Share]) -> Queue:
        spec: dict[str, Any] = {}
        found = self.namespaces.of(holder.queue) if holder.queue else None
        if found and found.is_by_label:
            spec["labelledNamespaces"] = True
        weight = _weight(holder.cohort if holder.is_divided else holder.queue)  # a parent's is its cohort's
        if weight != 1:
            spec["surplus"] = {"weight": weight}
        names: dict[str, str] = {}
        if holder.queue and holder.queue.name != holder.name:
            names["clusterQueue"] = holder.queue.name
        if found and found.local_queue not in ("", DEFAULT_QUEUE):
            names["localQueue"] = found.local_queue
        if names:
            spec["names"] = names
        for item in holder.items:
            tell_settings(item, self.reports, will_evict=self.will_evict)
        sources = (*holder.items, *(found.sources if found else ()))
        of_units = [
            UnitShare(pool, max(units, key=lambda unit: unit.capacity), share)  # of two units, as under `single`
            for key, share in shares.items()
            if (pool := self.plan.find_pool(key[0])) and (units := self.units(key))
        ]
        compute: dict[str, dict[Counted, Share]] = {}
        for (name, resource), share in shares.items():
            if resource in COUNTED:
                compute.setdefault(name, {})[COUNTED[resource]] = share
        return Queue(
            holder.name,
            holder.parent,
            found.names if found else (),
            quotas(of_units, compute),
            spec,
            tuple(item.source for item in sources),
            self.reports.remarks(*(item.identity for item in sources)),
        )

    def _tell_free(
        self, promised: Mapping[Key, Amount], holders: Mapping[str, _Holder], shares: Mapping[str, Mapping[Key, Share]]
    ) -> None:
        """Whoever may borrow gets what nobody is guaranteed, too: the root has that, whatever it had."""
        for key, amount in promised.items():
            free = sum(unit.capacity for unit in self.units(key)) - amount
            had = self.root_cells.get(key, _OPEN).nominal
            borrowers = [name for name in holders if self._may_borrow(name, key, holders, shares)]
            items = [item for name in borrowers for item in holders[name].items]
            if not self.units(key) or max(free, 0) == had or not items:
                continue
            item = self.dump.find(KUEUE_GROUP, "Cohort", self.root) or items[0]
            severity, free = Severity.NOTE if free > had else None, max(free, 0)
            self.reports.about(
                "free-units", item, "spec", severity=severity, free=free, had=had, key=key, root=self.root
            )

    def _may_borrow(
        self, name: str, key: Key, holders: Mapping[str, _Holder], shares: Mapping[str, Mapping[Key, Share]]
    ) -> bool:
        """Whether neither its own limit nor one above keeps it from what is nobody's."""
        found = shares[name].get(key)
        share = found
        while name and (share is None or share.limit is None or share.limit > share.guaranteed):
            name = holders[name].parent
            share = shares[name].get(key) if name else None
        return found is not None and not name

    def _tell_of_others(self, root: Item) -> None:
        """Report quota of the root for queues that stay beside (`ResourceGroups` in
        `apis/kueue/v1beta2/cohort_types.go`)."""
        for index, group in enumerate(map(mapping, sequence(inside(root.body, "spec").get("resourceGroups")))):
            for number, part in enumerate(map(mapping, sequence(group.get("flavors")))):
                flavor = self.dump.find(KUEUE_GROUP, "ResourceFlavor", text(part.get("name")))
                if flavor and not self.matching.pools_of(node_labels(flavor)):
                    route = ("spec", "resourceGroups", index, "flavors", number, "name")
                    self.reports.about("flavor-of-others", root, *route, flavor=flavor, root=root)


_CONFIGURATION: Final = "controller_manager_config.yaml"
_OF_PROCESS: Final = frozenset(
    (
        *("apiVersion", "kind", "clientConnection", "controller", "health", "internalCertManagement"),
        *("leaderElection", "metrics", "namespace", "pprofBindAddress", "webhook"),
    )
)
"""Settings of the program itself (`apis/config/v1beta2/configuration_types.go` of Kueue v0.19.2)."""

_GAP: Final = Cell(0, 0)
"""The cell that fills the gaps of a queue's group."""
_OPEN: Final = Cell(0)
"""The cell that fills the gaps of a cohort's group."""


def _weight(holder: Item | None) -> int | float:
    value = inside(holder.body, "spec", "fairSharing").get("weight") if holder else None
    number = None if value is None else parse_quantity(str(value))
    return 1 if number is None or number < 0 else as_number(number)


def _quota_of_rest(cell: Cell, key: Key) -> Amount:
    """Return the quota of a parent's own queue, or 0 if nothing bounds that queue."""
    is_filled = key[1] in COUNTED and cell == Cell(PLENTY[COUNTED[key[1]]], None, 0)
    return 0 if is_filled else cell.nominal


def _is_new(key: Key, chosen: Iterable[Key]) -> bool:
    return not any(key[1] == resource for _, resource in chosen)
