"""Two gangs of one tenant that come at once: Jobs of PyTorchJobs, as the training operator makes them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from tests.cluster.api import Object, Refused
from tests.cluster.lending import Party, comes

SIZES: Final = (4, 5, 6)
"""Any two of them can be parted where there is room for six pods."""
ROOM: Final = 6
NEITHER: Final = "neither starts"
BOTH: Final = "both run"
_LONGEST_PAUSE: Final = 0.05


@dataclass(frozen=True, slots=True)
class Gang:
    """A Job all of whose pods are to run at once: KAI-Scheduler v0.12.0 reads so much from what owns the Job."""

    party: Party
    size: int
    job: Mapping[str, Any]

    def pods(self) -> list[dict[str, Any]]:
        return self.party.pods(self.job)

    def running(self) -> int:
        return sum(pod["status"].get("phase") == "Running" for pod in self.pods())

    def end(self) -> None:
        """Its containers have done their work."""
        for pod in self.pods():
            self.party.admin.patch(f"{self.party.path(pod)}/status", {"status": {"phase": "Succeeded"}})


def come(party: Party, seed: int) -> tuple[Gang, Gang]:
    """Two gangs, made in an order, with sizes and after pauses that the seed says."""
    chance = Random(seed)
    first, second = (_owner(party, f"gang-{seed}-{letter}", chance.choice(SIZES)) for letter in "ab")
    made = [_make(party, owner, chance) for owner in chance.sample([first, second], k=2)]
    return made[0], made[1]


def parted(gangs: Sequence[Gang]) -> bool:
    """Whether the room is taken, and no gang is whole."""
    pods = [len(gang.pods()) for gang in gangs]
    return sum(pods) >= ROOM and all(count < gang.size for count, gang in zip(pods, gangs, strict=True))


def what_runs(gangs: Sequence[Gang]) -> str:
    """What comes of gangs: whether each is whole and ends, one after the other, or neither ever starts."""
    waiting = list(gangs)
    while waiting:
        comes(lambda: any(gang.running() == gang.size for gang in waiting), 60)
        whole = next((gang for gang in waiting if gang.running() == gang.size), None)
        if whole is None:
            return NEITHER if len(waiting) == len(gangs) else "one starts"
        whole.end()
        waiting.remove(whole)
    return BOTH


def stays_parted(gangs: Sequence[Gang], seconds: float) -> bool:
    """Whether no pod of them runs for so long."""
    return not comes(lambda: any(gang.running() for gang in gangs), seconds)


def clear(party: Party) -> None:
    """Remove the gangs, and what owns them."""
    with suppress(Refused):
        party.admin.delete(f"/apis/kubeflow.org/v1/namespaces/{party.name}/pytorchjobs")
    party.clear()


def owner_of(namespace: str, name: str, size: int) -> dict[str, Any]:
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": size}}},
    }


def _owner(party: Party, name: str, size: int) -> dict[str, Any]:
    body = owner_of(party.name, name, size)
    return party.admin.create({**body, "metadata": {**body["metadata"], "labels": party.labels}})


def _make(party: Party, owner: Object, chance: Random) -> Gang:
    time.sleep(chance.uniform(0, _LONGEST_PAUSE))
    size = owner["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"]
    reference = {key: owner["metadata"][key] for key in ("name", "uid")}
    reference |= {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True}
    job = party.job(size, metadata={"ownerReferences": [reference]})
    return Gang(party, size, party.admin.create(job))
