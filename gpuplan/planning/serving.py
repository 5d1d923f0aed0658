"""What a service listens on and how it is asked whether it is well."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from gpuplan.policy.models import Autoscaling, Batch, Inference, Probe, Workspace

MAIN_PORT: Final = "http"
"""What the port is called that a service has anyway."""


def ports_of(work: Inference) -> Mapping[str, int]:
    """All ports by their names; none where nothing listens."""
    return {} if work.port == "none" else {MAIN_PORT: work.port, **work.ports}


def is_called(work: Inference | Batch | Workspace) -> bool:
    """Whether a Service with the workload's own name leads to its pods."""
    return isinstance(work, Workspace) or (isinstance(work, Inference) and bool(ports_of(work)))


def probe_of(work: Inference) -> Probe | Literal["tcp", "grpc", "none"]:
    """What is asked of the container, also where the policy does not say it."""
    if work.probe is not None:
        return work.probe
    return "none" if work.port == "none" else "tcp"


GPU_METRIC: Final = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
"""The part of the time that a GPU or a MIG device computes, from 0 to 1: NVIDIA's exporter has no other for both."""


def metric_of(scaling: Autoscaling) -> str:
    """The metric of pods that an autoscaler asks for; empty where it needs none but the cluster's own."""
    if scaling.requests_per_second is not None:
        return scaling.metric or "http_requests_per_second"
    if scaling.waiting_requests is not None:
        # `vllm:num_requests_waiting` in `vllm/v1/metrics/loggers.py` of vllm-project/vllm.
        return scaling.metric or "vllm:num_requests_waiting"
    return GPU_METRIC if scaling.gpu_percent is not None else ""
