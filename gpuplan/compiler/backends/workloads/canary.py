"""A canary: a few pods of a service that run something else, which get a part of its requests."""

from __future__ import annotations

from typing import Any

from gpuplan.compiler.backends.workloads.tracing import Traces
from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.manifests.provenance import Routes, chosen
from gpuplan.compiler.planning.plan import WORKLOAD_LABEL, Workload
from gpuplan.compiler.planning.serving import canary_name
from gpuplan.compiler.policy.models import Canary, Inference, Reach


def variant(workload: Workload, work: Inference, canary: Canary) -> Workload:
    """The workload as it would be if its pods were those of the canary.

    Its name is the service's, as are the volume and the files that all pods mount.
    """
    reach = Reach.model_construct(port=work.service.port)
    other = {"replicas": canary.replicas, "autoscaling": None, "canary": None, "service": reach}
    said = {name: value for name in ("image", "command", "args") if (value := getattr(canary, name)) is not None}
    spec = {**said, "env": {**workload.spec.env, **canary.env}, "inference": work.model_copy(update=other)}
    return workload._replace(spec=workload.spec.model_copy(update=spec))


def as_canary(workload: Workload, body: dict[str, Any]) -> dict[str, Any]:
    """An object of the variant by the canary's name, and its pods by a label that no other pods have.

    The service's own label would make them pods of the other Deployment to an autoscaler, and of the other Service,
    whatever the weights say.
    """
    name, spec = canary_name(workload.name), dict(body["spec"])
    own = {WORKLOAD_LABEL: name}
    if "template" in spec:
        metadata = spec["template"]["metadata"]
        spec["template"] = {**spec["template"], "metadata": {**metadata, "labels": {**metadata["labels"], **own}}}
        spec["selector"] = {"matchLabels": own}
    else:
        spec["selector"] = own
    return {**body, "metadata": {**body["metadata"], "name": name}, "spec": spec}


# --- Where it comes from -------------------------------------------------------------------------------------------


def as_canary_routes(of: Traces, canary: Canary, found: Routes) -> Routes:
    """What the variant comes from, with what the canary says in the place of what the workload does."""
    yield (), chosen(of.workload.work_at / "canary")
    for route, links in found:
        yield route, tuple(link._replace(at=_moved(of.workload, canary, link.at)) for link in links)


def _moved(workload: Workload, canary: Canary, at: Origin) -> Origin:
    own = workload.at.path
    if at.source != workload.at.source or at.path[: len(own)] != own:
        return at
    rest = at.path[len(own) :]
    match rest:
        case ("image" | "command" | "args" as field, *_) if getattr(canary, field) is not None:
            moved = rest
        case ("env", str(name), *_) if name in canary.env:
            moved = rest
        case ("inference", "replicas"):
            moved = ("replicas",)
        case _:
            return at
    return Origin(at.source, (*(workload.work_at / "canary").path, *moved))
