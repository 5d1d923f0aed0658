"""What a workload's pods say of it: where they run, what they ask for, and what their container is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from typing import Any, Final

from gpuplan.compiler.backends.workloads.bodies import FRACTION, GPU_MEMORY, MAIN, MEMORY_LIMIT, PORTION_LIMIT
from gpuplan.compiler.backends.workloads.kserve import CONTAINER
from gpuplan.compiler.base.plain import inside, mapping, sequence, text, value_at
from gpuplan.compiler.planning.dra import device_class_name
from gpuplan.compiler.planning.plan import POOL_LABEL, Plan, Pool, Tenant, Unit
from gpuplan.compiler.planning.workspaces import SETTINGS
from gpuplan.features.live.work.groups import (
    CLAIM,
    CONFIG_MAP,
    SERVICE,
    Group,
    main_container,
    named,
    template_of,
    texts,
)

Template = Mapping[str, object]
Spec = dict[str, Any]


def common(plan: Plan, group: Group, tenant: Tenant, template: Template) -> Iterator[Spec]:
    """What every workload may say, but for what it is and its variables; once for each unit that it may mean.

    Nothing where its pods name no pool that there is, or ask for nothing that the pool hands out.
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
    limits = inside(container, "resources", "limits")
    spec |= given(
        image=container.get("image"),
        imagePullSecrets=[name for item in _pod(template, "imagePullSecrets") if (name := mapping(item).get("name"))],
        command=texts(container.get("command")),
        args=texts(container.get("args")),
        cpu=_amount(limits.get("cpu")),
        memory=_amount(limits.get("memory")),
        config=_config(group, template),
        model=_model(group, container),
    )
    for asked in _asked(pool, template, container):
        yield {**spec, **asked}


def find_pool(plan: Plan, template: Template) -> Pool | None:
    """The pool that pods name; of several the first, which is the workload's own."""
    name = inside(template, "spec", "nodeSelector").get(POOL_LABEL)
    terms = inside(template, "spec", "affinity", "nodeAffinity", _REQUIRED).get("nodeSelectorTerms")
    for item in sequence(value_at(terms, (0, "matchExpressions"))):
        if mapping(item).get("key") == POOL_LABEL:
            name = name or value_at(item, ("values", 0))
    return plan.find_pool(text(name))


_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


# --- Devices -------------------------------------------------------------------------------------------------------


def _asked(pool: Pool, template: Template, container: Mapping[str, object]) -> Iterator[Spec]:
    """The units, and how many; or the part of a GPU."""
    if (part := _fraction(template, container)) is not None:
        yield {"fraction": part}
        return
    limits = inside(container, "resources", "limits")
    claims = [mapping(item).get("resourceClaimTemplateName") for item in _pod(template, "resourceClaims")]
    for unit in pool.units:
        count = claims.count(device_class_name(pool, unit)) or number(limits.get(unit.resource or ""))
        if count:
            yield {**_named(pool, unit), **({} if count == 1 else {"count": count})}


def _named(pool: Pool, unit: Unit) -> Spec:
    return {"unit": unit.name} if len(pool.units) > 1 or len(pool.parts[0].units) > 1 else {}


def _fraction(template: Template, container: Mapping[str, object]) -> object:
    annotations = inside(template, "metadata", "annotations")
    if memory := number(annotations.get(GPU_MEMORY)):
        return {"memory": f"{memory}Mi"}
    least, most = _part(annotations.get(FRACTION)), _part(_limit_of(template, container))
    if least is None or most is None or most <= least:
        return least
    return {"min": least, "max": most}


def _limit_of(template: Template, container: Mapping[str, object]) -> object:
    """The most of a GPU that a container may use: the variable says what the annotation may not."""
    annotations = inside(template, "metadata", "annotations")
    by_kserve = PORTION_LIMIT.replace(f".{MAIN}.", f".{CONTAINER}.")
    by_name = annotations.get(PORTION_LIMIT) or annotations.get(by_kserve)
    return by_name and (named(sequence(container.get("env")), MEMORY_LIMIT).get("value") or by_name)


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
    """The same with amounts as a policy may have said them: `1500m` is what the API server makes of `1.5`.

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
    """Those of the ConfigMap that its pods mount as the workload's."""
    volume = named(_pod(template, "volumes"), "config")
    found = group.find(CONFIG_MAP, text(inside(volume, "configMap").get("name")))
    return dict(mapping(found.body.get("data"))) if found else {}


def _config(group: Group, template: Template) -> dict[str, object]:
    """Less what ends a workspace that is idle, which another field says."""
    found = files(group, template)
    is_idle = SETTINGS in found and group.find(SERVICE, group.name) is not None
    return {name: content for name, content in found.items() if not is_idle or name != SETTINGS}


def volume(group: Group, container: Mapping[str, object], name: str) -> Spec | None:
    """A volume of the workload's own, of which its claim says the size."""
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
        env=said(loading),
    )
    return {**found, "download": download}


# --- Variables -------------------------------------------------------------------------------------------------------


def said(container: Mapping[str, object]) -> dict[str, Any]:
    """The variables of a container, those that a policy can say; the API server leaves out an empty value."""
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
    if not length or length < 0:
        return None
    unit, size = next((unit, size) for unit, size in _UNITS if length % size == 0)
    return f"{length // size}{unit}"


_UNITS: Final = (("h", 3600), ("m", 60), ("s", 1))


def _pod(template: Template, field: str) -> tuple[object, ...]:
    return tuple(sequence(inside(template, "spec").get(field)))


def given(**fields: object) -> Spec:
    return {key: value for key, value in fields.items() if value not in (None, "", [], {})}
