"""Kinds of mistakes in files of others: refused by the API server, or without an effect; and the nearest that is right.

Each row has a file that is wrong, the codes that are found in it, and the same file with a part replaced, which is
right.
"""

from __future__ import annotations

import json
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from gpuplan.compiler.base.diagnostics import Diagnostic
from gpuplan.features.files.checking import check_files


class Row(NamedTuple):
    """A text, what is found in it, what to replace in it, and by what, for nothing to be found."""

    text: str
    found: str
    wrong: str
    right: str


def judged(text: str, gpu: str = "") -> list[Diagnostic]:
    return list(check_files({"a.yaml": text.encode()}, gpus=[gpu] if gpu else []).diagnostics)


def codes(text: str, gpu: str = "") -> str:
    return " ".join(f"{item.severity}:{item.code}" for item in judged(text, gpu))


def helps(text: str, gpu: str = "") -> list[str]:
    return [item.finding.help or "" for item in judged(text, gpu)]


def both(row: Row) -> None:
    assert codes(row.text) == row.found
    assert row.wrong in row.text
    assert codes(row.text.replace(row.wrong, row.right)) == ""


def rows(*found: Row) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("row", found, ids=[f"{row.wrong} to {row.right}"[:60] for row in found])


# --- Where programs that install charts have values --------------------------------------------------------------

SHARES = "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 1}]}}\n"


def indented(text: str, by: int) -> str:
    return "".join(f"{' ' * by}{line}\n" for line in text.splitlines())


ARGO = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: plugin, namespace: argocd}
spec:
  project: default
  destination: {name: in-cluster}
"""
PLUGIN_VALUES = "config:\n  map:\n    any: |\n" + indented(SHARES, 6)
SOURCE = "repoURL: https://charts.example.com, chart: nvidia-device-plugin, targetRevision: 0.17.1"
REFUSED_SHARES = {
    "a source with an object": f"{ARGO}  source:\n    repoURL: https://charts.example.com\n"
    f"    chart: nvidia-device-plugin\n    targetRevision: 0.17.1\n    helm:\n      valuesObject:\n"
    + indented(PLUGIN_VALUES, 8),
    "sources with a text": f"{ARGO}  sources:\n  - repoURL: https://charts.example.com\n"
    f"    chart: nvidia-device-plugin\n    targetRevision: 0.17.1\n    helm:\n      values: |\n"
    + indented(PLUGIN_VALUES, 8),
    "a HelmRelease": "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: a}\nspec:\n"
    "  interval: 1h\n  chart: {spec: {chart: nvidia-device-plugin, version: 0.17.1, sourceRef: {kind: HelmRepository, "
    "name: nvidia}}}\n  values:\n" + indented(PLUGIN_VALUES, 4),
    "a HelmChart": "apiVersion: helm.cattle.io/v1\nkind: HelmChart\nmetadata: {name: a}\nspec:\n"
    "  chart: nvidia-device-plugin\n  valuesContent: |\n" + indented(PLUGIN_VALUES, 4),
    "a HelmChartConfig": "apiVersion: helm.cattle.io/v1\nkind: HelmChartConfig\nmetadata: {name: a}\nspec:\n"
    "  valuesContent: |\n" + indented(PLUGIN_VALUES, 4),
    "values in a ConfigMap": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  values.yaml: |\n"
    + indented(PLUGIN_VALUES, 4),
}


@pytest.mark.parametrize("text", REFUSED_SHARES.values(), ids=REFUSED_SHARES)
def test_files_of_the_device_plugin_are_found_wherever_its_chart_is_installed(text: str) -> None:
    assert codes(text) == "error:GPU630"
    assert codes(text.replace("replicas: 1", "replicas: 2")) == ""


def test_files_of_another_chart_are_left_alone() -> None:
    other = REFUSED_SHARES["a HelmChart"].replace("chart: nvidia-device-plugin", "chart: whatever")

    assert codes(other) == "note:GPU801"


@rows(
    Row(
        f"{ARGO}  source:\n    repoURL: https://charts.example.com\n    chart: gpu-operator\n"
        "    targetRevision: v26.3.1\n    helm: {parameters: [{name: mig.strategyy, value: single}]}\n",
        "error:GPU600",
        "strategyy",
        "strategy",
    ),
    Row(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  values.yaml: |\n    mig: {strategyy: single}\n",
        "error:GPU600",
        "strategyy",
        "strategy",
    ),
    Row(
        "apiVersion: helm.cattle.io/v1\nkind: HelmChartConfig\nmetadata: {name: gpu-operator}\nspec:\n"
        "  valuesContent: |\n    devicePlugin: {enabledd: true}\n",
        "error:GPU600",
        "enabledd",
        "enabled",
    ),
)
def test_values_of_the_operator_are_found_as_parameters_and_in_config_maps(row: Row) -> None:
    both(row)


@rows(
    Row("migManager: {env: [{name: WITH_REBOOT, value: true}]}\n", "error:GPU478", "value: true", 'value: "true"'),
    Row("devicePlugin: {env: [{name: A, value: 1}]}\n", "error:GPU478", "value: 1", 'value: "1"'),
    Row("dcgmExporter: {env: [{name: A, value: [a]}]}\n", "error:GPU478", "value: [a]", "value: a"),
    Row("driver: {env: [{name: A, value: 0.5}]}\nmig: {}\n", "error:GPU478", "value: 0.5", "valueFrom: {}"),
    Row(
        "migManager: {config: {name: parts}}\ngfd: {enabled: false}\n",
        "error:GPU609",
        "enabled: false",
        "enabled: true",
    ),
    Row(
        "devicePlugin: {config: {name: shares}}\nsandboxWorkloads: {enabled: true, defaultWorkload: vm-passthrough}\n",
        "error:GPU609",
        "vm-passthrough",
        "container",
    ),
    Row(
        "migManager: {config: {name: parts}}\nsandboxWorkloads: {enabled: true, defaultWorkload: vm-vgpu}\n",
        "error:GPU609",
        "enabled: true",
        "enabled: false",
    ),
)
def test_values_that_make_a_cluster_policy_nobody_takes_or_take_its_nodes_away(row: Row) -> None:
    both(row)


CHART = "apiVersion: helm.cattle.io/v1\nkind: HelmChart\nmetadata: {name: a}\nspec: {chart: nvidia-device-plugin, "


@rows(
    Row("migStrategy: multi\n", "error:GPU630", "multi", "mixed"),
    Row("deviceListStrategy: envvar,cdi\n", "error:GPU630", "cdi", "cdi-cri"),
    Row(f"{CHART}valuesContent: 'deviceIDStrategy: id'}}\n", "error:GPU630", "'deviceIDStrategy: id'", "'gfd: {}'"),
    Row(f"{CHART}valuesContent: 'deviceDiscoveryStrategy: wsl'}}\n", "error:GPU630", "wsl", "nvml"),
)
def test_values_of_the_device_plugins_chart_that_the_plugin_refuses(row: Row) -> None:
    both(row)


# --- Files of the device plugin ----------------------------------------------------------------------------------


@rows(
    Row('flags: {plugin: {deviceListStrategy: "envvar,cdi-cri"}}\n', "error:GPU630", '"envvar,cdi-cri"', "envvar"),
    Row("flags: {plugin: {deviceListStrategy: [envvar, cdi]}}\n", "error:GPU630", "cdi]", "cdi-annotations]"),
    Row("flags: {plugin: {deviceIDStrategy: pci}}\n", "error:GPU630", "pci", "index"),
    Row("flags: {deviceDiscoveryStrategy: nvm}\n", "error:GPU630", "nvm", "nvml"),
    Row("flags: {plugin: {sharedDevicesAllocationPolicy: binpack}}\n", "error:GPU630", "binpack", "packed"),
    Row('flags: {failOnInitError: "false"}\n', "error:GPU630", '"false"', "false"),
    Row("flags: {plugin: {passDeviceSpecs: 1}}\n", "error:GPU630", "1}}", "true}}"),
    Row("flags: {migStrategy: multi}\n", "error:GPU630", "multi", "mixed"),
)
def test_flags_that_the_device_plugin_refuses(row: Row) -> None:
    both(Row(f"version: v1\n{row.text}", row.found, row.wrong, row.right))


# --- Help leads to what was meant --------------------------------------------------------------------------------

MIG = """\
version: v1
mig-configs:
  all-disabled: [{devices: all, mig-enabled: false}]
  some: [{devices: %s, mig-enabled: %s, mig-devices: {1g.5gb: 7}%s}]
"""


@pytest.mark.parametrize(
    ("devices", "help_"),
    [
        ("7", "write `devices: [7]`"),
        ('"7"', "write `devices: [7]`"),
        ('"0,1"', "write `devices: [0,1]`"),
        ("ALL", "write indexes such as `devices: [0]`, or `devices: all`"),
        ("[a]", "write indexes such as `devices: [0]`, or `devices: all`"),
        ("null", "write indexes such as `devices: [0]`, or `devices: all`"),
    ],
)
def test_help_on_devices_names_no_more_gpus_than_were_named(devices: str, help_: str) -> None:
    assert help_ in helps(MIG % (devices, "true", ""))
    assert "write `devices: all`" not in helps(MIG % (devices, "true", ""))


@pytest.mark.parametrize(
    ("value", "help_"),
    [
        ("0x20B010DE", '`"0x20B010DE"`'),
        ('"0x20b0"', '`"0x20B010DE"`'),
        ("233010DE", '`"0x233010DE"`'),
        ("A100", "device and vendor in hex, in quotes, such as"),
    ],
)
def test_help_on_a_filter_names_the_board_that_is_meant(value: str, help_: str) -> None:
    found = helps(MIG % ("all", "true", f", device-filter: {value}"))

    assert len(found) == 1
    assert help_ in found[0]


@pytest.mark.parametrize(
    ("text", "help_"),
    [
        ('flags: {failOnInitError: "false"}', "write `failOnInitError: false`"),
        ('flags: {gdsEnabled: "True"}', "write `gdsEnabled: true`"),
        ("flags: {migStrategy: none, gdsEnabled: 1}", "write `gdsEnabled: true` or `gdsEnabled: false`"),
        ('sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: "4"}]}}', "write `replicas: 4`"),
        (
            "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 1}]}}",
            "leave `sharing` out to share nothing, or write 2 or more",
        ),
    ],
)
def test_help_on_the_device_plugin_keeps_what_was_said(text: str, help_: str) -> None:
    assert helps(f"version: v1\n{text}\n") == [help_]


def test_help_on_partitions_switches_nothing_on_alone() -> None:
    assert helps(MIG % ("all", "false", "")) == ["remove `mig-devices`, or write `mig-enabled: true`"]
    assert (
        helps(MIG % ("all", '"true"', ""))[0] == "write `mig-enabled: true` with instances, else `mig-enabled: false`"
    )


@pytest.mark.parametrize(("requests", "limits", "least"), [("1", "4", "1"), ("4", "1", "1"), ("2", "10", "2")])
def test_help_on_unequal_amounts_asks_for_the_smaller(requests: str, limits: str, least: str) -> None:
    resources = f"requests: {{nvidia.com/gpu: {requests}}}, limits: {{nvidia.com/gpu: {limits}}}"

    assert helps(POD % resources) == [f"write `limits: {{nvidia.com/gpu: {least}}}`, and remove it from `requests`"]


# --- Work --------------------------------------------------------------------------------------------------------

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: lab}
spec:
  containers: [{name: main, image: "example.com/app:1", resources: {%s}}]
"""
WORKFLOW = """\
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {generateName: a-, namespace: lab}
spec:
  entrypoint: main
  templates:
  - name: main
    container: {image: "example.com/app:1", resources: {requests: {nvidia.com/gpu: 1}}}
"""
HALF = POD % 'limits: {nvidia.com/gpu: "0.5"}'
TEMPLATE = "spec: {containers: [{name: main, image: example.com/app:1, resources: {limits: {%s: %s}}}]}"


@rows(
    Row(HALF, "error:GPU890", '"0.5"', "1"),
    Row(POD % "limits: {nvidia.com/gpu: 500m}", "error:GPU890", "500m", "1000m"),
    Row(POD % "limits: {nvidia.com.gpu: 1}", "error:GPU890", "nvidia.com.gpu", "nvidia.com/gpu"),
    Row(POD % "limits: {gpu: 1}", "error:GPU890", "{gpu", "{nvidia.com/gpu"),
    Row(WORKFLOW.replace("requests: {nvidia.com/", "limits: {"), "error:GPU890", "{gpu", "{nvidia.com/gpu"),
    Row(POD % "limits: {nvidia.com/gpu/shared: 1}", "error:GPU890", "gpu/shared", "gpu.shared"),
    Row(POD % "limits: {nvidia.com/mig-1g.10gb+me: 1}", "error:GPU890", "+me", ".me"),
    Row(POD % "limits: {nvidia.com/gpu: -1}", "error:GPU890", "-1", "0"),
    Row(POD % "requests: {nvidia.com/gpu: 1}", "error:GPU634", "requests", "limits"),
    Row(POD % "limits: {nvidia.com/gpus: 1}", "warning:GPU802", "gpus", "gpu"),
    Row(POD % "limits: {nvidia.com/GPU: 1}", "warning:GPU802", "GPU", "gpu"),
    Row(POD % "limits: {nvidia.com/mig-3g20gb: 1}", "warning:GPU802", "3g20gb", "3g.20gb"),
    Row(POD % "limits: {nvidia.com/gpu-shared: 1}", "warning:GPU802", "gpu-shared", "gpu.shared"),
)
def test_resources_that_the_api_server_refuses_or_no_plugin_publishes(row: Row) -> None:
    both(row)


@pytest.mark.parametrize(
    "resource",
    [
        *("nvidia.com/gpumem", "nvidia.com/gpucores", "nvidia.com/gpumem-percentage", "nvidia.com/pgpu"),
        *("nvidia.com/GA102GL_A10", "nvidia.com/NVIDIA_A10-12Q", "nvidia.com/hostdev", "nvidia.com/gpu-h100"),
        *("amd.com/gpu", "vpc.amazonaws.com/efa", "nvidia.com/mig-1g.10gb.me", "nvidia.com/mig-1g.10gb.shared"),
    ],
)
def test_resources_of_other_plugins_are_left_alone(resource: str) -> None:
    assert codes(POD % f"limits: {{{resource}: 1}}") == ""


def test_amounts_that_a_program_fills_in_are_left_alone() -> None:
    assert codes(POD % "limits: {nvidia.com/gpu: '${GPUS}'}, requests: {nvidia.com/gpu: '${OTHER}'}") == ""


def test_a_kind_may_have_its_own_names_for_resources() -> None:
    graph = "apiVersion: example.com/v1\nkind: Graph\nmetadata: {name: a}\nspec: {resources: {limits: {gpu: 1}}}\n"

    assert codes(graph) == ""
    assert codes(graph.replace("gpu: 1", "nvidia.com/gpu: 1.5")) == "error:GPU890"


@rows(
    Row(WORKFLOW, "error:GPU634", "requests", "limits"),
    Row(WORKFLOW.replace("container:", "script:"), "error:GPU634", "requests", "limits"),
    Row(
        "apiVersion: argoproj.io/v1alpha1\nkind: CronWorkflow\nmetadata: {name: a}\nspec:\n  schedule: '@daily'\n"
        f"  workflowSpec:\n{indented(WORKFLOW.partition('spec:')[2].replace(chr(10) + '  ', chr(10)), 4)}",
        "error:GPU634",
        "requests",
        "limits",
    ),
    Row(WORKFLOW.replace("requests: {nvidia.com/gpu: 1}", "limits: {nvidia.com/gpu: 0.5}"), "error:GPU890", "0.5", "1"),
    Row(
        "apiVersion: example.com/v1\nkind: Train\nmetadata: {name: a}\n"
        "spec: {trainer: {resourcesPerNode: {requests: {nvidia.com/gpu: 1}}}}\n",
        "error:GPU634",
        "requests",
        "limits",
    ),
    Row(
        "apiVersion: sparkoperator.k8s.io/v1beta2\nkind: SparkApplication\nmetadata: {name: a}\n"
        "spec: {executor: {gpu: {name: nvidia.com/gpus, quantity: 1}}}\n",
        "warning:GPU802",
        "gpus",
        "gpu",
    ),
)
def test_work_is_looked_into_whatever_kind_it_is(row: Row) -> None:
    both(row)


RAY_GROUPS = """\
headGroupSpec:
  rayStartParams: {num-gpus: "0"}
  template: {spec: {containers: [{name: head, image: "example.com/ray:1"}]}}
workerGroupSpecs:
- groupName: a
  replicas: 1
  rayStartParams: {num-gpus: "8"}
  template: {spec: {containers: [{name: worker, image: "example.com/ray:1", resources: {limits: {RESOURCE: 1}}}]}}
"""


def a_ray(kind: str = "RayCluster", resource: str = "nvidia.com/gpu") -> str:
    groups = RAY_GROUPS.replace("RESOURCE", resource)
    head = f"apiVersion: ray.io/v1\nkind: {kind}\nmetadata: {{name: a}}\nspec:\n"
    if kind == "RayCluster":
        return head + indented(groups, 2)
    return f"{head}  entrypoint: a\n  rayClusterSpec:\n{indented(groups, 4)}"


@rows(
    Row(a_ray(), "warning:GPU895", '"8"', '"1"'),
    Row(a_ray(resource="nvidia.com/mig-1g.10gb"), "warning:GPU895", '{num-gpus: "8"}', "{}"),
    Row(a_ray("RayJob"), "warning:GPU895", '"8"', '"0"'),
    Row(a_ray().replace('"8"', '"2"'), "warning:GPU895", "gpu: 1}", "gpu: 2}"),
)
def test_ray_is_told_of_no_more_gpus_than_there_are(row: Row) -> None:
    both(row)


# --- Quotas ------------------------------------------------------------------------------------------------------

QUOTA = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: a, namespace: lab}\nspec: {hard: {%s}%s}\n"
UNDER_CLASS = ", scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [a]}]}"
PROFILE = """\
apiVersion: kubeflow.org/v1
kind: Profile
metadata: {name: a}
spec:
  owner: {kind: User, name: a@example.com}
  resourceQuotaSpec: {hard: {%s: "2"}}
"""


@rows(
    Row(QUOTA % ("nvidia.com/gpu: 4", ""), "error:GPU620", "nvidia.com", "requests.nvidia.com"),
    Row(QUOTA % ("limits.nvidia.com/gpu: 4", ""), "error:GPU620", "limits.", "requests."),
    Row(QUOTA % ("count/nvidia.com/gpu: 4", ""), "error:GPU891", "count/", "requests."),
    Row(QUOTA % ('"requests.nvidia.com/mig-1g.10gb+me": 2', ""), "error:GPU891", "+me", ".me"),
    Row(QUOTA % ("requests.nvidia.com.gpu: 2", ""), "error:GPU891", "com.gpu", "com/gpu"),
    Row(QUOTA % ("gpu: 2", ""), "error:GPU891", "{gpu", "{requests.nvidia.com/gpu"),
    Row(QUOTA % ("requests.nvidia.com/GPU: 2", ""), "warning:GPU802", "GPU", "gpu"),
    Row(QUOTA % ("requests.nvidia.com/mig-9g.90gb: 2", ""), "warning:GPU802", "9g.90gb", "1g.10gb"),
    Row(QUOTA % ("requests.nvidia.com/gpu: 2, services: 5", UNDER_CLASS), "error:GPU891", ", services: 5", ""),
    Row(QUOTA % ("persistentvolumeclaims: 5", UNDER_CLASS), "error:GPU891", "persistentvolumeclaims", "pods"),
    Row(QUOTA % ("cpu: 5", ", scopes: [BestEffort]"), "error:GPU891", "cpu", "pods"),
    Row(QUOTA % ("pods: 5", ", scopes: [Terminating, NotTerminating]"), "error:GPU891", ", NotTerminating", ""),
    Row(
        QUOTA % ("requests.nvidia.com/gpu: 4", ", scopes: [BestEffort]"), "warning:GPU891", "BestEffort", "Terminating"
    ),
    Row(PROFILE % "nvidia.com/gpu", "error:GPU620", "nvidia.com", "requests.nvidia.com"),
    Row(PROFILE % "count/nvidia.com/gpu", "error:GPU891", "count/", "requests."),
    Row(PROFILE % "requests.nvidia.com/mig-8g.20gb", "warning:GPU802", "8g.20gb", "3g.20gb"),
    Row(
        "apiVersion: capsule.clastix.io/v1beta2\nkind: Tenant\nmetadata: {name: a}\n"
        "spec: {resourceQuotas: {items: [{hard: {limits.nvidia.com/gpu: 2}}]}}\n",
        "error:GPU620",
        "limits.",
        "requests.",
    ),
)
def test_quotas_that_the_api_server_refuses_or_that_count_nothing(row: Row) -> None:
    both(row)


@pytest.mark.parametrize(
    "hard",
    [
        "count/deployments.apps: 4",
        "requests.storage: 1Ti",
        "gold.storageclass.storage.k8s.io/requests.storage: 1Ti",
        "gpu.nvidia.com.deviceclass.resource.k8s.io/devices: 4",
        "hugepages-2Mi: 4Gi",
        "services.nodeports: 0",
    ],
)
def test_keys_that_kubernetes_knows_are_left_alone(hard: str) -> None:
    assert codes(QUOTA % (hard, "")) == ""


# --- Kueue -------------------------------------------------------------------------------------------------------

PART = """\
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: lab, labels: {kai.scheduler/queue: team}, annotations: {%s}}
spec:
  schedulerName: kai-scheduler
  containers: [{name: main, image: "example.com/app:1"%s}]
"""
JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: a, namespace: lab}
spec:
  template:
    metadata: {labels: {kueue.x-k8s.io/queue-name: lab}}
    spec: {restartPolicy: Never, containers: [{name: main, image: "example.com/app:1"}]}
"""
LABELLED = "name: a, namespace: lab, labels: {kueue.x-k8s.io/queue-name: lab}"
CRON = """\
apiVersion: batch/v1
kind: CronJob
metadata: {name: a, namespace: lab, labels: {kueue.x-k8s.io/queue-name: lab}}
spec:
  schedule: "@daily"
  jobTemplate:
    metadata: {}
    spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: "example.com/app:1"}]}}}
"""


@rows(
    Row(JOB, "warning:GPU892", "name: a, namespace: lab", LABELLED),
    Row(
        JOB.replace("metadata: {labels: {kueue.x-k8s.io/queue-name: lab}}", "metadata: {}").replace(
            "namespace: lab", "namespace: lab, annotations: {kueue.x-k8s.io/queue-name: lab}"
        ),
        "warning:GPU892",
        "annotations",
        "labels",
    ),
    Row(CRON, "warning:GPU892", "metadata: {}", "metadata: {labels: {kueue.x-k8s.io/queue-name: lab}}"),
    Row(
        "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: a, namespace: lab}\nspec:\n"
        "  replicatedJobs:\n  - name: a\n    template:\n      metadata: {labels: {kueue.x-k8s.io/queue-name: lab}}\n"
        "      spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: 'example.com/a:1'}]}}}\n",
        "warning:GPU892",
        "name: a, namespace: lab",
        LABELLED,
    ),
)
def test_a_queue_is_named_where_its_scheduler_reads_it(row: Row) -> None:
    both(row)


@rows(
    Row(
        (PART % ("kai.scheduler/queue: team", "")).replace("labels: {kai.scheduler/queue: team}, ", ""),
        "warning:GPU892",
        "annotations",
        "labels",
    ),
    Row(
        JOB.replace("labels: {kueue.x-k8s.io/queue-name: lab}", "annotations: {kai.scheduler/queue: lab}"),
        "warning:GPU892",
        "annotations",
        "labels",
    ),
)
def test_a_queue_of_kai_scheduler_is_a_label(row: Row) -> None:
    both(row)


def test_pods_of_a_deployment_may_name_their_queue() -> None:
    """Kueue lets them in one by one, wherever the label stands."""
    deployment = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: a, namespace: lab}
spec:
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a, kueue.x-k8s.io/queue-name: lab}}
    spec: {containers: [{name: main, image: "example.com/app:1"}]}
"""
    assert codes(deployment) == ""


CONFIGURATION = """\
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
resources: {excludeResourcePrefixes: [nvidia.com/]}
integrations: {frameworks: [batch/job]}
"""


@rows(
    Row(CONFIGURATION, "error:GPU475", "nvidia.com/", "example.com/"),
    Row(CONFIGURATION.replace("nvidia.com/", "nvidia.com/gpu"), "error:GPU475", "nvidia.com/gpu", "networking.example"),
    Row(CONFIGURATION.replace("nvidia.com/", "nvidia.com/mig-"), "error:GPU475", "nvidia.com/mig-", "example.com/"),
    Row(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kueue}\ndata:\n  controller_manager_config.yaml: |\n"
        + indented(CONFIGURATION, 4),
        "error:GPU475",
        "nvidia.com/",
        "example.com/",
    ),
    Row(
        "managerConfig:\n  controllerManagerConfigYaml: |\n" + indented(CONFIGURATION, 4),
        "error:GPU475",
        "nvidia.com/",
        "example.com/",
    ),
    Row(
        CONFIGURATION.replace("resources: {", "resources: {quotaCheckStrategy: IgnoreUndeclared, ").replace(
            "nvidia.com/", "example.com/"
        ),
        "error:GPU475",
        "quotaCheckStrategy: IgnoreUndeclared, ",
        "",
    ),
    Row(
        CONFIGURATION.replace("[nvidia.com/]", "[]").replace("integrations", "integration"),
        "error:GPU489",
        "integration:",
        "integrations:",
    ),
)
def test_configurations_of_kueue_that_count_no_gpus_or_do_not_start(row: Row) -> None:
    both(row)


def test_a_queue_that_lends_in_a_cohort_may_admit_nothing() -> None:
    queue = "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {name: a}\nspec: {cohortName: all}\n"

    assert codes(queue) == "note:GPU637"
    assert codes(queue.replace("cohortName: all", "")) == "error:GPU637"


# --- KAI-Scheduler -----------------------------------------------------------------------------------------------

WHOLE = ", resources: {limits: {nvidia.com/gpu: 1}}"


@rows(
    Row(PART % ('gpu-fraction: "0.5"', WHOLE), "error:GPU893", WHOLE, ""),
    Row(PART % ('gpu-fraction: "1.5"', ""), "error:GPU893", "1.5", "0.5"),
    Row(PART % ('gpu-fraction: "1"', ""), "error:GPU893", '"1"', '"0.9"'),
    Row(PART % ("gpu-fraction: half", ""), "error:GPU893", "half", '".5"'),
    Row(PART % ("gpu-memory: 4Gi", ""), "error:GPU893", "4Gi", '"4096"'),
    Row(PART % ('gpu-memory: "0"', ""), "error:GPU893", '"0"', '"1"'),
    Row(PART % ('gpu-memory: "4000", gpu-fraction: "0.5"', ""), "error:GPU893", 'gpu-memory: "4000", ', ""),
    Row(PART % ('gpu-fraction-num-devices: "2"', ""), "error:GPU893", "{gpu", '{gpu-fraction: "0.5", gpu'),
    Row(PART % ('gpu-fraction: "0.5", gpu-fraction-num-devices: "0"', ""), "error:GPU893", '"0"', '"2"'),
    Row(
        (PART % ("", "")).replace("labels: {", 'labels: {gpu-fraction: "0.5", '),
        "warning:GPU893",
        'gpu-fraction: "0.5", ',
        "",
    ),
)
def test_parts_of_gpus_that_kai_scheduler_refuses(row: Row) -> None:
    both(row)


# --- Claims ------------------------------------------------------------------------------------------------------

CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: a, namespace: lab}
spec:
  spec:
    devices:
      requests:
      - name: a
        exactly: {deviceClassName: %s%s}
"""
SELECTING = ', selectors: [{cel: {expression: "%s"}}]'
PROFILE_IS = "device.attributes['gpu.nvidia.com'].profile == '%s'"


def a_claim(class_: str = "gpu.nvidia.com", more: str = "", select: str = "") -> str:
    return CLAIM % (class_, more + (SELECTING % select if select else ""))


def on_one_gpu(*profiles: str) -> str:
    exactly = [f"{{deviceClassName: mig.nvidia.com{SELECTING % (PROFILE_IS % profile)}}}" for profile in profiles]
    requests = [f"      - name: r{index}\n        exactly: {one}\n" for index, one in enumerate(exactly)]
    head = CLAIM.partition("      - name")[0]
    return (
        f"{head}{''.join(requests)}      constraints: [{{requests: [], matchAttribute: gpu.nvidia.com/parentUUID}}]\n"
    )


@rows(
    Row(on_one_gpu("4g.40gb", "3g.40gb", "1g.10gb"), "warning:GPU894", "'3g.40gb'", "'2g.20gb'"),
    Row(a_claim("mig.nvidia.com", select=PROFILE_IS % "5g.50gb"), "warning:GPU894", "5g.50gb", "3g.40gb"),
    Row(a_claim("mig.nvidia.com", select=PROFILE_IS % "1g.10gb+you"), "warning:GPU894", "+you", "+me"),
    Row(a_claim("gpus.nvidia.com"), "warning:GPU894", "gpus", "gpu"),
    Row(a_claim("gpu.nvidia.com", select=PROFILE_IS % "1g.10gb"), "warning:GPU894", "Name: gpu", "Name: mig"),
    Row(a_claim("gpu.nvidia.com", ", count: 0"), "error:GPU894", "0", "2"),
    Row(a_claim(more=", count: 2, allocationMode: All"), "error:GPU894", ", count: 2", ""),
    Row(a_claim(select="device.driver = 'a'"), "error:GPU894", " = ", " == "),
    Row(a_claim(select="(device.driver == 'a'"), "error:GPU894", "(device", "device"),
    Row(a_claim(select="device.driver == 'a' and true"), "error:GPU894", "and", "&&"),
    Row(
        a_claim(select="device.attributes['gpu.nvidia.com'].productname == 'a'"),
        "warning:GPU894",
        "productname",
        "productName",
    ),
    Row(
        a_claim() + "      constraints: [{requests: [b], matchAttribute: gpu.nvidia.com/parentUUID}]\n",
        "error:GPU894",
        "[b]",
        "[a]",
    ),
)
def test_claims_that_no_device_satisfies(row: Row) -> None:
    both(row)


@pytest.mark.parametrize(
    "text",
    [
        a_claim("mig-1g-10gb.gpu.nvidia.com"),
        a_claim("gpu.example.com", select="device.attributes['gpu.example.com'].profile == '5g.50gb'.lowerAscii()"),
        a_claim(select="device.attributes['gpu.nvidia.com'].productName.lowerAscii().matches('^.*a100.*$')"),
        a_claim(select="device.capacity['gpu.nvidia.com'].memory.isGreaterThan(quantity('10Gi'))"),
        a_claim("mig.nvidia.com", select=f"{PROFILE_IS % '5g.50gb'} || {PROFILE_IS % '1g.10gb'}"),
        on_one_gpu("3g.40gb", "3g.40gb"),
    ],
)
def test_claims_that_some_device_satisfies_are_left_alone(text: str) -> None:
    assert codes(text.replace("5g.50gb'.lowerAscii()", "1g.10gb'")) == ""


# --- Nodes -------------------------------------------------------------------------------------------------------

SELECTING_POD = POD.replace("spec:\n", "spec:\n  nodeSelector: {nvidia.com/gpu.product: %s}\n") % (
    "PRODUCT",
    "limits: {nvidia.com/gpu: 1}",
)
FLAVOR = (
    "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavor\nmetadata: {name: a}\n"
    "spec: {nodeLabels: {nvidia.com/gpu.product: PRODUCT}}\n"
)


@pytest.mark.parametrize("text", [SELECTING_POD, FLAVOR], ids=["pod", "flavor"])
@pytest.mark.parametrize(
    ("product", "is_found"),
    [
        *(("A100", True), ("A100-SXM4-80GB", True), ("H100-80GB-HBM3-SHARED", True), ("nvidia-l40s", True)),
        *(("NVIDIA-A100-SXM4-80GB", False), ("NVIDIA-A100-SXM4-80GB-SHARED", False), ("Tesla-T4-SHARED", False)),
        *(("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb-SHARED", False), ("NVIDIA-GeForce-RTX-3090", False)),
        *(("Tesla-K80", False), ("NVIDIA-A100-SXM-64GB", False), ("'${PRODUCT}'", False)),
    ],
)
def test_products_that_no_board_is_called(text: str, product: str, is_found: bool) -> None:
    assert codes(text.replace("PRODUCT", product)) == ("warning:GPU896" if is_found else "")


def test_labels_of_nodes_with_mig_devices_are_no_resources() -> None:
    """GFD writes labels whose keys begin as resources do."""
    node = (
        "apiVersion: v1\nkind: Node\nmetadata: {name: a, uid: a, labels: {nvidia.com/mig-1g.10gb.count: '7'}}\n"
        "spec: {}\nstatus: {capacity: {nvidia.com/mig-1g.10gb: 7}}\n"
    )
    assert codes(node) == ""
    assert (
        codes(node.replace("capacity: {nvidia.com/mig-1g.10gb", "capacity: {nvidia.com/mig-9g.10gb"))
        == "warning:GPU802"
    )


def test_hami_beside_the_operator_is_told() -> None:
    pod = POD % "limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 4000}"
    operator = "\n---\ndevicePlugin: {enabled: true}\nmig: {strategy: none}\n"

    assert codes(pod) == ""
    assert codes(pod + operator) == "note:GPU897"
    assert codes(pod + operator.replace("enabled: true", "enabled: false")) == ""


# --- The MIG manager's files -------------------------------------------------------------------------------------

ALONE = "version: v1\nmig-configs:\n  halves: [{devices: all, mig-enabled: true, mig-devices: {3g.40gb: 2}}]\n"


def test_a_file_that_is_applied_by_hand_needs_no_entry_of_the_operators() -> None:
    in_map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  config.yaml: |\n" + indented(ALONE, 4)

    assert codes(ALONE) == "note:GPU633"
    assert codes(in_map) == "error:GPU633"
    assert codes(f"{ALONE}---\nmig: {{strategy: mixed}}\n") == "error:GPU633"


@pytest.mark.parametrize("profile", ["1g.16gb", "2g.32gb", "1g.16gb+gfx"])
def test_profiles_of_boards_without_placements_are_known_by_name(profile: str) -> None:
    text = MIG.replace("1g.5gb: 7", f"{profile}: 1") % ("all", "true", "")

    assert codes(text) == ""
    assert codes(text, gpu="RTX-PRO-4500-32GB") == "note:GPU801"
    assert codes(text.replace(profile, "1g.17gb")) == "warning:GPU629"


# --- What was judged ---------------------------------------------------------------------------------------------

UNKNOWN = "apiVersion: example.com/v1\nkind: %s\nmetadata: {name: a}\n"


def scope(*texts: str) -> str:
    return check_files({f"{index}.yaml": text.encode() for index, text in enumerate(texts)}).scope


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([HALF], "1 object judged"),
        ([HALF, UNKNOWN % "Widget"], "1 object judged; 1 not: Widget"),
        ([WORKFLOW, PROFILE % "a", UNKNOWN % "Widget", UNKNOWN % "Gadget"], "2 objects judged; 2 not: Gadget, Widget"),
        ([ALONE, HALF], "1 object and 1 file of settings judged"),
        ([UNKNOWN % "Widget"], "nothing judged; 1 not: Widget"),
        (["a: 1\n"], "nothing judged"),
    ],
)
def test_what_was_judged_and_what_was_not_is_said(texts: list[str], expected: str) -> None:
    assert scope(*texts) == expected


def test_each_object_that_no_rule_is_about_is_named() -> None:
    found = judged(f"{UNKNOWN % 'Widget'}---\n{HALF}---\n{UNKNOWN % 'Gadget'}")

    assert [item.finding.message for item in found if item.code == "GPU801"] == [
        "no rule is about Widget `a`",
        "no rule is about Gadget `a`",
    ]


def test_work_of_a_kind_without_a_schema_is_judged_where_rules_find_something() -> None:
    assert codes(UNKNOWN % "Widget") == "note:GPU801"
    assert codes((UNKNOWN % "Widget") + "spec: {template: {spec: {containers: [{name: a}]}}}\n") == ""


# --- What is no object as it is applied --------------------------------------------------------------------------


def codes_in(path: str, text: str) -> list[str]:
    return [item.code for item in check_files({path: text.encode()}).diagnostics]


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  namespace: {{ .Release.Namespace }}\n",
        POD % "limits: {nvidia.com/gpu: 1}" + "  priority: ${PRIORITY}\n",
        "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: a}\ntarget: {kind: Pod}\n",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, annotations: {a: b}}\n",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nstatus: {(readyReplicas > `0`): true}\n",
    ],
    ids=["helm", "envsubst", "kustomize", "head", "expectation"],
)
def test_values_that_another_program_fills_in_fit_every_schema(text: str) -> None:
    assert "GPU683" not in codes_in("a.yaml", text)


def test_a_file_of_patches_lacks_fields_and_may_have_no_others() -> None:
    patch = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replicas: 2}\n"

    assert codes_in("patches/a.yaml", patch) == []
    assert codes_in("a.yaml", patch) != []
    assert codes_in("patches/a.yaml", patch.replace("replicas", "replica")) == ["GPU683"]


def test_a_template_that_is_no_yaml_is_not_judged() -> None:
    template = "{{- if .Values.enabled }}\nkind: Pod\n{{- end }}\n"

    assert codes_in("a.yaml", template) == ["GPU801"]
    assert codes_in("a.yaml", "kind: Pod\n{% if a %}\nb: 1\n{% endif %}\n") == ["GPU801"]
    assert codes_in("a.yaml", "kind: [Pod\n") == ["GPU001"]


# --- Whatever stands there ---------------------------------------------------------------------------------------

_HEADS = (
    ("v1", "Pod"),
    ("v1", "ResourceQuota"),
    ("v1", "ConfigMap"),
    ("batch/v1", "Job"),
    ("batch/v1", "CronJob"),
    ("ray.io/v1", "RayCluster"),
    ("resource.k8s.io/v1", "ResourceClaim"),
    ("argoproj.io/v1alpha1", "Application"),
    ("helm.cattle.io/v1", "HelmChartConfig"),
    ("config.kueue.x-k8s.io/v1beta2", "Configuration"),
    ("kueue.x-k8s.io/v1beta2", "ResourceFlavor"),
    ("sparkoperator.k8s.io/v1beta2", "SparkApplication"),
    ("example.com/v1", "Widget"),
)
_FIELDS = (
    *("annotations", "containers", "hard", "labels", "limits", "metadata", "requests", "resources", "scopes", "spec"),
    *("constraints", "count", "devices", "exactly", "firstAvailable", "matchAttribute", "selectors", "template", "cel"),
    *("gpu", "gpu-fraction", "gpu-memory", "name", "nodeLabels", "nodeSelector", "num-gpus", "rayStartParams"),
    *("excludeResourcePrefixes", "helm", "parameters", "source", "sources", "value", "valuesContent", "expression"),
    *("nvidia.com/gpu", "nvidia.com/gpu.product", "kueue.x-k8s.io/queue-name", "scopeSelector", "matchExpressions"),
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.sampled_from(_HEADS),
    st.recursive(
        st.one_of(
            *(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False)),
            st.sampled_from(("", "0.5", "1e400", "(", "a.profile == 'b'", "mig: {strategyy: a}", "BestEffort", "A100")),
        ),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(_FIELDS), inner, max_size=5)
        ),
        max_leaves=25,
    ),
)
def test_nothing_that_parses_ends_in_a_traceback(head: tuple[str, str], rest: object) -> None:
    body = {"apiVersion": head[0], "kind": head[1], "metadata": {"name": "a"}, "spec": rest, "data": rest}
    check_files({"a.json": json.dumps(body | ({"metadata": rest} if isinstance(rest, dict) else {})).encode()})
