"""Pod templates of a cluster: on which nodes they run, and which of our rules would refuse their pods."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import yaml

from tests.laws.adoption.nodes import NODE_POOL, POOL, PREFIX, Node
from tests.laws.adoption.state import Body, State, holds, inside, labels, quantity, selects
from tests.laws.orders.publishing import GPU

QUEUE: Final = "kueue.x-k8s.io/queue-name"
KAI_QUEUE: Final = "kai.scheduler/queue"
KAI: Final = "kai-scheduler"

_TEMPLATES: Final[Mapping[str, Sequence[str]]] = {
    "Pod": (),
    "Deployment": ("spec", "template"),
    "StatefulSet": ("spec", "template"),
    "DaemonSet": ("spec", "template"),
    "ReplicaSet": ("spec", "template"),
    "Job": ("spec", "template"),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
}


@dataclass(frozen=True)
class Template:
    """What a controller makes pods of."""

    kind: str
    namespace: str
    name: str
    owner_labels: Mapping[str, str]
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    spec: Body

    @property
    def title(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"

    @cached_property
    def containers(self) -> Sequence[Body]:
        return [*self.spec.get("containers", ()), *self.spec.get("initContainers", ())]

    @cached_property
    def asks(self) -> Mapping[str, int]:
        """Of each resource of GPUs, what a pod asks for."""
        found: dict[str, int] = {}
        for container in self.containers:
            for key, value in inside(container, "resources", "limits").items():
                if key.startswith(PREFIX) and str(value) != "0":
                    found[key] = found.get(key, 0) + int(value)
        return found

    @property
    def fraction(self) -> bool:
        return bool({"gpu-fraction", "gpu-memory"} & set(self.annotations))

    @property
    def uses_gpus(self) -> bool:
        return bool(self.asks) or self.fraction

    @property
    def queue(self) -> str:
        return self.owner_labels.get(QUEUE) or self.labels.get(QUEUE) or ""


def templates(state: State) -> Iterator[Template]:
    for (kind, namespace, name), body in state.objects.items():
        if kind in _TEMPLATES:
            template = inside(body, *_TEMPLATES[kind])
            notes = dict(inside(template, "metadata", "annotations"))
            yield Template(kind, namespace, name, labels(body), labels(template), notes, inside(template, "spec"))


# --- Where pods run ----------------------------------------------------------------------------------------------


def fits(template: Template, nodes: Mapping[str, Node], state: State) -> list[str]:
    """The nodes that have what a pod asks for and that it may go to."""
    flavors = _flavors(template, state)
    return [
        name
        for name, node in nodes.items()
        if _may_go(template, node)
        and any(all(node.labels.get(key) == value for key, value in wanted.items()) for wanted in flavors)
        and all(node.published.get(key, 0) >= count for key, count in template.asks.items())
        and (not template.fraction or node.published.get(GPU, 0))
    ]


def _flavors(template: Template, state: State) -> list[Mapping[str, str]]:
    """The labels that Kueue may add to what a pod selects; none at all where nothing queues it."""
    queue = queue_of(template, state)
    if not queue:
        return [{}]
    found: list[Mapping[str, str]] = []
    for group in inside(state.find("ClusterQueue", queue["spec"]["clusterQueue"]), "spec", "resourceGroups") or ():
        if set(template.asks) & set(group["coveredResources"]):
            names = [flavor["name"] for flavor in group["flavors"]]
            found += [inside(state.find("ResourceFlavor", name), "spec", "nodeLabels") for name in names]
    return found


def queue_of(template: Template, state: State) -> Body:
    """The LocalQueue that holds the work; work without a label goes to the one called `default`, where there is one.

    (`pkg/controller/jobframework/defaults.go` of Kueue v0.17.0.) Kueue holds the kinds alone that it is told of.
    """
    kind = {"CronJob": "job"}.get(template.kind, template.kind.lower())
    if not {kind, "pod"} & _held(state) if kind != "job" else "job" not in _held(state):
        return {}
    return state.find("LocalQueue", template.queue or "default", template.namespace)


def _held(state: State) -> set[str]:
    """The kinds of work that Kueue is told of; a dump without its Configuration leaves that open."""
    for _, name, body in state.of("ConfigMap"):
        text = inside(body, "data").get("controller_manager_config.yaml")
        if name == "kueue-manager-config" and text:
            listed = inside(yaml.safe_load(text), "integrations").get("frameworks") or ()
            return {framework.rpartition("/")[2] for framework in listed}
    return {"job", "pod", "deployment", "statefulset"}


def _may_go(template: Template, node: Node) -> bool:
    spec = template.spec
    terms = inside(
        spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"
    )
    tolerations = spec.get("tolerations") or ()
    is_in_shard = spec.get("schedulerName") != KAI or node.labels.get(NODE_POOL) == template.labels.get(NODE_POOL)
    return (
        is_in_shard
        and all(node.labels.get(key) == value for key, value in (spec.get("nodeSelector") or {}).items())
        and (
            not terms
            or any(all(holds(found, node.labels) for found in term.get("matchExpressions") or ()) for term in terms)
        )
        and all(
            any(tolerates(found, taint) for found in tolerations)
            for taint in node.taints
            if taint["effect"] != "PreferNoSchedule"
        )
    )


def tolerates(toleration: Body, taint: Body) -> bool:
    key, effect, operator = (toleration.get(name) or "" for name in ("key", "effect", "operator"))
    return (
        key in ("", taint["key"])
        and effect in ("", taint["effect"])
        and (operator == "Exists" or (toleration.get("value") or "") == (taint.get("value") or ""))
    )


# --- What is refused ---------------------------------------------------------------------------------------------


class Refusal(NamedTuple):
    """A rule that a pod breaks, and the words of which a report has to have one."""

    rule: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class Grants:
    """What a namespace may ask for where a binding refuses the rest."""

    allowed: tuple[tuple[str, str, str], ...]
    """Pool, resource, and how many a container may have, or `any`."""
    data: Mapping[str, str]
    messages: frozenset[str]
    opened: tuple[Body, ...]
    """The taints that only those may tolerate who choose a pool."""

    def lines(self, key: str) -> list[str]:
        return [line for line in self.data.get(key, "").split("\n") if line]

    def has(self, words: str) -> bool:
        return any(words in message for message in self.messages)


def policies(state: State, namespace: str) -> Iterator[tuple[Body, Body]]:
    """The policies that refuse in a namespace, each with its binding; those that warn are left out."""
    marks = state.namespaces.get(namespace, {})
    for _, _, binding in state.of("ValidatingAdmissionPolicyBinding"):
        spec = binding["spec"]
        if "Deny" in spec.get("validationActions", ()) and selects(
            inside(spec, "matchResources", "namespaceSelector"), marks
        ):
            yield state.find("ValidatingAdmissionPolicy", spec["policyName"]), spec


def grants_of(state: State, namespace: str) -> Grants | None:
    """What the policy with grants says of pods in a namespace; None where none refuses."""
    for policy, binding in policies(state, namespace):
        parameters = binding.get("paramRef") or {}
        data = inside(state.find("ConfigMap", parameters.get("name", ""), parameters.get("namespace", "")), "data")
        if binding["policyName"] == "gpuplan-grants" and data:
            rows = [line.split(" ") for line in data["grants"].split("\n") if line]
            return Grants(
                tuple((pool, resource, most) for pool, resource, most in rows if pool),
                data,
                _messages(policy),
                tuple(_opened(policy)),
            )
    return None


def _messages(policy: Body) -> frozenset[str]:
    return frozenset(rule.get("message", "") for rule in inside(policy, "spec", "validations") or ())


def _opened(policy: Body) -> Iterator[Body]:
    for variable in inside(policy, "spec", "variables") or ():
        if variable["name"] == "opened":
            listed = re.match(r"\s*(\[.*?\])\.filter", variable["expression"], re.DOTALL)
            for taints in ast.literal_eval(listed[1]) if listed else ():
                for key, value, effect in taints:
                    yield {"key": key, "value": value, "effect": effect}


def refusals(template: Template, state: State) -> Iterator[Refusal]:
    """Each rule that pods of a template break when they are made anew."""
    for policy, binding in policies(state, template.namespace):
        if binding["policyName"] == "gpuplan-devices":
            yield from _devices(template, _messages(policy))
    grants = grants_of(state, template.namespace)
    if grants is not None:
        yield from _granted(template, grants, state)
    yield from _unstated(template, state)


def _granted(template: Template, grants: Grants, state: State) -> Iterator[Refusal]:
    spec, asked = template.spec, [*template.asks]
    granted = {resource for _, resource, _ in grants.allowed}
    is_of_job = template.kind in ("Job", "CronJob")
    is_held = grants.has("Kueue") and bool(asked) and bool(queue_of(template, state))
    is_gated = is_held and not is_of_job
    chosen = _chosen(spec, grants) or (_given(template, state) if is_held and is_of_job else [])
    if missing := [name for name in asked if name not in granted and name not in grants.lines("otherResources")]:
        yield Refusal("no grant", tuple(missing))
        return
    if asked and not chosen and not is_gated and grants.has("pods that ask for GPUs must choose a pool"):
        yield Refusal("no pool", (POOL,))
    if asked and not chosen and not is_gated and grants.has("pods that ask for GPUs run in a pool"):
        yield Refusal("no pool", (POOL, "Kueue"))
    if (spec.get("nodeSelector") or {}).get(POOL, "") not in ("", *grants.lines("pools")):
        yield Refusal("foreign pool", (POOL,))
    if chosen and any(
        all((pool, name) != (found, resource) for found, resource, _ in grants.allowed)
        for pool in chosen
        for name in asked
    ):
        yield Refusal("not in this pool", tuple(asked))
    if not chosen and not is_gated and _opens(spec, grants):
        yield Refusal("toleration", ("toleration", "tolerates", "tolerations", "taint", "taints"))
    yield from _counted(template, grants, chosen)
    yield from _classes(template, grants)
    bound = int(grants.data.get("gracePeriod", 30))
    if asked and spec.get("terminationGracePeriodSeconds", 0) > bound:
        yield Refusal("grace", ("terminationGracePeriodSeconds",))
    yield from _scheduler(template, grants)
    if asked and not is_gated and not is_of_job and grants.has("must wait for Kueue"):
        yield Refusal("not queued", (QUEUE, "Kueue", "scheduling gate", "queue"))


def _given(template: Template, state: State) -> list[str]:
    """The pools that Kueue may write into the pods of a Job, from its flavors."""
    found = [labels_given.get(POOL, "") for labels_given in _flavors(template, state)]
    return [pool for pool in found if pool] if all(found) else []


def _chosen(spec: Body, grants: Grants) -> list[str]:
    """The pools that a pod names, by its selector or by each term of its affinity."""
    pools = grants.lines("pools")
    if pool := (spec.get("nodeSelector") or {}).get(POOL, ""):
        return [pool]
    required = inside(spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    found = [
        [
            pool
            for pool in pools
            if any(
                term["key"] == POOL
                and term["operator"] == "In"
                and pool in term["values"]
                and {*term["values"]} <= {*pools}
                for term in terms.get("matchExpressions") or ()
            )
        ]
        for terms in required.get("nodeSelectorTerms") or ()
    ]
    return sorted({pool for listed in found for pool in listed}) if all(found) else []


def _opens(spec: Body, grants: Grants) -> bool:
    return any(_opened_by(toleration, taint) for toleration in spec.get("tolerations") or () for taint in grants.opened)


def _opened_by(toleration: Body, taint: Body) -> bool:
    """The value `*` stands for any."""
    if taint["value"] == "*":
        return tolerates({**toleration, "operator": "Exists"}, taint)
    return tolerates(toleration, taint)


def _counted(template: Template, grants: Grants, chosen: Sequence[str]) -> Iterator[Refusal]:
    for container in template.containers:
        limits = {key: value for key, value in inside(container, "resources", "limits").items() if key in template.asks}
        if len(limits) > 1 and grants.has("one kind of GPU resource"):
            yield Refusal("two kinds", tuple(limits))
        for key, value in limits.items():
            bounds = [most for pool, name, most in grants.allowed if name == key and (not chosen or pool in chosen)]
            if bounds and all(most != "any" and quantity(value) > quantity(most) for most in bounds):
                yield Refusal("too many", (key,))


def _classes(template: Template, grants: Grants) -> Iterator[Refusal]:
    listed, name = grants.lines("priorityClasses"), template.spec.get("priorityClassName", "")
    words = ("priority class", "priorityClassName", "priority classes")
    if template.uses_gpus and listed and name not in listed and grants.has("must name one of their tenant's priority"):
        yield Refusal("no class", words)
    elif name and name not in listed and grants.has("names a priority class that is not its tenant's"):
        yield Refusal("foreign class", words)


_LISTED: Final = re.compile(r"schedulerName must be (.*)$")


def _scheduler(template: Template, grants: Grants) -> Iterator[Refusal]:
    name = template.spec.get("schedulerName", "default-scheduler")
    others = grants.data.get("otherSchedulers", "").split("\n")
    listed = [found[1].split(" or ") for message in grants.messages if (found := _LISTED.match(message))]
    is_others = bool(listed) and name not in (*listed[0], *others)
    if is_others or (template.uses_gpus and name != KAI and grants.has("must set schedulerName to kai-scheduler")):
        yield Refusal("scheduler", ("schedulerName",))
    if template.uses_gpus and grants.has("must name their pool in the label") and not template.labels.get(NODE_POOL):
        yield Refusal("no node pool", (NODE_POOL,))
    queues = [line.split(" ")[-1] for line in grants.lines("queues")]
    if (
        template.uses_gpus
        and grants.has("must name their tenant's queue")
        and template.labels.get(KAI_QUEUE) not in queues
    ):
        yield Refusal("queue", (KAI_QUEUE,))


def _devices(template: Template, messages: frozenset[str]) -> Iterator[Refusal]:
    names = {
        entry["name"]: entry.get("value") for container in template.containers for entry in container.get("env", ())
    }
    if names.get("NVIDIA_VISIBLE_DEVICES", "void") not in ("void", "none") and _has(messages, "that choose devices"):
        yield Refusal("devices", ("NVIDIA_VISIBLE_DEVICES",))
    if template.spec.get("nodeName") and _has(messages, "nodeName"):
        yield Refusal("node name", ("nodeName",))
    if template.fraction and _has(messages, "gpu-fraction and gpu-memory have no effect"):
        yield Refusal("fraction", ("gpu-fraction", "gpu-memory"))
    under = str(template.spec.get("runtimeClassName", "")).startswith("nvidia")
    if under and not template.uses_gpus and _has(messages, "a runtimeClassName of NVIDIA"):
        yield Refusal("runtime class", ("runtimeClassName",))


def _has(messages: frozenset[str], words: str) -> bool:
    return any(words in message for message in messages)


_STATED: Final = ("requests.cpu", "requests.memory", "limits.cpu", "limits.memory")


def _unstated(template: Template, state: State) -> Iterator[Refusal]:
    """A quota on a key refuses pods that do not state it, unless a LimitRange does for them."""
    capped = {
        {"cpu": "requests.cpu", "memory": "requests.memory"}.get(key, key)
        for namespace, _, body in state.of("ResourceQuota")
        if namespace == template.namespace and not _scopes(body)
        for key in inside(body, "spec", "hard")
    }
    for key in _STATED:
        part, _, name = key.partition(".")
        if key in capped and not all(
            _states(container, part, name, template.namespace, state) for container in template.containers
        ):
            yield Refusal(f"states no {key}", (key, f"{part}.{name}", name))


def _scopes(quota: Body) -> Any:
    return inside(quota, "spec", "scopes") or inside(quota, "spec", "scopeSelector")


def _states(container: Body, part: str, name: str, namespace: str, state: State) -> bool:
    resources = container.get("resources") or {}
    given = [resources.get("limits") or {}] + ([resources.get("requests") or {}] if part == "requests" else [])
    for found, _, body in state.of("LimitRange"):
        for item in inside(body, "spec", "limits") or () if found == namespace else ():
            if item.get("type") == "Container":
                # A maximum is the default of what is left out, too (`defaults.go` of the API `core/v1`).
                given += [item.get("default") or {}, item.get("max") or {}]
                given += [item.get("defaultRequest") or {}] if part == "requests" else []
    return any(name in listed for listed in given)
