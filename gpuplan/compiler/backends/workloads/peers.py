"""The variables by which the pods of a training find one another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from gpuplan.compiler.backends.workloads.pods import Variable
from gpuplan.compiler.backends.workloads.tracing import NO_VARIABLES, Several, Traces
from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.manifests.provenance import Links, Routes, chosen, copied
from gpuplan.compiler.planning.plan import Isolation, Workload
from gpuplan.compiler.planning.sources import asked_by
from gpuplan.compiler.policy.models import Batch

_INDEX: Final = {"fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}
"""Which pod of its Job it is; `$(JOB_COMPLETION_INDEX)` is that of no other variable, for the controller adds it last
(`addCompletionIndexEnvVariable` in `pkg/controller/job/indexed_job_utils.go` of kubernetes/kubernetes)."""


def meeting_point(workload: Workload, batch: Batch, first: str) -> dict[str, Variable]:
    """The variables of a pod that finds others; ``first`` is the name by which it finds the first one.

    torchrun reads those that begin with `PET_` in place of its arguments (`torch/distributed/argparse_util.py` of
    PyTorch), and sets the other four for each process that it starts. A program that is started without it reads them
    as they are: it is one process in each pod.

    Where pods come and go, they meet at a store that the first one keeps (`c10d_rendezvous_backend.py` in
    `torch/distributed/elastic/rendezvous`), and ranks are what they agree on. A pod that leaves makes the processes of
    the others fail, which torchrun starts again so many times. For the first one itself they wait as long as the
    `read_timeout` of the store says, which is a minute where nobody says it; after that they have failed.
    """
    if workload.peers is None:
        return {}
    port, pods = str(workload.peers.port), str(batch.pods)
    processes = {"PET_NPROC_PER_NODE": str(_processes(workload))}
    if workload.elastic:
        return {
            "PET_NNODES": f"{workload.elastic.min_pods}:{pods}",
            "PET_RDZV_BACKEND": "c10d",
            "PET_RDZV_ENDPOINT": f"{first}:{port}",
            "PET_RDZV_ID": first,
            "PET_RDZV_CONF": f"read_timeout={_PATIENCE}",
            "PET_MAX_RESTARTS": str(batch.backoff_limit),
            **processes,
        }
    return {
        "MASTER_ADDR": first,
        "MASTER_PORT": port,
        "WORLD_SIZE": pods,
        "RANK": _INDEX,
        "PET_MASTER_ADDR": first,
        "PET_MASTER_PORT": port,
        "PET_NNODES": pods,
        "PET_NODE_RANK": _INDEX,
        **processes,
    }


_PATIENCE: Final = 600
"""Seconds: the first pod may be the last one to have its node and its image."""


def _processes(workload: Workload) -> int:
    """One for each GPU of a pod. Of several MIG devices a process of CUDA sees the first one only."""
    is_whole = workload.unit.isolation is Isolation.WHOLE_GPU and workload.fraction is None
    return workload.spec.count if is_whole else 1


# --- Where it comes from -------------------------------------------------------------------------------------------


def meeting_variables(of: Traces, batch: Batch) -> Mapping[str, Several]:
    """Where each variable comes from; where the first pod is follows from all that the object is."""
    if of.workload.peers is None:
        return NO_VARIABLES
    at = of.workload.work_at
    peers = chosen(at / "peers", at / "elastic")
    return {name: [((), peers), (("value",), _LINKS[name](of))] for name in meeting_point(of.workload, batch, "")}


def meeting_names(of: Traces, batch: Batch, env: Path, name: Links) -> Routes:
    """The variables that say where the first pod is, in the container's ``env``; ``name`` is what its name follows."""
    for index, variable in enumerate(of.variables(meeting_point(of.workload, batch, ""))):
        if variable in _FIRST and variable not in of.workload.spec.env:
            own = _LINKS[variable](of)
            yield (*env, index, "value"), (*name, *own)


def _port_from(of: Traces) -> Links:
    return copied(of.workload.work_at / "peers" / "port")


def _pods_from(of: Traces) -> Links:
    return copied(of.workload.work_at / "pods")


def _range_from(of: Traces) -> Links:
    fewest = copied(of.workload.work_at / "elastic" / "minPods") if of.workload.elastic else ()
    return (*_pods_from(of), *fewest)


def _restarts_from(of: Traces) -> Links:
    return copied(of.workload.work_at / "backoffLimit")


def _processes_from(of: Traces) -> Links:
    return (*copied(of.workload.at / "count"), *asked_by(of.plan, of.workload))


_LINKS: Final[Mapping[str, Callable[[Traces], Links]]] = {
    "MASTER_ADDR": lambda _: (),
    "MASTER_PORT": _port_from,
    "WORLD_SIZE": _pods_from,
    "RANK": lambda _: (),
    "PET_MASTER_ADDR": lambda _: (),
    "PET_MASTER_PORT": _port_from,
    "PET_NNODES": _range_from,
    "PET_RDZV_BACKEND": lambda _: (),
    "PET_RDZV_ENDPOINT": _port_from,
    "PET_RDZV_ID": lambda _: (),
    "PET_RDZV_CONF": lambda _: (),
    "PET_MAX_RESTARTS": _restarts_from,
    "PET_NODE_RANK": lambda _: (),
    "PET_NPROC_PER_NODE": _processes_from,
}

_FIRST: Final = ("MASTER_ADDR", "PET_MASTER_ADDR", "PET_RDZV_ENDPOINT", "PET_RDZV_ID")
