"""Jobs, JobSets and TrainJobs as training, batch or a workspace."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from gpuplan.compiler.backends.workloads.bodies import GANG, KAI_PREFERRED, KAI_REQUIRED
from gpuplan.compiler.base.plain import inside, mapping, sequence, text, value_at
from gpuplan.compiler.planning.kueue import PREFERRED_TOPOLOGY, REQUIRED_TOPOLOGY
from gpuplan.compiler.planning.plan import Plan, Tenant
from gpuplan.compiler.planning.workspaces import SETTINGS
from gpuplan.compiler.policy.models import TrainingKind
from gpuplan.features.live.dump import Item
from gpuplan.features.live.work.pods import (
    JOB,
    MAKERS,
    SERVICE,
    TRAINING_RUNTIME,
    Group,
    duration,
    files,
    find_pool,
    given,
    kind_of,
    main_container,
    named,
    number,
    template_of,
    variables_of,
    volume,
)

Spec = dict[str, Any]


def ending(plan: Plan, group: Group, tenant: Tenant, maker: Item) -> Iterator[Spec]:
    """Yield what the work may be, the likeliest first."""
    if kind_of(maker) == JOB and (workspace := _workspace(group, maker)):
        yield {"workspace": workspace}
        return
    route = MAKERS[kind_of(maker)][:-1]
    job = mapping(value_at(maker.body, route))
    set_of_jobs = route[:-_BELOW_SET]  # says how often all of it starts again
    retries = None if kind_of(maker) == JOB else value_at(maker.body, (*set_of_jobs, "failurePolicy", "maxRestarts"))
    pods, completions = number(job.get("parallelism")), number(job.get("completions"))
    rules = [mapping(rule) for rule in sequence(inside(job, "podFailurePolicy").get("rules"))]
    codes = next((rule for rule in rules if "onExitCodes" in rule), {})
    batch = given(
        pods=pods,
        trials=completions if completions != pods or codes.get("action") == "FailIndex" else None,
        maxFailedIndexes=job.get("maxFailedIndexes"),
        fatalExitCodes=list(sequence(inside(codes, "onExitCodes").get("values"))),
        deadline=duration(job.get("activeDeadlineSeconds")),
    )
    kind = _KINDS.get(maker.kind)
    training = _meeting(group, maker, job)
    # Pods that need nothing of one another are written alike, whether they are called a training there or not.
    pool = find_pool(plan, template_of(maker))
    types = tenant.spec.workload_types or (pool.spec.workload_types if pool else ())
    is_training = training or kind_of(maker) != JOB or ("batch" not in types and "training" in types)
    for tries in _tries(job, retries, training):
        base = {**batch, **tries}
        if is_training:
            yield {"training": given(kind=kind and kind.value) | base | training}
        else:
            yield {"batch": base}


_BELOW_SET: Final = len(("replicatedJobs", 0, "template", "spec"))
"""The depth of a Job in a set."""

_KINDS: Final = {"JobSet": TrainingKind.JOB_SET, "TrainingRuntime": TrainingKind.TRAIN_JOB}


def _tries(job: Mapping[str, object], retries: object, training: Spec) -> Iterator[Spec]:
    """Yield the limits on retries that the policy may have: an elastic training writes its limit for each pod, too."""
    if retries is not None:
        yield {"backoffLimit": retries}
        return
    all_of_them, each = job.get("backoffLimit"), job.get("backoffLimitPerIndex")
    if each is not None and "elastic" in training:
        yield {"backoffLimit": each}
    found = {"backoffLimit": all_of_them, "backoffLimitPerIndex": each}
    yield {key: value for key, value in found.items() if value is not None}
    if each is not None:  # the API server adds the limit for all of them
        yield {"backoffLimitPerIndex": each}


# --- Pods that need one another -------------------------------------------------------------------------------------


def _meeting(group: Group, maker: Item, job: Mapping[str, object]) -> Spec:
    """Return the fields that only a training has."""
    template = template_of(maker)
    container = main_container(template)
    variables = variables_of(container)
    least, is_range, _ = str(variables.get("PET_NNODES", "")).partition(":")
    is_elastic = bool(inside(job, "successPolicy")) and bool(is_range)
    around = annotations_of(maker)
    gang = number(around.get(GANG))
    fewest = number(least) if is_elastic else None
    # They meet at the port of a Service with the Job's name, or where their variables say.
    service, endpoint = group.find(SERVICE, maker.name), str(variables.get("PET_RDZV_ENDPOINT", ""))
    at = value_at(service.body, ("spec", "ports", 0, "port")) if service else None
    ports = map(number, (at, variables.get("MASTER_PORT"), endpoint.rpartition(":")[2]))
    port = next(filter(None, ports), None)
    return given(
        gang=None if gang == fewest else gang,
        topology=topology(inside(template, "metadata", "annotations"), around),
        checkpoint=volume(group, container, "checkpoint"),
    ) | {**({"peers": {"port": port}} if port else {}), **({"elastic": {"minPods": fewest}} if fewest else {})}


def annotations_of(maker: Item) -> Mapping[str, object]:
    """Return the annotations of a maker; a TrainingRuntime has them at the template of its JobSet."""
    own = inside(maker.body, "spec", "template") if kind_of(maker) == TRAINING_RUNTIME else maker.body
    return inside(own, "metadata", "annotations")


def topology(*annotations: Mapping[str, object]) -> Spec | None:
    """Return the level that pods share."""
    for found in annotations:
        for field, keys in _PLACEMENTS.items():
            for key in keys:
                if isinstance(level := found.get(key), str):
                    return {field: level}
    return None


_PLACEMENTS: Final = {"required": (REQUIRED_TOPOLOGY, KAI_REQUIRED), "preferred": (PREFERRED_TOPOLOGY, KAI_PREFERRED)}


# --- Workspaces ------------------------------------------------------------------------------------------------------

_PORT: Final = "workspace"


def _workspace(group: Group, maker: Item) -> Spec:
    """Return the fields of a workspace, or nothing if the Job has no port of one and no Service."""
    template = template_of(maker)
    container = main_container(template)
    port = number(named(sequence(container.get("ports")), _PORT).get("containerPort"))
    if not port or group.find(SERVICE, group.name) is None:
        return {}
    try:
        settings = mapping(json.loads(text(files(group, template).get(SETTINGS))))
    except (ValueError, RecursionError):
        settings = {}
    storage = volume(group, container, "storage")
    writers = number(inside(template, "spec", "securityContext").get("fsGroup"))
    return given(
        port=port,
        idle=duration(inside(settings, "ServerApp").get("shutdown_no_activity_timeout")),
        runTime=duration(inside(maker.body, "spec").get("activeDeadlineSeconds")),
        storage=storage and {**storage, **given(group=writers)},
    )
