"""Resolve what is retained: definitions that no policy has any more and the cluster still needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpuplan.diagnostics import Origin
from gpuplan.planning.context import Context
from gpuplan.planning.layouts import make_layout
from gpuplan.planning.plan import (
    Retained,
    RetainedDevicePluginConfig,
    RetainedLayout,
    RetainedObject,
    Stage,
    Tenant,
)
from gpuplan.policy import models


def resolve_retained(
    context: Context, at: Origin, policy: models.Retained, tenants: Iterable[Tenant]
) -> Retained | None:
    """What a document retains, or None when its GPU model cannot be found."""
    spec = policy.spec
    what: RetainedLayout | RetainedDevicePluginConfig | RetainedObject | None = None
    if spec.mig_layout is not None:
        what = _layout(context, at / "migLayout", spec.mig_layout)
    elif spec.device_plugin_config is not None:
        plugin = spec.device_plugin_config
        config = plugin.config.model_dump(mode="json", by_alias=True, exclude_none=True)
        what = RetainedDevicePluginConfig(at / "devicePluginConfig", plugin, config)
    elif spec.object is not None:
        folder = spec.object.folder or _folder(spec.object.manifest, tenants)
        what = RetainedObject(at / "object", spec.object, folder)
    return None if what is None else Retained(at, policy.metadata.name, spec, what)


def _layout(context: Context, at: Origin, spec: models.RetainedLayout) -> RetainedLayout | None:
    gpu = context.find_gpu(spec.gpu, at / "gpu")
    if gpu is None:
        return None
    name = spec.config_name.rpartition("-")[0] or spec.config_name
    layout = make_layout(at, name, gpu, spec.instances, spec.devices)
    return RetainedLayout(at, spec, layout)


def _folder(manifest: Mapping[str, object], tenants: Iterable[Tenant]) -> str:
    """The folder of the object's namespace where a tenant has it, else that of what the whole cluster shares."""
    metadata = manifest.get("metadata")
    namespace = metadata.get("namespace") if isinstance(metadata, Mapping) else None
    if any(namespace in tenant.spec.namespaces for tenant in tenants):
        return f"{Stage.NAMESPACES.value}/{namespace}"
    return Stage.SCHEDULING.value
