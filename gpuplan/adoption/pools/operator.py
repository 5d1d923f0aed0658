"""What the GPU Operator is told of its operands' files, in a ClusterPolicy or in Helm values, and those files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from gpuplan.adoption.dump import Dump, Item
from gpuplan.adoption.pools.telling import Told
from gpuplan.checks.handwritten.reading import inside, is_yaml, mapping, read_text, text, value_at
from gpuplan.diagnostics import Origin, Rule, Severity
from gpuplan.values import NamedTuple, Value

_CHART: Final = "gpu-operator"
_SECTIONS: Final = ("migManager", "devicePlugin", "mig")


class Settings(NamedTuple):
    """A part of what the operator is told: the spec of a ClusterPolicy, or values of its chart."""

    at: Origin
    body: Mapping[str, object]
    source: str


class ConfigFile(Value):
    """A file of an operand, with its ``key`` in a ConfigMap; text inside one has one place for all that is in it.

    ``owner`` is the name of the ConfigMap, empty where it is a file of its own or a part of Helm values.
    """

    at: Origin
    key: str
    body: Mapping[str, object]
    source: str
    owner: str = ""
    is_inline: bool = False

    def place(self, *route: str | int) -> Origin:
        return self.at if self.is_inline else self.at / route


class Operator(Value):
    """What the operator is told, in all parts of the dump together."""

    settings: tuple[Settings, ...]

    def text(self, *route: str) -> str:
        """The first text that is told at a route."""
        return next(filter(None, (text(value_at(part.body, route)) for part in self.settings)), "")

    @property
    def strategy(self) -> str:
        return self.text("mig", "strategy")

    @property
    def default_key(self) -> str:
        """The file that the device plugin of nodes without a label reads."""
        return self.text("devicePlugin", "config", "default")


def read_operator(dump: Dump) -> Operator:
    """ClusterPolicies first: they are what the operator reads, whoever has written them."""
    return Operator((*_policies(dump), *_values(dump)))


def _policies(dump: Dump) -> Iterator[Settings]:
    for item in dump.of_kind("nvidia.com", "ClusterPolicy"):
        yield Settings(item.at / "spec", inside(item.body, "spec"), item.source)


def _values(dump: Dump) -> Iterator[Settings]:
    for document in dump.others:
        body = mapping(document.data)
        if any(isinstance(body.get(section), Mapping) for section in _SECTIONS):
            yield Settings(document.origin, body, f"file `{document.file.path}`")
    for item in dump.of_kind("helm.toolkit.fluxcd.io", "HelmRelease"):
        if text(value_at(item.body, ("spec", "chart", "spec", "chart"))) == _CHART:
            yield Settings(item.at / "spec" / "values", inside(item.body, "spec", "values"), item.source)
    for item in dump.of_kind("argoproj.io", "Application"):
        spec = inside(item.body, "spec")
        sources = [spec.get("source"), *(value_at(spec, ("sources",)) or ())]  # type: ignore[misc]
        for source in map(mapping, sources):
            if text(source.get("chart")) == _CHART:
                helm = inside(source, "helm")
                parts = [mapping(helm.get("valuesObject")), *map(mapping, read_text(helm.get("values")))]
                yield from (Settings(item.at, part, item.source) for part in parts if part)


# --- Files -------------------------------------------------------------------------------------------------------


def read_files(
    dump: Dump, operator: Operator, section: str, marks: tuple[str, ...], told: Told, rule: Rule
) -> tuple[ConfigFile, ...]:
    """The files of an operand: those of the ConfigMap that the operator is told of, else all that look like one.

    ``marks`` are what such a file holds at least one of. What is meant to be one and cannot be parsed is a finding.
    """
    wanted = operator.text(section, "config", "name")
    maps = [item for item in dump.of_kind("", "ConfigMap") if _holds(item, marks)]
    named = [item for item in dump.of_kind("", "ConfigMap") if item.name == wanted]
    chosen = named or maps
    found = [file for item in chosen for file in _files_of(item, marks, told, rule, is_named=bool(named))]
    for part in operator.settings:
        for key, value in inside(part.body, section, "config", "data").items():
            at = part.at / section / "config" / "data" / key
            found += _parsed(at, key, value, part.source, "", told, rule)
    for document in dump.others:
        body = mapping(document.data)
        if _is_file(body, marks) and not any(isinstance(body.get(name), Mapping) for name in _SECTIONS):
            path = document.file.path
            key = path.rpartition("/")[2].rpartition(".")[0]
            found.append(ConfigFile(document.origin, key, body, f"file `{path}`"))
    return tuple(found)


def _is_file(body: Mapping[str, object], marks: tuple[str, ...]) -> bool:
    return any(mark in body for mark in marks)


def _holds(item: Item, marks: tuple[str, ...]) -> bool:
    values = inside(item.body, "data").values()
    likely = [value for value in values if isinstance(value, str) and any(mark in value for mark in marks)]
    return any(_is_file(mapping(body), marks) for value in likely for body in read_text(value)[:1]) or any(
        not is_yaml(value) and value.lstrip().startswith(("version:", *(f"{mark}:" for mark in marks)))
        for value in likely
    )


def _files_of(item: Item, marks: tuple[str, ...], told: Told, rule: Rule, *, is_named: bool) -> Iterator[ConfigFile]:
    for key, value in inside(item.body, "data").items():
        if is_named or (isinstance(value, str) and any(mark in value for mark in marks)):
            yield from _parsed(item.at / "data" / key, key, value, item.source, item.name, told, rule)


def _parsed(
    at: Origin, key: str, value: object, source: str, owner: str, told: Told, rule: Rule
) -> Iterator[ConfigFile]:
    if isinstance(value, Mapping):
        yield ConfigFile(at, key, mapping(value), source, owner)
        return
    if isinstance(value, str) and not is_yaml(value):
        told.say(
            rule,
            at,
            f"the file `{key}` of {source} cannot be parsed",
            label="no YAML",
            notes=("the program that reads it fails, and with it all nodes that name the file",),
            help="correct it, and import again",
            severity=Severity.ERROR,
        )
        return
    bodies = read_text(value)
    if bodies or value == "":
        yield ConfigFile(at, key, mapping(bodies[0]) if bodies else {}, source, owner, is_inline=True)
