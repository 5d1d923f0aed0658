"""Pods, Jobs and what else admission policies judge, as the API server has them, and as it never has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import strategies as st

Strategy = st.SearchStrategy[Any]


def some(**fields: Strategy) -> Strategy:
    """A map with some of the fields."""
    return st.fixed_dictionaries({}, optional=fields)


def named(*names: str, **fields: Strategy) -> Strategy:
    """A map with a name, and some of the fields."""
    return st.fixed_dictionaries({"name": either(*names)}, optional=fields)


def either(*values: object) -> Strategy:
    return st.sampled_from(values)


def as_it_is(strategy: Strategy) -> Strategy:
    return strategy


def sometimes_odd(strategy: Strategy) -> Strategy:
    """Now and then something of another type than its place is for."""
    odd = either(None, 3, True, "", [], {}, ["a"])
    return st.integers(0, 30).flatmap(lambda chance: strategy if chance else odd)


def shapes(maybe: Callable[[Strategy], Strategy] = as_it_is) -> tuple[Strategy, ...]:
    """Pods, Jobs, Workloads, NodeFeatures and PodGroups that lack any of their fields."""
    devices = ("nvidia.com/gpu", "nvidia.com/mig-2g.20gb", "nvidia.com/mig-3g.40gb", "nvidia.com/hostdev")
    names = either("cpu", "memory", "deviceclass.resource.kubernetes.io/gpu", *devices)
    amounts = either("0", "1", "2", "3", "8", "1k")
    resources = st.dictionaries(names, maybe(amounts), max_size=3)
    annotations = maybe(
        st.dictionaries(
            either(
                *("gpu-fraction", "gpu-memory", "pod-group-name", "kai.scheduler/skip-podgrouper", "cdi.k8s.io/x"),
                *("nvidia.com/container.main.gpus.devices", "nvidia.com/container.main.gpu-memory.request", "team"),
            ),
            either("0.5", "1", "all", ""),
            max_size=3,
        )
    )
    labels = maybe(
        st.dictionaries(
            either("kai.scheduler/queue", "kai.scheduler/node-pool", "kueue.x-k8s.io/priority-class", "team"),
            either("whole", "split", "parts", "research-whole", "parts-parts", "research", "production", "spot", ""),
            max_size=3,
        )
    )
    variable = named(
        *("NVIDIA_VISIBLE_DEVICES", "CUDA_VERSION", "PATH"),
        value=either("void", "all", "none"),
        valueFrom=maybe(some(configMapKeyRef=some(name=either("a")))),
    )
    claims = st.lists(maybe(named("gpu", "other")), max_size=3)
    container = some(
        name=either("main", "side"),
        resources=maybe(some(limits=maybe(resources), requests=maybe(resources), claims=maybe(claims))),
        env=maybe(st.lists(variable, max_size=2)),
    )
    containers = maybe(st.lists(maybe(container), max_size=2))
    claim = named(
        *("gpu", "other"), resourceClaimTemplateName=either("whole", "gpu.whole", "x"), resourceClaimName=either("y")
    )
    owner = some(
        apiVersion=either("batch/v1", "apps/v1", "ray.io/v1"),
        kind=either("Job", "ReplicaSet", "RayCluster"),
        controller=maybe(st.booleans()),
    )
    metadata = named(
        "a",
        annotations=annotations,
        labels=labels,
        ownerReferences=maybe(st.lists(owner, max_size=2)),
        finalizers=maybe(st.lists(either("orphan", "example.com/keep"), max_size=2)),
    )
    term = maybe(some(namespaces=maybe(st.lists(either("", "other"), max_size=2)), namespaceSelector=either({})))
    near = some(
        requiredDuringSchedulingIgnoredDuringExecution=maybe(st.lists(term, max_size=2)),
        preferredDuringSchedulingIgnoredDuringExecution=maybe(st.lists(maybe(some(podAffinityTerm=term)), max_size=2)),
    )
    spec = some(
        initContainers=containers,
        ephemeralContainers=containers,
        nodeSelector=maybe(st.dictionaries(either("gpuplan.dev/pool", "zone"), either("whole", "split", "parts", ""))),
        nodeName=maybe(either("", "node-1")),
        priorityClassName=maybe(either("", "research", "production", "spot")),
        priority=maybe(either(0, 100, 1000, -5)),
        schedulerName=maybe(either("default-scheduler", "kai-scheduler", "runai-scheduler", "volcano")),
        schedulingGates=maybe(st.lists(named("kueue.x-k8s.io/admission", "mine"), max_size=2)),
        resourceClaims=maybe(st.lists(maybe(claim), max_size=2)),
        affinity=maybe(some(podAffinity=maybe(near), podAntiAffinity=maybe(near))),
        resources=maybe(some(limits=resources, requests=resources)),
        runtimeClassName=maybe(either("nvidia", "nvidia-cdi", "gvisor")),
        tolerations=maybe(
            st.lists(some(key=either("nvidia.com/gpu", ""), operator=either("Exists", "Equal")), max_size=2)
        ),
        terminationGracePeriodSeconds=maybe(either(0, 30, 3600)),
    )
    pod_spec = maybe(st.builds(_with_containers, spec, containers))
    pod = st.fixed_dictionaries(
        {"apiVersion": either("v1"), "kind": either("Pod"), "metadata": metadata, "spec": pod_spec}
    )
    template = maybe(st.fixed_dictionaries({"metadata": metadata, "spec": pod_spec}))
    job = st.fixed_dictionaries(
        {
            "apiVersion": either("batch/v1"),
            "kind": either("Job"),
            "metadata": metadata,
            "spec": maybe(st.fixed_dictionaries({"template": template}, optional={"suspend": maybe(st.booleans())})),
        }
    )
    workload = st.fixed_dictionaries(
        {
            "apiVersion": either("kueue.x-k8s.io/v1beta2"),
            "kind": either("Workload"),
            "metadata": metadata,
            "spec": maybe(
                some(
                    priorityClassRef=maybe(some(name=either("", "research", "production"))),
                    priority=maybe(either(0, 100, 1000)),
                )
            ),
        }
    )
    node_feature = st.fixed_dictionaries(
        {
            "apiVersion": either("nfd.k8s-sigs.io/v1alpha1"),
            "kind": either("NodeFeature"),
            "metadata": metadata,
            "spec": either({}),
        }
    )
    pod_group = st.fixed_dictionaries(
        {
            "apiVersion": either("scheduling.run.ai/v2alpha2"),
            "kind": either("PodGroup"),
            "metadata": metadata,
            "spec": maybe(
                some(
                    queue=maybe(either("research-whole", "parts-parts", "default")),
                    priorityClassName=maybe(either("", "research", "production", "train")),
                )
            ),
        }
    )
    return pod, job, workload, node_feature, pod_group, *frameworks(maybe)


def frameworks(maybe: Callable[[Strategy], Strategy]) -> tuple[Strategy, ...]:
    """Work of which Kueue knows by its own kind, and what changes a count of it."""
    count = maybe(either(0, 1, 3))
    template = either({"spec": {"nodeSelector": {"zone": "a"}}}, {"spec": {}})
    group = some(
        groupName=either("small", "large"), replicas=count, minReplicas=count, numOfHosts=count, template=template
    )
    cluster = some(
        suspend=maybe(st.booleans()),
        workerGroupSpecs=maybe(st.lists(maybe(group), max_size=2)),
        headGroupSpec=either({"template": {}}, {"template": {"spec": {}}}),
        enableInTreeAutoscaling=maybe(st.booleans()),
    )
    role = some(replicas=count, template=template)
    roles = maybe(st.dictionaries(either("Worker", "Master"), maybe(role), max_size=2))
    of_job = some(spec=maybe(some(parallelism=count, completions=count)))
    job = some(name=either("a", "b"), replicas=count, template=of_job)
    held = maybe(some(suspend=maybe(st.booleans())))
    specs = {
        ("ray.io/v1", "RayCluster"): cluster,
        ("ray.io/v1", "RayService"): some(rayClusterConfig=maybe(cluster)),
        ("kubeflow.org/v1", "PyTorchJob"): some(runPolicy=held, pytorchReplicaSpecs=roles),
        ("jobset.x-k8s.io/v1alpha2", "JobSet"): some(suspend=st.booleans(), replicatedJobs=st.lists(job, max_size=2)),
        ("trainer.kubeflow.org/v1alpha1", "TrainJob"): some(suspend=st.booleans(), trainer=some(numNodes=count)),
        ("autoscaling/v1", "Scale"): some(replicas=count),
    }
    elastic = some(annotations=maybe(either({"kueue.x-k8s.io/elastic-job": "true"}, {})))
    return tuple(
        st.fixed_dictionaries(
            {"apiVersion": either(api), "kind": either(kind), "metadata": elastic, "spec": maybe(spec)}
        )
        for (api, kind), spec in specs.items()
    )


def whole_pods() -> Strategy:
    """Pods that are nearly right: most is as a tenant would write it."""
    asked = st.dictionaries(
        either("nvidia.com/gpu", "nvidia.com/mig-2g.20gb"), either("1", "2", "3"), min_size=1, max_size=2
    )
    claims = st.lists(either({"name": "gpu"}), max_size=1)
    container = st.fixed_dictionaries(
        {"name": either("main"), "resources": st.fixed_dictionaries({"limits": asked, "claims": claims})}
    )
    labels = st.fixed_dictionaries(
        {
            "kai.scheduler/queue": either("research-whole", "research-whole", "research-split"),
            "kai.scheduler/node-pool": either("whole", "whole", "split"),
        }
    )
    spec = st.fixed_dictionaries(
        {
            "containers": st.lists(container, min_size=1, max_size=2),
            "nodeSelector": st.fixed_dictionaries({"gpuplan.dev/pool": either("whole", "whole", "split")}),
            "priorityClassName": either("research", "research", "production"),
            "schedulerName": either("kai-scheduler", "default-scheduler"),
            "schedulingGates": either([], [{"name": "kueue.x-k8s.io/admission"}]),
        },
        optional={"resourceClaims": either([{"name": "gpu", "resourceClaimTemplateName": "whole"}])},
    )
    metadata = st.fixed_dictionaries({"name": either("a"), "labels": labels})
    return st.fixed_dictionaries(
        {"apiVersion": either("v1"), "kind": either("Pod"), "metadata": metadata, "spec": spec}
    )


def _with_containers(spec: Mapping[str, Any], containers: object) -> Mapping[str, Any]:
    return {**spec, "containers": containers}
