"""The classes of change: how far one disturbs what runs."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


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
    TAINT = "taint"
    """Nodes that took any pod take those alone that tolerate a new taint; what runs goes on, and is not started again.

    That is so for pods of the system, too: DaemonSets of others, which have one on each node.
    """
    PREEMPTION_ORDER = "preemption-order"
    """Who evicts whom, or gets what is free first, differs: pods may be evicted that would have stayed."""
    REPARTITION = "repartition"
    """GPUs of nodes are set up again, or their driver or MPS daemons are: pods that hold them must end first."""
    RECREATE = "recreate"
    """A field that cannot be changed, changes: an object, or pods, must be deleted and recreated.

    Pods end as well where there are fewer of them from then on.
    """
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
