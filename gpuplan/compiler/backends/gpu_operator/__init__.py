"""The back end of the stage `gpu-operator`: what the GPU Operator needs to share GPUs as the plan says.

ConfigMaps carry a hash of their content in their name, since nothing in the cluster looks at their content again:
mig-manager and the device plugin's config-manager watch one node label each, and the DCGM exporter nothing. A new name
in the ClusterPolicy changes the DaemonSets' volumes, and that rolls them. Only the device plugin's may keep its name:
there each key says what is in its file, and config-manager finds a new one when the node's label names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from gpuplan.compiler.backends.base import text_of
from gpuplan.compiler.backends.gpu_operator import device_plugin, drivers, mig_parted, places, settings
from gpuplan.compiler.backends.gpu_operator.settings import ConfigMapNames
from gpuplan.compiler.manifests import File, Manifest
from gpuplan.compiler.manifests.bodies import changing_config_map, config_map
from gpuplan.compiler.manifests.provenance import Routes
from gpuplan.compiler.planning.appliers import OWNERS_PATCH_FILE
from gpuplan.compiler.planning.gpu_operator import driver_groups
from gpuplan.compiler.planning.plan import Plan, Stage
from gpuplan.compiler.planning.subjects import RESOURCES, about
from gpuplan.compiler.policy.models import Install

_FOLDER = Stage.GPU_OPERATOR.value


def render(plan: Plan) -> Iterator[Manifest | File]:
    """Yield the ConfigMaps, and what makes the operator use them: Helm values, a ClusterPolicy or a patch for one."""
    operator = plan.cluster.gpu_operator
    if operator.spec.install is not Install.EXTERNAL:
        body = settings.privileged_namespace(operator.namespace, plan.cluster.spec.platform)
        trace, why = partial(places.namespace, plan), text_of("why-operator-namespace")
        yield Manifest(_FOLDER, body, about=about(plan.cluster), trace=trace, why=why)
    config_maps = _config_maps(plan)
    everything = (*about(plan.cluster), *RESOURCES)
    for field, body in config_maps.items():
        trace, why = partial(places.config_map, plan, field), text_of("why-operator-files")
        yield Manifest(_FOLDER, body, about=everything, trace=trace, why=why)
    yield from drivers.dra_values_file(plan)
    names = _names(config_maps)
    match operator.spec.install:
        case Install.HELM:
            path, values = f"{_FOLDER}/{settings.VALUES_FILE}", settings.helm_file(plan, names)
            yield File(path, values, about=everything, trace=partial(places.helm_file, plan))
            yield from _drivers(plan, settings.helm_values(plan, names), partial(places.helm_values, plan))
        case Install.OLM:
            for body in settings.operator_objects(plan):
                yield Manifest(_FOLDER, body, about=everything, trace=partial(places.operator_object, plan))
            for body in settings.nfd_objects(plan):
                trace, why = partial(places.nfd_object, plan), text_of("why-nfd")
                yield Manifest(_FOLDER, body, about=everything, trace=trace, why=why)
            policy = settings.whole_policy(plan, names)
            yield Manifest(_FOLDER, policy, about=everything, trace=partial(places.whole_policy, plan))
            yield from _drivers(plan, policy["spec"], partial(places.spec_of_whole_policy, plan))
        case Install.EXTERNAL if operator.is_merged_by_owner:
            for name, data, trace in (
                (OWNERS_PATCH_FILE, settings.owners_patch(plan, names), partial(places.owners_patch, plan)),
                (settings.OWNERS_VALUES_FILE, settings.owners_values(plan, names), partial(places.owners_values, plan)),
            ):
                yield File(f"{_FOLDER}/{name}", data, about=everything, trace=trace)
        case Install.EXTERNAL:
            patch, trace = settings.policy_patch(plan, names), partial(places.policy_patch, plan)
            yield Manifest(_FOLDER, patch, is_partial=True, about=everything, trace=trace)


def _drivers(plan: Plan, values: Mapping[str, Any], places_of: Callable[[], Routes]) -> Iterator[Manifest]:
    """Yield the NVIDIADrivers, which take over the values for all nodes."""
    for group in driver_groups(plan):
        body = drivers.nvidia_driver(group, values)
        subjects = (*about(*([group.pool] if group.pool else []), plan.cluster), *RESOURCES)
        trace = partial(drivers.trace, plan, group, places_of)
        yield Manifest(_FOLDER, body, about=subjects, trace=trace)


def nvidia_drivers(plan: Plan) -> Mapping[str, dict[str, Any]]:
    """Return the NVIDIADrivers by name, for callers that compare them."""
    names = config_map_names(plan)
    is_chart = plan.cluster.gpu_operator.spec.install is Install.HELM
    groups = driver_groups(plan)
    if not groups:
        return {}
    spec = settings.helm_values(plan, names) if is_chart else settings.whole_policy(plan, names).get("spec", {})
    return {group.name: drivers.nvidia_driver(group, spec) for group in groups}


def helm_values(plan: Plan) -> dict[str, Any]:
    """Return the values that `render` writes into a file, for callers that hand them to Helm in some other way."""
    return settings.helm_values(plan, config_map_names(plan))


def trace_helm_values(plan: Plan) -> Routes:
    """Return where those values come from, by routes in them."""
    return places.helm_values(plan)


def config_map_names(plan: Plan) -> ConfigMapNames:
    """Return the names under which the operator is told of the ConfigMaps."""
    return _names(_config_maps(plan))


def _config_maps(plan: Plan) -> dict[str, dict[str, Any]]:
    """Return the ConfigMaps by their field of `ConfigMapNames`; the device plugin does not start with an empty one."""
    namespace = plan.cluster.gpu_operator.namespace
    bodies = {"mig_parted": config_map("gpuplan-mig-parted", namespace, mig_parted.data(plan))}
    if plan.pools or plan.retained_plugin_configs:
        make = changing_config_map if plan.cluster.gpu_operator.keeps_plugin_file else config_map
        bodies["device_plugin"] = make(device_plugin.CONFIG_MAP, namespace, device_plugin.data(plan))
    if plan.cluster.monitoring:
        bodies["metrics"] = config_map("gpuplan-dcgm-metrics", namespace, settings.metrics(plan))
    return bodies


def _names(config_maps: Mapping[str, Mapping[str, Any]]) -> ConfigMapNames:
    return ConfigMapNames(**{field: body["metadata"]["name"] for field, body in config_maps.items()})
