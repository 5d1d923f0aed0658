"""Configurations of Kueue without a platform: as objects, in ConfigMaps, and in values of its chart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gpuplan.compiler.base.diagnostics import Finding, Origin, Path
from gpuplan.compiler.base.plain import inside, mapping, parts_with, read_text, sequence, text, value_at
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.base.wording import closest
from gpuplan.compiler.catalog.charts import find_scheduler_chart
from gpuplan.compiler.checks import scheduler_charts
from gpuplan.compiler.checks.registry import same_rule
from gpuplan.compiler.planning.discovered import GPU_RESOURCE
from gpuplan.compiler.planning.hand_files import HandFiles

_API = "config.kueue.x-k8s.io/"
_CHARTS_KEY = "controllerManagerConfigYaml"


class Configuration(Value):
    """One of Kueue, and its place; all that stands in a text has one."""

    at: Origin
    body: Mapping[str, object]
    is_inline: bool = False

    def place(self, *route: str | int) -> Origin:
        return self.at if self.is_inline else self.at / route


def configurations(body: object, at: Origin) -> Iterator[Configuration]:
    """Yield those in a document: the document itself, keys of a ConfigMap, and values of Kueue's chart."""
    if text(mapping(body).get("apiVersion")).startswith(_API):
        yield Configuration(at, mapping(body))
    texts: list[tuple[Path, object]] = [(("data", key), value) for key, value in inside(mapping(body), "data").items()]
    texts += [((*route, _CHARTS_KEY), part[_CHARTS_KEY]) for route, part in parts_with(body, _CHARTS_KEY)]
    for route, value in texts:
        for inner in read_text(value) if _API in text(value) else ():
            yield Configuration(at / route, mapping(inner), is_inline=True)


def _all(files: HandFiles) -> Iterator[Configuration]:
    for found in files.objects:
        yield from configurations(found.body, found.at)
    for documents in files.documents.values():
        for at, body in documents:
            if "kind" not in mapping(body):
                yield from configurations(body, at)


@same_rule(scheduler_charts.decided_kueue_setting)
def uncounted(files: HandFiles) -> Iterator[Finding]:
    """Settings with which Kueue counts no GPUs, or does not start."""
    for found in _all(files):
        prefixes = sequence(value_at(found.body, ("resources", "excludeResourcePrefixes")))
        for index, prefix in enumerate(map(text, prefixes)):
            if prefix and (prefix.startswith("nvidia.com/") or GPU_RESOURCE.startswith(prefix)):
                name = prefix if len(prefix) > len("nvidia.com/") else GPU_RESOURCE
                yield Finding(
                    found.place("resources", "excludeResourcePrefixes", index),
                    f"`{prefix}` in `excludeResourcePrefixes` keeps Kueue from counting `{name}`",
                    label="no queue counts it",
                    help="remove it",
                )
        if prefixes and value_at(found.body, ("resources", "quotaCheckStrategy")) == "IgnoreUndeclared":
            yield Finding(
                found.place("resources", "quotaCheckStrategy"),
                "Kueue does not start with `quotaCheckStrategy: IgnoreUndeclared` beside prefixes that it excludes",
                label="another way to say what is not counted",
                help="keep one of the two",
            )


@same_rule(scheduler_charts.unknown_kueue_setting)
def unknown_setting(files: HandFiles) -> Iterator[Finding]:
    """Keys of no Configuration, with which Kueue does not start."""
    chart = find_scheduler_chart("kueue")
    known = {"apiVersion", "kind", *(chart.settings if chart else ())}
    for found in _all(files):
        for key in found.body if found.body.get("kind") == "Configuration" else ():
            if key not in known:
                nearest = closest(key, known)
                yield Finding(
                    found.at if found.is_inline else found.place(key).key,
                    f"Kueue's Configuration has no `{key}`",
                    label="Kueue does not start",
                    help=f"write `{nearest}`" if nearest else f"remove `{key}`",
                )
