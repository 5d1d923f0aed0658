"""The volumes that the pods of a workload have of their own."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.planning.plan import Workload
from gpuplan.compiler.policy.models import Checkpoint, ModelVolume, Storage, Training


class Volume(NamedTuple):
    """A volume by the name that pods know it by; ``example`` is where it could be mounted."""

    name: str
    at: Origin
    spec: ModelVolume | Checkpoint | Storage
    example: str

    def claim(self, workload: Workload) -> str:
        """The name of its claim, which stays whatever becomes of the work."""
        return f"{workload.name}-{self.name}"


def model_of(workload: Workload) -> Volume | None:
    """The volume that holds a model."""
    spec = workload.spec.model
    return Volume("model", workload.at / "model", spec, "/models") if spec else None


def checkpoint_of(workload: Workload) -> Volume | None:
    """The volume in which a training keeps how far it has come."""
    spec = workload.work.checkpoint if isinstance(workload.work, Training) else None
    return Volume("checkpoint", workload.work_at / "checkpoint", spec, "/checkpoints") if spec else None


def storage_of(workload: Workload) -> Volume | None:
    """The volume in which people keep their work."""
    spec = workload.storage
    return Volume("storage", workload.work_at / "storage", spec, "/work") if spec else None


def volumes_of(workload: Workload) -> Iterator[Volume]:
    """All of them."""
    return (found for found in (model_of(workload), checkpoint_of(workload), storage_of(workload)) if found)
