"""Settings of the GPU Operator where no policy says them: in ClusterPolicies, and in values of its chart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from gpuplan.compiler.base.diagnostics import Origin, Path
from gpuplan.compiler.base.plain import inside, mapping, read_text, sequence, text, value_at
from gpuplan.compiler.catalog.operators import OPERATORS_CHART, all_chart_keys
from gpuplan.compiler.documents import file_of
from gpuplan.compiler.planning.hand_files import DEVICE_PLUGIN, MIG_MANAGER, HandFiles, Kustomization, Object, Settings
from gpuplan.compiler.policy.models import ClusterMigStrategy

_CHARTS_BLOCKS: Final = frozenset(
    ("ccManager", "daemonsets", "dcgm", "dcgmExporter", "devicePlugin", "gdrcopy", "gds", "gfd", "mig", "migManager")
)
"""What stands at the top of values of the GPU Operator's chart, and of hardly any other."""


_OPERANDS: Final = (DEVICE_PLUGIN, MIG_MANAGER)


def overriding_strategy(files: HandFiles, config_map: str) -> ClusterMigStrategy:
    """The cluster's MIG strategy, as far as all settings that have a ConfigMap read agree on one.

    A file that is in no ConfigMap may be anybody's.
    """
    if files.plan is not None:
        return files.plan.cluster.gpu_operator.spec.mig_strategy
    found = {item.strategy for item in settings_for(files, config_map)}
    return next((one for one in found if one is not None and len(found) == 1), ClusterMigStrategy.PER_POOL)


def settings_for(files: HandFiles, config_map: str) -> tuple[Settings, ...]:
    """The settings that name a ConfigMap, or all for a file that is in none."""
    return tuple(item for item in files.settings if not config_map or config_map in item.config_names)


def find_settings(files: HandFiles, release: str) -> Iterator[Settings]:
    """All that is said to the operator; ``release`` is that of values beside which none is named."""
    for found in files.of_kind("ClusterPolicy"):
        if found.group == "nvidia.com":
            is_whole = not found.is_patch
            yield Settings(found.at, inside(found.body, "spec"), found.title, release, is_whole, of=found)
    for found in files.objects:
        yield from _of_delivery(found, release)
    named = {path: of for item in files.kustomizations for path, of in _value_files(item)}
    for path, documents in files.documents.items():
        for at, body in documents:
            for route, values in values_in(body):
                yield Settings(at / route, values, "values of the chart", named.get(path, release))
    for kustomization in files.kustomizations:
        for at, chart in _charts(kustomization):
            values = mapping(chart.get("valuesInline"))
            if values:
                of = text(chart.get("version")) or release
                yield Settings(at / "valuesInline", values, f"values of chart `{OPERATORS_CHART}`", of)


def values_in(body: object) -> Iterator[tuple[Path, Mapping[str, object]]]:
    """What the GPU Operator's chart is given by a document: at its top, or where a chart has it as a part."""
    values = {key: value for key, value in mapping(body).items() if key not in _HEADINGS or value is not None}
    if "kind" in values:
        return
    if _is_charts(values):
        yield (), values
    elif _is_charts(part := mapping(values.get(OPERATORS_CHART))):
        yield (OPERATORS_CHART,), part


_HEADINGS: Final = ("USER-SUPPLIED VALUES", "COMPUTED VALUES")
"""What `helm get values` prints above them."""


def _is_charts(values: Mapping[str, object]) -> bool:
    """Whether they have a block that is the operator's, and no less of what its chart reads than of anything else."""
    is_plugins = not values.keys().isdisjoint(_OF_PLUGINS_CHART)
    if is_plugins or not any(isinstance(values.get(name), Mapping) for name in _CHARTS_BLOCKS):
        return False
    known = all_chart_keys().keys
    return 2 * sum(name in known for name in values) >= len(values)


_OF_PLUGINS_CHART: Final = frozenset(
    (
        "compatWithCPUManager",
        "config",
        "deviceDiscoveryStrategy",
        "deviceIDStrategy",
        "deviceListStrategy",
        "failOnInitError",
        "gdrcopyEnabled",
        "gdsEnabled",
        "migStrategy",
        "mofedEnabled",
        "mps",
        "nvidiaDriverRoot",
    )
)
"""What stands at the top of values of the device plugin's own chart, which shares some blocks with the operator's.

(`deployments/helm/nvidia-device-plugin/values.yaml` of NVIDIA/k8s-device-plugin v0.19.3.)
"""


PLUGINS_CHART: Final = "nvidia-device-plugin"
"""The device plugin's own chart, and what it makes is called."""


def plugin_files_in(body: object) -> Mapping[str, object]:
    """The files that the device plugin's own chart is given: `config.map`."""
    values = mapping(body)
    files = mapping(value_at(values, ("config", "map"))) if "kind" not in values else {}
    return {key: text_ for key, text_ in files.items() if isinstance(text_, str)}


def maps_of_plugins_chart(files: HandFiles) -> Iterator[Object]:
    """The ConfigMap that the device plugin's own chart makes of values."""
    for path, documents in files.documents.items():
        for at, body in documents:
            if data := plugin_files_in(body):
                made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": PLUGINS_CHART}, "data": data}
                yield Object(at / "config" / "map", made, path, "")


def made_config_maps(settings: Sequence[Settings]) -> Iterator[Object]:
    """The ConfigMaps that the chart makes of values: `config.data` of the device plugin and of the MIG manager.

    (`templates/plugin_config.yaml` and `templates/mig_config.yaml` of the chart in NVIDIA/gpu-operator.)
    """
    for found in settings:
        for operand in _OPERANDS if found.of is None else ():
            config = mapping(found.value(operand, "config"))
            if data := mapping(config.get("data")):
                name = text(config.get("name")) or operand
                made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
                at = found.place(operand, "config")
                yield Object(at, made, file_of(at).path, "", is_inline=found.is_inline)


# --- Where values are --------------------------------------------------------------------------------------------


def _of_delivery(found: Object, release: str) -> Iterator[Settings]:
    """Values in objects that have somebody install the chart: Argo CD, Flux and k3s."""
    spec = inside(found.body, "spec")
    if (found.group, found.kind) == ("argoproj.io", "Application"):
        sources: list[tuple[Path, Mapping[str, object]]] = [(("source",), mapping(spec.get("source")))]
        sources += [(("sources", index), mapping(one)) for index, one in enumerate(sequence(spec.get("sources")))]
        for route, source in sources:
            if text(source.get("chart")) == OPERATORS_CHART:
                of = text(source.get("targetRevision")) or release
                yield from _given(found, (*route, "helm", "valuesObject"), source, ("helm", "valuesObject"), of)
                yield from _given(found, (*route, "helm", "values"), source, ("helm", "values"), of)
    elif (found.group, found.kind) == ("helm.toolkit.fluxcd.io", "HelmRelease"):
        chart = inside(spec, "chart", "spec")
        if text(chart.get("chart")) == OPERATORS_CHART:
            yield from _given(found, ("values",), spec, ("values",), text(chart.get("version")) or release)
    elif (found.group, found.kind) == ("helm.cattle.io", "HelmChart"):
        is_operators = text(spec.get("chart")).rpartition("/")[2] == OPERATORS_CHART
        of = text(spec.get("version")) or release
        yield from _given(found, ("valuesContent",), spec, ("valuesContent",), of) if is_operators else ()


def _given(
    found: Object, route: Path, part: Mapping[str, object], within: tuple[str, ...], release: str
) -> Iterator[Settings]:
    """Values as data, or as a text."""
    value = value_at(part, within)
    title = f"values in {found.title}"
    if isinstance(value, Mapping):
        yield Settings(found.at / "spec" / route, mapping(value), title, release)
    for body in read_text(value):
        yield Settings(found.place("spec", *route), mapping(body), title, release, is_inline=True)


def _charts(kustomization: Kustomization) -> Iterator[tuple[Origin, Mapping[str, object]]]:
    for at, chart in kustomization.entries("helmCharts"):
        if text(mapping(chart).get("name")) == OPERATORS_CHART:
            yield at, mapping(chart)


def _value_files(kustomization: Kustomization) -> Iterator[tuple[str, str]]:
    """Files of values that kustomize hands to the chart, with the chart's release."""
    for _, chart in _charts(kustomization):
        for path in (chart.get("valuesFile"), *sequence(chart.get("additionalValuesFiles"))):
            if isinstance(path, str) and text(chart.get("version")):
                yield kustomization.path_of(path), text(chart.get("version"))
