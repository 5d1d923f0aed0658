"""The objects that are one workload, and what its pods say of it: their pool, their devices and their container."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from typing import Any, Final

from gpuplan.compiler.backends.workloads.bodies import FRACTION, GPU_MEMORY, MAIN, MEMORY_LIMIT, PORTION_LIMIT
from gpuplan.compiler.backends.workloads.kserve import CONTAINER
from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.base.plain import inside, mapping, sequence, text, value_at
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.planning.dra import device_class_name
from gpuplan.compiler.planning.plan import MAIN_CONTAINER, POOL_LABEL, TENANT_LABEL, WORKLOAD_LABEL, Plan, Pool, Tenant
from gpuplan.compiler.planning.workspaces import SETTINGS
from gpuplan.features.live.drafts import spelt
from gpuplan.features.live.dump import Dump, Item

Kind = tuple[str, str]
"""A group and a kind."""

DEPLOYMENT: Final = ("apps", "Deployment")
LEADER_WORKER_SET: Final = ("leaderworkerset.x-k8s.io", "LeaderWorkerSet")
INFERENCE_SERVICE: Final = ("serving.kserve.io", "InferenceService")
JOB: Final = ("batch", "Job")
JOB_SET: Final = ("jobset.x-k8s.io", "JobSet")
TRAINING_RUNTIME: Final = ("trainer.kubeflow.org", "TrainingRuntime")
TRAIN_JOB: Final = ("trainer.kubeflow.org", "TrainJob")
SERVICE: Final = ("", "Service")
CONFIG_MAP: Final = ("", "ConfigMap")
CLAIM: Final = ("", "PersistentVolumeClaim")
AUTOSCALER: Final = ("autoscaling", "HorizontalPodAutoscaler")
SCALED_OBJECT: Final = ("keda.sh", "ScaledObject")
HTTP_ROUTE: Final = ("gateway.networking.k8s.io", "HTTPRoute")
INGRESS: Final = ("networking.k8s.io", "Ingress")

MAKERS: Final[Mapping[Kind, Path]] = {
    INFERENCE_SERVICE: ("spec", "predictor"),
    LEADER_WORKER_SET: ("spec", "leaderWorkerTemplate", "leaderTemplate"),
    DEPLOYMENT: ("spec", "template"),
    TRAINING_RUNTIME: ("spec", "template", "spec", "replicatedJobs", 0, "template", "spec", "template"),
    JOB_SET: ("spec", "replicatedJobs", 0, "template", "spec", "template"),
    JOB: ("spec", "template"),
}
"""The kinds that make the pods of a workload, with the route to the pod template of each."""

_BESIDE: Final = (TRAIN_JOB, SERVICE, CONFIG_MAP, CLAIM, AUTOSCALER, SCALED_OBJECT, HTTP_ROUTE, INGRESS)
KINDS: Final = (*MAKERS, *_BESIDE)
"""All that the objects of workloads are. Others with their labels are made of them by controllers."""


class Group(Value):
    """The objects with a workload's label in one namespace; ``tenant`` is what their other label says."""

    name: str
    namespace: str
    tenant: str
    items: tuple[Item, ...]

    @property
    def makers(self) -> tuple[Item, ...]:
        """The objects that may make its pods, the newest first: a replaced Job stays until somebody prunes it."""
        found = [
            item
            for item in self.items
            if kind_of(item) in MAKERS and item.name != f"{self.name}-canary"
            # Others are Jobs that download, or make the pods of a canary.
            if main_container(template_of(item)).get("name") != DOWNLOAD
        ]
        # The API server writes times so that they sort as they are.
        ages = [text(inside(item.body, "metadata").get("creationTimestamp")) for item in found]
        return tuple(found[index] for index in sorted(range(len(found)), key=ages.__getitem__, reverse=True))

    def of(self, *kinds: Kind) -> Iterator[Item]:
        return (item for item in self.items if kind_of(item) in kinds)

    def find(self, kind: Kind, name: str) -> Item | None:
        return next((item for item in self.of(kind) if item.name == name), None)

    @property
    def download(self) -> Item | None:
        """The Job that fills a volume."""
        return next((item for item in self.of(JOB) if main_container(template_of(item)).get("name") == DOWNLOAD), None)


DOWNLOAD: Final = "download"
"""The name of the container of a Job that fills a model's volume."""

_CONTAINERS: Final = (MAIN_CONTAINER, CONTAINER)
"""The names of the container that a workload is about, the second one by KServe."""


def groups_of(dump: Dump) -> tuple[Group, ...]:
    """Return the workloads whose labels objects have, but for what controllers own."""
    found: dict[tuple[str, str], list[Item]] = {}
    for item in dump.objects:
        name = item.labels.get(WORKLOAD_LABEL)
        if name and kind_of(item) in KINDS and not is_owned(item):
            found.setdefault((item.namespace, name), []).append(item)
    return tuple(
        Group(name, namespace, next((item.labels.get(TENANT_LABEL, "") for item in items), ""), tuple(items))
        for (namespace, name), items in sorted(found.items())
    )


def is_owned(obj: Item) -> bool:
    """Whether a controller made it of another object."""
    owners = sequence(inside(obj.body, "metadata").get("ownerReferences"))
    return any(mapping(owner).get("controller") is True for owner in owners)


def kind_of(obj: Item) -> Kind:
    return obj.group, obj.kind


def template_of(obj: Item) -> Mapping[str, object]:
    """Return the pod template of an object, or nothing if it is no maker."""
    route = MAKERS.get(kind_of(obj))
    found = mapping(value_at(obj.body, route)) if route else {}
    if kind_of(obj) != INFERENCE_SERVICE:
        return found
    metadata = {field: found[field] for field in ("labels", "annotations") if field in found}
    return {"metadata": metadata, "spec": found}


def main_container(template: Mapping[str, object]) -> Mapping[str, object]:
    """Return the container that the work is about: that of gpuplan's name, or the first one."""
    containers = [mapping(item) for item in sequence(inside(template, "spec").get("containers"))]
    named = (item for item in containers if str(item.get("name")) in _CONTAINERS)
    return next(named, containers[0] if containers else {})


def texts(value: object) -> list[str]:
    """Return the texts of a list."""
    return [item for item in sequence(value) if isinstance(item, str)]


def named(items: Sequence[object], name: str) -> Mapping[str, object]:
    """Return the item of a list that has a name."""
    return next((mapping(item) for item in items if mapping(item).get("name") == name), {})


Template = Mapping[str, object]
Spec = dict[str, Any]


def common(plan: Plan, group: Group, tenant: Tenant, template: Template) -> Iterator[Spec]:
    """Yield the fields of any workload, without its kind and its variables, once for each unit that it may mean.

    Nothing is yielded if the pods name no pool, or ask for nothing that the pool hands out.
    """
    pool = find_pool(plan, template)
    container = main_container(template)
    if pool is None:
        return
    spec: Spec = {"tenant": tenant.name, "pool": pool.name}
    if len(tenant.spec.namespaces) > 1:
        spec["namespace"] = group.namespace
    priority = text(inside(template, "spec").get("priorityClassName"))
    if priority and [found.name for found in tenant.priority_classes] != [priority]:
        spec["priorityClass"] = priority
    limits, config = inside(container, "resources", "limits"), files(group, template)
    # What ends a workspace that is idle, another field says.
    is_idle = SETTINGS in config and group.find(SERVICE, group.name) is not None
    spec |= given(
        image=container.get("image"),
        imagePullSecrets=[name for item in _pod(template, "imagePullSecrets") if (name := mapping(item).get("name"))],
        command=texts(container.get("command")),
        args=texts(container.get("args")),
        cpu=_amount(limits.get("cpu")),
        memory=_amount(limits.get("memory")),
        config={name: content for name, content in config.items() if not is_idle or name != SETTINGS},
        model=_model(group, container),
    )
    for asked in _asked(pool, template, container):
        yield {**spec, **asked}


def find_pool(plan: Plan, template: Template) -> Pool | None:
    """Return the pool that pods name; of several the first, which is the workload's own."""
    name = inside(template, "spec", "nodeSelector").get(POOL_LABEL)
    terms = inside(template, "spec", "affinity", "nodeAffinity", _REQUIRED).get("nodeSelectorTerms")
    for item in sequence(value_at(terms, (0, "matchExpressions"))):
        if mapping(item).get("key") == POOL_LABEL:
            name = name or value_at(item, ("values", 0))
    return plan.find_pool(text(name))


_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


# --- Devices -------------------------------------------------------------------------------------------------------


def _asked(pool: Pool, template: Template, container: Mapping[str, object]) -> Iterator[Spec]:
    """Yield the units, and how many; or the part of a GPU."""
    annotations = inside(template, "metadata", "annotations")
    if memory := number(annotations.get(GPU_MEMORY)):
        yield {"fraction": {"memory": f"{memory}Mi"}}
        return
    # The variable says what the annotation may not: the most of a GPU that a container may use.
    by_kserve = PORTION_LIMIT.replace(f".{MAIN}.", f".{CONTAINER}.")
    by_name = annotations.get(PORTION_LIMIT) or annotations.get(by_kserve)
    limit = by_name and (named(sequence(container.get("env")), MEMORY_LIMIT).get("value") or by_name)
    least, most = _part(annotations.get(FRACTION)), _part(limit)
    if least is not None:
        yield {"fraction": least if most is None or most <= least else {"min": least, "max": most}}
        return
    limits = inside(container, "resources", "limits")
    claims = [mapping(item).get("resourceClaimTemplateName") for item in _pod(template, "resourceClaims")]
    for unit in pool.units:
        count = claims.count(device_class_name(pool, unit)) or number(limits.get(unit.resource or ""))
        if count:
            yield {
                **({"unit": unit.name} if len(pool.units) > 1 or len(pool.parts[0].units) > 1 else {}),
                **({} if count == 1 else {"count": count}),
            }


def _part(value: object) -> float | None:
    try:
        return float(Decimal(text(value))) if value else None
    except InvalidOperation:
        return None


def number(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    found = text(value)
    return int(found) if found.isascii() and found.isdigit() and len(found) <= _LONGEST else None


_LONGEST: Final = 18
"""Digits that any program takes for a number."""


def _amount(value: object) -> str | None:
    return None if value is None or isinstance(value, Mapping | list) else str(value)


def respelled(specs: Iterable[Spec], *, is_named_by_content: bool) -> Iterator[Spec]:
    """Yield the same with amounts as a policy may have said them: `1500m` is what the API server makes of `1.5`.

    It matters where a digest of what was written is in the name of an object, as that of a Job.
    """
    for spec in specs:
        yield spec
        found = {field: other for field in ("cpu", "memory") if (other := _as_fraction(spec.get(field)))}
        for fields in (tuple(found), *((field,) for field in found if len(found) > 1)) if is_named_by_content else ():
            if fields:
                yield {**spec, **{field: found[field] for field in fields}}


def _as_fraction(amount: object) -> str | None:
    """So much of the next larger suffix, where the API server would not have left it so; with three digits at most."""
    number, suffix = text(amount).rstrip(_LETTERS), text(amount).lstrip(_DIGITS)
    above = _ABOVE.get(suffix)
    if above is None or not number.isdigit():
        return None
    larger, size = above
    value = (Decimal(int(number)) / size).normalize()
    is_short = value == value.quantize(Decimal("0.001")) and value != value.to_integral_value()
    return f"{value:f}{larger}" if is_short else None


_DIGITS: Final = "0123456789"
_LETTERS: Final = "EGKMPTikmnu"
_ABOVE: Final = {
    "m": ("", 1000),
    **{small: (large, 1000) for small, large in pairwise(("M", "G", "T"))},
    **{small: (large, 1024) for small, large in pairwise(("Mi", "Gi", "Ti"))},
}
"""The next larger suffix, and how many of the one that is."""


# --- Files and volumes -----------------------------------------------------------------------------------------------


def files(group: Group, template: Template) -> dict[str, object]:
    """Return those of the ConfigMap that its pods mount as the workload's."""
    volume = named(_pod(template, "volumes"), "config")
    found = group.find(CONFIG_MAP, text(inside(volume, "configMap").get("name")))
    return dict(mapping(found.body.get("data"))) if found else {}


def volume(group: Group, container: Mapping[str, object], name: str) -> Spec | None:
    """Return a volume of the workload's own, of which its claim says the size."""
    claim = group.find(CLAIM, f"{group.name}-{name}")
    if claim is None:
        return None
    spec = inside(claim.body, "spec")
    return given(
        size=_amount(inside(spec, "resources", "requests").get("storage")),
        storageClass=spec.get("storageClassName"),
        mountPath=named(sequence(container.get("volumeMounts")), name).get("mountPath"),
        accessMode=value_at(spec, ("accessModes", 0)),
    )


def _model(group: Group, container: Mapping[str, object]) -> Spec | None:
    found = volume(group, container, "model")
    if found is None:
        return None
    if group.download is None:
        return found
    loading = main_container(template_of(group.download))
    download = given(
        image=loading.get("image"),
        command=texts(loading.get("command")),
        args=texts(loading.get("args")),
        env=variables_of(loading),
    )
    return {**found, "download": download}


# --- Variables -------------------------------------------------------------------------------------------------------


def variables_of(container: Mapping[str, object]) -> dict[str, Any]:
    """Return the variables of a container, those that a policy can say; the API server leaves out an empty value."""
    found: dict[str, Any] = {}
    for item in sequence(container.get("env")):
        variable = mapping(item)
        name, value = variable.get("name"), _value(variable)
        if isinstance(name, str) and value is not None:
            found[name] = value
    return found


def _value(variable: Mapping[str, object]) -> object:
    """None where it says something else than a policy can."""
    rest = {key: value for key, value in variable.items() if key != "name"}
    if not rest:
        return ""
    if set(rest) == {"value"}:
        return rest["value"] if isinstance(rest["value"], str) else None
    source = inside(variable, "valueFrom")
    for kind in ("secretKeyRef", "configMapKeyRef"):
        if set(rest) == {"valueFrom"} and set(source) == {kind} and set(inside(source, kind)) == {"name", "key"}:
            return {kind: dict(inside(source, kind))}
    return None


def duration(seconds: object) -> str | None:
    """So many seconds, as policies write it."""
    length = number(seconds)
    return spelt(length) if length and length > 0 else None


def _pod(template: Template, field: str) -> tuple[object, ...]:
    return tuple(sequence(inside(template, "spec").get(field)))


def given(**fields: object) -> Spec:
    return {key: value for key, value in fields.items() if value not in (None, "", [], {})}
