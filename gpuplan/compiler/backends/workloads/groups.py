"""Services that run several pods for each replica: a leader and its workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gpuplan.compiler.backends.workloads.bodies import MAIN, labels_of, terms_of, workload_object
from gpuplan.compiler.backends.workloads.pods import pod_template
from gpuplan.compiler.backends.workloads.tracing import Several, Traces
from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.manifests.bodies import digest, given
from gpuplan.compiler.manifests.provenance import Links, Routes, below, chosen, copied
from gpuplan.compiler.planning.plan import TENANT_LABEL, Plan, Workload
from gpuplan.compiler.planning.sources import named, scheduler_of
from gpuplan.compiler.policy.models import Inference

API: Final = "leaderworkerset.x-k8s.io/v1"
KIND: Final = "LeaderWorkerSet"

LEADERS: Final = {"leaderworkerset.sigs.k8s.io/worker-index": "0"}
"""The label by which leaders are told from workers: requests are for leaders alone."""

_TEMPLATES: Final = ("spec", "leaderWorkerTemplate")
_LEADER: Final = (*_TEMPLATES, "leaderTemplate")
_WORKER: Final = (*_TEMPLATES, "workerTemplate")

_ROLLOUT: Final = {"type": "RollingUpdate", "rollingUpdateConfiguration": {"maxUnavailable": 1, "maxSurge": 0}}
"""New pods get the units of old ones, a replica at a time. One more than the policy counts would wait for ever."""


def group_set(plan: Plan, workload: Workload, work: Inference, container: Mapping[str, Any]) -> dict[str, Any]:
    """Return so many replicas, each of which comes and goes as a whole.

    ``container`` is what only containers have that listen.

    The pods of a replica come together (`LeaderCreated`): with `LeaderReady` KAI-Scheduler would let a leader start
    alone (`calcLeaderReadyMinAvailable` in `pkg/podgrouper/podgrouper/plugins/leaderworkerset/lws_grouper.go` there),
    and a leader that waits for its workers is never ready. Where one pod of a replica is restarted, all are: the others
    wait for what it no longer knows.

    Each replica has a headless Service of its own, named as its leader. One for all would have the set's name, which is
    that of the Service beside it: the controller takes what is there for its own (`CreateHeadlessServiceIfNotExists` in
    `pkg/utils/controller/controller_utils.go` of kubernetes-sigs/lws).
    """
    asked = terms_of(plan, workload)
    worker = pod_template(plan, workload, asked, {}, {}, dict(asked.env))
    if work.worker:  # its program is another one; nobody asks workers whether they are well
        program = given(command=list(work.worker.command or workload.spec.command), args=list(work.worker.args))
        containers = []
        for each in worker["spec"]["containers"]:
            rest = {key: value for key, value in each.items() if key not in ("command", "args")}
            is_main = each["name"] == MAIN
            containers.append({"name": MAIN, "image": each["image"], **program, **rest} if is_main else each)
        worker["spec"]["containers"] = containers
    templates = {
        "restartPolicy": "RecreateGroupOnPodRestart",
        "leaderTemplate": pod_template(plan, workload, asked, {}, container, dict(asked.env)),
        "workerTemplate": worker,
    }
    spec = {
        **({} if work.autoscaling else {"replicas": work.replicas}),
        "startupPolicy": "LeaderCreated",
        "rolloutStrategy": _ROLLOUT,
        "networkConfig": {"subdomainPolicy": "UniquePerReplica"},
        "leaderWorkerTemplate": {"size": work.pods_per_replica, **templates},
    }
    name = group_set_name(plan, workload, work, container)
    return workload_object(API, KIND, name, workload, asked.labels, asked.annotations, spec=spec)


# --- Names -------------------------------------------------------------------------------------------------------

_LONGEST: Final = 52
"""The length that the name of a StatefulSet may have: with a hash behind it, it is a label of its pods."""

_INDEX: Final = "-999"
"""The part of the name of a replica's workers' StatefulSet beside that of the set."""


def group_set_name(plan: Plan, workload: Workload, work: Inference, container: Mapping[str, Any]) -> str:
    """Return the workload's name, with a digest if it is too long, or of what Kueue counts if that must not change.

    Kueue refuses another size, and pods that are counted otherwise (`ValidateUpdate` in
    `pkg/controller/jobs/leaderworkerset/leaderworkerset_webhook.go` there), while Argo CD and Flux would go on trying.
    So a set that is counted otherwise is another one: it waits for the quota that the old one gives back when it goes.
    """
    room = _LONGEST - len(_INDEX)
    if not plan.scheduler.suspends_jobs and len(workload.name) <= room:
        return workload.name
    content = _counted(plan, workload, work, container) if plan.scheduler.suspends_jobs else {"name": workload.name}
    suffix = f"-{digest(content)}"
    return f"{workload.name[: room - len(suffix)].rstrip('-')}{suffix}"


_PLACING: Final = (
    "nodeSelector",
    "affinity",
    "tolerations",
    "resourceClaims",
    "resources",
    "runtimeClassName",
    "topologySpreadConstraints",
    "overhead",
)
_CONTAINERS: Final = ("initContainers", "containers")
_ASKING: Final = ("resources", "ports")


def _counted(plan: Plan, workload: Workload, work: Inference, container: Mapping[str, Any]) -> dict[str, Any]:
    """Return what Kueue lets nobody change, or does not look at once more.

    That is the queue and its class, the size, the topology, and of pods what they ask for and where they may go
    (`SpecShape` in `pkg/util/pod/pod.go` there).
    """
    asked = terms_of(plan, workload)
    pod = pod_template(plan, workload, asked, {}, container, {})["spec"]
    return {
        "labels": {**labels_of(workload), **asked.labels},
        "size": work.pods_per_replica,
        "topology": dict(asked.pod_annotations),
        "pod": {field: pod[field] for field in _PLACING if field in pod},
        **{
            kind: [{field: each[field] for field in _ASKING if field in each} for each in pod[kind]]
            for kind in _CONTAINERS
            if kind in pod
        },
    }


# --- Where it comes from -------------------------------------------------------------------------------------------


def routes(of: Traces, work: Inference, listening: Several) -> Routes:
    """Yield the routes of a set; ``listening`` is about what only containers have that listen."""
    at, asked = of.workload.work_at, terms_of(of.plan, of.workload)
    yield (), chosen(at / "podsPerReplica")
    yield from of.metadata(name_from(of, listening))
    yield from of.asked(asked.labels, asked.annotations)
    yield ("spec", "replicas"), copied(at / "replicas")
    yield (*_TEMPLATES, "size"), copied(at / "podsPerReplica")
    yield from below(_LEADER, of.pod(listening))
    yield from below(_WORKER, _worker_routes(of, work))


def _worker_routes(of: Traces, work: Inference) -> Routes:
    worker, at = work.worker, of.workload.work_at / "worker"
    main = ("spec", "containers", 0)
    if worker is None:
        yield from of.pod()
        return
    own = ("args", *(("command",) if worker.command else ()))
    for route, links in of.pod():
        if not (route[:3] == main and route[3:4] and route[3] in own):
            yield route, links
    for field, texts in (("command", worker.command), ("args", worker.args)):
        for index in range(len(texts)):
            yield (*main, field, index), copied(at / field / index)


def name_from(of: Traces, listening: Several) -> Links:
    """Return where the name of a set comes from, that of others included which name it."""
    scheduler = scheduler_of(of.plan)
    if not of.plan.scheduler.suspends_jobs:
        return (*named(of.workload), *scheduler)
    return (*of.content_name([*_counted_routes(of, listening)]), *scheduler)


def _counted_routes(of: Traces, listening: Several) -> Iterator[tuple[Path, Links]]:
    asked = terms_of(of.plan, of.workload)
    yield ("size",), copied(of.workload.work_at / "podsPerReplica")
    yield ("labels", TENANT_LABEL), of.tenant()
    yield from of.asked(asked.labels, asked.pod_annotations)
    for route, links in of.pod(listening):
        if route[:1] == ("spec",) and (
            route[1] in _PLACING or (route[1] == "containers" and route[3:4] and route[3] in _ASKING)
        ):
            yield route, links
