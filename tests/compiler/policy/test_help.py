"""Help that is applied to the letter makes of a mistake what was meant, and loses nothing that was written."""

from __future__ import annotations

import re
from copy import deepcopy
from typing import Any

import pytest
import yaml

from gpuplan.compiler.base.diagnostics import Finding, Path
from gpuplan.compiler.documents import read_text
from gpuplan.compiler.policy import Parsed, parse
from gpuplan.compiler.policy.shapes import value_at

MOST_STEPS = 4
SPECS = {
    "Cluster": 'kubernetes: "1.34"\ngpuOperator: {install: helm, version: v26.7.0}\n',
    "Pool": "gpu: A100-80GB\n",
    "MigLayout": "gpu: A100-80GB\n",
    "PriorityClass": "",
    "Tenant": "namespaces: [research]\n",
    "Workload": "tenant: a\npool: a\nimage: registry.example.com/a:1\n",
}
NODES = "nodes: {count: 2, gpusPerNode: 8}\n"
WHOLE = f"{NODES}sharing: {{exclusive: {{}}}}\n"
MIG = f"{NODES}sharing: {{mig: {{layout: a}}}}\n"
SERVICE = "inference: {}\n"
WAYS = "`exclusive`, `timeSlicing`, `mps`, `mig`, `dynamicMig`, `fraction`"


def a_document(kind: str, fields: str) -> dict[str, Any]:
    spec = yaml.safe_load(SPECS[kind] + fields)
    return {"apiVersion": "gpuplan.dev/v1", "kind": kind, "metadata": {"name": "a"}, "spec": spec}


def read(data: dict[str, Any]) -> Parsed:
    (document,), found = read_text("policies/a.yaml", yaml.safe_dump(data, sort_keys=False))
    assert not found
    return parse(document)


def mended(data: dict[str, Any]) -> dict[str, Any]:
    """The document after the help of its first finding was applied, again and again until there is none."""
    for _ in range(MOST_STEPS):
        found = read(data).diagnostics
        if not found:
            break
        data = applied(data, found[0].finding)
    return data


def applied(data: dict[str, Any], finding: Finding) -> dict[str, Any]:  # noqa: C901 - a branch for each form of help
    """The document after the one edit that the help of a finding asks for."""
    data, place, help_ = deepcopy(data), finding.at.path, finding.help
    key: Any = place[-1]
    holder = at(data, place[:-1])
    if found := re.fullmatch(r"move `(.+?)`(?:, with what is below it,)? into `(\S+?)`(?: as `(\S+)`)?", help_):
        into = at(data, path_of(found[2]))
        into[found[3] or found[1]] = holder.pop(key)
    elif found := re.fullmatch(r"indent `(.+)`, and what is below it, by .*", help_):
        into = at(data, path_of(re.findall("belongs into `([^`]+)`", finding.message)[0]))
        into[key] = holder.pop(key)
    elif found := re.fullmatch(r"write (`.+` and `.+`), each as an item of its own", help_):
        index, items = int(place[-2]), at(data, place[:-2])
        items[index : index + 1] = map(yaml.safe_load, re.findall("`([^`]+)`", found[1]))
    elif found := re.match(r"write two items, `(.+?)` and `(.+?)`", help_):
        holder[key : key + 1] = [found[1], yaml.safe_load(found[2])]
    elif found := re.fullmatch(r"write (`.+`) below `(\S+)`, in place of `(.+)`", help_):
        del holder[found[3]]
        at(data, path_of(found[2])).update(fields_in(found[1]))
    elif found := re.fullmatch(r"write `(.+)` as an item of `(.+)` in place of `(.+)`", help_):
        holder[found[2]].append(yaml.safe_load(found[1]))
        del holder[found[3]]
    elif found := re.fullmatch(
        r"write (`.+` and `.+`) in (?:its place|place of (.+)), each on a line of its own", help_
    ):
        for other in {*re.findall("`([^`]+)`", found[2] or "")} - {key}:
            del holder[other]
        replace(holder, key, fields_in(found[1]))
    elif found := re.match(r"write `([^`]+):`$", help_):
        replace(holder, key, {found[1]: holder[key]})
    elif found := re.fullmatch(r"write `([^`]+)`,? in (?:its place(?:, and see .*)?|place of (.*))", help_):
        others = re.findall("`([^`]+)`", found[2] or "")
        for other in {*others} - {key}:
            del holder[other]
        replace(holder, key, yaml.safe_load(f"{{{found[1]}}}"))
    elif found := re.match(
        r"(?:write `?|put it in quotes: )([^`]+?)`?(?: without quotes|, or .*|, [0-9]+% of .*)?$", help_
    ):
        meant = yaml.safe_load(found[1])
        is_entry = isinstance(holder, dict) and isinstance(meant, dict) and (finding.at.on_key or key in meant)
        replace(holder, key, meant if is_entry else {key: meant})
    else:
        pytest.fail(f"no edit: {help_}")
    return data


def fields_in(text: str) -> dict[Any, Any]:
    found: dict[Any, Any] = yaml.safe_load("\n".join(re.findall("`([^`]+)`", text)))
    return found


def replace(holder: Any, key: Any, entries: dict[Any, Any]) -> None:
    if isinstance(holder, list):
        holder[key] = next(iter(entries.values())) if [*entries] == [key] else entries
        return
    rest = {name: value for pair in holder.items() for name, value in (entries.items() if pair[0] == key else [pair])}
    holder.clear()
    holder.update(rest)


def at(data: Any, path: Path) -> Any:
    holder = data
    for part in path:
        if isinstance(holder, dict):
            holder.setdefault(part, {})
        holder = value_at(holder, (part,))
    return holder


def path_of(text: str) -> Path:
    return tuple(int(part) if part.isdecimal() else part for part in re.findall(r"[^.\[\]]+", text))


ROWS = [
    # A field in the wrong place, with its value.
    (
        "Pool",
        f'{WHOLE}windows: [{{schedule: "0 2 * * 6", duration: 4h}}]',
        f'{WHOLE}disruption: {{windows: [{{schedule: "0 2 * * 6", duration: 4h}}]}}',
    ),
    (
        "Pool",
        f'{WHOLE}disruption: {{maxUnavailable: 2}}\nwindows: [{{schedule: "0 2 * * 6", duration: 4h}}]',
        f'{WHOLE}disruption: {{maxUnavailable: 2, windows: [{{schedule: "0 2 * * 6", duration: 4h}}]}}',
    ),
    ("Pool", f"{WHOLE}maxUnavailable: 2", f"{WHOLE}disruption: {{maxUnavailable: 2}}"),
    (
        "Pool",
        f"{NODES}sharing: {{mig: {{3g.40gb: 1, 2g.20gb: 2}}}}",
        f"{NODES}sharing: {{mig: {{instances: {{3g.40gb: 1, 2g.20gb: 2}}}}}}",
    ),
    ("Pool", f"{NODES}sharing: {{3g.40gb: 2}}", f"{NODES}sharing: {{mig: {{instances: {{3g.40gb: 2}}}}}}"),
    ("MigLayout", "3g.40gb: 2", "instances: {3g.40gb: 2}"),
    ("Pool", f"{NODES}timeSlicing: {{replicas: 3}}", f"{NODES}sharing: {{timeSlicing: {{replicas: 3}}}}"),
    ("Workload", f"{SERVICE}replicas: 3", "inference: {replicas: 3}"),
    ("Workload", "training: {replicas: 3}", "training: {pods: 3}"),
    (
        "Workload",
        "inference: {autoscaling: {min: 2, max: 8, cpuPercent: 70}}",
        "inference: {autoscaling: {minReplicas: 2, maxReplicas: 8, cpuPercent: 70}}",
    ),
    (
        "Workload",
        f"{SERVICE}storageClass: fast\nmodel: {{size: 1Gi}}",
        f"{SERVICE}model: {{size: 1Gi, storageClass: fast}}",
    ),
    ("Tenant", "quotas: [{pool: a, guaranteed: 36, limits: 48}]", "quotas: [{pool: a, guaranteed: 36, limit: 48}]"),
    (
        "Tenant",
        "quotas: [{pool: a, guaranteed: 1, cpu: {guaranteed: 2, limits: 4}}]",
        "quotas: [{pool: a, guaranteed: 1, cpu: {guaranteed: 2, limit: 4}}]",
    ),
    ("Tenant", "quotas: [{pool: a, guaranteed:36: null}]", "quotas: [{pool: a, guaranteed: 36}]"),
    ("Tenant", "members: [{groups: ml}]", "members: [{group: ml}]"),
    ("Tenant", "weight: 3", "surplus: {weight: 3}"),
    ("Tenant", "groups: [ml]", "members: [ml]"),
    ("Cluster", "grace_period: 2m", "admission: {gracePeriod: 2m}"),
    ("Workload", f"{SERVICE}resources: {{limits: {{nvidia.com/gpu: 2, cpu: 4}}}}", f'{SERVICE}count: 2\ncpu: "4"'),
    # Fields of other programs, of which the value changes too.
    ("Tenant", "quotas: [{pool: a, nominalQuota: 16}]", "quotas: [{pool: a, guaranteed: 16}]"),
    ("Tenant", "quotas: [{pool: a, quota: 36, limit: 48}]", "quotas: [{pool: a, guaranteed: 36, limit: 48}]"),
    ("Tenant", "quotas: [{pool: a, owned: 16}]", "quotas: [{pool: a, guaranteed: 16}]"),
    (
        "Tenant",
        "quotas: [{pool: a, guaranteed: 24, borrowingLimit: 12}]",
        "quotas: [{pool: a, guaranteed: 24, limit: 36}]",
    ),
    (
        "Tenant",
        "quotas: [{pool: a, nominalQuota: 24, borrowingLimit: 12}]",
        "quotas: [{pool: a, guaranteed: 24, limit: 36}]",
    ),
    (
        "Tenant",
        "quotas: [{pool: a, guaranteed: 24, lendingLimit: 4}]",
        "quotas: [{pool: a, guaranteed: 24, lendable: 4}]",
    ),
    (
        "Tenant",
        "quotas: [{pool: a, guaranteed: 2, overQuotaWeight: 3}]",
        "quotas: [{pool: a, guaranteed: 2}]\nsurplus: {weight: 3}",
    ),
    ("Tenant", "overQuotaWeight: 2", "surplus: {weight: 2}"),
    (
        "Tenant",
        "quotas: [{pool: a, guaranteed: 2, weight: 3}]",
        "quotas: [{pool: a, guaranteed: 2}]\nsurplus: {weight: 3}",
    ),
    (
        "Tenant",
        "resourceGroups: [{flavors: [{name: a, resources: [{nominalQuota: 9, borrowingLimit: 3}]}]}]",
        "quotas: [{pool: a, guaranteed: 9, limit: 12}]",
    ),
    ("Tenant", "members: [{kind: Group, name: ml}]", "members: [{group: ml}]"),
    ("Tenant", "members: [{kind: User, name: a, apiGroup: rbac.authorization.k8s.io}]", "members: [{user: a}]"),
    (
        "Tenant",
        "subjects: [{kind: ServiceAccount, name: a, namespace: b}]",
        "members: [{user: 'system:serviceaccount:b:a'}]",
    ),
    ("PriorityClass", "value: 5\npreemptionPolicy: Never", "value: 5\npreempts: false"),
    ("PriorityClass", "value: 5\nglobalDefault: true", "value: 5\ndefault: true"),
    (
        "Pool",
        f"{NODES}sharing: {{timeSlicing: {{resources: [{{name: nvidia.com/gpu, replicas: 3}}]}}}}",
        f"{NODES}sharing: {{timeSlicing: {{replicas: 3}}}}",
    ),
    ("Pool", f"{NODES}sharing: {{mps: {{resources: [{{replicas: 3}}]}}}}", f"{NODES}sharing: {{mps: {{replicas: 3}}}}"),
    (
        "Pool",
        f"{WHOLE}taints: [nvidia.com/gpu=a:NoSchedule, b:NoExecute]",
        f"{WHOLE}taints: [{{key: nvidia.com/gpu, value: a, effect: NoSchedule}}, {{key: b, effect: NoExecute}}]",
    ),
    (
        "Pool",
        f"{WHOLE}nodeSelector: {{example.com/a: b}}",
        "nodes: {count: 2, gpusPerNode: 8, selector: {example.com/a: b}}\nsharing: {exclusive: {}}",
    ),
    (
        "MigLayout",
        "devices: [{devices: [0, 1], mig-enabled: true, mig-devices: {3g.40gb: 2}}]",
        "devices: [{gpus: [0, 1], enabled: true, instances: {3g.40gb: 2}}]",
    ),
    (
        "MigLayout",
        "devices: [{devices: all, mig-devices: {3g.40gb: 2}}]",
        "devices: [{gpus: all, instances: {3g.40gb: 2}}]",
    ),
    (
        "Cluster",
        "argocd: {source: {repoURL: https://git.example.com/a.git, path: out/dev, targetRevision: v1}}",
        "argocd: {repoURL: https://git.example.com/a.git, path: out, revision: v1}",
    ),
    (
        "Workload",
        f"{SERVICE}volumeMounts: [{{name: a, mountPath: /a}}]",
        f"{SERVICE}podPatch: {{spec: {{containers: [{{name: main, volumeMounts: [{{name: a, mountPath: /a}}]}}]}}}}",
    ),
    (
        "Workload",
        f"{SERVICE}affinity: {{nodeAffinity: {{}}}}",
        f"{SERVICE}podPatch: {{spec: {{affinity: {{nodeAffinity: {{}}}}}}}}",
    ),
    ("Workload", f"{SERVICE}labels: {{a: b}}", f"{SERVICE}podPatch: {{metadata: {{labels: {{a: b}}}}}}"),
    (
        "Workload",
        "inference: {livenessProbe: {httpGet: {path: /health, port: 8000}}}",
        "inference: {liveness: {http: /health}}",
    ),
    ("Workload", "inference: {readinessProbe: {tcpSocket: {port: 8000}}}", "inference: {probe: tcp}"),
    ("Workload", "inference: {startupProbe: {failureThreshold: 30, periodSeconds: 10}}", "inference: {startup: 300s}"),
    (
        "Workload",
        f"{SERVICE}env: {{A: {{valueFrom: {{secretKeyRef: {{name: s, key: k}}}}}}}}",
        f"{SERVICE}env: {{A: {{secretKeyRef: {{name: s, key: k}}}}}}",
    ),
    (
        "Workload",
        "inference: {autoscaling: {maxReplicas: 3, targetCPUUtilizationPercentage: 70}}",
        "inference: {autoscaling: {maxReplicas: 3, cpuPercent: 70}}",
    ),
    (
        "Workload",
        "inference: {autoscaling: {minReplicaCount: 1, maxReplicaCount: 3, cpuPercent: 70}}",
        "inference: {autoscaling: {minReplicas: 1, maxReplicas: 3, cpuPercent: 70}}",
    ),
    (
        "Workload",
        f"{SERVICE}volumes: [{{name: a, emptyDir: {{}}}}]\npodPatch: {{spec: {{serviceAccountName: b}}}}",
        f"{SERVICE}podPatch: {{spec: {{serviceAccountName: b, volumes: [{{name: a, emptyDir: {{}}}}]}}}}",
    ),
    (
        "Workload",
        f"{SERVICE}dnsPolicy: None\nserviceAccountName: b\nlabels: {{c: d}}",
        f"{SERVICE}podPatch: {{spec: {{dnsPolicy: None, serviceAccountName: b}}, metadata: {{labels: {{c: d}}}}}}",
    ),
    # A field beside the mapping that it belongs into, which is written in one line; and what cannot stand beside it.
    ("Workload", "inference: {}\nreplicas: 3", "inference: {replicas: 3}"),
    ("Workload", "training: {}\npods: 4\nbackoffLimit: 8", "training: {pods: 4, backoffLimit: 8}"),
    ("Workload", "training: {}\nreplicas: 3", "training: {pods: 3}"),
    # Another name, and another shape with it.
    ("Workload", f'{SERVICE}gpus: "2"', f"{SERVICE}count: 2"),
    ("Workload", f"{SERVICE}layout: 3g.40gb", f"{SERVICE}unit: 3g.40gb"),
    (
        "Workload",
        f"{SERVICE}labels: [team=a, app=b]",
        f"{SERVICE}podPatch: {{metadata: {{labels: {{team: a, app: b}}}}}}",
    ),
    ("Tenant", "priorityClassName: high", "priorityClasses: [high]"),
    ("Tenant", "members: [{name: ml}]", "members: [{group: ml}]"),
    ("Tenant", "quotas: [{pool: a, requests: 36, limits: 48}]", "quotas: [{pool: a, guaranteed: 36, limit: 48}]"),
    ("Cluster", "scheduler: {name: kueue}", "scheduler: {kind: kueue}"),
    ("Cluster", "scheduler: Kueue", "scheduler: {kind: kueue}"),
    # Ports as a container of Kubernetes has them.
    ("Workload", f"{SERVICE}ports: [{{name: http, containerPort: 9000}}]", "inference: {port: 9000}"),
    (
        "Workload",
        "inference: {port: 8000}\nports: [{containerPort: 8000}, {name: rpc, containerPort: 8001, protocol: TCP}]",
        "inference: {port: 8000, ports: {rpc: 8001}}",
    ),
    (
        "Workload",
        "inference: {ports: [{name: rpc, containerPort: 8001, protocol: TCP}]}",
        "inference: {ports: {rpc: 8001}}",
    ),
    # A word that names the field which is meant, and a value in a mapping or a list of its own.
    (
        "Pool",
        f"{NODES}sharing: {{type: time-slicing, replicas: 3}}",
        f"{NODES}sharing: {{timeSlicing: {{replicas: 3}}}}",
    ),
    ("Pool", f"{NODES}sharing: {{strategy: mps, mps: 3}}", f"{NODES}sharing: {{mps: {{replicas: 3}}}}"),
    ("Pool", f"{NODES}sharing: {{mig: 1g.10gb}}", f"{NODES}sharing: {{mig: {{instances: {{1g.10gb: 7}}}}}}"),
    ("Pool", f"{NODES}sharing: [{{exclusive: {{}}}}]", WHOLE),
    ("Workload", f"{SERVICE}count: {{count: 2}}", f"{SERVICE}count: 2"),
    ("Tenant", "quotas: [{pool: a, guaranteed: {nvidia.com/gpu: 36}}]", "quotas: [{pool: a, guaranteed: 36}]"),
    ("Workload", f"{SERVICE}env: [EPOCHS=3]", f'{SERVICE}env: {{EPOCHS: "3"}}'),
    ("MigLayout", 'instances: ["2 x 3g.40gb"]', "instances: {3g.40gb: 2}"),
    # Files of the MIG manager, a ClusterQueue and a ResourceQuota, pasted.
    (
        "MigLayout",
        "mig-configs: {a: [{devices: all, mig-enabled: true, mig-devices: {3g.40gb: 2}}]}",
        "instances: {3g.40gb: 2}",
    ),
    ("MigLayout", "devices: all\nmig-enabled: true\nmig-devices: {3g.40gb: 2}", "instances: {3g.40gb: 2}"),
    (
        "Pool",
        f"{NODES}sharing: {{mig-configs: {{a: [{{devices: all, mig-devices: {{3g.40gb: 2}}}}]}}}}",
        f"{NODES}sharing: {{mig: {{instances: {{3g.40gb: 2}}}}}}",
    ),
    (
        "Tenant",
        "quotas: [{flavors: [{name: a, resources: [{nominalQuota: 9}]}]}]",
        "quotas: [{pool: a, guaranteed: 9}]",
    ),
    ("Tenant", "quotas: [{pool: a, hard: {requests.nvidia.com/gpu: 9}}]", "quotas: [{pool: a, guaranteed: 9}]"),
    # Windows in words.
    (
        "Pool",
        f'{WHOLE}disruption: {{windows: ["Sun 22:00-02:00"]}}',
        f"{WHOLE}disruption: {{windows: [{{schedule: 0 22 * * sun, duration: 4h}}]}}",
    ),
    (
        "Pool",
        f'{WHOLE}disruption: {{windows: [{{day: Sun, from: "22:00", to: "23:30"}}]}}',
        f"{WHOLE}disruption: {{windows: [{{schedule: 0 22 * * sun, duration: 1h30m}}]}}",
    ),
    # A number that means something else.
    ("Workload", f"{SERVICE}memory: 64", f"{SERVICE}memory: 64Gi"),
    ("Workload", f"{SERVICE}model: {{size: 100}}", f"{SERVICE}model: {{size: 100Gi}}"),
    ("Pool", f"{WHOLE}disruption: {{approval: auto}}", f"{WHOLE}disruption: {{approval: automatic}}"),
    # A value in place of a mapping.
    ("Pool", f"{NODES}sharing: {{timeSlicing: 3}}", f"{NODES}sharing: {{timeSlicing: {{replicas: 3}}}}"),
    ("Pool", f"{NODES}sharing: {{mps: 4}}", f"{NODES}sharing: {{mps: {{replicas: 4}}}}"),
    ("Pool", f"{NODES}sharing: {{mig: halves}}", f"{NODES}sharing: {{mig: {{layout: halves}}}}"),
    # A field that two unknown ones say together, what and how many.
    (
        "Pool",
        f"{NODES}sharing: {{mig: {{profile: 3g.40gb, count: 2}}}}",
        f"{NODES}sharing: {{mig: {{instances: {{3g.40gb: 2}}}}}}",
    ),
    ("MigLayout", "profile: 1g.10gb\ncount: 5", "instances: {1g.10gb: 5}"),
    ("MigLayout", "type: 1g.10gb\nnumber: 5", "instances: {1g.10gb: 5}"),
    (
        "MigLayout",
        "devices: [{gpus: all, profile: 1g.10gb, count: 5}]",
        "devices: [{gpus: all, instances: {1g.10gb: 5}}]",
    ),
    (
        "Pool",
        f"{WHOLE}syncWindows: [{{kind: allow, schedule: 0 2 * * 6, duration: 4h}}]",
        f"{WHOLE}disruption: {{windows: [{{schedule: 0 2 * * 6, duration: 4h}}]}}",
    ),
    ("Pool", f"{WHOLE}disruption: {{maxUnavailable: 50%}}", f"{WHOLE}disruption: {{maxUnavailable: 1}}"),
    ("Workload", f"{SERVICE}model: 100GB", f"{SERVICE}model: {{size: 100Gi}}"),
    ("Tenant", "members: [{groups: [b, c], role: view}]", "members: [{group: b, role: view}, {group: c, role: view}]"),
    ("Pool", f"{NODES}sharing: {{exclusive: true}}", WHOLE),
    ("Pool", f"{NODES}sharing: {{dynamicMig: [1g.10gb]}}", f"{NODES}sharing: {{dynamicMig: {{profiles: [1g.10gb]}}}}"),
    ("Pool", f"{WHOLE}disruption: automatic", f"{WHOLE}disruption: {{approval: automatic}}"),
    ("Pool", f"{WHOLE}billing: spot", f"{WHOLE}billing: {{term: spot}}"),
    ("Pool", f"{WHOLE}driver: 570.195.03", f"{WHOLE}driver: {{version: 570.195.03}}"),
    ("Cluster", "scheduler: kueue", "scheduler: {kind: kueue}"),
    ("Cluster", "argocd: https://git.example.com/a.git", "argocd: {repoURL: https://git.example.com/a.git}"),
    ("Cluster", "monitoring: true", "monitoring: {}"),
    ("Cluster", "prometheus: http://prometheus:9090", "prometheus: {url: http://prometheus:9090}"),
    ("Workload", "inference: 8", "inference: {replicas: 8}"),
    ("Workload", "training: 2", "training: {pods: 2}"),
    ("Workload", "workspace: true", "workspace: {}"),
    ("Workload", f"{SERVICE}model: 100Gi", f"{SERVICE}model: {{size: 100Gi}}"),
    ("Workload", "inference: {probe: /health}", "inference: {probe: {http: /health}}"),
    ("Workload", "inference: {route: chat.example.com}", "inference: {route: {hosts: [chat.example.com]}}"),
    ("Tenant", "surplus: 2", "surplus: {weight: 2}"),
    # A list in place of a mapping by name, and the other way round.
    (
        "Workload",
        f"{SERVICE}env: [{{name: A, value: b}}, {{name: C, valueFrom: {{secretKeyRef: {{name: s, key: k}}}}}}]",
        f"{SERVICE}env: {{A: b, C: {{secretKeyRef: {{name: s, key: k}}}}}}",
    ),
    ("Workload", f"{SERVICE}env: [A=b, C=d]", f"{SERVICE}env: {{A: b, C: d}}"),
    ("Workload", f"{SERVICE}args: [--model: llama]", f"{SERVICE}args: [--model, llama]"),
    ("Workload", f"{SERVICE}command: python -m server", f"{SERVICE}command: [python, -m, server]"),
    ("MigLayout", "instances: [1g.10gb: 3, 2g.20gb: 2]", "instances: {1g.10gb: 3, 2g.20gb: 2}"),
    ("MigLayout", "instances: [{profile: 1g.10gb, count: 7}]", "instances: {1g.10gb: 7}"),
    (
        "Tenant",
        "quotas: {a: {guaranteed: 36}, b: {guaranteed: 2}}",
        "quotas: [{pool: a, guaranteed: 36}, {pool: b, guaranteed: 2}]",
    ),
    ("Tenant", "quotas: {a: 36}", "quotas: [{pool: a, guaranteed: 36}]"),
    ("Tenant", "quotas: {pool: a, guaranteed: 36}", "quotas: [{pool: a, guaranteed: 36}]"),
    ("Tenant", "members: {group: ml, role: admin}", "members: [{group: ml, role: admin}]"),
    ("Tenant", "members: -ml", "members: [ml]"),
    ("Tenant", "priorityClasses: high, low", "priorityClasses: [high, low]"),
    (
        "Pool",
        "nodes: {count: 2, gpusPerNode: 8, names: 'a, b'}\nsharing: {exclusive: {}}",
        "nodes: {count: 2, gpusPerNode: 8, names: [a, b]}\nsharing: {exclusive: {}}",
    ),
    ("Tenant", "quotas: [{a: 4}]", "quotas: [{pool: a, guaranteed: 4}]"),
    ("Tenant", "quotas: [{pool: a, requests.nvidia.com/gpu: 4}]", "quotas: [{pool: a, guaranteed: 4}]"),
    # A word for a mapping, with the fields of that mapping beside it.
    ("Pool", f"{NODES}sharing: mig\nlayout: a", f"{NODES}sharing: {{mig: {{layout: a}}}}"),
    ("Pool", f"{NODES}sharing: timeSlicing\nreplicas: 3", f"{NODES}sharing: {{timeSlicing: {{replicas: 3}}}}"),
    ("Pool", f"{NODES}sharing: mps\nreplicas: 3", f"{NODES}sharing: {{mps: {{replicas: 3}}}}"),
    (
        "Pool",
        f"{WHOLE}disruption: manual\nmaxUnavailable: 1",
        f"{WHOLE}disruption: {{approval: manual, maxUnavailable: 1}}",
    ),
    ("Pool", f"{NODES}sharing: false", WHOLE),
    ("Pool", f"{NODES}sharing: {{none: {{}}}}", WHOLE),
    # Another type, unit or spelling.
    (
        "Pool",
        f"{WHOLE}disruption: {{windows: [{{schedule: 0 2 * * 6, duration: 4}}]}}",
        f"{WHOLE}disruption: {{windows: [{{schedule: 0 2 * * 6, duration: 4h}}]}}",
    ),
    (
        "Pool",
        f"{WHOLE}disruption: {{windows: [{{schedule: 0 2 * * 6, duration: 1.5 hours}}]}}",
        f"{WHOLE}disruption: {{windows: [{{schedule: 0 2 * * 6, duration: 90m}}]}}",
    ),
    ("Cluster", "admission: {gracePeriod: 30 seconds}", "admission: {gracePeriod: 30s}"),
    ("Pool", f"{WHOLE}memoryPerUnitMiB: 10Gi", f"{WHOLE}memoryPerUnitMiB: 10240"),
    ("Pool", f"{WHOLE}disruption: {{maxUnavailable: two}}", f"{WHOLE}disruption: {{maxUnavailable: 2}}"),
    ("Pool", f"{WHOLE}disruption: {{maxUnavailable: 2 nodes}}", f"{WHOLE}disruption: {{maxUnavailable: 2}}"),
    ("Pool", f"{WHOLE}disruption: {{maxUnavailable: '2'}}", f"{WHOLE}disruption: {{maxUnavailable: 2}}"),
    ("Workload", f"{SERVICE}fraction: 50%", f"{SERVICE}fraction: 0.5"),
    ("Workload", f"{SERVICE}cpu: 0.5", f'{SERVICE}cpu: "0.5"'),
    ("Tenant", "quotas: [{pool: a, guaranteed: 1, memory: 64GB}]", "quotas: [{pool: a, guaranteed: 1, memory: 64Gi}]"),
    ("Cluster", "taintPools: 'yes'", "taintPools: true"),
    ("Cluster", "taintPools: disabled", "taintPools: false"),
    ("Cluster", "taintpools: true", "taintPools: true"),
    ("PriorityClass", "value: '5'", "value: 5"),
    ("Workload", f"{SERVICE}priority_class: a", f"{SERVICE}priorityClass: a"),
    ("Workload", f"{SERVICE}priority-class: a", f"{SERVICE}priorityClass: a"),
]


@pytest.mark.parametrize(("kind", "wrong", "right"), ROWS)
def test_help_applied_to_the_letter_says_what_was_meant(kind: str, wrong: str, right: str) -> None:
    meant = read(a_document(kind, right))
    found = read(mended(a_document(kind, wrong)))
    assert not meant.diagnostics
    assert [(item.finding.message, item.finding.help) for item in found.diagnostics] == []
    assert found.policy == meant.policy


def test_fields_without_their_spec_are_one_mistake() -> None:
    fields = {"value": 100, "preemptionPolicy": "Never", "globalDefault": False}
    head = {"apiVersion": "gpuplan.dev/v1", "kind": "PriorityClass", "metadata": {"name": "a"}}
    (found,) = read({**head, **fields}).diagnostics
    spec = "`spec: {value: 100, preempts: false, default: false}`"
    assert found.finding.help == f"write {spec} in place of `value`, `preemptionPolicy` and `globalDefault`"
    (found,) = read({**head, "value": 100, "description": "for work that waits " * 9}).diagnostics
    indented = "indent `value` and `description` by 2 below it"
    assert found.finding.help == f"write `spec:` above `value`, and {indented}"
    (found,) = read({**head, **fields, "description": "for work that waits " * 9}).diagnostics
    renamed = "`preempts: false` and `default: false` there in place of `preemptionPolicy` and `globalDefault`"
    assert found.finding.help == f"write `spec:` above `value`, {indented}, and write {renamed}"


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("nodes: 4\ngpusPerNode: 8", "write `nodes: {count: 4, gpusPerNode: 8}` in place of `nodes` and `gpusPerNode`"),
        (
            "nodes: {count: 4}\ngpusPerNode: 8",
            "write `nodes: {count: 4, gpusPerNode: 8}` in place of `nodes` and `gpusPerNode`",
        ),
        ("nodes:\n  count: 4\ngpusPerNode: 8", "indent `gpusPerNode`, and what is below it, by 2 more"),
        ("count: 4\ngpusPerNode: 8", "write `nodes: {count: 4, gpusPerNode: 8}` in place of `count` and `gpusPerNode`"),
    ],
)
def test_nothing_is_indented_below_a_value_on_the_same_line(nodes: str, expected: str) -> None:
    spec = nodes.replace("\n", "\n  ")
    text = f"apiVersion: gpuplan.dev/v1\nkind: Pool\nmetadata: {{name: a}}\nspec:\n  gpu: A100-80GB\n  {spec}\n"
    (document,), _ = read_text("pool.yaml", f"{text}  sharing: {{exclusive: {{}}}}\n")
    (found,) = parse(document).diagnostics
    assert found.finding.help == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            "quotas: [{pool: a, guaranteed: 50%}]",
            "write units in place of `50%`: `gpuplan show` says how many the pool has",
        ),
        *(
            (said, "write `quotas: [{pool: ..., guaranteed: 36}]`")
            for said in (
                "hard: {requests.nvidia.com/gpu: 36}",
                "resourceQuota: {hard: {requests.nvidia.com/gpu: 36}}",
                "resourceQuota: {requests.nvidia.com/gpu: 36}",
                "quota: {gpu: 36}",
                "gpus: 36",
            )
        ),
        ("quotas: 36", "write `quotas: [{guaranteed: 36, pool: ...}]`"),
        (
            "quotas: [{nvidia.com/mig-1g.10gb: 4}]",
            "write `pool: ...`, `unit: 1g.10gb` and `guaranteed: 4` in its place, each on a line of its own",
        ),
        ("quotas: [{a: many}]", "write one of the fields here, or leave `a` out: gpuplan has no such field"),
        (
            "hard: {requests.nvidia.com/mig-1g.10gb: 3}\nquotas: [{pool: a, guaranteed: 1}]",
            "write `{pool: ..., unit: 1g.10gb, guaranteed: 3}` as an item of `quotas` in place of `hard`",
        ),
        (
            "quotas: [{pool: a, guaranteed: 1, limit: 50%}]",
            "write units in place of `50%`: `gpuplan show` says how many the pool has",
        ),
        ("members: [a]\ngroups: [b]", "write `members: [a, b]` in place of both"),
        ("turns: 3", "write one of the fields here, or leave `turns` out: gpuplan has no such field"),
    ],
)
def test_help_leaves_open_what_only_the_user_knows(fields: str, expected: str) -> None:
    assert [found.finding.help for found in read(a_document("Tenant", fields)).diagnostics] == [expected]


@pytest.mark.parametrize(
    ("kind", "fields", "expected"),
    [
        (
            "Pool",
            f"{NODES}sharing: {{mig: mixed}}",
            (
                "write `mig: {layout: NAME}` with the name of a MigLayout, or `mig: {instances: {1g.10gb: 7}}`; "
                "`mixed` is their `strategy` without a word"
            ),
        ),
        *(
            ("Pool", f"{NODES}sharing: {{{off}}}", f"to switch it off, write `exclusive: {{}}` in place of `{name}`")
            for off, name in (
                ("mig: false", "mig"),
                ("timeSlicing: false", "timeSlicing"),
                ("mps: {enabled: false}", "mps"),
            )
        ),
        ("Cluster", "gpuOperator: {install: flux, version: v26.7.0}", "write `helm`"),
        ("Cluster", "monitoring: false", "leave the whole `monitoring` out: what stands there is on"),
        ("Tenant", "allow: false", "leave the whole `allow` out: what stands there is on"),
        ("Pool", NODES, f"add `sharing:` with one of {WAYS} below it"),
        (
            "Pool",
            f"{WHOLE}labels: {{cost: ml}}",
            "write `nodeLabels: {example.com/cost: ml}`, with your own domain for `example.com`",
        ),
        (
            "Tenant",
            "quotas: [{pool: a, $patch: delete}]",
            "leave the item out: the list of an overlay replaces that of the base",
        ),
        ("Pool", f"{NODES}sharing: {{mig: single}}", "write `mig: {strategy: single, ...}`"),
        (
            "Pool",
            f"{NODES}sharing: {{mig: {{layout: a, count: 2}}}}",
            "write one of the fields here, or leave `count` out: gpuplan has no such field",
        ),
        (
            "Workload",
            f"{SERVICE}model: meta-llama/Llama-3-8B",
            "write `model: {size: 100Gi, download: {image: ..., args: [...]}}`: a container copies the model",
        ),
        (
            "Workload",
            f"{SERVICE}env: [{{name: TOKEN, value: abcdef}}, {{name: A, value: b}}]",
            (
                "write `env: {TOKEN: {secretKeyRef: {name: ..., key: ...}}, A: b}` with the Secret that has the "
                "value, which is not shown here"
            ),
        ),
        (
            "Workload",
            "inference: {replicas: 0}",
            (
                "write a number of at least 1; to switch it off, delete the document, or in an overlay write "
                "`metadata: {name: a, $patch: delete}`"
            ),
        ),
        (
            "PriorityClass",
            "value: high",
            (
                "write a whole number, such as `500`: pods of a higher one go first, and `gpuplan show` lists those "
                "of the other classes"
            ),
        ),
        (
            "Tenant",
            "members: [{group: b, role: gpu-user}]",
            "write one of `view`, `edit`, `admin`; or `clusterRole: gpu-user` in place of `role`",
        ),
        ("Tenant", "members: [{group: b, role: cluster-admin}]", "write `admin`"),
    ],
)
def test_help_puts_no_text_into_a_field_that_it_cannot_be_for(kind: str, fields: str, expected: str) -> None:
    assert [found.finding.help for found in read(a_document(kind, fields)).diagnostics] == [expected]


@pytest.mark.parametrize(
    ("kind", "fields", "entry", "expected"),
    [
        (
            "Pool",
            WHOLE,
            "labels",
            (
                "write `nodeLabels: {example.com/cost: ml}` below `spec`, in place of `labels`, "
                "with your own domain for `example.com`"
            ),
        ),
        (
            "Workload",
            SERVICE,
            "labels",
            "write `podPatch: {metadata: {labels: {cost: ml}}}` below `spec`, in place of `labels`",
        ),
        (
            "Tenant",
            "",
            "labels",
            (
                "leave it out of `metadata`, which has a `name` alone: objects that gpuplan writes get it by a patch "
                "in overlays/<cluster>/kustomize/: docs/how-to/patch-what-gpuplan-writes.md"
            ),
        ),
        ("Pool", WHOLE, "namespace", "leave it out: documents of gpuplan are in no namespace"),
        ("Tenant", "", "namespace", "leave it out: documents of gpuplan are in no namespace"),
        ("Workload", SERVICE, "namespace", "write `namespace: gpu` below `spec`, in place of `namespace`"),
    ],
)
def test_metadata_has_a_name_alone(kind: str, fields: str, entry: str, expected: str) -> None:
    data = a_document(kind, fields)
    data["metadata"][entry] = {"cost": "ml"} if entry == "labels" else "gpu"
    assert [found.finding.help for found in read(data).diagnostics] == [expected]


def test_the_namespace_of_a_tenant_that_has_none_is_its_namespaces() -> None:
    data = a_document("Tenant", "")
    data["metadata"]["namespace"], data["spec"] = "gpu", {}
    (found,) = [found.finding.help for found in read(data).diagnostics]
    assert found == "write `namespaces: [gpu]` below `spec`, in place of `namespace`"
