"""Where the leaves of workloads come from."""

from __future__ import annotations

from collections.abc import Mapping

from tests.compiler.backends.workloads.rendered import SERVICE, TRAINING, manifests, planned
from tests.laws.tracing.told import find, told, told_of_all

POD = "spec.template.spec"
CONTAINER = f"{POD}.containers[0]"
POOL = ["chosen by Workload/app spec.pool", "copied Pool/gpus metadata.name"]
SCHEDULER = "chosen by Cluster/test spec.scheduler.kind"
MODEL = "model: {size: 10Gi, mountPath: /data, download: {image: 'registry.example.com/get:1', args: [it]}}"


def leaves(kind: str, spec: str = SERVICE, **more: str) -> Mapping[str, list[str]]:
    return told(planned(spec, **more), find(manifests(spec, **more), kind))


# --- Pods --------------------------------------------------------------------------------------------------------


def test_what_a_container_runs_is_copied_item_by_item() -> None:
    found = leaves("Deployment", f'{SERVICE}\nargs: [--a, --b]\nenv: {{LEVEL: "3"}}')

    assert found[f"{CONTAINER}.image"] == ["copied Workload/app spec.image"]
    assert found[f"{CONTAINER}.args[1]"] == ["copied Workload/app spec.args[1]"]
    assert found[f"{CONTAINER}.env[0].value"] == ["copied Workload/app spec.env.LEVEL"]
    assert found[f"{CONTAINER}.ports[0].containerPort"] == ["copied Workload/app spec.inference.port"]


def test_a_value_from_elsewhere_is_traced_to_its_name_and_its_key() -> None:
    secret = "env: {A: x, TOKEN: {secretKeyRef: {name: api, key: token}}}\nimagePullSecrets: [one, two]"
    found = leaves("Deployment", f"{SERVICE}\n{secret}")

    assert found[f"{CONTAINER}.env[1].name"] == ["chosen by Workload/app spec.env.TOKEN"]
    key = f"{CONTAINER}.env[1].valueFrom.secretKeyRef.key"
    assert found[key] == ["copied Workload/app spec.env.TOKEN.secretKeyRef.key"]
    assert found[f"{POD}.imagePullSecrets[1].name"] == ["copied Workload/app spec.imagePullSecrets[1]"]


def test_a_pod_is_where_its_pool_is() -> None:
    found = leaves("Deployment")

    assert found[f'{POD}.nodeSelector["gpuplan.dev/pool"]'] == POOL
    assert found[f"{POD}.tolerations[1].key"] == [
        "chosen by Workload/app spec.pool",
        "copied Pool/gpus spec.taints[1].key",
    ]


def test_units_are_counted_by_the_workload_and_named_by_the_pool() -> None:
    found = leaves(
        "Deployment", f"{SERVICE}\nunit: 1g.10gb\ncount: 2", sharing="mig: {strategy: mixed, instances: {1g.10gb: 7}}"
    )

    assert found[f'{CONTAINER}.resources.requests["nvidia.com/mig-1g.10gb"]'] == [
        "chosen by Pool/gpus spec.sharing.mig.strategy",
        "chosen by Workload/app spec.unit",
        "copied Workload/app spec.count",
    ]


def test_a_profile_names_the_unit_that_the_workload_does_not() -> None:
    found = leaves("Deployment", sharing="mig: {instances: {1g.10gb: 7}}")

    (resource,) = (links for path, links in found.items() if "requests" in path)
    assert resource == ['chosen by Pool/gpus spec.sharing.mig.instances["1g.10gb"]']


def test_claims_are_counted_by_the_workload() -> None:
    found = leaves("Deployment", f"{SERVICE}\ncount: 2", pool="allocation: dra")

    assert found[f"{POD}.resourceClaims[0].name"] == ["chosen by Pool/gpus spec.allocation"]
    assert "chosen by Workload/app spec.count" in found[f"{POD}.resourceClaims[1].name"]
    assert "chosen by Pool/gpus spec.gpu" in found[f"{POD}.resourceClaims[1].resourceClaimTemplateName"]


def test_the_tenant_s_level_says_what_pods_must_not_do() -> None:
    found = leaves("Deployment", security="restricted")

    level = "chosen by Tenant/research spec.allow.podSecurity"
    assert level in found[f"{POD}.securityContext.runAsNonRoot"]
    assert level in found[f"{CONTAINER}.securityContext.capabilities.drop[0]"]
    assert found[f"{POD}.securityContext.seccompProfile.type"] == []


# --- Names -------------------------------------------------------------------------------------------------------


def test_a_deployment_is_there_by_its_names() -> None:
    found = find(manifests(), "Deployment")

    assert told_of_all(planned(), found) == [
        "chosen by Cluster/test metadata.name",
        "chosen by Tenant/research spec.namespaces[0]",
        "chosen by Workload/app metadata.name",
        "chosen by Workload/app spec.tenant",
    ]


def test_a_job_is_called_by_a_digest_of_all_that_it_is() -> None:
    spec = f"{TRAINING}\ncpu: '4'"
    whole = told_of_all(planned(spec, scheduler="kueue"), find(manifests(spec, scheduler="kueue"), "Job"))

    for place in (
        "Cluster/test spec.scheduler.kind",
        "PriorityClass/urgent metadata.name",
        "Pool/gpus spec.taints[0].value",
        "Workload/app spec.training.pods",
        "Workload/app spec.cpu",
    ):
        assert f"hash of {place}" in whole


def test_what_stands_beside_a_job_s_content_is_in_no_digest() -> None:
    """The gang is an annotation of the Job itself, which may change without another Job."""
    spec = "training: {pods: 4, gang: 3}"
    job = find(manifests(spec, scheduler="kai"), "Job")

    gang = 'metadata.annotations["kai.scheduler/batch-min-member"]'
    assert "copied Workload/app spec.training.gang" in told(planned(spec, scheduler="kai"), job)[gang]
    assert [text for text in told_of_all(planned(spec, scheduler="kai"), job) if "gang" in text] == []


def test_a_pod_s_peers_are_where_the_policy_asks_for_them() -> None:
    found = leaves("Job", "training: {pods: 4, peers: {port: 23456}}\nenv: {RANK: '1'}")
    asked = "chosen by Workload/app spec.training.peers"

    assert asked in found[f"{POD}.subdomain"]
    assert "hash of Workload/app spec.training.pods" in found[f"{CONTAINER}.env[0].value"]
    assert {*found[f"{CONTAINER}.env[1].value"]} >= {asked, "copied Workload/app spec.training.peers.port"}
    assert found[f"{CONTAINER}.env[3].value"] == ["copied Workload/app spec.env.RANK"]
    service = leaves("Service", "training: {pods: 4, peers: {port: 23456}}")
    assert "copied Workload/app spec.training.peers.port" in service["spec.ports[0].port"]


def test_trials_and_tries_are_copied() -> None:
    at = "Workload/app spec.training"
    spec = "trials: 8, pods: 2, backoffLimitPerIndex: 1, maxFailedIndexes: 3, fatalExitCodes: [78, 2]"
    found = leaves("Job", f"training: {{{spec}}}")

    assert found["spec.completions"] == [f"copied {at}.trials"]
    assert found["spec.parallelism"] == [f"copied {at}.pods"]
    assert found["spec.backoffLimitPerIndex"] == [f"copied {at}.backoffLimitPerIndex"]
    assert found["spec.maxFailedIndexes"] == [f"copied {at}.maxFailedIndexes"]
    rule = "spec.podFailurePolicy.rules[1]"
    assert found[f"{rule}.onExitCodes.values[0]"] == [f"copied {at}.fatalExitCodes[1]"]
    assert found[f"{rule}.action"] == [f"chosen by {at}.backoffLimitPerIndex", f"chosen by {at}.trials"]


def test_a_file_s_name_is_a_digest_of_the_configuration_wherever_it_stands() -> None:
    spec = f"{SERVICE}\nconfig: {{a.txt: hello, b.txt: world}}"
    named = [
        "copied Workload/app metadata.name",
        'hash of Workload/app spec.config["a.txt"]',
        'hash of Workload/app spec.config["b.txt"]',
    ]

    assert leaves("Deployment", spec)[f"{POD}.volumes[0].configMap.name"] == named
    assert set(named) <= set(leaves("ConfigMap", spec)["metadata.name"])
    assert leaves("ConfigMap", spec)['data["b.txt"]'] == ['copied Workload/app spec.config["b.txt"]']


def test_a_download_is_a_job_of_its_own() -> None:
    spec = f"{SERVICE}\n{MODEL}"
    found = leaves("Job", spec.replace("args: [it]", "args: [it], env: {ID: {configMapKeyRef: {name: m, key: id}}}"))

    at = "Workload/app spec.model.download.env.ID"
    assert found[f"{CONTAINER}.env[0].valueFrom.configMapKeyRef.name"] == [f"copied {at}.configMapKeyRef.name"]
    assert found[f"{CONTAINER}.args[0]"] == ["copied Workload/app spec.model.download.args[0]"]
    assert found[f"{CONTAINER}.volumeMounts[0].mountPath"] == ["copied Workload/app spec.model.mountPath"]
    assert [text for text in found["metadata.name"] if "spec.image" in text] == []
    assert leaves("PersistentVolumeClaim", spec)["spec.resources.requests.storage"] == [
        "copied Workload/app spec.model.size"
    ]


def test_the_load_is_bounded_as_it_is_written() -> None:
    found = leaves("HorizontalPodAutoscaler", "inference: {autoscaling: {maxReplicas: 4, requestsPerSecond: 20}}")

    at = "Workload/app spec.inference.autoscaling"
    assert found["spec.maxReplicas"] == [f"copied {at}.maxReplicas"]
    assert found["spec.metrics[0].pods.target.averageValue"] == [f"copied {at}.requestsPerSecond"]
    assert found["spec.minReplicas"] == []


def test_ports_and_probes_are_copied_from_the_service() -> None:
    spec = (
        "inference: {port: 80, ports: {rpc: 81}, probe: {grpc: a.B, port: rpc}, startup: 5m, "
        "service: {type: NodePort, port: 8080, nodePort: 30080}}"
    )
    found, service, at = leaves("Deployment", spec), leaves("Service", spec), "Workload/app spec.inference"

    assert f"copied {at}.ports.rpc" in found[f"{CONTAINER}.readinessProbe.grpc.port"]
    assert f"copied {at}.probe.grpc" in found[f"{CONTAINER}.startupProbe.grpc.service"]
    assert f"product of {at}.startup" in found[f"{CONTAINER}.startupProbe.failureThreshold"]
    assert found["spec.progressDeadlineSeconds"] == [f"product of {at}.startup"]
    assert service["spec.type"] == [f"copied {at}.service.type"]
    assert service["spec.ports[0].port"] == [f"copied {at}.service.port"]
    assert service["spec.ports[0].nodePort"] == [f"copied {at}.service.nodePort"]
    assert f"copied {at}.ports.rpc" in service["spec.ports[1].port"]


def test_a_route_is_traced_to_the_service_and_to_the_cluster() -> None:
    spec = "inference: {ports: {rpc: 81}, route: {hosts: [a.b], path: /v1, port: rpc, tlsSecret: tls}}"
    at, cluster = "Workload/app spec.inference", "Cluster/test spec"
    one = leaves(
        "HTTPRoute", spec, cluster="apis: [HTTPRoute]\ngateway: {name: public, namespace: gateways, listener: https}"
    )
    two = leaves("Ingress", spec, cluster="ingress: {className: nginx}")

    assert one["spec.parentRefs[0].sectionName"] == [f"copied {cluster}.gateway.listener"]
    assert one["spec.hostnames[0]"] == [f"copied {at}.route.hosts[0]"]
    assert one["spec.rules[0].backendRefs[0].port"] == [f"chosen by {at}.route.port", f"copied {at}.ports.rpc"]
    assert two["spec.ingressClassName"] == [f"copied {cluster}.ingress.className"]
    assert two["spec.tls[0].secretName"] == [f"copied {at}.route.tlsSecret"]
    assert two["spec.rules[0].http.paths[0].path"] == [f"copied {at}.route.path"]


def test_a_canary_is_traced_to_what_it_says_and_else_to_the_workload() -> None:
    canary = "canary: {weight: 10, replicas: 2, image: 'registry.example.com/app:2', env: {B: '2'}}"
    spec = f"inference: {{route: {{hosts: [a.b]}}, {canary}}}\nargs: [--fast]\nenv: {{A: '1', B: '1'}}"
    cluster = "apis: [HTTPRoute]\ngateway: {name: public, namespace: gateways}"
    written = manifests(spec, cluster=cluster)
    (deployment,) = (item for item in written if (item.kind, item.name) == ("Deployment", "app-canary"))
    found = told(planned(spec, cluster=cluster), deployment)
    route = leaves("HTTPRoute", spec, cluster=cluster)

    at = "Workload/app spec.inference.canary"
    assert f"copied {at}.replicas" in found["spec.replicas"]
    assert f"copied {at}.image" in found[f"{CONTAINER}.image"]
    assert f"copied {at}.env.B" in found[f"{CONTAINER}.env[1].value"]
    assert "copied Workload/app spec.env.A" in found[f"{CONTAINER}.env[0].value"]
    assert "copied Workload/app spec.args[0]" in found[f"{CONTAINER}.args[0]"]
    assert f"sum of {at}.weight" in route["spec.rules[0].backendRefs[0].weight"]
    assert f"copied {at}.weight" in route["spec.rules[0].backendRefs[1].weight"]


def test_a_scaled_object_is_traced_to_the_query_and_to_prometheus() -> None:
    query = "query: {promql: up, perPod: 2, idle: 1}"
    spec = f"inference: {{autoscaling: {{minReplicas: 0, maxReplicas: 4, cooldown: 30m, {query}}}}}"
    cluster = "apis: [ScaledObject]\nprometheus: {url: 'http://a.b:9090', authentication: token}"
    found = leaves("ScaledObject", spec, cluster=cluster)

    at, metadata = "Workload/app spec.inference.autoscaling", "spec.triggers[0].metadata"
    assert found["spec.minReplicaCount"] == [f"copied {at}.minReplicas"]
    assert f"product of {at}.cooldown" in found["spec.cooldownPeriod"]
    assert found[f"{metadata}.query"] == [f"copied {at}.query.promql"]
    assert found[f"{metadata}.threshold"] == [f"copied {at}.query.perPod"]
    assert found[f"{metadata}.activationThreshold"] == [f"copied {at}.query.idle"]
    assert found[f"{metadata}.serverAddress"] == ["copied Cluster/test spec.prometheus.url"]
    assert found["spec.triggers[0].authenticationRef.name"] == ["copied Cluster/test spec.prometheus.authentication"]


# --- Schedulers --------------------------------------------------------------------------------------------------


def test_kueue_s_labels_are_there_for_kueue() -> None:
    found = leaves("Deployment", scheduler="kueue")

    assert found['metadata.labels["kueue.x-k8s.io/queue-name"]'] == [SCHEDULER]
    assert found['metadata.labels["kueue.x-k8s.io/priority-class"]'] == [
        SCHEDULER,
        "chosen by Workload/app spec.priorityClass",
        "copied PriorityClass/urgent metadata.name",
    ]


def test_kai_scheduler_s_queue_is_named_by_tenant_and_pool() -> None:
    found = leaves("Deployment", scheduler="kai")

    labels = "spec.template.metadata.labels"
    assert found[f'{labels}["kai.scheduler/queue"]'] == [
        SCHEDULER,
        "chosen by Workload/app spec.pool",
        "chosen by Workload/app spec.tenant",
        "copied Pool/gpus metadata.name",
        "copied Tenant/research metadata.name",
    ]
    assert "chosen by PriorityClass/urgent spec.preemptible" in found[f'{labels}["kai.scheduler/preemptibility"]']
    assert found[f"{POD}.schedulerName"] == [SCHEDULER]


def test_fractions_are_copied_from_a_number_or_a_range() -> None:
    spec, annotations = SERVICE, "spec.template.metadata.annotations"
    one = leaves("Deployment", f"{spec}\nfraction: 0.5", scheduler="runai", sharing="fraction: {}")
    three = leaves("Deployment", f"{spec}\nfraction: {{memory: 5Gi}}", scheduler="kai", sharing="fraction: {}")
    two = leaves("Deployment", f"{spec}\nfraction: {{min: 0.25, max: 0.5}}", scheduler="runai", sharing="fraction: {}")

    assert "product of Workload/app spec.fraction.memory" in three[f"{annotations}.gpu-memory"]
    assert one[f"{annotations}.gpu-fraction"] == [SCHEDULER, "copied Workload/app spec.fraction"]
    assert two[f"{annotations}.gpu-fraction"] == [SCHEDULER, "copied Workload/app spec.fraction.min"]
    limit = f'{annotations}["kai.scheduler/container.main.gpu-memory.portion.limit"]'
    assert "copied Workload/app spec.fraction.max" in two[limit]
    assert "copied Workload/app spec.fraction.max" in two["spec.template.spec.containers[0].env[0].value"]


def test_a_gang_s_place_is_the_pool_s_lowest_level() -> None:
    more = {"scheduler": "kueue", "pool": "topology: [example.com/block, example.com/rack]"}
    found = leaves("Job", "training: {pods: 4, gang: 3}", **more)

    level = found['spec.template.metadata.annotations["kueue.x-k8s.io/podset-preferred-topology"]']
    assert "copied Pool/gpus spec.topology[1]" in level
