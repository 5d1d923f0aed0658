"""The comparer finds each loss where it is planted, and is silent about the nearest change that takes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

from tests.every import every
from tests.laws.adoption.comparer import Kind, Loss, breaths, compare, names, untold

NODE: Final = """
kind: Node
metadata: {name: n1, labels: {nvidia.com/gpu.product: Tesla-T4, nvidia.com/gpu.count: "1", rack: r7}}
status: {allocatable: {nvidia.com/gpu: "1"}}
"""
SHARED: Final = """
kind: Node
metadata: {name: n1, labels: {nvidia.com/gpu.product: Tesla-T4-SHARED, nvidia.com/gpu.count: "1"}}
status: {allocatable: {nvidia.com/gpu: "4"}}
---
kind: ClusterPolicy
metadata: {name: c}
spec: {mig: {strategy: single}, devicePlugin: {config: {name: shares, default: any}}}
---
kind: ConfigMap
metadata: {name: shares, namespace: gpu-operator}
data: {any: "{sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}}"}
"""
MIG: Final = """
kind: Node
metadata:
  name: n1
  labels:
    nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB
    nvidia.com/gpu.count: "2"
    nvidia.com/mig.capable: "true"
    nvidia.com/mig.config: balanced
    nvidia.com/mig.config.state: success
status: {allocatable: {nvidia.com/mig-3g.40gb: "4"}}
---
kind: ClusterPolicy
metadata: {name: c}
spec: {mig: {strategy: mixed}, migManager: {config: {name: layouts}}}
---
kind: ConfigMap
metadata: {name: layouts, namespace: gpu-operator}
data: {config.yaml: "mig-configs: {balanced: [{devices: all, mig-enabled: true, mig-devices: {3g.40gb: 2}}]}"}
"""
SPACE: Final = (
    "\n---\nkind: Namespace\nmetadata: {name: team, labels: {pod-security.kubernetes.io/enforce: baseline}}\n"
)
QUOTA: Final = """
---
kind: ResourceQuota
metadata: {name: q, namespace: team}
spec: {hard: {cpu: "64", requests.nvidia.com/gpu: "2"}}
"""
WORK: Final = """
---
kind: Deployment
metadata: {name: web, namespace: team}
spec:
  template:
    spec:
      nodeSelector: {rack: r7}
      containers: [{name: c, resources: {limits: {nvidia.com/gpu: 1, cpu: 1, memory: 1Gi}}}]
"""
KUEUE: Final = """
---
kind: ResourceFlavor
metadata: {name: f}
spec: {}
---
kind: ClusterQueue
metadata: {name: cq}
spec:
  namespaceSelector: {}
  cohort: all
  resourceGroups:
  - coveredResources: [cpu, nvidia.com/gpu]
    flavors:
    - name: f
      resources:
      - {name: cpu, nominalQuota: 10}
      - {name: nvidia.com/gpu, nominalQuota: 4, borrowingLimit: 2}
---
kind: LocalQueue
metadata: {name: lq, namespace: team}
spec: {clusterQueue: cq}
---
kind: Node
metadata: {name: cpu-1, labels: {kubernetes.io/os: linux}}
status: {allocatable: {cpu: "8"}}
"""
KAI: Final = """
---
kind: Queue
metadata: {name: q}
spec: {resources: {gpu: {quota: 1.5, limit: 3, overQuotaWeight: 1}, cpu: {quota: -1, limit: -1}}}
"""


def grants(pools: str, allowed: str, action: str = "Deny", messages: Sequence[str] = ()) -> str:
    """A policy with grants, and its binding in the namespace `team`."""
    rules = [{"expression": "true", "message": message} for message in messages]
    variables = [{"name": "opened", "expression": "[[['dedicated', '*', 'NoSchedule']]].filter(taints, true)"}]
    data = {"tenant": "team", "pools": pools, "grants": allowed, "priorityClasses": "high\n", "queues": ""}
    selector = {"matchLabels": {"kubernetes.io/metadata.name": "team"}}
    bodies: list[dict[str, Any]] = [
        {
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": "gpuplan-grants"},
            "spec": {"validations": rules, "variables": variables},
        },
        {
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": "b"},
            "spec": {
                "policyName": "gpuplan-grants",
                "paramRef": {"name": "grants-team", "namespace": "gpuplan-system"},
                "matchResources": {"namespaceSelector": selector},
                "validationActions": [action, "Audit"],
            },
        },
        {"kind": "ConfigMap", "metadata": {"name": "grants-team", "namespace": "gpuplan-system"}, "data": data},
    ]
    return yaml.safe_dump_all(bodies)


def devices(action: str) -> str:
    """The policy on devices, in all namespaces."""
    rule = {"expression": "true", "message": "environment variables that choose devices must not be set"}
    return yaml.safe_dump_all(
        [
            {
                "kind": "ValidatingAdmissionPolicy",
                "metadata": {"name": "gpuplan-devices"},
                "spec": {"validations": [rule]},
            },
            {
                "kind": "ValidatingAdmissionPolicyBinding",
                "metadata": {"name": "d"},
                "spec": {"policyName": "gpuplan-devices", "validationActions": [action]},
            },
        ]
    )


def rule(labels: Mapping[str, str], taints: Sequence[Mapping[str, str]] = ()) -> str:
    """A rule of NFD about the node `n1`."""
    match = {"feature": "system.name", "matchExpressions": {"nodename": {"op": "In", "value": ["n1"]}}}
    found = {"name": "r", "labels": dict(labels), "taints": [*taints], "matchFeatures": [match]}
    return yaml.safe_dump({"kind": "NodeFeatureRule", "metadata": {"name": "r"}, "spec": {"rules": [found]}})


def patch(key: str, default: str, content: str = "") -> str:
    """The operator's folder: a ClusterPolicy and the device plugin's ConfigMap."""
    file = content or "{sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}}"
    config = {"config": {"name": "new", "default": default}}
    bodies = [
        {"kind": "ClusterPolicy", "metadata": {"name": "c"}, "spec": {"devicePlugin": config}},
        {"kind": "ConfigMap", "metadata": {"name": "new", "namespace": "gpu-operator"}, "data": {key: file}},
    ]
    return yaml.safe_dump_all(bodies)


def layouts(content: str) -> str:
    """The operator's folder: a ClusterPolicy and the MIG manager's ConfigMap."""
    bodies = [
        {"kind": "ClusterPolicy", "metadata": {"name": "c"}, "spec": {"migManager": {"config": {"name": "new"}}}},
        {
            "kind": "ConfigMap",
            "metadata": {"name": "new", "namespace": "gpu-operator"},
            "data": {"config.yaml": f"mig-configs: {{{content}}}"},
        },
    ]
    return yaml.safe_dump_all(bodies)


def one(kind: str, name: str, spec: str, namespace: str = "") -> str:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return yaml.safe_dump({"kind": kind, "metadata": metadata, "spec": yaml.safe_load(spec)})


def queue(rows: str, more: str = "") -> str:
    """The ClusterQueue `cq` with other numbers."""
    group = (
        f"resourceGroups: [{{coveredResources: [cpu, nvidia.com/gpu], flavors: [{{name: f, resources: [{rows}]}}]}}]"
    )
    return one("ClusterQueue", "cq", f"{{{group}{f', {more}' if more else ''}}}")


def clone(name: str, pool: str, resources: str) -> str:
    """The queue of a node pool."""
    metadata = {"name": name, "labels": {"kai.scheduler/node-pool": pool}}
    spec = yaml.safe_load(f"{{resources: {{{resources}}}}}")
    return f"{yaml.safe_dump({'kind': 'Queue', 'metadata': metadata, 'spec': spec})}---\n"


CPU: Final = "{name: cpu, nominalQuota: 10}"
GPUS: Final = "{name: nvidia.com/gpu, nominalQuota: 4, borrowingLimit: 2}"
CHOOSE: Final = ("pods that ask for GPUs must choose a pool by the nodeSelector gpuplan.dev/pool",)
OWN_POOL: Final = WORK.replace("{rack: r7}", "{rack: r7, gpuplan.dev/pool: p}")


@dataclass(frozen=True)
class Case:
    """What takes something away, and what is nearest to it and takes nothing."""

    kind: Kind
    dump: str
    written: str
    legal: str
    legal_dump: str = ""
    table: tuple[Mapping[str, Any], ...] = ()

    def __str__(self) -> str:
        return f"{self.kind} by {self.written[:60]!r}"


def group(labels: Mapping[str, str]) -> tuple[Mapping[str, Any], ...]:
    return ({"pool": "p", "names": ["n1"], "labels": dict(labels), "taints": []},)


CASES: Final = (
    Case(
        Kind.QUOTA_LOWER,
        NODE + SPACE + QUOTA,
        one("ResourceQuota", "new", "{hard: {requests.cpu: 63999m}}", "team"),
        one("ResourceQuota", "new", "{hard: {requests.cpu: 64000m}}", "team"),
    ),
    Case(
        Kind.QUOTA_LOWER,
        NODE + SPACE + QUOTA,
        one("ResourceQuota", "q", "{hard: {cpu: 1}}", "team"),
        one("ResourceQuota", "q", "{hard: {cpu: 65}}", "team"),
    ),
    Case(
        Kind.QUOTA_NEW,
        NODE + SPACE + QUOTA,
        one("ResourceQuota", "new", '{hard: {pods: "50"}}', "team"),
        one("ResourceQuota", "new", '{hard: {requests.nvidia.com/gpu.shared: "0"}}', "team"),
    ),
    Case(
        Kind.QUOTA_NEW,
        NODE + SPACE,
        one("ResourceQuota", "new", '{hard: {requests.nvidia.com/gpu: "0"}}', "team"),
        one("ResourceQuota", "new", '{hard: {requests.nvidia.com/mig-1g.5gb: "0"}}', "team"),
    ),
    Case(
        Kind.LIMIT,
        NODE + SPACE + "---\nkind: LimitRange\nmetadata: {name: l, namespace: team}\n"
        "spec: {limits: [{type: Container, max: {cpu: 8}}]}",
        one("LimitRange", "new", "{limits: [{type: Container, max: {cpu: 7}}]}", "team"),
        one("LimitRange", "new", "{limits: [{type: Container, defaultRequest: {cpu: 1}, max: {cpu: 9}}]}", "team"),
    ),
    Case(
        Kind.FORBIDDEN,
        NODE + SPACE,
        grants("p\n", "p nvidia.com/mig-1g.5gb any\n"),
        grants("p\n", "p nvidia.com/gpu any\n"),
    ),
    Case(Kind.FORBIDDEN, NODE + SPACE, grants("", ""), grants("", "", action="Warn")),
    Case(Kind.PUBLISHES, SHARED, patch("gpu", ""), patch("gpu", "gpu")),
    Case(
        Kind.PUBLISHES,
        SHARED,
        patch("any", "any", "{sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 3}]}}}"),
        patch("any", "any"),
    ),
    Case(
        Kind.PUBLISHES,
        SHARED,
        patch(
            "any",
            "any",
            "{sharing: {timeSlicing: {renameByDefault: true, resources: [{name: nvidia.com/gpu, replicas: 4}]}}}",
        ),
        patch("any", "any"),
    ),
    Case(
        Kind.ORDER,
        SHARED,
        patch("gpu", "") + "---\n" + rule({"nvidia.com/device-plugin.config": "gpu"}),
        patch("any", "any") + "---\n" + rule({"nvidia.com/device-plugin.config": "any"}),
    ),
    Case(
        Kind.ORDER,
        SHARED,
        patch("gpu", ""),
        patch("any", "any"),
        table=group({"nvidia.com/device-plugin.config": "gpu"}),
        legal_dump=NODE,
    ),
    Case(
        Kind.REPARTITIONED,
        MIG,
        layouts("balanced: [{devices: all, mig-enabled: true, mig-devices: {1g.10gb: 7}}]"),
        layouts("other: [{devices: all, mig-enabled: true, mig-devices: {1g.10gb: 7}}]"),
    ),
    Case(
        Kind.REPARTITIONED,
        MIG,
        layouts(
            'balanced: [{device-filter: "0x233010DE", devices: all, mig-enabled: true, mig-devices: {3g.40gb: 2}}]'
        ),
        layouts(
            'balanced: [{device-filter: ["0x20B210DE"], devices: all, mig-enabled: true, mig-devices: {3g.40gb: 2}}]'
        ),
    ),
    Case(
        Kind.PUBLISHES,
        MIG,
        layouts("balanced: [{devices: all, mig-enabled: true, mig-devices: {3g.20gb: 2}}]"),
        layouts("balanced: [{devices: [0, 1], mig-enabled: true, mig-devices: {3g.40gb: 2}}]"),
    ),
    Case(
        Kind.NO_OPERATOR,
        NODE + "---\nkind: DaemonSet\nmetadata: {name: d, namespace: kube-system}\n"
        "spec: {template: {spec: {containers: [{name: c, image: nvcr.io/nvidia/k8s-device-plugin:v0.17.1}]}}}",
        patch("gpu", ""),
        rule({"gpuplan.dev/pool": "p"}),
    ),
    Case(Kind.LABEL, NODE, rule({"rack": "r8"}), rule({"rack": "r7", "row": "1"})),
    Case(
        Kind.TAINT,
        NODE + "spec: {taints: [{key: a, effect: NoSchedule}]}",
        rule({}, [{"key": "b", "effect": "NoSchedule"}]),
        rule({}, [{"key": "a", "effect": "NoSchedule"}]),
    ),
    Case(
        Kind.REFUSED,
        NODE + SPACE + WORK,
        grants("p\n", "p nvidia.com/gpu any\n", messages=CHOOSE),
        grants("p\n", "p nvidia.com/gpu any\n", messages=CHOOSE),
        legal_dump=NODE.replace("rack: r7", "rack: r7, gpuplan.dev/pool: p") + SPACE + OWN_POOL,
    ),
    Case(
        Kind.REFUSED,
        NODE + SPACE + WORK,
        grants("p\n", "p nvidia.com/gpu any\n", messages=CHOOSE),
        grants("p\n", "p nvidia.com/gpu any\n", "Warn", CHOOSE),
    ),
    Case(
        Kind.REFUSED,
        NODE + SPACE + WORK,
        grants("p\n", "p nvidia.com/mig-1g.5gb any\n"),
        grants("p\n", "p nvidia.com/gpu 1\n"),
    ),
    Case(
        Kind.REFUSED,
        NODE + SPACE + WORK.replace("gpu: 1,", "gpu: 1, ").replace("{nvidia.com/gpu: 1", '{nvidia.com/gpu: "1"'),
        grants("p\n", "p nvidia.com/gpu 0\n"),
        grants("p\n", "p nvidia.com/gpu 1\n"),
    ),
    Case(
        Kind.REFUSED,
        NODE
        + SPACE
        + WORK.replace("      nodeSelector", "      terminationGracePeriodSeconds: 31\n      nodeSelector"),
        grants("p\n", "p nvidia.com/gpu any\n"),
        grants("p\n", "p nvidia.com/gpu any\n"),
        legal_dump=NODE
        + SPACE
        + WORK.replace("      nodeSelector", "      terminationGracePeriodSeconds: 30\n      nodeSelector"),
    ),
    Case(
        Kind.REFUSED,
        NODE + SPACE + WORK.replace("      nodeSelector", "      priorityClassName: low\n      nodeSelector"),
        grants("p\n", "p nvidia.com/gpu any\n", messages=["the pod names a priority class that is not its tenant's"]),
        grants("p\n", "p nvidia.com/gpu any\n", messages=["the pod names a priority class that is not its tenant's"]),
        legal_dump=NODE
        + SPACE
        + WORK.replace("      nodeSelector", "      priorityClassName: high\n      nodeSelector"),
    ),
    Case(
        Kind.REFUSED,
        NODE + SPACE + WORK,
        grants("p\n", "p nvidia.com/gpu any\n", messages=["pods must name one of their tenant's priority classes"]),
        grants("p\n", "p nvidia.com/gpu any\n", messages=[""]),
    ),
    Case(
        Kind.REFUSED,
        NODE
        + SPACE
        + WORK.replace(
            "      nodeSelector", "      tolerations: [{key: dedicated, operator: Exists}]\n      nodeSelector"
        ),
        grants("p\n", "p nvidia.com/gpu any\n"),
        grants("p\n", "p nvidia.com/gpu any\n"),
        legal_dump=NODE
        + SPACE
        + WORK.replace("      nodeSelector", "      tolerations: [{key: other, operator: Exists}]\n      nodeSelector"),
    ),
    Case(
        Kind.REFUSED,
        NODE + SPACE + WORK,
        grants("p\n", "p nvidia.com/gpu any\n", messages=["schedulerName must be kai-scheduler"]),
        grants("p\n", "p nvidia.com/gpu any\n", messages=["schedulerName must be default-scheduler or kai-scheduler"]),
    ),
    Case(
        Kind.REFUSED,
        NODE + SPACE + WORK.replace("{name: c,", "{name: c, env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}],"),
        devices("Deny"),
        devices("Warn"),
    ),
    Case(
        Kind.REFUSED,
        NODE + SPACE + WORK.replace("{name: c,", "{name: c, env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}],"),
        devices("Deny"),
        devices("Deny"),
        legal_dump=NODE
        + SPACE
        + WORK.replace("{name: c,", "{name: c, env: [{name: NVIDIA_VISIBLE_DEVICES, value: void}],"),
    ),
    Case(
        Kind.REFUSED,
        NODE + SPACE + WORK.replace(", cpu: 1", ""),
        one("ResourceQuota", "new", "{hard: {requests.cpu: 9}}", "team"),
        one("ResourceQuota", "new", "{hard: {requests.cpu: 9}}", "team")
        + "---\n"
        + one("LimitRange", "new", "{limits: [{type: Container, defaultRequest: {cpu: 1}}]}", "team"),
    ),
    Case(
        Kind.REFUSED,
        NODE + SPACE + WORK + KUEUE,
        grants("p\n", "p nvidia.com/gpu any\n", messages=["pods that ask for GPUs must wait for Kueue"]),
        grants("p\n", "p nvidia.com/gpu any\n", messages=["pods that ask for GPUs must wait for Kueue"]),
        legal_dump=NODE
        + SPACE
        + WORK.replace("name: web,", "name: web, labels: {kueue.x-k8s.io/queue-name: lq},")
        + KUEUE,
    ),
    Case(Kind.NO_NODE, NODE + SPACE + WORK, rule({"rack": "r8"}), rule({"row": "1"})),
    Case(
        Kind.NO_NODE,
        NODE + SPACE + WORK,
        rule({}, [{"key": "b", "effect": "NoSchedule"}]),
        rule({}, [{"key": "b", "effect": "PreferNoSchedule"}]),
    ),
    Case(
        Kind.NO_NODE,
        SHARED + SPACE + WORK.replace("nodeSelector: {rack: r7}", "").replace("gpu: 1", "gpu: 2"),
        patch("gpu", ""),
        patch("gpu", "gpu"),
    ),
    Case(
        Kind.NO_NODE,
        NODE + SPACE + WORK.replace("      nodeSelector", "      schedulerName: kai-scheduler\n      nodeSelector"),
        rule({"kai.scheduler/node-pool": "p"}),
        rule({"gpuplan.dev/pool": "p"}),
    ),
    Case(
        Kind.NO_NODE,
        NODE + SPACE + WORK.replace("name: web,", "name: web, labels: {kueue.x-k8s.io/queue-name: lq},") + KUEUE,
        one("ResourceFlavor", "f", "{nodeLabels: {rack: r8}}"),
        one("ResourceFlavor", "f", "{nodeLabels: {rack: r7}}"),
    ),
    Case(
        Kind.LOCAL_QUEUE,
        NODE + SPACE + KUEUE,
        one("LocalQueue", "lq", "{clusterQueue: other}", "team"),
        one("LocalQueue", "another", "{clusterQueue: other}", "team"),
    ),
    Case(
        Kind.DEFAULT_QUEUE,
        NODE + SPACE + WORK + KUEUE,
        one("LocalQueue", "default", "{clusterQueue: cq}", "team"),
        one("LocalQueue", "usual", "{clusterQueue: cq}", "team"),
    ),
    Case(
        Kind.NOMINAL,
        NODE + SPACE + KUEUE,
        queue(f"{CPU}, {{name: nvidia.com/gpu, nominalQuota: 3, borrowingLimit: 3}}"),
        queue(f"{CPU}, {{name: nvidia.com/gpu, nominalQuota: 5, borrowingLimit: 1}}"),
    ),
    Case(
        Kind.REACH,
        NODE + SPACE + KUEUE,
        queue(f"{CPU}, {{name: nvidia.com/gpu, nominalQuota: 4, borrowingLimit: 1}}"),
        queue(f"{CPU}, {{name: nvidia.com/gpu, nominalQuota: 4}}"),
    ),
    Case(
        Kind.REACH,
        NODE + SPACE + KUEUE,
        queue(f"{{name: cpu, nominalQuota: 10, borrowingLimit: 0}}, {GPUS}"),
        queue(f"{CPU}, {GPUS}"),
    ),
    Case(
        Kind.LENDS,
        NODE + SPACE + KUEUE,
        queue(f"{{name: cpu, nominalQuota: 10, lendingLimit: 2}}, {GPUS}"),
        queue(f"{{name: cpu, nominalQuota: 10, lendingLimit: 10}}, {GPUS}"),
    ),
    Case(Kind.NOT_COVERED, NODE + SPACE + KUEUE, queue(GPUS), queue(f"{CPU}, {GPUS}")),
    Case(
        Kind.FLAVOR_NODES,
        NODE + SPACE + KUEUE,
        one("ResourceFlavor", "f", "{nodeLabels: {rack: r7}}"),
        one("ResourceFlavor", "f", "{nodeTaints: []}"),
    ),
    Case(
        Kind.COHORT,
        NODE + SPACE + KUEUE,
        queue(f"{CPU}, {GPUS}", "cohort: other"),
        queue(f"{CPU}, {GPUS}", "cohortName: all"),
    ),
    Case(
        Kind.QUEUE_SETTING,
        NODE + SPACE + KUEUE,
        queue(f"{CPU}, {GPUS}", "preemption: {withinClusterQueue: LowerPriority}"),
        queue(f"{CPU}, {GPUS}", "preemption: {withinClusterQueue: Never}, flavorFungibility: {whenCanBorrow: Borrow}"),
    ),
    Case(
        Kind.QUEUE_SHUT,
        NODE + SPACE + KUEUE,
        queue(f"{CPU}, {GPUS}", "namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: other}}"),
        queue(f"{CPU}, {GPUS}", "namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: team}}"),
    ),
    Case(
        Kind.NOMINAL,
        NODE + KAI,
        one("Queue", "q", "{resources: {gpu: {quota: 1}}}"),
        one("Queue", "q", "{resources: {gpu: {quota: 2}}}"),
    ),
    Case(
        Kind.REACH,
        NODE + KAI,
        one("Queue", "q", "{resources: {cpu: {limit: 10000}}}"),
        one("Queue", "q", "{resources: {gpu: {limit: -1}}}"),
    ),
    Case(
        Kind.REACH,
        NODE + KAI,
        clone("q", "a", "cpu: {limit: -1}, gpu: {quota: 1, limit: 2}")
        + clone("q-b", "b", "cpu: {limit: 1000}, gpu: {quota: 0.5, limit: 1, overQuotaWeight: 1}"),
        clone("q", "a", "cpu: {limit: -1}, gpu: {quota: 1, limit: 2}")
        + clone("q-b", "b", "cpu: {limit: -1, quota: -1}, gpu: {quota: 0.5, limit: 1, overQuotaWeight: 1}"),
    ),
    Case(
        Kind.NOMINAL,
        NODE + KAI,
        clone("q", "a", "gpu: {quota: 1}") + clone("q-b", "b", "gpu: {quota: 0.25, limit: 3}"),
        clone("q", "a", "gpu: {quota: 1}")
        + clone("q-b", "b", "gpu: {quota: 0.5, limit: 3}, cpu: {quota: -1, limit: -1}"),
    ),
    Case(
        Kind.QUEUE_SETTING,
        NODE + KAI,
        one("Queue", "q", "{priority: 110}"),
        one("Queue", "q", "{priority: 100, displayName: q}"),
    ),
    Case(
        Kind.QUEUE_SETTING,
        NODE + KAI,
        one("Queue", "q", "{parentQueue: other}"),
        one("Queue", "q", "{displayName: other}"),
    ),
    Case(
        Kind.POD_SECURITY,
        NODE + SPACE,
        "{kind: Namespace, metadata: {name: team, labels: {pod-security.kubernetes.io/enforce: privileged}}}",
        "{kind: Namespace, metadata: {name: team, labels: {pod-security.kubernetes.io/warn: restricted}}}",
    ),
    Case(
        Kind.PRIORITY,
        NODE + "---\n{kind: PriorityClass, metadata: {name: high}, value: 10}",
        "{kind: PriorityClass, metadata: {name: high}, value: 11}",
        "{kind: PriorityClass, metadata: {name: high, labels: {a: b}}, value: 10, description: d}",
    ),
    Case(
        Kind.APPEARS,
        NODE + SPACE + QUOTA,
        one("ResourceQuota", "another", "{hard: {}}", "team"),
        one("ResourceQuota", "q", "{hard: {cpu: 64}}", "team"),
    ),
)


def _documents(text: str) -> list[dict[str, Any]]:
    return [body for body in yaml.safe_load_all(text) if body]


def _found(dump: str, written: str, table: tuple[Mapping[str, Any], ...]) -> list[Loss]:
    return compare(_documents(dump), _documents(written), table)


@every(CASES)
def test_a_planted_loss_is_found(case: Case) -> None:
    found = _found(case.dump, case.written, case.table)
    assert case.kind in {loss.kind for loss in found}, found


@every(CASES)
def test_the_nearest_change_that_takes_nothing_is_no_loss(case: Case) -> None:
    found = _found(case.legal_dump or case.dump, case.legal, case.table)
    assert [loss for loss in found if loss.kind is case.kind] == []


@every(CASES)
def test_nothing_is_lost_where_nothing_is_written(case: Case) -> None:
    assert _found(case.dump, "", ()) == []


def test_each_kind_of_loss_is_planted() -> None:
    assert {case.kind for case in CASES} == {*Kind}


# --- Whether a report tells it -----------------------------------------------------------------------------------


LOWER: Final = _found(CASES[0].dump, CASES[0].written, ())[0]


@every(
    (
        "ResourceQuota of `team`: requests.cpu 64 becomes 63999m",
        "namespace team: cap on `cpu` is lower\n  requests.cpu: 64 -> 63.999",
        "`cpu` of namespace `team` shrinks to 63999m",
    )
)
def test_a_loss_is_told_where_subject_and_key_stand_together(line: str) -> None:
    assert untold([LOWER], [line]) == []


@every(
    (
        "namespace `team-dev`: requests.cpu 64 becomes 63999m",
        "namespace `team`: requests.memory is lower",
        "requests.cpu becomes 63999m",
        "admission refuses pods of namespace `team` that ask for no `cpu`",
        "namespace `team` changes",
    )
)
def test_a_loss_is_untold_where_one_of_the_two_is_missing(line: str) -> None:
    assert untold([LOWER], [line]) == [LOWER]


def test_an_order_is_told_by_its_label_and_not_by_a_change_of_the_label_alone() -> None:
    key = "nvidia.com/device-plugin.config"
    [loss] = [found for found in _found(SHARED, patch("gpu", "gpu"), group({key: "gpu"})) if found.kind is Kind.ORDER]
    assert untold([loss], [f"Node n1 metadata.labels[{key}]: nothing becomes gpu"]) == [loss]
    assert untold([loss], [f"node `n1` has no right `{key}` between two syncs, in either order"]) == []


def test_lines_of_a_list_are_read_one_by_one() -> None:
    printed = "the first sync changes:\n  Namespace team metadata.annotations\n  Namespace other requests.cpu\n"
    assert untold([LOWER], breaths([], printed)) == [LOWER]


def test_an_indented_line_is_read_with_what_is_below_it() -> None:
    printed = "takes away:\n  Namespace team\n    requests.cpu: 64 becomes 63999m\n"
    assert untold([LOWER], breaths([], printed)) == []


def test_a_finding_is_read_with_its_notes() -> None:
    finding = {"message": "caps of namespace `team` are lower", "notes": ["`cpu`: 64 becomes 63"]}
    assert untold([LOWER], breaths([finding], "")) == []


def test_names_are_found_whole() -> None:
    assert names("Queue `a` and b-c", "b-c")
    assert not names("Queue `a` and b-c", "b")
    assert names("requests.nvidia.com/gpu: 4", "nvidia.com/gpu")
    assert not names("nvidia.com/gpu.product: Tesla-T4", "nvidia.com/gpu")
