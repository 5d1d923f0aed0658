"""Settings of the GPU Operator where no policy says them: in ClusterPolicies, and in values of its chart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from gpuplan.compiler.base.diagnostics import Origin, Path
from gpuplan.compiler.base.plain import inside, mapping, read_text, sequence, text, value_at
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.catalog.operators import OPERATORS_CHART, all_chart_keys
from gpuplan.compiler.documents import file_of
from gpuplan.compiler.planning.hand_files import DEVICE_PLUGIN, MIG_MANAGER, HandFiles, Kustomization, Object, Settings
from gpuplan.compiler.policy.models import ClusterMigStrategy

_CHARTS_BLOCKS: Final = frozenset(
    ("ccManager", "daemonsets", "dcgm", "dcgmExporter", "devicePlugin", "gdrcopy", "gds", "mig", "migManager")
)
"""The keys at the top of values of the operator's chart, and of hardly any other: `gfd` is the device plugin's, too."""


_OPERANDS: Final = (DEVICE_PLUGIN, MIG_MANAGER)


def overriding_strategy(files: HandFiles, config_map: str) -> ClusterMigStrategy:
    """Return the cluster's MIG strategy, as far as all settings that have a ConfigMap read agree.

    A file that is in no ConfigMap may be anybody's.
    """
    if files.plan is not None:
        return files.plan.cluster.gpu_operator.spec.mig_strategy
    strategies = {settings.strategy for settings in settings_for(files, config_map)}
    agreed = next(iter(strategies)) if len(strategies) == 1 else None
    return ClusterMigStrategy.PER_POOL if agreed is None else agreed


def settings_for(files: HandFiles, config_map: str) -> tuple[Settings, ...]:
    """Return the settings that name a ConfigMap, or all for a file that is in none."""
    return tuple(item for item in files.settings if not config_map or config_map in item.config_names)


def find_settings(files: HandFiles, release: str) -> Iterator[Settings]:
    """Yield all settings of the operator. ``release`` is that of values beside which no release is named."""
    for policy in files.of_kind("ClusterPolicy"):
        if policy.group == "nvidia.com":
            yield Settings(
                policy.at, inside(policy.body, "spec"), policy.title, release, not policy.is_patch, of=policy
            )
    for written in files.objects:
        title = f"values in {written.title}"
        for given in _delivered(written):
            found = [((), given.values)] if given.chart == OPERATORS_CHART else [*values_in(given.values)]
            for route, values in found if given.chart in (OPERATORS_CHART, "") else ():
                yield Settings(given.place(*route), values, title, given.release or release, is_inline=given.is_inline)
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
    """Yield the values of the GPU Operator's chart in a document, at its top or as a part of another chart's."""
    values = {key: value for key, value in mapping(body).items() if key not in _HEADINGS or value is not None}
    if "kind" in values:
        return
    if _is_charts(values):
        yield (), values
    elif _is_charts(part := mapping(values.get(OPERATORS_CHART))):
        yield (OPERATORS_CHART,), part


_HEADINGS: Final = ("USER-SUPPLIED VALUES", "COMPUTED VALUES")
"""The lines that `helm get values` prints above values."""


def _is_charts(values: Mapping[str, object]) -> bool:
    """Whether values have a block of the operator's, and at least as many keys that its chart reads as others."""
    is_plugins = not values.keys().isdisjoint(_OF_PLUGINS_CHART)
    if is_plugins or not any(isinstance(values.get(name), Mapping) for name in _CHARTS_BLOCKS):
        return False
    known = all_chart_keys().keys
    return 2 * sum(name in known for name in values) >= len(values)


_OF_PLUGINS_CHART: Final = {
    *("compatWithCPUManager", "config", "deviceDiscoveryStrategy", "deviceIDStrategy", "deviceListStrategy"),
    *("failOnInitError", "gdrcopyEnabled", "gdsEnabled", "migStrategy", "mofedEnabled", "mps", "nvidiaDriverRoot"),
}
"""The keys at the top of values of the device plugin's own chart, which shares some blocks with the operator's.

(`deployments/helm/nvidia-device-plugin/values.yaml` of NVIDIA/k8s-device-plugin v0.19.3.)
"""


PLUGINS_CHART: Final = "nvidia-device-plugin"
"""The name of the device plugin's own chart and of what the chart makes."""


def plugin_files_in(body: object) -> Mapping[str, object]:
    """Return the files that the device plugin's own chart is given: `config.map`."""
    values = mapping(body)
    files = mapping(value_at(values, ("config", "map"))) if "kind" not in values else {}
    return {key: text_ for key, text_ in files.items() if isinstance(text_, str)}


def values_of_plugins_chart(files: HandFiles) -> Iterator[Given]:
    """Yield values of the device plugin's own chart: in files, and where programs that install charts have them."""
    alone = [Given(at, mapping(body)) for documents in files.documents.values() for at, body in documents]
    delivered = [given for written in files.objects for given in _delivered(written)]
    for given in (*alone, *delivered):
        if given.chart == PLUGINS_CHART or (not given.chart and is_of_plugins_chart(given.values)):
            yield given


def is_of_plugins_chart(values: Mapping[str, object]) -> bool:
    """Whether values are of the device plugin's chart: they have a file of the plugin, or a flag of its own."""
    has_flag = not values.keys().isdisjoint(_OF_PLUGINS_CHART - {"config", "mps"})
    return "kind" not in values and "version" not in values and (has_flag or bool(plugin_files_in(values)))


def maps_of_plugins_chart(files: HandFiles) -> Iterator[Object]:
    """Yield the ConfigMaps that the device plugin's own chart makes of values."""
    for given in values_of_plugins_chart(files):
        if data := plugin_files_in(given.values):
            made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": PLUGINS_CHART}, "data": data}
            at = given.place("config", "map")
            yield Object(at, made, file_of(at).path, "", is_inline=given.is_inline)


def made_config_maps(settings: Sequence[Settings]) -> Iterator[Object]:
    """Yield the ConfigMaps that the chart makes of values: `config.data` of the device plugin and of the MIG manager.

    (`templates/plugin_config.yaml` and `templates/mig_config.yaml` of the chart in NVIDIA/gpu-operator.)
    """
    for given in settings:
        for operand in _OPERANDS if given.of is None else ():
            config = mapping(given.value(operand, "config"))
            if data := mapping(config.get("data")):
                name = text(config.get("name")) or operand
                made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
                at = given.place(operand, "config")
                yield Object(at, made, file_of(at).path, "", is_inline=given.is_inline)


# --- Where values are --------------------------------------------------------------------------------------------


class Given(NamedTuple):
    """Values that a program which installs charts hands to one; ``chart`` is empty where the object does not say it."""

    at: Origin
    values: Mapping[str, object]
    chart: str = ""
    release: str = ""
    is_inline: bool = False

    def place(self, *route: str | int) -> Origin:
        return self.at if self.is_inline else self.at / route


def are_in(written: Object) -> bool:
    """Whether an object has values of the operator's chart, or of the device plugin's."""
    return any(
        given.chart in (OPERATORS_CHART, PLUGINS_CHART)
        or (not given.chart and (any(values_in(given.values)) or is_of_plugins_chart(given.values)))
        for given in _delivered(written)
    )


def _delivered(written: Object) -> Iterator[Given]:
    """Yield values in objects that have Argo CD, Flux, k3s or RKE2 install a chart, and in keys of a ConfigMap."""
    spec = inside(written.body, "spec")
    match written.group, written.kind:
        case "argoproj.io", "Application" | "ApplicationSet":
            above = ("spec",) if written.kind == "Application" else ("spec", "template", "spec")
            spec = inside(written.body, *above)
            sources: list[tuple[Path, Mapping[str, object]]] = [(("source",), mapping(spec.get("source")))]
            sources += [(("sources", index), mapping(one)) for index, one in enumerate(sequence(spec.get("sources")))]
            for route, source in sources:
                chart, of = text(source.get("chart")), text(source.get("targetRevision"))
                for field in ("valuesObject", "values", "parameters"):
                    at = (*above, *route, "helm", field)
                    yield from _given(written, at, value_at(source, ("helm", field)), chart, of)
        case "helm.toolkit.fluxcd.io", "HelmRelease":
            installed = inside(spec, "chart", "spec")
            chart, of = text(installed.get("chart")), text(installed.get("version"))
            yield from _given(written, ("spec", "values"), spec.get("values"), chart, of)
        case "helm.cattle.io", "HelmChart" | "HelmChartConfig":
            chart, of = text(spec.get("chart")).rpartition("/")[2], text(spec.get("version"))
            yield from _given(written, ("spec", "valuesContent"), spec.get("valuesContent"), chart, of)
        case "", "ConfigMap":
            for key, value in inside(written.body, "data").items():
                if isinstance(value, str) and any(f"{block}:" in value for block in (*_CHARTS_BLOCKS, "config")):
                    yield from _given(written, ("data", key), value, "", "")
        case _:
            pass


def _given(written: Object, route: Path, value: object, chart: str, release: str) -> Iterator[Given]:
    """Yield values that are data, a text, or parameters such as `mig.strategy` with a value each."""
    if isinstance(value, Mapping):
        yield Given(written.place(*route), mapping(value), chart, release, is_inline=written.is_inline)
    elif isinstance(value, list):
        for index, parameter in enumerate(map(mapping, value)):
            nested: object = _SET.get(text(parameter.get("value")), parameter.get("value"))
            for key in reversed(text(parameter.get("name")).split(".")):
                nested = {key: nested}
            yield Given(written.place(*route, index), mapping(nested), chart, release, is_inline=True)
    else:
        for body in read_text(value):
            yield Given(written.place(*route), mapping(body), chart, release, is_inline=True)


_SET: Final[Mapping[str, object]] = {"true": True, "false": False, "null": None}
"""What `helm --set` reads, as which Argo CD hands a parameter on, as no text."""


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
