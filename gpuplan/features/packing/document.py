"""The `Demand` document: what teams ask for, which `gpuplan pack` reads and which is no part of a platform."""

# No `from __future__ import annotations` here: pydantic would have to compile and evaluate each annotation again.

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from gpuplan.compiler.policy import names, texts
from gpuplan.compiler.policy.marks import ESSENTIAL, INDEPENDENT, Judged, Words
from gpuplan.compiler.policy.models import Document, GpuModel, Metadata, Model, Positive, Vocabulary, exactly_one


class DemandedIsolation(StrEnum):
    """The isolation of a pod from others on its GPU, strongest first."""

    WHOLE_GPU = "wholeGpu"
    HARDWARE = "hardware"
    MPS = "mps"
    NONE = "none"


Share = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] | texts.Percent
Growth = Annotated[float, Field(ge=1, le=10, allow_inf_nan=False)] | texts.PercentMore
"""A factor above ten is most likely a number of per cent."""
Rate = Annotated[float, Field(gt=0, le=1_000_000_000, allow_inf_nan=False)]
Engines = Annotated[int, Field(ge=1, le=64)]
Processes = Annotated[int, Field(ge=1, le=60)]
"""As many clients as an MPS server takes on a whole GPU: 48 up to CUDA 13.0, 60 after it ("Client-Server Connection
Limits" in https://docs.nvidia.com/deploy/mps/when-to-use-mps.html). On a MIG instance it is as many fewer as that is
smaller ("CUDA Concurrency Mechanisms" in https://docs.nvidia.com/datacenter/tesla/mig-user-guide/concepts.html).
"""


class MediaEngines(Model):
    """Media engines of one GPU or partition."""

    dec: Annotated[Engines | None, Words("video decoders")] = None
    """Video decoders (NVDEC)."""
    enc: Annotated[Engines | None, Words("video encoders")] = None
    """Video encoders (NVENC)."""
    jpeg: Annotated[Engines | None, Words("JPEG decoders")] = None
    """JPEG decoders (NVJPG)."""
    ofa: Annotated[Engines | None, Words("optical flow accelerators")] = None
    """Optical flow accelerators (OFA)."""


class MeasuredThroughput(Model):
    """The measured throughput of one partition."""

    size: (
        Annotated[int, Field(ge=1, le=8)]
        | Annotated[str, Field(json_schema_extra={"format": Vocabulary.MIG_PROFILE.value}), Judged("GPU824")]
    )
    """The partition: its number of compute slices, or a MIG profile such as `2g.20gb`."""
    batch: Positive = 1
    """Requests that are answered together."""
    processes: Processes = 1
    """Processes that shared the partition."""
    requests_per_second: Rate
    """Requests a second that all processes answered together."""
    latency: texts.Latency
    """The time that an answer took, such as `35ms`."""


class DemandedService(Model):
    """Requests that a service has to answer; `gpuplan pack` says with how many pods of which size."""

    requests_per_second: Rate
    """Requests a second at the busiest time."""
    latency: texts.Latency | None = None
    """The latest that an answer may be, such as `200ms`. Absent: as late as it was measured."""
    throughput: Annotated[
        Annotated[list[MeasuredThroughput], Field(min_length=1)] | texts.TableBeside, Judged("GPU824"), ESSENTIAL
    ]
    """The throughput of partitions: a list, or a CSV file beside this one with the columns `Mig instance`,
    `Batch size`, `Workload Number`, `Throughput` (requests a second of each process) and `Latency` (in seconds).
    """
    max_processes: Processes = 1
    """The number of processes of a pod that may share its partition, by an MPS server that the pod starts itself: the
    device plugin starts none where MIG is on.
    """


class DemandedWork(Model):
    """Equal pods of a team that run at once, or a service."""

    team: Annotated[texts.Line, Field(min_length=1)]
    """The team that asks for it."""
    tenant: Annotated[names.TenantName | None, ESSENTIAL] = None
    """The tenant of the platform that it belongs to. Absent: the one that is called as the team."""
    name: texts.Line = ""
    """A word for it, such as `notebooks`."""
    pods: Annotated[Positive | None, ESSENTIAL] = None
    """The number of pods that run at once."""
    service: Annotated[DemandedService | None, ESSENTIAL] = None
    """Requests to answer, in place of a number of pods."""
    memory: Annotated[texts.Quantity | None, ESSENTIAL] = None
    """GPU memory that a pod uses on each of its GPUs, such as `12Gi`: as `nvidia-smi` shows it, with what CUDA itself
    takes in each process.
    """
    compute: Annotated[Share | None, ESSENTIAL] = None
    """The part of a GPU's compute that a pod needs, such as `0.25` or `25%`. Absent: any part will do."""
    compute_of: Annotated[GpuModel | None, Words("model of that GPU"), ESSENTIAL] = None
    """The GPU model of which that is a part. Pods then get this model alone, unless `models` names those on which the
    same part is enough, too.
    """
    gpus: Annotated[Annotated[int, Field(ge=1, le=1024)] | None, Words("GPUs"), ESSENTIAL] = None
    """The number of whole GPUs that each pod needs. Absent: a part of one is enough."""
    isolation: Annotated[DemandedIsolation | None, Field(strict=False), ESSENTIAL] = None
    """The weakest that will do: `hardware` (a MIG partition), `mps` (its memory is limited by CUDA MPS), `none` (GPUs
    may be shared in turns) or `wholeGpu`. Default `hardware`; `wholeGpu` with `gpus`.
    """
    engines: Annotated[MediaEngines | None, ESSENTIAL] = None
    """Media engines that a pod needs."""
    models: Annotated[list[GpuModel], Words("GPU models"), ESSENTIAL] = Field(default_factory=list)
    """The GPU models that will do. Absent: all."""
    growth: Annotated[Growth | None, ESSENTIAL] = None
    """The growth to plan for: `20%` more than today, or a factor such as `1.2`. Absent: as the document has it."""
    burst: Annotated[Positive | None, ESSENTIAL] = None
    """The number of pods that run at once at the worst time. There is then room for so many in place of `pods`: leave
    it out where a burst may wait, or borrow what others leave idle.
    """

    _one_amount = exactly_one("pods", "service", "what a team asks for")


class DemandSpec(Model):
    """The needs of teams."""

    growth: Annotated[Growth | None, ESSENTIAL] = None
    """The growth to plan for in all needs that say none: `20%` more than today, or a factor such as `1.2`."""
    needs: Annotated[list[DemandedWork], Field(min_length=1), INDEPENDENT]
    """The needs of each team."""


class Demand(Document):
    """The needs of teams: pods that run at once, and what each needs. It is given to `gpuplan pack`."""

    kind: Literal["Demand"]
    """Always `Demand`."""
    metadata: Annotated[Metadata, names.Titled(names.DEMAND)]
    """The document's name, which nothing refers to."""
    spec: DemandSpec
    """The demand."""
