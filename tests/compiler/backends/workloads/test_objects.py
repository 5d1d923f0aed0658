"""A workload's objects, on a cluster with nothing but Kubernetes' own scheduler."""

from __future__ import annotations

import pytest

from gpuplan.compiler.manifests import check_schemas
from tests.compiler.backends.workloads.rendered import SERVICE, TRAINING, container_of, get, manifests, planned, pod_of

SCALED = "inference: {port: 8080, autoscaling: {minReplicas: 2, maxReplicas: 6, requestsPerSecond: 20}}"
MODEL = f"""\
{SERVICE}
model:
  size: 100Gi
  storageClass: fast
  mountPath: /models
  download: {{image: "registry.example.com/fetch:2", command: [fetch], args: [example/model, /models]}}
"""
BARE_MODEL = f"{SERVICE}\nmodel: {{size: 10Gi, accessMode: ReadWriteOnce}}"
LABELS = {"gpuplan.dev/tenant": "research", "gpuplan.dev/workload": "app"}
SECURITY = {"allowPrivilegeEscalation": False}
TOLERATIONS = [
    {"key": "nvidia.com/gpu", "operator": "Equal", "value": "gpus", "effect": "NoSchedule"},
    {"key": "example.com/maintenance", "operator": "Exists", "effect": "NoExecute"},
]


def test_a_service_as_a_whole() -> None:
    spec = f"{SERVICE}\ncpu: '4'\nmemory: 32Gi\ncommand: [serve]\nargs: [--fast]\nenv: {{B: '1', A: '2'}}"
    asked = {"cpu": "4", "memory": "32Gi", "nvidia.com/gpu": "1"}
    assert get("Deployment", spec) == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "app", "namespace": "lab", "labels": LABELS},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"gpuplan.dev/workload": "app"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
            "template": {
                "metadata": {"labels": LABELS},
                "spec": {
                    "priorityClassName": "urgent",
                    "nodeSelector": {"gpuplan.dev/pool": "gpus"},
                    "tolerations": TOLERATIONS,
                    "automountServiceAccountToken": False,
                    "enableServiceLinks": False,
                    "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
                    "containers": [
                        {
                            "name": "main",
                            "image": "registry.example.com/app:1",
                            "command": ["serve"],
                            "args": ["--fast"],
                            "env": [{"name": "B", "value": "1"}, {"name": "A", "value": "2"}],
                            "ports": [{"name": "http", "containerPort": 8080}],
                            "readinessProbe": {"tcpSocket": {"port": "http"}},
                            "resources": {"limits": asked, "requests": asked},
                            "securityContext": SECURITY,
                        }
                    ],
                },
            },
        },
    }


def test_the_service_leads_to_the_pods_of_the_deployment() -> None:
    service = get("Service")
    assert service["spec"] == {
        "selector": {"gpuplan.dev/workload": "app"},
        "ports": [{"name": "http", "port": 8080, "targetPort": "http"}],
    }
    assert service["spec"]["selector"].items() <= pod_of("Deployment")["metadata"]["labels"].items()


def test_replicas_are_those_of_the_policy() -> None:
    assert get("Deployment", "inference: {replicas: 3}")["spec"]["replicas"] == 3


def test_no_pod_is_added_before_an_old_one_has_given_its_units_back() -> None:
    assert get("Deployment")["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}


# --- Probes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inference", "probe"),
    [
        ("port: 80", {"tcpSocket": {"port": "http"}}),
        ("port: 80, probe: tcp", {"tcpSocket": {"port": "http"}}),
        ("port: 80, probe: grpc", {"grpc": {"port": 80}}),
        ("port: 80, probe: {http: /health}", {"httpGet": {"path": "/health", "port": "http"}}),
        (
            "port: 80, ports: {admin: 81}, probe: {http: /health, port: admin, timeout: 5s}",
            {"httpGet": {"path": "/health", "port": "admin"}, "timeoutSeconds": 5},
        ),
        ("port: 80, ports: {rpc: 81}, probe: {grpc: a.B, port: rpc}", {"grpc": {"port": 81, "service": "a.B"}}),
        ("port: none, probe: {command: [cat, /ready]}", {"exec": {"command": ["cat", "/ready"]}}),
    ],
)
def test_a_container_is_asked_as_the_policy_says(inference: str, probe: object) -> None:
    found = container_of("Deployment", f"inference: {{{inference}}}")
    assert found["readinessProbe"] == probe
    assert "startupProbe" not in found


@pytest.mark.parametrize("inference", ["port: none", "port: 80, probe: none"])
def test_nobody_asks_a_container_that_has_no_probe(inference: str) -> None:
    assert "readinessProbe" not in container_of("Deployment", f"inference: {{{inference}}}")


def test_a_container_has_its_time_to_start_and_the_deployment_more() -> None:
    spec = "inference: {port: 80, probe: {http: /health}, startup: 15m5s}"
    action = {"httpGet": {"path": "/health", "port": "http"}}
    found = container_of("Deployment", spec)
    assert found["startupProbe"] == {**action, "periodSeconds": 10, "failureThreshold": 91}
    assert found["readinessProbe"] == action
    assert get("Deployment", spec)["spec"]["progressDeadlineSeconds"] == 905 + 600


# --- Services ----------------------------------------------------------------------------------------------------


def test_a_service_without_a_port_has_no_service() -> None:
    found = manifests("inference: {port: none}")
    assert [manifest.kind for manifest in found] == ["Deployment"]
    assert "ports" not in container_of("Deployment", "inference: {port: none}")


def test_a_service_is_reached_at_a_port_of_the_nodes() -> None:
    spec = "inference: {port: 8000, ports: {grpc: 8001}, service: {type: NodePort, port: 80, nodePort: 30080}}"
    found = get("Service", spec)["spec"]
    assert found["type"] == "NodePort"
    assert found["ports"] == [
        {"name": "http", "port": 80, "targetPort": "http", "nodePort": 30080},
        {"name": "grpc", "port": 8001, "targetPort": "grpc"},
    ]
    assert container_of("Deployment", spec)["ports"] == [
        {"name": "http", "containerPort": 8000},
        {"name": "grpc", "containerPort": 8001},
    ]
    assert check_schemas(manifests(spec), "1.34") == ()


def test_a_load_balancer_leads_to_a_service() -> None:
    assert get("Service", "inference: {service: {type: LoadBalancer}}")["spec"]["type"] == "LoadBalancer"


# --- Secrets -----------------------------------------------------------------------------------------------------

BY_NAME = """\
env:
  LEVEL: debug
  TOKEN: {secretKeyRef: {name: api, key: token}}
  MODEL: {configMapKeyRef: {name: model, key: id}}
imagePullSecrets: [registry, mirror]
"""
VARIABLES = [
    {"name": "LEVEL", "value": "debug"},
    {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "api", "key": "token"}}},
    {"name": "MODEL", "valueFrom": {"configMapKeyRef": {"name": "model", "key": "id"}}},
]


@pytest.mark.parametrize(("kind", "work"), [("Deployment", SERVICE), ("Job", TRAINING)])
def test_values_from_elsewhere_are_named(kind: str, work: str) -> None:
    assert container_of(kind, f"{work}\n{BY_NAME}")["env"] == VARIABLES
    secrets = [{"name": "registry"}, {"name": "mirror"}]
    assert pod_of(kind, f"{work}\n{BY_NAME}")["spec"]["imagePullSecrets"] == secrets


def test_a_download_has_variables_of_its_own_and_the_workload_s_pull_secrets() -> None:
    token = "{secretKeyRef: {name: hugging-face, key: token}}"
    model = f"model: {{size: 1Gi, download: {{image: 'example.com/fetch:2', env: {{HF_TOKEN: {token}}}}}}}"
    spec = f"{SERVICE}\n{BY_NAME}{model}"
    reference = {"name": "hugging-face", "key": "token"}
    assert container_of("Job", spec)["env"] == [{"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": reference}}]
    assert pod_of("Job", spec)["spec"]["imagePullSecrets"] == [{"name": "registry"}, {"name": "mirror"}]
    assert check_schemas(manifests(spec), "1.34") == ()


# --- Autoscaling -------------------------------------------------------------------------------------------------


def test_an_autoscaler_counts_requests() -> None:
    assert get("HorizontalPodAutoscaler", SCALED) == {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "app", "namespace": "lab", "labels": LABELS},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "app"},
            "minReplicas": 2,
            "maxReplicas": 6,
            "metrics": [
                {
                    "type": "Pods",
                    "pods": {
                        "metric": {"name": "http_requests_per_second"},
                        "target": {"type": "AverageValue", "averageValue": "20"},
                    },
                }
            ],
        },
    }


@pytest.mark.parametrize(
    ("follows", "metric"),
    [
        (
            "waitingRequests: 5",
            {
                "type": "Pods",
                "pods": {
                    "metric": {"name": "vllm:num_requests_waiting"},
                    "target": {"type": "AverageValue", "averageValue": "5"},
                },
            },
        ),
        (
            "gpuPercent: 80",
            {
                "type": "Pods",
                "pods": {
                    "metric": {"name": "DCGM_FI_PROF_GR_ENGINE_ACTIVE"},
                    "target": {"type": "AverageValue", "averageValue": "800m"},
                },
            },
        ),
        (
            "cpuPercent: 70",
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}},
            },
        ),
    ],
)
def test_an_autoscaler_follows_what_the_policy_says(follows: str, metric: object) -> None:
    spec = f"inference: {{autoscaling: {{maxReplicas: 4, {follows}}}}}\ncpu: '4'"
    assert get("HorizontalPodAutoscaler", spec)["spec"]["metrics"] == [metric]
    assert check_schemas(manifests(spec), "1.34") == ()


def test_nobody_else_states_the_number_of_pods_that_an_autoscaler_keeps() -> None:
    assert "replicas" not in get("Deployment", SCALED)["spec"]


# --- Training ----------------------------------------------------------------------------------------------------


def test_a_training_runs_all_pods_at_once_and_each_once() -> None:
    job = get("Job", "training: {pods: 4, backoffLimit: 2}")
    spec = {key: value for key, value in job["spec"].items() if key != "template"}
    assert spec == {
        "parallelism": 4,
        "completions": 4,
        "completionMode": "Indexed",
        "backoffLimit": 2,
        "podFailurePolicy": {
            "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
        },
    }
    assert job["spec"]["template"]["spec"]["restartPolicy"] == "Never"


def test_trials_come_a_few_at_once() -> None:
    job = get("Job", "training: {trials: 40, pods: 4}")
    assert (job["spec"]["parallelism"], job["spec"]["completions"]) == (4, 40)
    assert planned("training: {trials: 40, pods: 4}").workloads[0].most_pods == 4


def test_the_last_trial_has_a_host_name_that_fits() -> None:
    job = get("Job", "training: {trials: 10000, pods: 4}", name="a" * 63)["metadata"]["name"]
    assert len(f"{job}-9999") == 63


@pytest.mark.parametrize(
    ("training", "tries"),
    [
        ("{pods: 4}", {"backoffLimit": 3}),
        ("{pods: 4, backoffLimitPerIndex: 2}", {"backoffLimitPerIndex": 2}),
        ("{pods: 4, backoffLimitPerIndex: 0, backoffLimit: 9}", {"backoffLimitPerIndex": 0, "backoffLimit": 9}),
        ("{pods: 4, backoffLimitPerIndex: 2, maxFailedIndexes: 1}", {"backoffLimitPerIndex": 2, "maxFailedIndexes": 1}),
        ("{pods: 4, backoffLimitPerIndex: 2, peers: {}}", {"backoffLimitPerIndex": 2, "maxFailedIndexes": 0}),
        (
            "{pods: 4, backoffLimitPerIndex: 2, peers: {}, maxFailedIndexes: 3}",
            {"backoffLimitPerIndex": 2, "maxFailedIndexes": 3},
        ),
    ],
)
def test_pods_share_their_tries_or_each_has_its_own(training: str, tries: dict[str, int]) -> None:
    """Those who wait for one another end as soon as one has failed for good."""
    spec = get("Job", f"training: {training}")["spec"]
    assert {
        key: spec[key] for key in ("backoffLimit", "backoffLimitPerIndex", "maxFailedIndexes") if key in spec
    } == tries


@pytest.mark.parametrize(
    ("training", "action"),
    [
        ("{pods: 2", "FailJob"),
        ("{pods: 2, backoffLimitPerIndex: 1", "FailJob"),
        ("{pods: 2, trials: 8", "FailJob"),
        ("{pods: 2, trials: 8, backoffLimitPerIndex: 1", "FailIndex"),
    ],
)
def test_after_a_fatal_exit_nothing_is_tried_again_where_pods_depend_on_one_another(training: str, action: str) -> None:
    evicted, fatal = get("Job", f"training: {training}, fatalExitCodes: [78, 2, 78]}}")["spec"]["podFailurePolicy"][
        "rules"
    ]
    assert evicted["action"] == "Ignore"
    assert fatal == {"action": action, "onExitCodes": {"containerName": "main", "operator": "In", "values": [2, 78]}}


def test_a_training_may_take_as_long_as_its_deadline() -> None:
    assert get("Job", "training: {pods: 4, deadline: 1h30m}")["spec"]["activeDeadlineSeconds"] == 5400


def test_a_training_listens_to_nobody() -> None:
    assert {"ports", "readinessProbe"}.isdisjoint(container_of("Job", TRAINING))
    assert [manifest.kind for manifest in manifests(TRAINING)] == ["Job"]


def test_another_training_is_another_job() -> None:
    """A Job's pods cannot be changed (`ValidateJobUpdate` in `pkg/apis/batch/validation/validation.go`)."""
    name = get("Job", TRAINING)["metadata"]["name"]
    assert name.startswith("app-")
    assert len(name) == len("app-") + 8
    assert get("Job", f"{TRAINING}\nargs: [--again]")["metadata"]["name"] != name
    assert get("Job", TRAINING, pool="placement: binpack")["metadata"]["name"] == name


def test_the_name_of_each_pod_of_a_job_fits_a_host_name() -> None:
    long = "a" * 63
    job = get("Job", "training: {pods: 1000}", name=long)["metadata"]["name"]
    assert len(f"{job}-999") == 63
    assert get("Job", "training: {pods: 1000}", name=f"{'a' * 62}b")["metadata"]["name"] != job


# --- Pods that find one another ----------------------------------------------------------------------------------

PEERS = "training: {pods: 4, gang: 4, peers: {port: 23456}}"


def variables_of(spec: str, **more: str) -> dict[str, object]:
    return {item["name"]: item.get("value", item.get("valueFrom")) for item in container_of("Job", spec, **more)["env"]}


def test_the_pods_of_a_training_are_called_by_a_service_with_the_name_of_their_job() -> None:
    """A pod is `<hostname>.<subdomain>`, the host name of an indexed Job's pod is its Job's and its index
    (`podGenerateNameWithIndex` and `Hostname` in `pkg/controller/job/indexed_job_utils.go`)."""
    job, service = get("Job", PEERS), get("Service", PEERS)
    name = job["metadata"]["name"]
    assert job["spec"]["template"]["spec"]["subdomain"] == service["metadata"]["name"] == name
    assert service["spec"] == {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": {"gpuplan.dev/workload": "app"},
        "ports": [{"name": "rendezvous", "port": 23456}],
    }
    assert service["spec"]["selector"].items() <= job["spec"]["template"]["metadata"]["labels"].items()


def test_a_pod_knows_the_first_one_and_which_it_is_itself() -> None:
    first = "{0}-0.{0}".format(get("Job", PEERS)["metadata"]["name"])
    index = {"fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}
    assert variables_of(PEERS) == {
        "MASTER_ADDR": first,
        "MASTER_PORT": "23456",
        "WORLD_SIZE": "4",
        "RANK": index,
        "PET_MASTER_ADDR": first,
        "PET_MASTER_PORT": "23456",
        "PET_NNODES": "4",
        "PET_NODE_RANK": index,
        "PET_NPROC_PER_NODE": "1",
    }


@pytest.mark.parametrize(
    ("sharing", "processes"),
    [("exclusive: {}", "2"), ("mig: {instances: {3g.40gb: 2}}", "1"), ("timeSlicing: {replicas: 3}", "1")],
)
def test_torchrun_starts_a_process_for_each_gpu_that_it_sees(sharing: str, processes: str) -> None:
    assert variables_of(f"{PEERS}\ncount: 2", sharing=sharing)["PET_NPROC_PER_NODE"] == processes


def test_what_the_policy_says_of_a_variable_counts() -> None:
    found = variables_of(f"{PEERS}\nenv: {{PET_NNODES: '2:4', LEVEL: info}}")
    assert (found["PET_NNODES"], found["LEVEL"], found["WORLD_SIZE"]) == ("2:4", "info", "4")


def test_another_port_is_another_job_and_another_service() -> None:
    """Neither ever changes, so that no address of a Service has to."""
    names = {get(kind, PEERS)["metadata"]["name"] for kind in ("Job", "Service")}
    others = {get(kind, PEERS.replace("23456", "29500"))["metadata"]["name"] for kind in ("Job", "Service")}
    assert len(names) == len(others) == 1
    assert names.isdisjoint(others)
    assert get("Job", "training: {pods: 4, gang: 4, peers: {}}")["metadata"]["name"] in others


def test_names_of_pods_that_find_one_another_fit_a_label() -> None:
    job = get("Job", "training: {pods: 1000, peers: {}}", name="a" * 63)["metadata"]["name"]
    assert len(f"{job}-999") == 63


# --- Pods that come and go ---------------------------------------------------------------------------------------

ELASTIC = "training: {pods: 4, backoffLimit: 7, peers: {port: 23456}, elastic: {minPods: 2}}"


def test_pods_that_come_and_go_meet_at_the_first_one() -> None:
    """The variables are torchrun's arguments (`torch/distributed/run.py`): `--nnodes`, `--rdzv-backend` and so on."""
    first = "{0}-0.{0}".format(get("Job", ELASTIC)["metadata"]["name"])
    assert variables_of(ELASTIC) == {
        "PET_NNODES": "2:4",
        "PET_RDZV_BACKEND": "c10d",
        "PET_RDZV_ENDPOINT": f"{first}:23456",
        "PET_RDZV_ID": first,
        "PET_RDZV_CONF": "read_timeout=600",
        "PET_MAX_RESTARTS": "7",
        "PET_NPROC_PER_NODE": "1",
    }


def test_each_pod_of_an_elastic_training_has_tries_of_its_own() -> None:
    """All others fail with the first one, which would use up what they have in common."""
    spec = get("Job", ELASTIC)["spec"]
    assert spec["backoffLimitPerIndex"] == 7
    assert not {"backoffLimit", "maxFailedIndexes"} & spec.keys()


def test_an_elastic_training_has_succeeded_with_its_first_pod() -> None:
    spec = get("Job", ELASTIC)["spec"]
    assert spec["successPolicy"] == {"rules": [{"succeededIndexes": "0"}]}
    assert (spec["parallelism"], spec["completions"]) == (4, 4)
    assert "successPolicy" not in get("Job", PEERS)["spec"]


@pytest.mark.parametrize("scheduler", ["kai", "runai"])
def test_the_fewest_pods_of_an_elastic_training_are_its_gang(scheduler: str) -> None:
    annotations = get("Job", ELASTIC, scheduler=scheduler)["metadata"]["annotations"]
    assert annotations == {"kai.scheduler/batch-min-member": "2"}


def test_an_elastic_training_is_counted_at_its_largest() -> None:
    (workload,) = planned(ELASTIC).workloads
    assert workload.most_pods == 4


# --- Checkpoints -------------------------------------------------------------------------------------------------

CHECKPOINT = "training: {pods: 2, checkpoint: {size: 500Gi, storageClass: fast, mountPath: /state}}"


def test_checkpoints_are_in_a_volume_that_the_pods_may_write_to() -> None:
    claim = get("PersistentVolumeClaim", CHECKPOINT)
    assert claim["metadata"]["name"] == "app-checkpoint"
    assert claim["spec"] == {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "fast",
        "resources": {"requests": {"storage": "500Gi"}},
    }
    pod = pod_of("Job", CHECKPOINT)["spec"]
    assert pod["volumes"] == [{"name": "checkpoint", "persistentVolumeClaim": {"claimName": "app-checkpoint"}}]
    assert pod["containers"][0]["volumeMounts"] == [{"name": "checkpoint", "mountPath": "/state"}]


def test_another_job_has_the_volume_of_the_one_before() -> None:
    jobs, claims = (
        {get(kind, f"{CHECKPOINT}\nargs: [{word}]")["metadata"]["name"] for word in ("a", "b")}
        for kind in ("Job", "PersistentVolumeClaim")
    )
    assert (len(jobs), len(claims)) == (2, 1)


def test_a_model_and_checkpoints_are_two_volumes() -> None:
    both = f"{CHECKPOINT}\nmodel: {{size: 1Gi, download: {{image: 'registry.example.com/get:1'}}}}"
    claims = [item.name for item in manifests(both) if item.kind == "PersistentVolumeClaim"]
    assert claims == ["app-model", "app-checkpoint"]
    download, job = (item.body for item in manifests(both) if item.kind == "Job")
    names = [[found["name"] for found in body["spec"]["template"]["spec"]["volumes"]] for body in (download, job)]
    assert names == [["model"], ["model", "checkpoint"]]


@pytest.mark.parametrize("kind", ["JobSet", "TrainJob"])
def test_a_set_has_its_checkpoints_too(kind: str) -> None:
    spec = f"training: {{kind: {kind}, pods: 2, checkpoint: {{size: 5Gi}}}}"
    pod = pod_of("JobSet" if kind == "JobSet" else "TrainingRuntime", spec)["spec"]
    assert pod["containers"][0]["volumeMounts"] == [{"name": "checkpoint", "mountPath": "/checkpoints"}]


# --- Devices -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sharing", "resource"),
    [
        ("exclusive: {}", "nvidia.com/gpu"),
        ("timeSlicing: {replicas: 3}", "nvidia.com/gpu.shared"),
        ("mps: {replicas: 3}", "nvidia.com/gpu.shared"),
        ("mig: {instances: {3g.40gb: 2}}", "nvidia.com/mig-3g.40gb"),
        ("mig: {instances: {3g.40gb: 2}, strategy: single}", "nvidia.com/gpu"),
    ],
)
def test_a_pod_asks_for_its_unit_by_the_resource_of_the_pool(sharing: str, resource: str) -> None:
    asked = {resource: "2"}
    assert container_of("Deployment", f"{SERVICE}\ncount: 2", sharing=sharing)["resources"] == {
        "limits": asked,
        "requests": asked,
    }


def test_limits_and_requests_are_equal_and_not_one_object() -> None:
    resources = container_of("Deployment")["resources"]
    assert resources["limits"] == resources["requests"]
    assert resources["limits"] is not resources["requests"]


def test_a_pool_of_claims_is_asked_by_claims_of_one_device_each() -> None:
    more = {"sharing": "mig: {instances: {2g.20gb: 3}}", "pool": "allocation: dra"}
    pod = pod_of("Job", f"{TRAINING}\ncount: 2\ncpu: '2'", **more)["spec"]
    assert pod["resourceClaims"] == [
        {"name": "unit-0", "resourceClaimTemplateName": "gpuplan-a100-80gb-2g.20gb"},
        {"name": "unit-1", "resourceClaimTemplateName": "gpuplan-a100-80gb-2g.20gb"},
    ]
    assert pod["containers"][0]["resources"] == {
        "limits": {"cpu": "2"},
        "requests": {"cpu": "2"},
        "claims": [{"name": "unit-0"}, {"name": "unit-1"}],
    }


# --- Configuration and model -------------------------------------------------------------------------------------


def test_files_are_mounted_from_a_config_map_that_never_changes() -> None:
    spec = f'{SERVICE}\nconfig: {{server.yaml: "workers: 2"}}'
    found = get("ConfigMap", spec)
    assert (found["immutable"], found["data"]) == (True, {"server.yaml": "workers: 2"})
    pod = pod_of("Deployment", spec)["spec"]
    assert pod["volumes"] == [{"name": "config", "configMap": {"name": found["metadata"]["name"]}}]
    assert pod["containers"][0]["volumeMounts"] == [{"name": "config", "mountPath": "/etc/workload", "readOnly": True}]


def test_other_files_are_another_config_map() -> None:
    one = get("ConfigMap", f'{SERVICE}\nconfig: {{server.yaml: "workers: 2"}}')["metadata"]["name"]
    other = get("ConfigMap", f'{SERVICE}\nconfig: {{server.yaml: "workers: 3"}}')["metadata"]["name"]
    assert one != other


def test_a_model_has_a_claim() -> None:
    assert get("PersistentVolumeClaim", MODEL) == {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "app-model", "namespace": "lab", "labels": LABELS},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "fast",
            "resources": {"requests": {"storage": "100Gi"}},
        },
    }
    bare = get("PersistentVolumeClaim", BARE_MODEL)["spec"]
    assert bare == {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}}}


def test_a_download_runs_where_the_pods_will_and_takes_nobodys_place() -> None:
    job = get("Job", MODEL)
    assert job["metadata"]["name"].startswith("app-download-")
    assert job["spec"] == {
        "template": {
            "metadata": {"labels": {"gpuplan.dev/tenant": "research"}},
            "spec": {
                "restartPolicy": "OnFailure",
                "nodeSelector": {"gpuplan.dev/pool": "gpus"},
                "tolerations": TOLERATIONS,
                "automountServiceAccountToken": False,
                "enableServiceLinks": False,
                "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
                "containers": [
                    {
                        "name": "download",
                        "image": "registry.example.com/fetch:2",
                        "command": ["fetch"],
                        "args": ["example/model", "/models"],
                        "securityContext": SECURITY,
                        "volumeMounts": [{"name": "model", "mountPath": "/models"}],
                    }
                ],
                "volumes": [{"name": "model", "persistentVolumeClaim": {"claimName": "app-model"}}],
            },
        }
    }


def test_another_download_is_another_job() -> None:
    name = get("Job", MODEL)["metadata"]["name"]
    assert get("Job", MODEL.replace("fetch:2", "fetch:3"))["metadata"]["name"] != name
    assert get("Job", f"{MODEL}args: [--fast]")["metadata"]["name"] == name


def test_no_request_goes_to_a_download() -> None:
    labels = get("Job", MODEL)["spec"]["template"]["metadata"]["labels"]
    assert not get("Service", MODEL)["spec"]["selector"].items() <= labels.items()


def test_a_service_only_reads_what_was_downloaded() -> None:
    (mount,) = container_of("Deployment", MODEL)["volumeMounts"]
    assert mount == {"name": "model", "mountPath": "/models", "readOnly": True}
    (mount,) = container_of("Deployment", BARE_MODEL)["volumeMounts"]
    assert mount == {"name": "model", "mountPath": "/models"}


def test_a_training_may_write_into_its_volume() -> None:
    spec = MODEL.replace(SERVICE, TRAINING)
    pods = [item.body["spec"]["template"]["spec"] for item in manifests(spec) if item.kind == "Job"]
    assert [pod["containers"][0]["volumeMounts"] for pod in pods] == [[{"name": "model", "mountPath": "/models"}]] * 2


# --- Security ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["Deployment", "Job"])
def test_restricted_pods_say_what_their_level_asks_for(kind: str) -> None:
    """As https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted has it."""
    pod = pod_of(kind, MODEL, security="restricted")["spec"]
    assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert pod["containers"][0]["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }


@pytest.mark.parametrize("security", ["baseline", "privileged"])
def test_elsewhere_images_may_run_as_root(security: str) -> None:
    pod = pod_of("Deployment", security=security)["spec"]
    assert pod["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}
    assert pod["containers"][0]["securityContext"] == {"allowPrivilegeEscalation": False}


# --- Folders and order -------------------------------------------------------------------------------------------


def test_all_is_in_the_folder_of_the_namespace() -> None:
    assert {manifest.folder for manifest in manifests(MODEL)} == {"workloads/lab"}


def test_pods_come_after_what_they_need() -> None:
    order = {(manifest.kind, manifest.order) for manifest in manifests(MODEL)}
    assert order == {("PersistentVolumeClaim", 0), ("Job", 0), ("Deployment", 1), ("Service", 1)}


def test_a_volume_that_waits_for_its_first_pod_comes_with_it() -> None:
    """A claim is not healthy before it is bound, and with `WaitForFirstConsumer` a pod must come first."""
    order = {manifest.kind: manifest.order for manifest in manifests(BARE_MODEL)}
    assert order["PersistentVolumeClaim"] == order["Deployment"] == 1


def test_nothing_comes_after_a_training() -> None:
    assert max(manifest.order for manifest in manifests(MODEL)) == manifests(TRAINING)[0].order


@pytest.mark.parametrize("kubernetes", ["1.30", "1.34"])
@pytest.mark.parametrize("spec", [SERVICE, SCALED, MODEL, MODEL.replace(SERVICE, TRAINING), TRAINING])
def test_objects_fit_their_schemas(spec: str, kubernetes: str) -> None:
    spec += '\nconfig: {a.txt: "b"}\ncpu: 500m'
    assert check_schemas(manifests(spec, security="restricted"), kubernetes) == ()


def test_claims_fit_their_schemas() -> None:
    found = manifests(TRAINING, sharing="mig: {instances: {2g.20gb: 3}}", pool="allocation: dra")
    assert check_schemas(found, "1.34") == ()
