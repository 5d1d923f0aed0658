"""The classes of change: how far one disturbs what runs."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class ChangeClass(StrEnum):
    """A class of change by how far it disturbs, least first. Meanings are fixed, and a set has its worst class."""

    NONE = "none"
    """Nothing that is applied differs."""
    METADATA = "metadata"
    """Only what people and programs read differs, such as a description, an alert or a sync window."""
    QUOTA = "quota"
    """The units that exist or that a tenant may have differ. Running pods stay."""
    PLUGIN_RESTART = "plugin-restart"
    """Pods of the GPU Operator restart on nodes; pods that hold GPUs go on, new ones wait meanwhile.

    Not so where GPUs are shared by MPS: a restart of its daemons is a `REPARTITION`.
    """
    ADMISSION = "admission"
    """The rules on who may create or schedule what and where differ. Running pods stay."""
    TAINT = "taint"
    """Nodes that took any pod take those alone that tolerate a new taint; what runs goes on, and is not started again.

    That is so for pods of the system, too: DaemonSets of others, which have one on each node.
    """
    PREEMPTION_ORDER = "preemption-order"
    """The order of evictions or of free units differs: pods may be evicted that would have stayed."""
    REPARTITION = "repartition"
    """GPUs of nodes are set up again, or their driver or MPS daemons are: pods that hold them must end first."""
    RECREATE = "recreate"
    """A field that cannot be changed, changes: an object, or pods, must be deleted and recreated.

    Pods end as well where there are fewer of them from then on.
    """
    TWO_STEP = "two-step"
    """In one step it fails or sticks: something is removed that is still in use, or that a finalizer holds."""
    DESTRUCTIVE = "destructive"
    """Running work or stored data loses its base, and reverting the commit does not restore it."""

    @property
    def rank(self) -> int:
        """0 for `NONE`; a greater one disturbs more."""
        return _RANKS[self]


_RANKS = {item: rank for rank, item in enumerate(ChangeClass)}


def worst(classes: Iterable[ChangeClass]) -> ChangeClass:
    """Return the class of a set of changes, which is `NONE` for the empty one."""
    return max(classes, key=lambda change_class: change_class.rank, default=ChangeClass.NONE)
