"""What a policy says, by the Helm values or the ClusterPolicy that gpuplan made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, Final

from gpuplan.compiler.backends.gpu_operator.settings import NFD, NODE_RELABELING, ConfigMapNames, helm_values, is_reboot
from gpuplan.compiler.base.diagnostics import Origin, field_path
from gpuplan.compiler.base.plain import mapping, sequence, text
from gpuplan.compiler.catalog.operators import (
    NFD_WORKER_TOLERATIONS,
    OPERAND_TOLERATIONS,
    Toleration,
    image_repositories,
)
from gpuplan.compiler.planning.gpu_operator import (
    DEVICE_PLUGIN,
    RESOURCE_NAMES,
    TOOLKIT,
    VIRTUAL_GPUS,
    closing_environment,
)
from gpuplan.compiler.planning.plan import POOL_LABEL
from gpuplan.features.live.clusters.reader import Reader, Spec, credentials_in, less, part, plan_of, without
from gpuplan.features.live.dump import Item

Values = Mapping[str, Any]
Beside = Mapping[str, Any]
"""Other parts of the cluster's spec, by which gpuplan tells the operator more."""


def of_chart(reader: Reader, values: Values, at: Origin | None, spec: Spec, beside: Beside) -> Spec:
    """The fields that decide values, and as `values` what no field decides and gpuplan does not write by itself."""
    values = without_credentials(reader, values, at)
    found = _shared(values, str(spec["version"]))
    if part(values, "nfd", "enabled") is False:
        found["nfd"] = False
    if strategy := text(part(values, "mig", "strategy")):
        found["migStrategy"] = strategy
    if registry := _registry(values, str(spec["version"])):
        found["registry"] = registry
    left = _without_needs(reader, values, has_monitoring="monitoring" in beside)
    found |= _environment({**spec, **found}, values, beside, reader.cluster)
    plan = plan_of({**beside, "gpuOperator": {**spec, **found}}, reader.cluster)
    expected = helm_values(plan, _named(values)) if plan else {}
    more = less(left, expected)
    if more:
        found["values"] = more
    return found


def of_policy(policy: Item, spec: Spec, beside: Beside) -> Spec:
    """The fields that decide what a whole ClusterPolicy says."""
    told = mapping(policy.body.get("spec"))
    found = _shared(told, str(spec["version"]))
    if strategy := text(part(told, "mig", "strategy")):
        found["migStrategy"] = strategy
    return found | _environment({**spec, **found}, told, beside, policy.name)


def without_credentials(reader: Reader, values: Values, at: Origin | None) -> Values:
    """Values that may be written into a policy; each that is left out is a finding."""
    routes = [*credentials_in(values)]
    if at is not None:
        for route in routes:
            what = f"the value `{field_path(route)}`, which holds a credential,"
            reader.leave_out(at / route, what, "keep it in a Secret, and have the chart read that")
    for route in reversed(routes):
        values = without(values, route)
    return values


def reboots(environment: Sequence[Any]) -> bool:
    """Whether the MIG manager may reboot nodes."""
    return any(is_reboot(item) and mapping(item).get("value") == "true" for item in environment)


def _shared(told: Values, version: str) -> Spec:
    """What values and a ClusterPolicy say alike."""
    found: Spec = {}
    driver = mapping(told.get("driver"))
    stated: Spec = {"enabled": False} if driver.get("enabled") is False else {}
    if release := text(driver.get("version")):
        stated["version"] = release
    if stated:
        found["driver"] = stated
    if reboots(sequence(part(told, "migManager", "env"))):
        found["rebootOnMigChange"] = True
    if secrets := _secrets(told, version):
        found["imagePullSecrets"] = secrets
    return found


def _named(values: Values) -> ConfigMapNames:
    routes = (("migManager", "config", "name"), ("devicePlugin", "config", "name"), ("dcgmExporter", "config", "name"))
    return ConfigMapNames(*(text(part(values, *route)) for route in routes))


# --- Images ------------------------------------------------------------------------------------------------------


def _registry(values: Values, version: str) -> str:
    """The mirror that all blocks of the chart have their images from."""
    found = set()
    for route, path in image_repositories(version).items():
        stated = text(part(values, *route, "repository"))
        if not stated.endswith(f"/{path}"):
            return ""
        found.add(stated.removesuffix(f"/{path}"))
    return found.pop() if len(found) == 1 else ""


def _secrets(told: Values, version: str) -> list[Any]:
    """The pull secrets that all blocks have that have any."""
    blocks = {route[0] for route in image_repositories(version) if len(route) == 1}
    listed = [sequence(part(told, block, "imagePullSecrets")) for block in sorted(blocks)]
    found = [list(item) for item in listed if item]
    return found[0] if found and all(item == found[0] for item in found) else []


# --- Environment -------------------------------------------------------------------------------------------------

_CLOSED: Final = "ACCEPT_NVIDIA_VISIBLE_DEVICES_ENVVAR_WHEN_UNPRIVILEGED"


def _environment(spec: Spec, told: Values, beside: Beside, cluster: str) -> Spec:
    """The variables of operands that have a plain value, and whether images are kept from choosing GPUs."""
    stated = {operand: _plain(sequence(part(told, operand, "env"))) for operand in (TOOLKIT, DEVICE_PLUGIN)}
    found: Spec = {}
    if stated[TOOLKIT].get(_CLOSED) == "false":
        values = {"values": {"cdi": told["cdi"]}} if "cdi" in told and spec["install"] == "helm" else {}
        plan = plan_of({**beside, "gpuOperator": {**spec, **values, "closeVisibleDevices": True}}, cluster)
        closing = closing_environment(plan) if plan else {}
        if all(_ends_in(stated[operand], variables) for operand, variables in closing.items()):
            found["closeVisibleDevices"] = True
            stated = {
                operand: {name: value for name, value in variables.items() if name not in closing.get(operand, {})}
                for operand, variables in stated.items()
            }
    if env := {operand: variables for operand, variables in stated.items() if variables}:
        found["env"] = env
    return found


def _plain(items: Sequence[Any]) -> dict[str, str]:
    """The variables by name, where each is said once and by its value."""
    found = {text(mapping(item).get("name")): mapping(item).get("value") for item in items}
    is_plain = len(found) == len(items) and all(isinstance(value, str) for value in found.values())
    is_plain = is_plain and all(set(mapping(item)) == {"name", "value"} for item in items)
    return {name: str(value) for name, value in found.items()} if is_plain else {}


def _ends_in(variables: Mapping[str, str], closing: Mapping[str, str]) -> bool:
    """Whether the last of the variables are those that close the way."""
    return [*variables.items()][len(variables) - len(closing) :] == [*closing.items()]


# --- Values ------------------------------------------------------------------------------------------------------


def _without_needs(reader: Reader, values: Values, *, has_monitoring: bool) -> dict[str, Any]:
    """The values less what gpuplan adds to them for pools: those are not there yet when this is read."""
    found = deepcopy(dict(values))
    _keep(found, ("migManager", "env"), [item for item in _list(found, "migManager", "env") if not is_reboot(item)])
    _drop_needed(reader, found, ("daemonsets", "tolerations"), OPERAND_TOLERATIONS)
    _drop_needed(reader, found, (NFD, "worker", "tolerations"), NFD_WORKER_TOLERATIONS)
    namespaces = {key.partition("/")[0] for key in (*reader.label_keys, POOL_LABEL) if "/" in key} | {"nvidia.com"}
    route = (NFD, "master", "config", "extraLabelNs")
    _keep(found, route, [item for item in _list(found, *route) if text(item) not in namespaces])
    if part(found, NFD, "master", "config", "enableTaints") is True:
        _keep(found, (NFD, "master", "config", "enableTaints"), None)
    if _has_drivers_by_pool(reader) and mapping(part(found, "driver", "nvidiaDriverCRD")) == _BY_POOL:
        _keep(found, ("driver", "nvidiaDriverCRD"), None)
    if reader.has_claims and part(found, "devicePlugin", "enabled") is False:
        _keep(found, ("devicePlugin", "enabled"), None)
    if has_monitoring:
        _drop_exporter_needs(found)
    return found


_BY_POOL: Final = {"enabled": True, "deployDefaultCR": False}


def _drop_exporter_needs(found: dict[str, Any]) -> None:
    env = _list(found, "dcgmExporter", "env")
    _keep(found, ("dcgmExporter", "env"), [item for item in env if str(mapping(item).get("name")) not in _EXPORTERS])
    route = ("dcgmExporter", "serviceMonitor", "relabelings")
    _keep(found, route, [item for item in _list(found, *route) if item != NODE_RELABELING])
    if {"name": VIRTUAL_GPUS, "value": "true"} in env:
        _keep(found, ("dcgmExporter", "hostPID"), None)
        _keep(found, ("dcgmExporter", "enablePodUID"), None)


_EXPORTERS: Final = (RESOURCE_NAMES, VIRTUAL_GPUS)


def _has_drivers_by_pool(reader: Reader) -> bool:
    return bool(reader.dump.of_kind("nvidia.com", "NVIDIADriver"))


def _drop_needed(reader: Reader, values: dict[str, Any], route: tuple[str, ...], usual: Sequence[Toleration]) -> None:
    """Tolerations of the taints that pools have, at the end; and those that hold anyway, where no others are left."""
    listed = _list(values, *route)
    while listed and _is_needed(reader, listed[-1]) and listed[-1] not in usual:
        listed = listed[:-1]
    _keep(values, route, [] if listed == [*map(dict, usual)] else listed)


def _is_needed(reader: Reader, item: object) -> bool:
    toleration = mapping(item)
    place = text(toleration.get("key")), text(toleration.get("effect"))
    return toleration == {"key": place[0], "operator": "Exists", "effect": place[1]} and place in reader.taints


def _list(values: Values, *route: str) -> list[Any]:
    return list(sequence(part(values, *route)))


def _keep(values: dict[str, Any], route: tuple[str, ...], value: object) -> None:
    """Set what is at a route, or take it away where there is nothing, with what is empty then."""
    key, rest = route[0], route[1:]
    if key not in values:
        return
    if rest:
        inner = values[key]
        if isinstance(inner, dict):
            _keep(inner, rest, value)
        if inner != {}:
            return
    elif value:
        values[key] = value
        return
    del values[key]
