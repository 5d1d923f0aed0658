"""The back end for pools with `allocation: dra`: what claims are of, and templates for them.

Which device a claim gets is decided by its DeviceClass, which sees what NVIDIA's driver says of the device: its kind,
model and MIG profile. So there is a class for each unit of a GPU model, and quotas count by class. Classes see no node
labels: pools of one model share them, and pods choose among such pools by node selector.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from gpuplan.compiler.catalog import Gpu
from gpuplan.compiler.manifests import Manifest
from gpuplan.compiler.manifests.bodies import new_object
from gpuplan.compiler.manifests.provenance import Routes, choosing, chosen, copied
from gpuplan.compiler.planning.dra import DRIVER
from gpuplan.compiler.planning.plan import Isolation, Plan, Quota, Stage, Tenant, Unit
from gpuplan.compiler.planning.sources import asked_by, cap_of, namespace_of, products_of, profile_of, resource_of
from gpuplan.compiler.planning.subjects import about

_API: Final = "resource.k8s.io/v1"


def render(plan: Plan) -> Iterator[Manifest]:
    """Yield a class for each unit, and a template of the same name in each namespace that may use it."""
    classes = {
        unit.device_class: _device_class(unit.device_class, pool.gpu, unit)
        for pool in plan.pools
        for unit in pool.units
        if unit.device_class
    }
    if not classes:
        return
    pools = about(*plan.pools)
    for name in sorted(classes):
        yield Manifest(
            Stage.SCHEDULING.value, classes[name], about=pools, trace=partial(_trace_device_class, plan, name)
        )
    for tenant in plan.tenants:
        for namespace in tenant.spec.namespaces:
            granted = {quota.unit.device_class for quota in _granted(tenant, namespace)}
            folder = f"{Stage.NAMESPACES.value}/{namespace}"
            subjects = about(tenant, *(quota.pool for quota in tenant.quotas))
            for name in sorted(filter(None, granted)):
                trace = partial(_trace_template, plan, tenant, namespace, name)
                # A claim of one device: pods that need more name the template as often.
                device = {"deviceClassName": name, "allocationMode": "ExactCount", "count": 1}
                spec = {"spec": {"devices": {"requests": [{"name": "unit", "exactly": device}]}}}
                body = new_object(_API, "ResourceClaimTemplate", name, namespace, spec=spec)
                yield Manifest(folder, body, about=subjects, trace=trace)


def _granted(tenant: Tenant, namespace: str) -> Iterator[Quota]:
    """Return the quotas of which the namespace may use something."""
    return (quota for quota in tenant.quotas if quota.caps[namespace] != 0)


# --- Classes -----------------------------------------------------------------------------------------------------


def _device_class(name: str, gpu: Gpu, unit: Unit) -> dict[str, Any]:
    """Return the class of the devices of one unit of a GPU model.

    It has no `extendedResourceName`, so that devices are had by claims alone. It has one expression: if a device lacks
    an attribute, as a whole GPU lacks a profile, the condition that is false decides. Two selectors would fail there
    instead, and with them the scheduling of the pod. The attributes are those of `Attributes` and `CommonAttributesMig`
    in `cmd/gpu-kubelet-plugin` of the driver.
    """
    is_whole = unit.isolation is Isolation.WHOLE_GPU
    attributes = f"device.attributes['{DRIVER}']"
    conditions = [f"device.driver == '{DRIVER}'", f"{attributes}.type == '{'gpu' if is_whole else 'mig'}'"]
    if not is_whole:
        current = gpu.current_name(unit.name)
        once = sorted(name for name, legacy in gpu.legacy_names.items() if legacy.profile == current)
        conditions.append(f"{attributes}.profile in {[current, *once]}")
    # Drivers have blanks in a model's names, and node labels, which the catalog knows, have hyphens.
    models = "|".join(product.label.replace("-", "[- ]") for product in gpu.products)
    conditions.append(f"{attributes}.productName.matches('^({models})$')")
    spec = {"selectors": [{"cel": {"expression": " &&\n".join(conditions) + "\n"}}]}
    return new_object(_API, "DeviceClass", name, spec=spec)


# --- Where it comes from -----------------------------------------------------------------------------------------


def _trace_device_class(plan: Plan, name: str) -> Routes:
    """Yield the routes of a class. One that several pools have stays when one of them leaves it."""
    units = [(pool, unit) for pool in plan.pools for unit in pool.units if unit.device_class == name]
    (pool, unit), *others = units
    models = chosen(*(pool.at / "gpu" for pool, _ in units))
    yield ("metadata", "name"), models if others else resource_of(pool, unit)
    expression = ("spec", "selectors", 0, "cel", "expression")
    yield expression, products_of(pool.gpu)
    if unit.isolation is not Isolation.WHOLE_GPU:
        yield expression, profile_of(pool.gpu, unit.name)


def _trace_template(plan: Plan, tenant: Tenant, namespace: str, name: str) -> Routes:
    """Yield the routes of a template, which is there for a quota; of several quotas none alone decides that."""
    yield ("metadata", "namespace"), copied(namespace_of(tenant, namespace))
    quotas = [quota for quota in _granted(tenant, namespace) if quota.unit.device_class == name]
    asked = (link for quota in quotas for link in asked_by(plan, quota))
    yield ("metadata", "name"), tuple(dict.fromkeys(asked))
    if len(quotas) == 1:
        yield (), choosing(cap_of(plan, quotas[0], namespace))
