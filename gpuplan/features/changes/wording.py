"""Turns of phrase that changes share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from gpuplan.compiler.base.wording import count, joined, listing
from gpuplan.compiler.manifests import Identity
from gpuplan.compiler.planning.plan import (
    Amount,
    DynamicMig,
    Exclusive,
    Fraction,
    Layout,
    Mig,
    Mps,
    Sharing,
    TimeSlicing,
)
from gpuplan.compiler.planning.schedulers import SchedulerTraits
from gpuplan.features.changes.model import NodeImpact


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
