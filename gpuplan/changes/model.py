"""What a change of policy does to a running platform: values that views show and CI judges."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from gpuplan.diagnostics import Origin
from gpuplan.manifests import Identity
from gpuplan.planning.plan import Amount, Window


class ChangeClass(StrEnum):
    """How far a change disturbs, least first. The meaning of each is fixed; a set of changes has its worst class."""

    NONE = "none"
    """Nothing that is applied differs."""
    METADATA = "metadata"
    """What people and programs read differs, such as a description, an alert or a sync window; nothing obeys it."""
    QUOTA = "quota"
    """What there is to hand out, or what a tenant may have of it, differs; what runs goes on."""
    PLUGIN_RESTART = "plugin-restart"
    """Pods of the GPU Operator restart on nodes; pods that hold GPUs go on, new ones wait meanwhile.

    Not so where GPUs are shared by MPS: a restart of its daemons is a `REPARTITION`.
    """
    ADMISSION = "admission"
    """What may be created or scheduled, by whom or where, differs; what runs goes on."""
    PREEMPTION_ORDER = "preemption-order"
    """Who evicts whom, or gets what is free first, differs: pods may be evicted that would have stayed."""
    REPARTITION = "repartition"
    """GPUs of nodes are set up anew, or their driver or MPS daemons are: pods that hold them must end first."""
    RECREATE = "recreate"
    """A field that cannot be changed, changes: an object, or pods, must be deleted and made anew."""
    TWO_STEP = "two-step"
    """In one step it fails or sticks: something is removed that is still in use, or that a finalizer holds."""
    DESTRUCTIVE = "destructive"
    """What runs or is stored loses what it stands on, and reverting the commit does not bring it back."""

    @property
    def rank(self) -> int:
        """0 for `NONE`; a greater one disturbs more."""
        return _RANKS[self]


_RANKS = {item: rank for rank, item in enumerate(ChangeClass)}


def worst(classes: Iterable[ChangeClass]) -> ChangeClass:
    """The class of a set of changes; `NONE` for the empty one."""
    return max(classes, key=lambda item: item.rank, default=ChangeClass.NONE)


@dataclass(frozen=True, slots=True)
class NodeImpact:
    """The nodes that a change touches, ``count`` at most: the ``names`` known, and the pool's ``pattern`` or None.

    ``are_new`` says that they come to a pool; those that were in another one before are not meant.
    """

    count: int
    names: tuple[str, ...]
    pattern: str | None
    are_new: bool = False


class CapacityChange(NamedTuple):
    """How many units a pool has, before and after."""

    pool: str
    unit: str
    before: int
    after: int


class GrantChange(NamedTuple):
    """What a tenant may have of a unit. Limits are None where unbounded; a grant that is not there is all 0."""

    tenant: str
    pool: str
    unit: str
    guaranteed_before: Amount
    guaranteed_after: Amount
    limit_before: Amount | None
    limit_after: Amount | None


class Subject(NamedTuple):
    """What changes, in the words of the policy: a document's kind and name."""

    kind: str
    name: str


class Change(NamedTuple):
    """One change of meaning in one cluster.

    ``what`` says what changes, ``effect`` what comes of it in the cluster and ``undo`` what reverting the commit does.
    ``at`` is in the later policy, or in the earlier one for what is removed. ``folders`` are those that apply it,
    relative to the cluster's. ``pods`` is how many pods may be disturbed at most, as the plan has it. ``windows`` are
    the pool's, empty where it may be applied at any time.
    """

    cluster: str
    change_class: ChangeClass
    subject: Subject
    what: str
    effect: str
    undo: str
    at: Origin
    folders: tuple[str, ...] = ()
    nodes: NodeImpact | None = None
    capacity: tuple[CapacityChange, ...] = ()
    grants: tuple[GrantChange, ...] = ()
    pods: int = 0
    needs_drain: bool = False
    needs_reboot: bool = False
    windows: tuple[Window, ...] = ()


class ObjectChange(NamedTuple):
    """An object that differs though no change of meaning explains it, such as one of a hand-written Component."""

    cluster: str
    change_class: ChangeClass
    folder: str
    identity: Identity
    verb: str
    """`added`, `removed` or `changed`."""


class Comparison(NamedTuple):
    """All that differs between two platforms, sorted by cluster, worst first."""

    changes: tuple[Change, ...]
    objects: tuple[ObjectChange, ...]

    @property
    def worst(self) -> ChangeClass:
        changes, objects = ((item.change_class for item in items) for items in (self.changes, self.objects))
        return worst((*changes, *objects))
