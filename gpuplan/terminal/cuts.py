"""The division of a pool's GPUs, in slices, with the place where each name and number is from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.base.wording import joined
from gpuplan.compiler.catalog import Gpu
from gpuplan.compiler.planning import plan as parts, plan as planned
from gpuplan.compiler.planning.layouts import entry_of
from gpuplan.compiler.planning.placement.placing import Instance, Placed
from gpuplan.compiler.planning.plan import LayoutEntry, Mig, Plan, Pool


class Words(NamedTuple):
    """A part of a sentence; ``path`` leads to what it says in the plan as data, where it says something of it."""

    text: str
    path: str = ""


Phrase = tuple[Words, ...]


def plain(phrase: Phrase) -> str:
    return "".join(part.text for part in phrase)


class Piece(NamedTuple):
    """A part of a GPU, in slices; ``tint`` is that of its size, ``shares`` into how many it is divided."""

    start: int
    size: int
    name: Words
    tint: int
    shares: Words | None = None

    @property
    def share_count(self) -> int:
        return int(self.shares.text) if self.shares else 1


class Cut(NamedTuple):
    """The division of some GPUs of each node."""

    pieces: tuple[Piece, ...]
    slices: int
    caption: Phrase
    gpus: tuple[int, ...]
    about: str = ""
    is_memory_shared: bool = False


WHOLE_TINT: Final = 4
_SHARE_TINT: Final = 1
_FREE_TINT: Final = 0
_MOST_SHARES: Final = 16
"""More than these are one piece: nobody could tell them apart."""


def cuts_of(paths: PlanPaths, part: Pool) -> tuple[Cut, ...]:
    """Each way in which GPUs of a pool, or of a part that a rollout makes of it, are divided."""
    every = tuple(range(part.nodes.gpus_per_node))
    match part.sharing:
        case planned.Mig() as mig:
            return tuple(_mig_cuts(paths, part, mig))
        case planned.TimeSlicing(spec=spec):
            return (_share_cut(paths, part, spec.replicas, "shares that take turns", is_memory_shared=True),)
        case planned.Mps(spec=spec):
            return (_share_cut(paths, part, spec.replicas, "shares of memory (MPS)", is_memory_shared=False),)
        case planned.DynamicMig():
            slices = range(part.gpu.memory_slices or 1)
            pieces = tuple(Piece(index, 1, Words(""), _FREE_TINT) for index in slices)
            caption = (Words("each GPU: MIG partitions made on demand"),)
            return (Cut(pieces, len(slices), caption, every, is_memory_shared=True),)
        case planned.Fraction():
            piece = Piece(0, 1, Words("any fraction"), _SHARE_TINT)
            caption = (Words("each GPU: fractions that the scheduler hands out"),)
            return (Cut((piece,), 1, caption, every, is_memory_shared=True),)
        case planned.Exclusive():
            piece = Piece(0, 1, Words("whole GPU"), WHOLE_TINT)
            return (Cut((piece,), 1, (Words("each GPU: whole"),), every),)


def _share_cut(paths: PlanPaths, part: Pool, shares: int, noun: str, *, is_memory_shared: bool) -> Cut:
    unit = part.units[0] if part.units else None
    name = Words(unit.name, f"{paths.unit(part, unit)}/name") if unit else Words("")
    many = max(shares, 1) if shares <= _MOST_SHARES else 1
    pieces = tuple(Piece(index, 1, name, _SHARE_TINT) for index in range(many))
    number = Words(str(shares), _of_sharing(paths, part, "replicas"))
    caption = (Words("each GPU: "), number, Words(f" {noun}"))
    return Cut(pieces, many, caption, tuple(range(part.nodes.gpus_per_node)), is_memory_shared=is_memory_shared)


def _of_sharing(paths: PlanPaths, part: Pool, *route: str) -> str:
    """A field of the part's sharing: the one that the rollout leads to has a place of its own."""
    whole = paths.plan.find_pool(part.name)
    is_moved = whole is not None and whole.rollout is not None and whole.rollout.moved is part
    return paths.pool(part) + pointer(*(("rollout",) if is_moved else ()), "sharing", *route)


# --- MIG ---------------------------------------------------------------------------------------------------------


def _mig_cuts(paths: PlanPaths, part: Pool, mig: Mig) -> Iterator[Cut]:
    """GPUs of one entry together; which entry holds for a GPU is as mig-parted has it."""
    gpus_of: dict[int | None, list[int]] = {}
    for gpu in range(part.nodes.gpus_per_node):
        entry = entry_of(mig.layout, gpu)
        gpus_of.setdefault(None if entry is None else mig.layout.entries.index(entry), []).append(gpu)
    layout = paths.layout(mig.layout)
    for index, gpus in gpus_of.items():
        entry = None if index is None else mig.layout.entries[index]
        at = f"{layout}{pointer('entries', index or 0)}"
        which = (Words("each GPU"),) if len(gpus) == part.nodes.gpus_per_node else _which(entry, gpus, at)
        caption = (*which, Words(": layout "), Words(mig.layout.name, f"{layout}/name"))
        yield _entry_cut(paths, part, entry, at)._replace(caption=caption, gpus=tuple(gpus))


def _which(entry: LayoutEntry | None, gpus: Sequence[int], at: str) -> Phrase:
    if entry is None or entry.gpus is None or sorted(entry.gpus) != sorted(gpus):
        return (Words("its other GPUs"),)
    return (Words("GPU " if len(gpus) == 1 else "GPUs "), Words(", ".join(map(str, entry.gpus)), f"{at}/gpus"))


def _entry_cut(paths: PlanPaths, part: Pool, entry: LayoutEntry | None, at: str) -> Cut:
    if entry is None or not entry.mig_enabled:
        return Cut((Piece(0, 1, Words("MIG off"), WHOLE_TINT),), 1, (), ())
    if not isinstance(entry.placed, Placed):
        about = "cannot be placed" if entry.instances else "holds nothing"
        return Cut((), part.gpu.memory_slices or 1, (), (), about)
    cut = cut_of_instances(part.gpu, entry.placed.instances, at)
    return cut._replace(pieces=tuple(_shared(paths, part, piece) for piece in cut.pieces))


def _shared(paths: PlanPaths, part: Pool, piece: Piece) -> Piece:
    sliced = part.sharing.time_slicing if isinstance(part.sharing, Mig) else None
    shares = sliced.find(piece.name.text) if sliced else None
    if shares is None:
        return piece
    route = ("time_slicing", "replicas", *([shares.profile] if shares.profile else []))
    return piece._replace(shares=Words(str(shares.number), _of_sharing(paths, part, *route)))


def cut_of_instances(gpu: Gpu, instances: Iterable[Instance], entry: str = "") -> Cut:
    """One GPU with its instances; ``entry`` is the path of what says so in a plan."""
    placed = tuple(instances)
    pieces = tuple(
        Piece(
            item.placement.start,
            item.placement.size,
            Words(item.profile.name, f"{entry}{pointer('placements', index, 'profile')}" if entry else ""),
            min(item.profile.compute_slices - 1, WHOLE_TINT),
        )
        for index, item in enumerate(placed)
    )
    free = gpu.memory_slices - sum(item.placement.size for item in placed)
    held = joined([item.profile.name for item in placed]) if placed else "nothing"
    rest = f"; nothing takes {free} of its {gpu.memory_slices} memory slices" if free else ""
    return Cut(pieces, gpu.memory_slices, (), (), f"holds {held}{rest}")


# --- Paths in a plan as data -----------------------------------------------------------------------------------------


class PlanPaths(Value, eq=False):
    """Pointers to the parts of one plan; ``index`` is its place among the clusters.

    ``document`` stands before each, where a page has plans of several documents: ``earlier:``.
    """

    plan: Plan
    index: int = 0
    document: str = ""

    @property
    def cluster(self) -> str:
        return self.document + pointer("clusters", self.index)

    def pool(self, pool: parts.Pool) -> str:
        """Return the path of a part; for a part that a rollout makes of a pool, that of the whole pool."""
        return self.cluster + pointer("pools", self._places["pools", pool.name])

    def node_names(self, pool: parts.Pool, part: parts.Pool) -> Phrase:
        """Return the names of a part's nodes, as far as they are known."""
        moved = pool.rollout.nodes if pool.rollout else ()
        at = {name: self.pool(pool) + pointer("rollout", "nodes", index) for index, name in enumerate(moved)}
        at |= {name: self.pool(pool) + pointer("nodes", "names", index) for index, name in enumerate(pool.nodes.names)}
        return tuple(Words(name, at[name]) for name in part.nodes.names)

    def unit(self, pool: parts.Pool, unit: parts.Unit) -> str:
        whole = self.plan.pools[self._places["pools", pool.name]]
        return self.pool(pool) + pointer("units", [found.name for found in whole.units].index(unit.name))

    def layout(self, layout: parts.Layout) -> str:
        return self.cluster + pointer("layouts", self._places["layouts", f"{layout.config_name} {layout.gpu.id}"])

    def tenant(self, tenant: parts.Tenant) -> str:
        return self.cluster + pointer("tenants", self.tenant_index(tenant))

    def tenant_index(self, tenant: parts.Tenant) -> int:
        return self._places["tenants", tenant.name]

    def quota(self, tenant: parts.Tenant, quota: parts.Quota) -> str:
        whole = self.plan.tenants[self.tenant_index(tenant)]
        return self.tenant(tenant) + pointer("quotas", [found.key for found in whole.quotas].index(quota.key))

    @cached_property
    def _places(self) -> Mapping[tuple[str, str], int]:
        """The place of each part among those of its kind, by the kind's name in JSON and the part's own."""
        names = {
            "pools": [pool.name for pool in self.plan.pools],
            "layouts": [f"{layout.config_name} {layout.gpu.id}" for layout in self.plan.mig_layouts],
            "tenants": [tenant.name for tenant in self.plan.tenants],
        }
        return {(kind, name): index for kind, known in names.items() for index, name in enumerate(known)}


def pointer(*route: str | int) -> str:
    """A JSON pointer to what a route of keys and indices leads to."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in route)
