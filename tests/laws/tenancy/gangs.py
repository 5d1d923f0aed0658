"""A model of gangs behind a ResourceQuota: the Job controller makes their pods, a scheduler starts whole gangs.

The controller creates pods in batches of 1, 2, 4 and so on, those of a batch at once; when one of a batch is refused,
it leaves out the later batches, keeps what it has, and later starts anew with a batch of one (`manageJob` in
`pkg/controller/job/job_controller.go` of kubernetes/kubernetes v1.34.1, lines 1762 to 1835). The scheduler passes over
a gang that has not all of its pods (`FilterUnready` in `pkg/scheduler/actions/allocate/allocate.go` of KAI-Scheduler
v0.12.0). A gang that runs ends some time, and its pods go.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple, TypeAlias


class Gang(NamedTuple):
    """A Job of so many pods, and where the controller is with it; a sync is under way until all pods are there."""

    size: int
    pods: int = 0
    left: int = 0
    """What the sync had still to create when its batch began."""
    batch: int = 0
    answered: int = 0
    """How many pods of the batch the API server has answered for."""
    is_refused: bool = False
    """Whether one of the batch was refused."""
    is_running: bool = False
    is_done: bool = False


State: TypeAlias = tuple[Gang, ...]
"""Gangs, sorted: those of one size are alike."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What bounds the gangs of one tenant: a ResourceQuota on pods that are there, and a queue on those that run."""

    quota: int | None
    queue: int


@dataclass(frozen=True, slots=True)
class Explored:
    """All states that some interleaving comes to."""

    states: int
    deadlocks: tuple[State, ...]
    """Those from which no interleaving leads to the end of all gangs."""


def explore(sizes: tuple[int, ...], rules: Rules) -> Explored:
    """Each interleaving of what the gangs' requests, the scheduler and the ends of gangs can do."""
    start = tuple(sorted(_next_sync(Gang(size)) for size in sizes))
    comes_from: defaultdict[State, list[State]] = defaultdict(list)
    found, waiting = {start}, [start]
    while waiting:
        state = waiting.pop()
        for after in _steps(state, rules):
            comes_from[after].append(state)
            if after not in found:
                found.add(after)
                waiting.append(after)
    ends = [state for state in found if all(gang.is_done for gang in state)]
    return Explored(len(found), tuple(sorted(found - _leading_to(ends, comes_from))))


def _leading_to(ends: list[State], comes_from: Mapping[State, list[State]]) -> set[State]:
    found, waiting = set(ends), list(ends)
    while waiting:
        for before in comes_from.get(waiting.pop(), ()):
            if before not in found:
                found.add(before)
                waiting.append(before)
    return found


def _steps(state: State, rules: Rules) -> Iterator[State]:
    used = sum(gang.pods for gang in state)
    has_room = rules.quota is None or used < rules.quota
    idle = rules.queue - sum(gang.size for gang in state if gang.is_running)
    for number, gang in enumerate(state):
        for after in _moves(gang, has_room=has_room, may_start=gang.size <= idle):
            yield tuple(sorted((*state[:number], after, *state[number + 1 :])))


@cache
def _moves(gang: Gang, *, has_room: bool, may_start: bool) -> tuple[Gang, ...]:
    """What can happen to one gang next."""
    if gang.is_done:
        return ()
    if gang.is_running:
        return (Gang(gang.size, is_done=True),)
    if gang.pods == gang.size:
        return (gang._replace(is_running=True),) if may_start else ()
    return (_answer(gang, is_taken=has_room),)


def _answer(gang: Gang, *, is_taken: bool) -> Gang:
    """The API server takes or refuses one pod of the batch; after the last of them the controller goes on."""
    pods, answered, is_refused = gang.pods + is_taken, gang.answered + 1, gang.is_refused or not is_taken
    if answered < gang.batch:
        return gang._replace(pods=pods, answered=answered, is_refused=is_refused)
    left = gang.left - gang.batch
    if is_refused or not left:
        return _next_sync(Gang(gang.size, pods))
    return gang._replace(pods=pods, left=left, batch=min(2 * gang.batch, left), answered=0)


FIRST_BATCH: Final = 1
"""`SlowStartInitialBatchSize` in `pkg/controller/controller_utils.go` of kubernetes/kubernetes."""


def _next_sync(gang: Gang) -> Gang:
    """The controller counts what it has, and starts with the first batch."""
    left = gang.size - gang.pods
    return Gang(gang.size, gang.pods, left, min(FIRST_BATCH, left))
