"""The back end of the stage `workloads`: what teams run, one folder for each namespace."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from math import ceil
from typing import Any, Final, assert_never

from gpuplan.diagnostics import Origin, Path
from gpuplan.manifests import Manifest, Subject, quantity
from gpuplan.manifests.bodies import digest, given, new_object
from gpuplan.manifests.provenance import ANY, Links, Routes, Trace, below, chosen, copied, hashed, multiplied
from gpuplan.planning.amounts import counted_pools
from gpuplan.planning.dra import device_class_name
from gpuplan.planning.fallbacks import deciding, reach
from gpuplan.planning.grants import GRACE_SECONDS, most_grace_seconds
from gpuplan.planning.kai import queue_name
from gpuplan.planning.kueue import ANY_TOPOLOGY, DEFAULT_QUEUE, PREFERRED_TOPOLOGY, REQUIRED_TOPOLOGY
from gpuplan.planning.plan import (
    POOL_LABEL,
    TENANT_LABEL,
    WORKLOAD_LABEL,
    Isolation,
    Plan,
    Pool,
    Stage,
    Tenant,
    Workload,
)
from gpuplan.planning.preemption import preemptibility
from gpuplan.planning.projects import seconds
from gpuplan.planning.schedulers import kai, kueue, runai
from gpuplan.planning.serving import MAIN_PORT, metric_of, ports_of, probe_of
from gpuplan.planning.sources import asked_by, counted_in, named, namespace_of, scheduler_of, tolerations_of
from gpuplan.planning.subjects import about
from gpuplan.policy.models import (
    Allocation,
    Autoscaling,
    ConfigMapKey,
    Download,
    Inference,
    ModelVolume,
    PartOfGpu,
    Peers,
    PodSecurity,
    Probe,
    SchedulerKind,
    SecretKey,
    ServiceType,
    Training,
    ValueFrom,
)
from gpuplan.values import NamedTuple

_BEFORE, _AFTER = 0, 1
"""What pods need, and what runs them. Whoever waits until what comes first is healthy waits for downloads and for no
service or training. A volume without a download may wait for its first pod, so it comes with the pods."""


def render(plan: Plan) -> Iterator[Manifest]:
    """The objects of all workloads."""
    for workload in plan.workloads:
        folder = f"{Stage.WORKLOADS}/{workload.namespace}"
        subjects = (*about(workload), *_classes(plan, workload), *_fallbacks(plan, workload))
        for order, body, trace in _objects(plan, workload):
            yield Manifest(folder, body, order=order, about=subjects, trace=trace)


def _classes(plan: Plan, workload: Workload) -> tuple[Subject, ...]:
    """The class, where a label of the work says whether it may be evicted."""
    named = workload.priority_class
    return about(named) if plan.scheduler.labels_preemptible and named is not None else ()


def _fallbacks(plan: Plan, workload: Workload) -> tuple[Subject, ...]:
    """What decides where the work may go beside its own pool, where it may."""
    pools = reach(plan, workload)
    return about(*pools, workload.tenant) if len(pools) > 1 else ()


def _objects(plan: Plan, workload: Workload) -> Iterator[tuple[int, dict[str, Any], Trace]]:
    of = _Traces(plan, workload)
    if workload.spec.config:
        name, data = _config_name(workload), dict(workload.spec.config)
        yield _BEFORE, _workload_object("v1", "ConfigMap", name, workload, immutable=True, data=data), of.config
    if model := workload.spec.model:
        yield _BEFORE if model.download else _AFTER, _claim(workload, model), of.claim
        if model.download:
            yield _BEFORE, _download_job(plan, workload, model.download), of.download_job
    if isinstance(workload.work, Inference):
        yield _AFTER, _deployment(plan, workload, workload.work), of.deployment
        if ports_of(workload.work):
            yield _AFTER, _service(workload, workload.work), of.service
        if workload.work.autoscaling:
            yield _AFTER, _autoscaler(workload, workload.work.autoscaling), of.autoscaler
    else:
        job = _job(plan, workload, workload.work)
        if workload.work.peers:
            yield _BEFORE, _meeting(workload, workload.work.peers, job["metadata"]["name"]), of.meeting
        yield _AFTER, job, of.job


# --- Services ----------------------------------------------------------------------------------------------------

_STRATEGY: Final = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
"""A new pod gets the units of an old one. One more than the policy counts would wait for units that may never come."""


def _deployment(plan: Plan, workload: Workload, inference: Inference) -> dict[str, Any]:
    """The pods. Their number is not stated where it follows the load: whoever restores what is in Git would undo it."""
    asked = _terms(plan, workload)
    container = given(
        ports=[{"name": name, "containerPort": port} for name, port in ports_of(inference).items()],
        startupProbe=_startup_probe(inference),
        # Until then it may still be loading the model.
        readinessProbe=_probe(inference),
    )
    spec = {
        **({} if inference.autoscaling else {"replicas": inference.replicas}),
        "selector": {"matchLabels": _selector(workload)},
        "strategy": _STRATEGY,
        **({"progressDeadlineSeconds": _progress_deadline(inference.startup)} if inference.startup else {}),
        "template": _pod_template(plan, workload, asked, {}, container, dict(asked.env)),
    }
    return _workload_object("apps/v1", "Deployment", workload.name, workload, asked, spec=spec)


_PERIOD: Final = 10
"""Seconds from one probe to the next, as Kubernetes has them by itself."""

_BEFORE_START: Final = 600
"""Seconds that a Deployment may be without progress by itself: pods wait for their node and their image as well."""


def _probe(inference: Inference) -> dict[str, Any]:
    ports, probe = ports_of(inference), probe_of(inference)
    match probe:
        case "none":
            return {}
        case "tcp":
            return {"tcpSocket": {"port": MAIN_PORT}}
        case "grpc":
            return {"grpc": {"port": ports.get(MAIN_PORT)}}
        case Probe():
            timeout = {"timeoutSeconds": max(seconds(probe.timeout), 1)} if probe.timeout else {}
            return {**_asked(probe, ports), **timeout}
        case unknown:
            assert_never(unknown)


def _asked(probe: Probe, ports: Mapping[str, int]) -> dict[str, Any]:
    """Kubernetes finds a port by its name for HTTP, and for gRPC by its number alone."""
    if probe.command is not None:
        return {"exec": {"command": list(probe.command)}}
    name = probe.port or MAIN_PORT
    if probe.http is not None:
        return {"httpGet": {"path": probe.http, "port": name}}
    return {"grpc": {"port": ports.get(name), "service": probe.grpc}}


def _startup_probe(inference: Inference) -> dict[str, Any]:
    """The same until it is answered once; whoever does not answer in time is ended and started again."""
    probe = _probe(inference)
    if inference.startup is None or not probe:
        return {}
    return {**probe, "periodSeconds": _PERIOD, "failureThreshold": max(ceil(seconds(inference.startup) / _PERIOD), 1)}


def _progress_deadline(startup: str) -> int:
    """A Deployment whose pods take longer counts as failed, and Argo CD and Flux say so of the sync."""
    return seconds(startup) + _BEFORE_START


def _service(workload: Workload, inference: Inference) -> dict[str, Any]:
    """The Service; its type is not stated where it is what every Service is."""
    (_, port), *others = ports_of(inference).items()
    reach = inference.service
    main = {"name": MAIN_PORT, "port": reach.port or port, "targetPort": MAIN_PORT}
    spec = {
        **given(type=None if reach.type is ServiceType.CLUSTER_IP else reach.type.value),
        "selector": _selector(workload),
        "ports": [
            {**main, **given(nodePort=reach.node_port)},
            *({"name": name, "port": number, "targetPort": name} for name, number in others),
        ],
    }
    return _workload_object("v1", "Service", workload.name, workload, spec=spec)


def _has_own_port(workload: Workload) -> bool:
    return isinstance(workload.work, Inference) and workload.work.service.port is not None


def _selector(workload: Workload) -> dict[str, str]:
    """It can never be changed, so it is what never changes; no other pods of the namespace have the label."""
    return {WORKLOAD_LABEL: workload.name}


def _autoscaler(workload: Workload, scaling: Autoscaling) -> dict[str, Any]:
    """So many pods that each has at most its part of the load; metrics of pods come from an adapter."""
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": workload.name},
        "minReplicas": scaling.min_replicas,
        "maxReplicas": scaling.max_replicas,
        "metrics": [_load(scaling)],
    }
    return _workload_object("autoscaling/v2", "HorizontalPodAutoscaler", workload.name, workload, spec=spec)


def _load(scaling: Autoscaling) -> dict[str, Any]:
    if scaling.cpu_percent is not None:
        target = {"type": "Utilization", "averageUtilization": scaling.cpu_percent}
        return {"type": "Resource", "resource": {"name": "cpu", "target": target}}
    each = scaling.requests_per_second or scaling.waiting_requests or Decimal(scaling.gpu_percent or 0) / 100
    target = {"type": "AverageValue", "averageValue": quantity(each)}
    return {"type": "Pods", "pods": {"metric": {"name": metric_of(scaling)}, "target": target}}


# --- Work that ends ----------------------------------------------------------------------------------------------

_EVICTED: Final = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
"""A pod that has to make way, for another or for a node's maintenance, has not failed."""


def _job(plan: Plan, workload: Workload, training: Training) -> dict[str, Any]:
    """So many pods at once, each with a number of its own (`JOB_COMPLETION_INDEX`) and once to its end.

    It stays when it has ended: were it deleted after a time, it would be missed and run again. Kueue takes no Job in
    that runs already (`ValidateJobOnUpdate` in `pkg/controller/jobframework/validation.go` there), so that the labels
    are part of what the Job is.
    """
    asked = _terms(plan, workload)
    content = {"labels": asked.labels, "spec": _job_spec(plan, workload, training, "")}
    name = _job_name(workload.name, content, training.completions)
    spec = _job_spec(plan, workload, training, name)
    return _workload_object("batch/v1", "Job", name, workload, asked, spec=spec)


def _job_spec(plan: Plan, workload: Workload, training: Training, name: str) -> dict[str, Any]:
    """What the Job is; ``name`` is its own, which its pods know where they find one another."""
    asked = _terms(plan, workload)
    pod = given(restartPolicy="Never", subdomain=name if training.peers else None)
    variables = {**asked.env, **_meeting_point(workload, training, name)}
    return {
        "parallelism": training.pods,
        "completions": training.completions,
        "completionMode": "Indexed",
        **_tries(training),
        **({"activeDeadlineSeconds": seconds(training.deadline)} if training.deadline else {}),
        "podFailurePolicy": {"rules": [_EVICTED, *_fatal(training)]},
        "template": _pod_template(plan, workload, asked, pod, {}, variables),
    }


def _tries(training: Training) -> dict[str, int]:
    """How often pods come again. Where each has tries of its own, they have none in common, unless somebody says so."""
    each = training.backoff_limit_per_index
    if each is None:
        return {"backoffLimit": training.backoff_limit}
    common = {"backoffLimit": training.backoff_limit} if "backoff_limit" in training.model_fields_set else {}
    most = 0 if training.max_failed_indexes is None and training.peers else training.max_failed_indexes
    return {**common, "backoffLimitPerIndex": each, **({} if most is None else {"maxFailedIndexes": most})}


def _fatal(training: Training) -> list[dict[str, Any]]:
    """What a program says that will not end otherwise a second time.

    The codes have to be in order, each once (`validatePodFailurePolicyRuleOnExitCodes` in
    `pkg/apis/batch/validation/validation.go` of kubernetes/kubernetes). `FailIndex` needs tries of each pod.
    """
    codes = sorted(set(training.fatal_exit_codes))
    if not codes:
        return []
    action = "FailIndex" if _fails_alone(training) else "FailJob"
    return [{"action": action, "onExitCodes": {"containerName": _MAIN, "operator": "In", "values": codes}}]


def _fails_alone(training: Training) -> bool:
    """Whether others go on when one pod has failed for good."""
    return training.trials is not None and training.backoff_limit_per_index is not None


# --- Pods that find one another ----------------------------------------------------------------------------------

_RENDEZVOUS: Final = "rendezvous"

_INDEX: Final = {"fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}
"""Which pod of its Job it is; `$(JOB_COMPLETION_INDEX)` is that of no other variable, for the controller adds it last
(`addCompletionIndexEnvVariable` in `pkg/controller/job/indexed_job_utils.go` of kubernetes/kubernetes)."""


def _meeting(workload: Workload, peers: Peers, job: str) -> dict[str, Any]:
    """A Service without an address of its own, so that the pod of an index is called `<job>-<index>.<job>`.

    It has the Job's name: no Service has to become another one when the Job does, and none is in the way where the
    workload was an inference service, whose address can never be taken away. Pods have their names before they are
    ready, since they look for one another as they start.
    """
    spec = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": _selector(workload),
        "ports": [{"name": _RENDEZVOUS, "port": peers.port}],
    }
    return _workload_object("v1", "Service", job, workload, spec=spec)


def _meeting_point(workload: Workload, training: Training, job: str) -> dict[str, Variable]:
    """The variables of a pod that finds others.

    torchrun reads those that begin with `PET_` in place of its arguments (`torch/distributed/argparse_util.py` of
    PyTorch), and sets the other four for each process that it starts. A program that is started without it reads them
    as they are: it is one process in each pod.
    """
    if training.peers is None:
        return {}
    first, port, pods = f"{job}-0.{job}", str(training.peers.port), str(training.pods)
    return {
        "MASTER_ADDR": first,
        "MASTER_PORT": port,
        "WORLD_SIZE": pods,
        "RANK": _INDEX,
        "PET_MASTER_ADDR": first,
        "PET_MASTER_PORT": port,
        "PET_NNODES": pods,
        "PET_NODE_RANK": _INDEX,
        "PET_NPROC_PER_NODE": str(_processes(workload)),
    }


def _processes(workload: Workload) -> int:
    """One for each GPU of a pod. Of several MIG devices a process of CUDA sees the first one only."""
    is_whole = workload.unit.isolation is Isolation.WHOLE_GPU and workload.fraction is None
    return workload.spec.count if is_whole else 1


# --- Models ------------------------------------------------------------------------------------------------------


def _claim(workload: Workload, model: ModelVolume) -> dict[str, Any]:
    """Of a claim only the size can be changed."""
    spec = given(
        accessModes=[model.access_mode],
        storageClassName=model.storage_class,
        resources={"requests": {"storage": model.size}},
    )
    return _workload_object("v1", "PersistentVolumeClaim", _claim_name(workload), workload, spec=spec)


def _download_job(plan: Plan, workload: Workload, download: Download) -> dict[str, Any]:
    """The Job, where the pods will be: a volume of one zone is made where its first pod runs.

    It is in the workload's own pool, also where the pods may go to others: it needs none of what that has run out of.
    It asks for no GPU and names no class, so that it takes nobody's place. Without the workload's label its pod is none
    of the Service's. Where the pool's CPU and memory are counted it goes through the workload's queue, with its class.
    """
    asked = _download_terms(plan, workload)
    priority = workload.priority_class if asked.scheduler else None
    container = given(
        name="download",
        image=download.image,
        command=list(download.command),
        args=list(download.args),
        env=_variables(download.env),
        securityContext=_container_security(workload.tenant),
        volumeMounts=_model_mount(workload, is_filled=False),
    )
    pod = {
        "restartPolicy": "OnFailure",
        **given(schedulerName=asked.scheduler, priorityClassName=priority.name if priority else None),
        **_within(workload.pool),
        **_pod_security(workload.tenant),
        **given(imagePullSecrets=_pull_secrets(workload)),
        "containers": [container],
        "volumes": _model_volume(workload),
    }
    labels = {TENANT_LABEL: workload.tenant.name, **asked.pod_labels}
    spec = {"template": {"metadata": {"labels": labels}, "spec": pod}}
    return _workload_object("batch/v1", "Job", _job_name(f"{workload.name}-download", spec), workload, spec=spec)


def _download_terms(plan: Plan, workload: Workload) -> _Terms:
    """What a scheduler with a queue of its own reads on pods; Kueue queues the Job by its webhook."""
    asked = _terms(plan, workload)
    return asked if asked.scheduler and workload.pool.name in counted_pools(plan) else _Terms()


# --- Names -------------------------------------------------------------------------------------------------------

_CONFIG_PATH: Final = "/etc/workload"

_LONGEST: Final = 63


def _workload_object(
    api_version: str, kind: str, name: str, workload: Workload, terms: _Terms | None = None, **body: object
) -> dict[str, Any]:
    """An object of a workload, with what its scheduler reads there."""
    asked = terms or _Terms()
    labels, annotations = {**_labels_of(workload), **asked.labels}, dict(asked.annotations)
    return new_object(api_version, kind, name, workload.namespace, labels=labels, annotations=annotations, **body)


def _labels_of(workload: Workload) -> dict[str, str]:
    return {TENANT_LABEL: workload.tenant.name, WORKLOAD_LABEL: workload.name}


def _claim_name(workload: Workload) -> str:
    return f"{workload.name}-model"


def _config_name(workload: Workload) -> str:
    return f"{workload.name}-{digest(workload.spec.config)}"


def _job_name(name: str, content: Mapping[str, Any], pods: int = 1) -> str:
    """The name, cut where need be, and a digest of what the Job is.

    A Job's pods cannot be changed, and pods do not look at a ConfigMap again after they have started. Both have names
    that change with their content, so that a change is a new object: Argo CD's other way, `Replace=true,Force=true`,
    deletes and creates again, and makes no difference to what runs (`docs/user-guide/sync-options.md` there).

    A pod's host name is that of its Job and its index, in at most 63 characters: the API server refuses a Job whose
    last pod would have a longer one (`ValidateJob` in `pkg/apis/batch/validation/validation.go` of
    kubernetes/kubernetes).
    """
    room = _LONGEST - len("-12345678") - len(f"-{max(pods - 1, 0)}")
    return f"{name[:room].rstrip('-')}-{digest(content)}"


# --- Pods --------------------------------------------------------------------------------------------------------


def _pod_template(
    plan: Plan,
    workload: Workload,
    terms: _Terms,
    spec: Mapping[str, Any],
    container: Mapping[str, Any],
    variables: Mapping[str, Variable],
) -> dict[str, Any]:
    """A pod with one container; ``spec``, ``container`` and ``variables`` are what only some workloads need."""
    metadata = given(labels={**_labels_of(workload), **terms.pod_labels}, annotations=dict(terms.pod_annotations))
    priority = workload.priority_class
    more = given(
        schedulerName=terms.scheduler,
        priorityClassName=priority.name if priority else None,
        **_placement(plan, workload),
        **_pod_security(workload.tenant),
        imagePullSecrets=_pull_secrets(workload),
        resourceClaims=_resource_claims(workload),
        containers=[_container(workload, container, variables)],
        volumes=[*_config_volume(workload), *_model_volume(workload)],
    )
    return {"metadata": metadata, "spec": {**spec, **_grace(plan, workload), **more}}


def _grace(plan: Plan, workload: Workload) -> dict[str, int]:
    """The time to end in, where pods may not have what the API server gives them."""
    most = most_grace_seconds(plan.cluster, workload.tenant)
    return {} if most is None or most >= GRACE_SECONDS else {"terminationGracePeriodSeconds": most}


def _placement(plan: Plan, workload: Workload) -> dict[str, Any]:
    """The pool, also under Kueue, which adds to what it admits the labels and tolerations of the flavor.

    It leaves out what is there already (`Merge` in `pkg/podset/podset.go` of Kueue), so that a Job stays as it is in
    Git; and a selector for one pool keeps it out of all others. So does an affinity to several: Kueue takes the first
    flavor with room that it allows (`flavorSelector` in `pkg/scheduler/flavorassigner/flavorassigner.go`).
    """
    pools = reach(plan, workload)
    if len(pools) == 1:
        return _within(workload.pool)
    affinity = {"nodeAffinity": _affinity(pools, is_ordered=plan.scheduler.finds_pools)}
    return given(affinity=affinity, tolerations=_tolerations(pools))


def _tolerations(pools: Sequence[Pool]) -> list[dict[str, str]]:
    """Those of all pools, each once."""
    found = [toleration for pool in pools for toleration in pool.tolerations]
    return [toleration for index, toleration in enumerate(found) if toleration not in found[:index]]


def _within(pool: Pool) -> dict[str, Any]:
    return given(nodeSelector={POOL_LABEL: pool.name}, tolerations=pool.tolerations)


_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def _affinity(pools: Sequence[Pool], *, is_ordered: bool) -> dict[str, Any]:
    """One of these pools; the earlier ones rather than the later, unless somebody else takes them in order."""
    required = {"nodeSelectorTerms": [_among([pool.name for pool in pools])]}
    if is_ordered:
        return {_REQUIRED: required}
    steps = len(pools) - 1
    preferred = [
        {"weight": max(_MOST_WEIGHT * (steps - index) // steps, 1), "preference": _among([pool.name])}
        for index, pool in enumerate(pools[:-1])
    ]
    return {_REQUIRED: required, _PREFERRED: preferred}


_MOST_WEIGHT: Final = 100


def _among(pools: list[str]) -> dict[str, Any]:
    return {"matchExpressions": [{"key": POOL_LABEL, "operator": "In", "values": pools}]}


_MAIN: Final = "main"
"""The container's name, which annotations may have in their keys."""


Variable = str | ValueFrom | Mapping[str, Any]
"""The value of a variable, or where it comes from: as the policy says it, or as the pod does."""


def _container(workload: Workload, more: Mapping[str, Any], variables: Mapping[str, Variable]) -> dict[str, Any]:
    """The container; what the policy says of a variable counts, whoever else sets it."""
    spec = workload.spec
    return given(
        name=_MAIN,
        image=spec.image,
        command=list(spec.command),
        args=list(spec.args),
        env=_variables({**variables, **spec.env}),
        **more,
        resources=_resources(workload),
        securityContext=_container_security(workload.tenant),
        volumeMounts=[*_config_mount(workload), *_model_mount(workload)],
    )


def _variables(env: Mapping[str, Variable]) -> list[dict[str, Any]]:
    return [{"name": name, **_value(value)} for name, value in env.items()]


def _value(value: Variable) -> dict[str, Any]:
    if isinstance(value, str):
        return {"value": value}
    if not isinstance(value, ValueFrom):
        return {"valueFrom": value}
    secret, plain = _key(value.secret_key_ref), _key(value.config_map_key_ref)
    return {"valueFrom": given(secretKeyRef=secret, configMapKeyRef=plain)}


def _key(found: SecretKey | ConfigMapKey | None) -> dict[str, str]:
    return {"name": found.name, "key": found.key} if found else {}


def _pull_secrets(workload: Workload) -> list[dict[str, str]]:
    return [{"name": name} for name in workload.spec.image_pull_secrets]


# --- Devices -----------------------------------------------------------------------------------------------------


def _resources(workload: Workload) -> dict[str, Any]:
    """The container's resources. Limits equal requests, so that a pod has what it asks for and no more."""
    amounts = {"cpu": workload.spec.cpu, "memory": workload.spec.memory, **_units(workload)}
    asked = {name: amount for name, amount in amounts.items() if amount}
    claims = [{"name": claim["name"]} for claim in _resource_claims(workload)]
    return given(limits=asked, requests=dict(asked), claims=claims)


def _units(workload: Workload) -> dict[str, str]:
    if workload.fraction or workload.unit.resource is None or workload.pool.spec.allocation is Allocation.DRA:
        return {}
    return {workload.unit.resource: str(workload.spec.count)}


def _resource_claims(workload: Workload) -> list[dict[str, str]]:
    """The pod's claims, one for each device."""
    if workload.pool.spec.allocation is not Allocation.DRA:
        return []
    template = device_class_name(workload.pool, workload.unit)
    return [{"name": f"unit-{number}", "resourceClaimTemplateName": template} for number in range(workload.spec.count)]


# --- Security ----------------------------------------------------------------------------------------------------


def _pod_security(tenant: Tenant) -> dict[str, Any]:
    """What the tenant's level asks for; without it whatever no workload of ours needs is left out all the same.

    Under `restricted` the API server refuses pods that do not say so themselves. Elsewhere images may run as root.
    """
    is_restricted = tenant.spec.allow.pod_security is PodSecurity.RESTRICTED
    return {
        "automountServiceAccountToken": False,
        # A Service `vllm` would give the pods beside it `VLLM_PORT=tcp://...`, which vLLM reads as its own.
        "enableServiceLinks": False,
        "securityContext": {
            **({"runAsNonRoot": True} if is_restricted else {}),
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }


def _container_security(tenant: Tenant) -> dict[str, Any]:
    is_restricted = tenant.spec.allow.pod_security is PodSecurity.RESTRICTED
    return {
        "allowPrivilegeEscalation": False,
        **({"capabilities": {"drop": ["ALL"]}} if is_restricted else {}),
    }


# --- Volumes -----------------------------------------------------------------------------------------------------


def _config_volume(workload: Workload) -> list[dict[str, Any]]:
    return [{"name": "config", "configMap": {"name": _config_name(workload)}}] if workload.spec.config else []


def _config_mount(workload: Workload) -> list[dict[str, Any]]:
    return [{"name": "config", "mountPath": _CONFIG_PATH, "readOnly": True}] if workload.spec.config else []


def _model_volume(workload: Workload) -> list[dict[str, Any]]:
    claim = {"name": "model", "persistentVolumeClaim": {"claimName": _claim_name(workload)}}
    return [claim] if workload.spec.model else []


def _model_mount(workload: Workload, *, is_filled: bool = True) -> list[dict[str, Any]]:
    """A service only reads a model that a Job has downloaded; training may write into the volume.

    ``is_filled`` is false for the Job.
    """
    if workload.spec.model is None:
        return []
    is_read = is_filled and bool(workload.spec.model.download) and isinstance(workload.work, Inference)
    mount = {"name": "model", "mountPath": workload.spec.model.mount_path}
    return [{**mount, "readOnly": True} if is_read else mount]


# --- Schedulers --------------------------------------------------------------------------------------------------

_GANG: Final = "kai.scheduler/batch-min-member"
_TOPOLOGY: Final = "kai.scheduler/topology"
_PREFERRED_TOPOLOGY: Final = "kai.scheduler/topology-preferred-placement"
_REQUIRED_TOPOLOGY: Final = "kai.scheduler/topology-required-placement"
_FRACTION: Final = "gpu-fraction"
_GPU_MEMORY: Final = "gpu-memory"
"""In MiB, without a suffix (`docs/gpu-sharing/README.md` of KAI-Scheduler).

Run:ai has it so, too ("Setting Dynamic GPU Fractions via YAML" in the documentation of 2.25), and schedules by
KAI-Scheduler from 3.0 on. Its 2.22 was seen to let a pod have as many millions of bytes, a twentieth less.
"""

_PORTION_LIMIT: Final = f"kai.scheduler/container.{_MAIN}.gpu-memory.portion.limit"
"""The most of a GPU's memory that a container may use, from Run:ai 3.0 on: `gpu-fraction` is what it always has.

It is above that and below 1, with up to five digits (`validateGpuMemoryPortionLimitAnnotation` in
`pkg/common/resources/gpu_sharing_validation.go` on the branch `main` of KAI-Scheduler, whose binder makes a limit in
bytes of it). KAI-Scheduler v0.17.0 has no such file. Which release has it, and which one Run:ai 3.0 comes with, is not
known.
"""

_MEMORY_LIMIT: Final = "RUNAI_GPU_MEMORY_LIMIT"
"""The same as a variable of the container, which Run:ai reads up to 2.26 ("Setting Dynamic GPU Fractions via YAML")."""

_WHOLE: Final = "0.99999"
"""As much as a limit in an annotation may be."""

_NOTHING: Final[Mapping[str, str]] = {}


class _Terms(NamedTuple):
    """Labels, annotations and variables of the Deployment or Job and of its pods; no scheduler is the default one."""

    scheduler: str = ""
    labels: Mapping[str, str] = _NOTHING
    annotations: Mapping[str, str] = _NOTHING
    pod_labels: Mapping[str, str] = _NOTHING
    pod_annotations: Mapping[str, str] = _NOTHING
    env: Mapping[str, str] = _NOTHING


def _terms(plan: Plan, workload: Workload) -> _Terms:
    match plan.scheduler.kind:
        case SchedulerKind.KUBERNETES:
            return _Terms()
        case SchedulerKind.KUEUE:
            return _kueue(workload)
        case SchedulerKind.KAI:
            return _kai(workload)
        case SchedulerKind.RUNAI:
            return _runai(workload)
        case unknown:
            assert_never(unknown)


def _kueue(workload: Workload) -> _Terms:
    """The queue by name, though Kueue would find it by itself.

    A Job is queued as a whole, and its pods must not name the queue: they would be queued once more. Of a Deployment
    the pods are queued, one by one; Kueue's webhook hands them the queue's name and nothing else in older releases
    (`pkg/controller/jobs/deployment/deployment_webhook.go` there).

    `suspend` is not stated, nor is a Job's least number of pods: both are Kueue's to write, and whoever restores what
    is in Git would stop every Job that Kueue has started.
    """
    labels = {kueue.QUEUE_LABEL: DEFAULT_QUEUE}
    if workload.priority_class:
        labels[kueue.PRIORITY_LABEL] = workload.priority_class.name
    annotations = _kueue_topology(workload)
    if isinstance(workload.work, Inference):
        return _Terms(labels=labels, pod_labels=labels, pod_annotations=annotations)
    return _Terms(labels=labels, pod_annotations=annotations)


def _kueue_topology(workload: Workload) -> dict[str, str]:
    """Where in the pool's Topology the pods should be; an annotation is needed even where it does not matter."""
    if not workload.pool.spec.topology:
        return {}
    if (found := workload.closeness) is None:
        return {ANY_TOPOLOGY: "true"}
    return {REQUIRED_TOPOLOGY if found.is_required else PREFERRED_TOPOLOGY: found.level}


def _kai(workload: Workload) -> _Terms:
    """The queue, the shard and whether the pods may be evicted, on the pods themselves.

    What holds for all pods of a Job together is read from the Job (`plugins/job` and `plugins/defaultgrouper` below
    `pkg/podgrouper/podgrouper` of KAI-Scheduler): without a number there any of its pods may start alone.
    """
    labels = {
        kai.QUEUE_LABEL: queue_name(workload.tenant.name, workload.pool.name),
        kai.NODE_POOL_LABEL: workload.pool.name,
    }
    if workload.priority_class:
        labels[kai.PREEMPTIBILITY_LABEL] = preemptibility(workload.priority_class)
    annotations = _gang(workload)
    if found := workload.closeness:
        placement = _REQUIRED_TOPOLOGY if found.is_required else _PREFERRED_TOPOLOGY
        annotations |= {_TOPOLOGY: workload.pool.name, placement: found.level}
    return _Terms(kai.SCHEDULER_NAME, {}, annotations, labels, _fraction(workload))


def _runai(workload: Workload) -> _Terms:
    """The node pool; the project is that of the namespace. Gangs are as in KAI-Scheduler, which is its open part.

    Topology is the node pool's there, and its objects have other names than the policy's.
    """
    annotations, env, asked = _fraction(workload), {}, workload.fraction
    if asked and asked.most > asked.least:
        annotations[_PORTION_LIMIT] = f"{asked.most:f}" if asked.most < 1 else _WHOLE
        env[_MEMORY_LIMIT] = f"{asked.most:f}"
    labels = {runai.NODE_POOL_LABEL: workload.pool.name}
    return _Terms(runai.SCHEDULER_NAME, {}, _gang(workload), labels, annotations, env)


def _fraction(workload: Workload) -> dict[str, str]:
    """In place of a resource: KAI-Scheduler refuses pods that ask for both."""
    if workload.fraction is None:
        return {}
    if workload.fraction.memory_mib is not None:
        return {_GPU_MEMORY: str(workload.fraction.memory_mib)}
    return {_FRACTION: f"{workload.fraction.least:f}"}


def _gang(workload: Workload) -> dict[str, str]:
    work = workload.work
    return {_GANG: str(work.gang)} if isinstance(work, Training) and work.gang else {}


# --- Where it comes from -----------------------------------------------------------------------------------------

_TEMPLATE: Final = ("spec", "template")


class _Traces(NamedTuple):
    """Where the objects of one workload come from."""

    plan: Plan
    workload: Workload

    def config(self) -> Routes:
        yield from self._metadata(self._config_name())
        for name in self.workload.spec.config:
            yield ("data", name), copied(self.workload.at / "config" / name)

    def claim(self) -> Routes:
        at = self.workload.at / "model"
        yield from self._metadata(named(self.workload))
        yield ("spec", "accessModes"), copied(at / "accessMode")
        yield ("spec", "storageClassName"), copied(at / "storageClass")
        yield ("spec", "resources"), copied(at / "size")

    def download_job(self) -> Routes:
        yield from self._job(list(below(_TEMPLATE, self._download())))

    def _download(self) -> Routes:
        yield ("metadata", "labels", TENANT_LABEL), self._tenant()
        if (asked := _download_terms(self.plan, self.workload)).scheduler:
            yield from self._asked(asked.pod_labels, ())
            yield ("spec", "schedulerName"), scheduler_of(self.plan)
            yield ("spec", "priorityClassName"), self._class()
            yield ("metadata", "labels"), counted_in(self.plan)
            yield ("spec", "schedulerName"), counted_in(self.plan)
        yield from self._within()
        if self.workload.spec.model and (download := self.workload.spec.model.download):
            at = self.workload.at / "model" / "download"
            yield from below(("spec", "containers", 0), _program(at, download.command, download.args))
            for index, (name, value) in enumerate(download.env.items()):
                yield from below(("spec", "containers", 0, "env", index), _variable(at / "env" / name, value))
        yield from self._pulled()
        yield from below(("spec", "containers", 0), self._mount(0))
        yield from self._security()
        yield ("spec", "volumes"), named(self.workload)

    def deployment(self) -> Routes:
        yield from self._metadata(named(self.workload))
        asked = _terms(self.plan, self.workload)
        yield from self._asked(asked.labels, asked.annotations)
        yield ("spec", "replicas"), copied(self.workload.work_at / "replicas")
        yield ("spec", "selector"), named(self.workload)
        yield ("spec", "progressDeadlineSeconds"), multiplied(self.workload.work_at / "startup")
        yield from below(_TEMPLATE, self._pod())

    def service(self) -> Routes:
        yield from self._metadata(named(self.workload))
        yield ("spec", "selector"), named(self.workload)
        at = self.workload.work_at
        reach = at / "service"
        yield ("spec", "type"), copied(reach / "type")
        yield ("spec", "ports", 0, "port"), copied(reach / "port" if _has_own_port(self.workload) else at / "port")
        yield ("spec", "ports", 0, "nodePort"), copied(reach / "nodePort")
        for index, name in enumerate(self._further_ports(), start=1):
            yield ("spec", "ports", index), chosen(at / "ports" / name)
            yield ("spec", "ports", index, "port"), copied(at / "ports" / name)

    def _further_ports(self) -> tuple[str, ...]:
        work = self.workload.work
        return tuple(work.ports) if isinstance(work, Inference) else ()

    def autoscaler(self) -> Routes:
        at = self.workload.work_at / "autoscaling"
        yield from self._metadata(named(self.workload))
        yield ("spec", "scaleTargetRef", "name"), named(self.workload)
        yield ("spec", "minReplicas"), copied(at / "minReplicas")
        yield ("spec", "maxReplicas"), copied(at / "maxReplicas")
        pods, measures = ("spec", "metrics", 0, "pods"), ("requestsPerSecond", "waitingRequests", "gpuPercent")
        measured = chosen(*(at / measure for measure in (*measures, "cpuPercent")))
        yield ("spec", "metrics", 0, "type"), measured
        yield (*pods, "metric"), (*measured, *copied(at / "metric"))
        yield (*pods, "target", "averageValue"), copied(at / "requestsPerSecond", at / "waitingRequests")
        yield (*pods, "target", "averageValue"), multiplied(at / "gpuPercent")
        resource = ("spec", "metrics", 0, "resource")
        yield resource, chosen(at / "cpuPercent")
        yield (*resource, "target", "averageUtilization"), copied(at / "cpuPercent")

    def job(self) -> Routes:
        asked = _terms(self.plan, self.workload)
        yield from self._job(self._job_content())
        yield from self._asked((), asked.annotations)
        if isinstance(self.workload.work, Training) and self.workload.work.peers:
            name = (*self._content_name(self._job_content()), *chosen(self.workload.work_at / "peers"))
            yield (*_TEMPLATE, "spec", "subdomain"), name
            for index, variable in enumerate(self._variables()):
                if variable in _FIRST and variable not in self.workload.spec.env:
                    yield (*_TEMPLATE, "spec", "containers", 0, "env", index, "value"), name

    def meeting(self) -> Routes:
        peers = self.workload.work_at / "peers"
        yield (), chosen(peers)
        yield from self._metadata(self._content_name(self._job_content()))
        yield ("spec", "selector"), named(self.workload)
        yield ("spec", "ports", 0, "port"), copied(peers / "port")

    def _job_content(self) -> list[tuple[Path, Links]]:
        return [*self._asked(_terms(self.plan, self.workload).labels, ()), *self._training()]

    def _training(self) -> Routes:
        at, work = self.workload.work_at, self.workload.work
        trials = isinstance(work, Training) and work.trials is not None
        yield ("spec", "parallelism"), copied(at / "pods")
        yield ("spec", "completions"), copied(at / ("trials" if trials else "pods"))
        yield ("spec", "backoffLimit"), copied(at / "backoffLimit")
        yield ("spec", "backoffLimitPerIndex"), copied(at / "backoffLimitPerIndex")
        yield ("spec", "maxFailedIndexes"), (*copied(at / "maxFailedIndexes"), *chosen(at / "peers"))
        yield ("spec", "activeDeadlineSeconds"), copied(at / "deadline")
        codes = work.fatal_exit_codes if isinstance(work, Training) else []
        fatal = ("spec", "podFailurePolicy", "rules", 1)
        yield (*fatal, "action"), chosen(at / "trials", at / "backoffLimitPerIndex")
        for place, code in enumerate(sorted(set(codes))):
            yield (*fatal, "onExitCodes", "values", place), copied(at / "fatalExitCodes" / codes.index(code))
        yield from below(_TEMPLATE, self._pod())

    def _job(self, content: list[tuple[Path, Links]]) -> Routes:
        yield from self._metadata(self._content_name(content))
        yield from content

    def _content_name(self, content: list[tuple[Path, Links]]) -> Links:
        """A digest of what a Job is stands in its name."""
        return (*named(self.workload), *hashed(link for _, links in content for link in links))

    # --- Names

    def _metadata(self, name: Links) -> Routes:
        yield ("metadata", "name"), name
        yield ("metadata", "namespace"), self._namespace()
        yield from self._labels()

    def _labels(self) -> Routes:
        yield ("metadata", "labels", TENANT_LABEL), self._tenant()
        yield ("metadata", "labels", WORKLOAD_LABEL), named(self.workload)

    def _namespace(self) -> Links:
        """One that is named need not be the tenant's; that it must be is said in a finding."""
        at, tenant, namespace = self.workload.at, self.workload.tenant, self.workload.namespace
        known = copied(namespace_of(tenant, namespace)) if namespace in tenant.spec.namespaces else ()
        return (*known, *chosen(at / ("tenant" if self.workload.spec.namespace is None else "namespace")))

    def _tenant(self) -> Links:
        return (*named(self.workload.tenant), *chosen(self.workload.at / "tenant"))

    def _pool(self) -> Links:
        return (*named(self.workload.pool), *self._pool_chosen())

    def _pool_chosen(self) -> Links:
        return chosen(self.workload.at / "pool")

    def _config_name(self) -> Links:
        at = self.workload.at / "config"
        return (*named(self.workload), *hashed(copied(*(at / name for name in self.workload.spec.config))))

    # --- Pods

    def _pod(self) -> Routes:
        asked = _terms(self.plan, self.workload)
        yield from self._labels()
        yield from self._asked(asked.pod_labels, asked.pod_annotations)
        yield ("spec", "schedulerName"), scheduler_of(self.plan)
        yield ("spec", "priorityClassName"), self._class()
        yield ("spec", "terminationGracePeriodSeconds"), self._grace_period()
        yield from self._placement()
        yield from below(("spec", "containers", 0), self._container())
        yield from self._security()
        yield from self._pulled()
        yield from below(("spec", "resourceClaims"), self._claims())
        yield from self._volumes()

    def _pulled(self) -> Routes:
        for index in range(len(self.workload.spec.image_pull_secrets)):
            yield ("spec", "imagePullSecrets", index, "name"), copied(self.workload.at / "imagePullSecrets" / index)

    def _grace_period(self) -> Links:
        allow = self.workload.tenant.spec.allow
        own = allow.grace_period is not None
        at = self.workload.tenant.at / "allow" if own else self.plan.cluster.at / "admission"
        return (*copied(at / "gracePeriod"), *chosen(self.workload.at / "tenant"))

    def _placement(self) -> Routes:
        pools = reach(self.plan, self.workload)
        if len(pools) == 1:
            yield from self._within()
            yield ("spec", "nodeSelector"), chosen(*deciding(self.plan, self.workload))
            if self.workload.pool.spec.fallback is not None:
                yield ("spec", "nodeSelector"), scheduler_of(self.plan)
            return
        expression = ("matchExpressions", 0, "values")
        values = ("spec", "affinity", "nodeAffinity", _REQUIRED, "nodeSelectorTerms", 0, *expression)
        preferred = ("spec", "affinity", "nodeAffinity", _PREFERRED)
        links = (*self._pool_chosen(), *chosen(*deciding(self.plan, self.workload)))
        yield ("spec", "affinity"), (*links, *scheduler_of(self.plan))
        for index in range(len(pools)):
            yield (*values, index), self._pool_by_fallback(pools, index)
            yield (*preferred, index, "preference", *expression), self._pool_by_fallback(pools, index)
        yield ("spec", "tolerations"), links
        tolerations = _tolerations(pools)
        for pool in pools:
            at = [tolerations.index(toleration) for toleration in pool.tolerations]
            for (first, *rest), links in tolerations_of(pool):
                yield ("spec", "tolerations", at[int(first)], *rest), links

    def _pool_by_fallback(self, pools: Sequence[Pool], index: int) -> Links:
        """A pool that the workload names, or one that it falls back to."""
        if index == 0:
            return self._pool()
        return (*named(pools[index]), *chosen(*deciding(self.plan, self.workload)))

    def _within(self) -> Routes:
        yield ("spec", "nodeSelector"), self._pool()
        yield ("spec", "tolerations"), self._pool_chosen()
        yield from below(("spec", "tolerations"), tolerations_of(self.workload.pool))

    def _security(self) -> Routes:
        level = chosen(self.workload.tenant.at / "allow" / "podSecurity", self.workload.at / "tenant")
        yield ("spec", "securityContext", "runAsNonRoot"), level
        yield ("spec", "containers", 0, "securityContext", "capabilities"), level

    def _volumes(self) -> Routes:
        yield ("spec", "volumes", ANY, "configMap"), self._config_name()
        yield ("spec", "volumes", ANY, "persistentVolumeClaim"), named(self.workload)

    def _container(self) -> Routes:
        at, spec = self.workload.at, self.workload.spec
        yield from _program(at, spec.command, spec.args)
        for index, name in enumerate(self._variables()):
            if name in spec.env:
                yield from below(("env", index), _variable(at / "env" / name, spec.env[name]))
            elif name in _MEETING:
                yield ("env", index), chosen(self.workload.work_at / "peers")
                yield ("env", index, "value"), _MEETING[name](self)
            else:
                yield ("env", index, "name"), scheduler_of(self.plan)
                yield ("env", index, "value"), _TERMS[name](self)
        if spec.inference:
            yield from self._listening(spec.inference)
        for name in ("cpu", "memory"):
            yield ("resources", ANY, name), copied(at / name)
        for name in _units(self.workload):
            yield ("resources", ANY, name), (*copied(at / "count"), *asked_by(self.plan, self.workload))
        yield from below(("resources", "claims"), self._claims())
        yield from self._mount(len(_config_mount(self.workload)))

    def _listening(self, work: Inference) -> Routes:
        at = self.workload.work_at
        yield ("ports", 0, "containerPort"), copied(at / "port")
        for index, name in enumerate(work.ports, start=1):
            yield ("ports", index), chosen(at / "ports" / name)
            yield ("ports", index, "containerPort"), copied(at / "ports" / name)
        for field in ("startupProbe", "readinessProbe"):
            yield from below((field,), self._probing(work))
        yield ("startupProbe", "failureThreshold"), multiplied(at / "startup")
        yield ("startupProbe",), chosen(at / "startup")

    def _probing(self, work: Inference) -> Routes:
        at = self.workload.work_at / "probe"
        yield (), chosen(at)
        if isinstance(work.probe, Probe):
            for field, route in (("http", ("httpGet", "path")), ("grpc", ("grpc", "service"))):
                yield route, copied(at / field)
            for index in range(len(work.probe.command or ())):
                yield ("exec", "command", index), copied(at / "command" / index)
            yield ("timeoutSeconds",), multiplied(at / "timeout")
            yield ("httpGet", "port"), copied(at / "port")
            yield ("grpc", "port"), chosen(at / "port")
        asked = work.probe.port if isinstance(work.probe, Probe) else None
        yield (
            ("grpc", "port"),
            copied(self.workload.work_at / "ports" / asked if asked else self.workload.work_at / "port"),
        )

    def _variables(self) -> Iterable[str]:
        work, own = self.workload.work, self.workload.spec.env
        peers = _meeting_point(self.workload, work, "") if isinstance(work, Training) else {}
        return {**_terms(self.plan, self.workload).env, **peers, **own}

    def _port(self) -> Links:
        return copied(self.workload.work_at / "peers" / "port")

    def _pods(self) -> Links:
        return copied(self.workload.work_at / "pods")

    def _processes(self) -> Links:
        return (*copied(self.workload.at / "count"), *asked_by(self.plan, self.workload))

    def _mount(self, index: int) -> Routes:
        yield ("volumeMounts", index, "mountPath"), copied(self.workload.at / "model" / "mountPath")

    # --- Devices

    def _claims(self) -> Routes:
        """Those of a pod, by their number, where it has any."""
        for number in range(len(_resource_claims(self.workload))):
            yield (number,), chosen(self.workload.pool.at / "allocation")
            yield (number, "resourceClaimTemplateName"), asked_by(self.plan, self.workload)
            if number:
                yield (number,), chosen(self.workload.at / "count")

    # --- Schedulers

    def _asked(self, labels: Iterable[str], annotations: Iterable[str]) -> Routes:
        """What a scheduler reads of an object, or of its pods, which is there for this scheduler."""
        for field, keys in (("labels", labels), ("annotations", annotations)):
            for key in keys:
                yield ("metadata", field, key), (*_TERMS[key](self), *scheduler_of(self.plan))

    def _queue(self) -> Links:
        return (*self._tenant(), *self._pool())

    def _gang(self) -> Links:
        return copied(self.workload.work_at / "gang")

    def _level(self) -> Links:
        found = self.workload.closeness
        return (*(copied(found.at) if found else ()), *self._pool_chosen())

    def _least(self) -> Links:
        at = self.workload.at / "fraction"
        return copied(at / "min" if isinstance(self.workload.spec.fraction, PartOfGpu) else at)

    def _memory(self) -> Links:
        return multiplied(self.workload.at / "fraction" / "memory")

    def _most(self) -> Links:
        """It is not there where it is all that a pod has anyway."""
        at = self.workload.at / "fraction"
        return (*copied(at / "max"), *chosen(at / "min"))

    def _class(self) -> Links:
        """The class of the pods, or what says that there is none."""
        return (*(named(self.workload.priority_class) if self.workload.priority_class else ()), *self._class_named())

    def _class_named(self) -> Links:
        at, tenant = self.workload.at, self.workload.tenant
        if self.workload.spec.priority_class is not None:
            return chosen(at / "priorityClass")
        return chosen(at / "tenant", tenant.at / "priorityClasses" / 0)

    def _preemptibility(self) -> Links:
        found = self.workload.priority_class
        return (*(chosen(found.at / "preemptible") if found else ()), *self._class_named())


def _program(at: Origin, command: Sequence[str], args: Sequence[str]) -> Routes:
    """What a container runs."""
    yield ("image",), copied(at / "image")
    for field, texts in (("command", command), ("args", args)):
        for index in range(len(texts)):
            yield (field, index), copied(at / field / index)


def _variable(at: Origin, value: str | ValueFrom) -> Routes:
    """A variable, and the value that it has or where that stands."""
    yield ("name",), chosen(at)
    if isinstance(value, str):
        yield ("value",), copied(at)
        return
    for field in _value(value)["valueFrom"]:
        yield from ((("valueFrom", field, part), copied(at / field / part)) for part in ("name", "key"))


_TERMS: Final[Mapping[str, Callable[[_Traces], Links]]] = {
    kueue.QUEUE_LABEL: lambda _: (),
    kueue.PRIORITY_LABEL: _Traces._class,
    PREFERRED_TOPOLOGY: _Traces._level,
    REQUIRED_TOPOLOGY: _Traces._level,
    ANY_TOPOLOGY: _Traces._pool_chosen,
    kai.QUEUE_LABEL: _Traces._queue,
    kai.NODE_POOL_LABEL: _Traces._pool,
    kai.PREEMPTIBILITY_LABEL: _Traces._preemptibility,
    runai.NODE_POOL_LABEL: _Traces._pool,
    _GANG: _Traces._gang,
    _TOPOLOGY: _Traces._pool,
    _PREFERRED_TOPOLOGY: _Traces._level,
    _REQUIRED_TOPOLOGY: _Traces._level,
    _FRACTION: _Traces._least,
    _GPU_MEMORY: _Traces._memory,
    _PORTION_LIMIT: _Traces._most,
    _MEMORY_LIMIT: _Traces._most,
}
"""What each label and annotation of `_terms` says."""

_MEETING: Final[Mapping[str, Callable[[_Traces], Links]]] = {
    "MASTER_ADDR": lambda _: (),
    "MASTER_PORT": _Traces._port,
    "WORLD_SIZE": _Traces._pods,
    "RANK": lambda _: (),
    "PET_MASTER_ADDR": lambda _: (),
    "PET_MASTER_PORT": _Traces._port,
    "PET_NNODES": _Traces._pods,
    "PET_NODE_RANK": lambda _: (),
    "PET_NPROC_PER_NODE": _Traces._processes,
}
"""What each variable of `_meeting_point` says; where the first pod is follows from all that the Job is."""

_FIRST: Final = ("MASTER_ADDR", "PET_MASTER_ADDR")
