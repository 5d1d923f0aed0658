"""The effects of a change of policy on a running platform, as values that views show, and their turns of phrase."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, assert_never

from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.disturbance import ChangeClass, worst
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.base.wording import count, joined, listing
from gpuplan.compiler.manifests import Identity, Subject
from gpuplan.compiler.planning.plan import (
    Amount,
    DynamicMig,
    Exclusive,
    Fraction,
    Layout,
    Mig,
    Mps,
    Plan,
    Sharing,
    Taint,
    TimeSlicing,
)
from gpuplan.compiler.planning.schedulers import SchedulerTraits
from gpuplan.compiler.planning.subjects import Part, subject_of
from gpuplan.compiler.policy.models import Window


class NodeImpact(Value):
    """The nodes that a change touches, ``count`` at most: the ``names`` known, and the pool's ``pattern`` or None.

    ``are_new`` says that they come to a pool; those that were in another one before are not meant.
    """

    count: int
    names: tuple[str, ...]
    pattern: str | None
    are_new: bool = False


class CapacityChange(NamedTuple):
    """The number of a pool's units, before and after."""

    pool: str
    unit: str
    before: int
    after: int


class GrantChange(NamedTuple):
    """A tenant's grant of a unit, before and after. A limit of None is unbounded. A missing grant has 0 everywhere."""

    tenant: str
    pool: str
    unit: str
    guaranteed_before: Amount
    guaranteed_after: Amount
    limit_before: Amount | None
    limit_after: Amount | None

    @property
    def numbers(self) -> dict[str, tuple[Amount | None, Amount | None]]:
        """The guarantee and the limit, each before and after."""
        guaranteed, limit = (self.guaranteed_before, self.guaranteed_after), (self.limit_before, self.limit_after)
        return {"guaranteed": guaranteed, "limit": limit}


REVERT: Final = "reverting the commit undoes it"
OTHER_WAY_ROUND: Final = "reverting is the same the other way round"
NOTHING_RUNS: Final = "nothing that runs is disturbed"


class Change(NamedTuple):
    """One change of meaning in one cluster.

    ``what`` says what changes, ``effect`` what comes of it in the cluster and ``undo`` what reverting the commit does.
    ``at`` is the first edit that it comes of, in the later policy, or in the earlier one for what is removed. ``pods``
    is how many pods may be disturbed at most, as the plan has it. ``windows`` are the pool's, empty where it may be
    applied at any time.

    ``folders`` are those that apply it, relative to the cluster's: of all that differs and is about the subject, or
    about what it is ``also`` about, such as its earlier name. A change of the cluster itself is about all that differs
    in some ``stages``. ``daemon_sets`` are those of the GPU Operator whose pods restart, come or go with it;
    those of an NVIDIADriver stand as `NVIDIADriver/NAME`. ``closing`` are the taints of nodes that took any pod before.
    """

    cluster: str
    subject: Subject
    at: Origin
    change_class: ChangeClass
    what: str
    effect: str = NOTHING_RUNS
    undo: str = REVERT
    also: tuple[Subject, ...] = ()
    stages: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    nodes: NodeImpact | None = None
    capacity: tuple[CapacityChange, ...] = ()
    grants: tuple[GrantChange, ...] = ()
    pods: int = 0
    needs_drain: bool = False
    needs_reboot: bool = False
    windows: tuple[Window, ...] = ()
    daemon_sets: tuple[str, ...] = ()
    closing: tuple[Taint, ...] = ()


def of(plan: Plan, part: Part, at: Origin | None = None) -> tuple[str, Subject, Origin]:
    """Return the first fields of a `Change`: the cluster, the subject that a part of the plan is, and the place."""
    return plan.cluster.name, subject_of(part), part.at if at is None else at


class ObjectChange(NamedTuple):
    """An object that differs. What is shown is what no change of meaning explains."""

    cluster: str
    change_class: ChangeClass
    folder: str
    identity: Identity
    verb: str
    """`added`, `removed` or `changed`."""
    about: frozenset[Subject] = frozenset()
    """The documents that it is about, on either side."""
    was_in: str = ""
    """The folder that it was in, where it was there."""
    at: Origin | None = None
    """The first edit that its trace leads to, in the later policy, or in the earlier one for what is removed."""
    is_earlier: bool = False
    """Whether that place is in the earlier policy."""
    is_of_number: bool = False
    """Whether its class is for fewer pods alone: those that stay are the same."""


class Wait(NamedTuple):
    """An Application that waits for a person, or for a Job; ``folder`` is the one that it syncs, of the cluster's.

    Its sync waits until a person confirms that ``pruned`` may go, and until the Jobs have ``ended``. Until then it
    takes no other commit, a revert included. It begins no sync at all while objects are there whose change the API
    server would have ``refused``: somebody deletes them, or reverts the commit. If its folder is gone it syncs nothing
    any more, and all that it applied is ``left`` until somebody deletes it.
    """

    cluster: str
    application: str
    folder: str
    pruned: tuple[Identity, ...] = ()
    ended: tuple[Identity, ...] = ()
    refused: tuple[Identity, ...] = ()
    left: tuple[Identity, ...] = ()


class Comparison(NamedTuple):
    """All that differs between two platforms, sorted by cluster, worst first."""

    changes: tuple[Change, ...]
    objects: tuple[ObjectChange, ...]
    waits: tuple[Wait, ...] = ()

    @property
    def worst(self) -> ChangeClass:
        changes, objects = ((item.change_class for item in items) for items in (self.changes, self.objects))
        return worst((*changes, *objects))


def deletion(identity: Identity) -> str:
    """The command that deletes an object, in backticks."""
    kind = identity.kind.lower() + (f".{identity.group}" if identity.group else "")
    where = f" -n {identity.namespace}" if identity.namespace else ""
    return f"`kubectl delete {kind} {identity.name}{where}`"


def shared_as(sharing: Sharing) -> str:
    """``time-slicing with 3 shares``."""
    match sharing:
        case Exclusive():
            return "whole GPUs"
        case TimeSlicing():
            return f"time-slicing with {sharing.spec.replicas} shares"
        case Mps():
            return f"MPS with {sharing.spec.replicas} shares"
        case Mig():
            stated = sharing.time_slicing.stated if sharing.time_slicing else ()
            shares = joined([f"{found.number} shares of each {found.profile or 'device'}" for found in stated])
            return f"MIG layout `{sharing.layout.name}`{f' with {shares}' if shares else ''}"
        case DynamicMig():
            return f"MIG on demand of {listing(sharing.profiles, None)}"
        case Fraction():
            return "fractions"
        case _:
            assert_never(sharing)


def division(layout: Layout) -> str:
    """``2x 3g.40gb``: what becomes of GPUs, entry by entry."""
    parts = []
    for entry in layout.entries:
        instances = joined([f"{count}x {name}" for name, count in entry.instances.items() if count > 0])
        found = instances if entry.mig_enabled and instances else "no MIG"
        where = "" if entry.gpus is None else f" on GPUs {', '.join(map(str, entry.gpus))}"
        parts.append(f"{found}{where}")
    return joined(parts) if parts else "no MIG"


def nodes_of(nodes: NodeImpact) -> str:
    """``2 nodes``."""
    return count(nodes.count, "node")


def who_names(nodes: Sequence[str] | None) -> str:
    """The nodes that still name something, as far as that is known."""
    if nodes is None:
        return "nodes still name it, as policies say (`--nodes FILE` shows which)"
    return f"{listing(nodes)} still {'names' if len(nodes) == 1 else 'name'} it"


def verb(nodes: NodeImpact, one: str, several: str) -> str:
    """``2 nodes leave``, but ``1 node leaves``."""
    return f"{nodes_of(nodes)} {one if nodes.count == 1 else several}"


def names(several: Sequence[str]) -> str:
    """All of a few names; of many the first ones."""
    return listing(sorted(several))


def listed(*parts: tuple[str, Sequence[str]]) -> list[str]:
    """``loses `a` and `b` ``: each verb with its names, where it has any."""
    return [f"{verb} {names(found)}" for verb, found in parts if found]


def from_to(old: object, new: object) -> str:
    """``from 3 to 4``."""
    return f"from {old} to {new}"


def amount(number: Amount | None) -> str:
    return "no limit" if number is None else f"{number:f}" if not isinstance(number, int) else str(number)


def fate_of_queues(scheduler: SchedulerTraits) -> str:
    """Return the fate of queues, and of what they need, that leave the policy while work is in them.

    Kueue keeps a ResourceFlavor by a finalizer while a ClusterQueue names it, and a ClusterQueue while work holds quota
    of it (`pkg/controller/core` there). KAI-Scheduler gives its queues none (`pkg/queuecontroller` there).
    """
    return "stay while work is in them" if scheduler.queues_hold_work else "go, and what waits in them is never placed"
