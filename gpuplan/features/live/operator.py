"""The settings of the GPU Operator, in a ClusterPolicy or in Helm values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.plain import inside, mapping, read_text, sequence, text, value_at
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.features.live.dump import Dump, Item

_CHART: Final = "gpu-operator"
_SECTIONS: Final = ("migManager", "devicePlugin", "mig")


class Settings(NamedTuple):
    """A part of what the operator is told: the spec of a ClusterPolicy, or values of its chart."""

    at: Origin
    body: Mapping[str, object]
    source: str


class Operator(Value):
    """The settings of the operator, in all parts of the dump together."""

    settings: tuple[Settings, ...]

    def text(self, *route: str) -> str:
        """Return the first text that is told at a route."""
        return next(filter(None, (text(value_at(part.body, route)) for part in self.settings)), "")

    @property
    def strategy(self) -> str:
        return self.text("mig", "strategy")

    @property
    def default_key(self) -> str:
        """The file that the device plugin of nodes without a label reads."""
        return self.text("devicePlugin", "config", "default")


def is_settings(body: Mapping[str, object]) -> bool:
    """Whether it is what the operator's chart is given."""
    return any(isinstance(body.get(section), Mapping) for section in _SECTIONS)


def read_operator(dump: Dump) -> Operator:
    """Return all settings of the operator, those of the ClusterPolicy that it obeys first."""
    return Operator((*_policies(dump), *_values(dump)))


def obeyed_policy(dump: Dump) -> Item | None:
    """Return the ClusterPolicy that the operator works by: it writes the status of no other. Without one it is the
    oldest.

    (`Reconcile` in `controllers/clusterpolicy_controller.go` of NVIDIA/gpu-operator, from v24.6.2:122 to v26.7.0:128,
    gives the others the state `ignored` in its memory, and returns.)
    """
    return min(dump.of_kind("nvidia.com", "ClusterPolicy"), key=_order, default=None)


def _order(policy: Item) -> tuple[bool, str, str]:
    state = text(value_at(policy.body, ("status", "state")))
    return state in ("", "ignored"), text(value_at(policy.body, ("metadata", "creationTimestamp"))), policy.name


def _policies(dump: Dump) -> Iterator[Settings]:
    if item := obeyed_policy(dump):
        yield Settings(item.at / "spec", inside(item.body, "spec"), item.source)


def _values(dump: Dump) -> Iterator[Settings]:
    for document in dump.others:
        body = mapping(document.data)
        if is_settings(body):
            yield Settings(document.origin, body, f"Helm values ({document.file.path})")
    for item in dump.of_kind("helm.toolkit.fluxcd.io", "HelmRelease"):
        if text(value_at(item.body, ("spec", "chart", "spec", "chart"))) == _CHART:
            yield Settings(item.at / "spec" / "values", inside(item.body, "spec", "values"), item.source)
    for item in dump.of_kind("argoproj.io", "Application"):
        spec = inside(item.body, "spec")
        sources = [spec.get("source"), *sequence(spec.get("sources"))]
        for source in map(mapping, sources):
            if text(source.get("chart")) == _CHART:
                helm = inside(source, "helm")
                parts = [mapping(helm.get("valuesObject")), *map(mapping, read_text(helm.get("values")))]
                yield from (Settings(item.at, part, item.source) for part in parts if part)
