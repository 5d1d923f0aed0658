"""What of a tenant's work runs, and what Kueue counts of it."""

from __future__ import annotations

from tests.cluster.kueue_controller import API_VERSION
from tests.cluster.lending import Party


def counted(alice: Party) -> int:
    """What Kueue has admitted of alice's, in GPUs."""
    queue = alice.admin.get(f"/apis/{API_VERSION}/clusterqueues/{alice.name}")
    return sum(
        int(resource["total"])
        for flavor in queue["status"]["flavorsReservation"]
        for resource in flavor["resources"]
        if resource["name"] == "nvidia.com/gpu"
    )


def seen(alice: Party) -> tuple[float, int]:
    """The GPUs whose pods run, and those that Kueue counts."""
    return alice.running(), counted(alice)
