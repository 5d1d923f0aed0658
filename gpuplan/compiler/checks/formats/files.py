"""Find hand-written files of the device plugin and of the MIG manager, in ConfigMaps and beside them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from gpuplan.compiler.base.diagnostics import Finding, Origin
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import is_yaml, mapping, read_text
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.checks.formats import Problem
from gpuplan.compiler.checks.formats.settings import overriding_strategy
from gpuplan.compiler.documents import read_text as read_file
from gpuplan.compiler.planning.hand_files import KUSTOMIZATION_FILES, HandFiles
from gpuplan.compiler.policy.models import ClusterMigStrategy

_MARKS = ("mig-configs", "sharing", "migStrategy", "timeSlicing", "flags")


class Config(Value):
    """A file's content, with the key that it has in a ConfigMap; text in one has one place for all that is in it.

    ``config_map`` is that one's name, empty where there is none.
    """

    at: Origin
    body: Mapping[str, object]
    key: str = ""
    is_inline: bool = False
    config_map: str = ""

    def findings(self, problems: Iterable[Problem], fact: str) -> Iterator[Finding]:
        for problem in problems:
            if self.is_inline:
                yield problem.finding(self.at, fact, self.key)
            else:
                yield problem.finding(self.at / problem.route, fact)


def is_config(body: Mapping[str, object]) -> bool:
    """Whether a mapping is the content of a file of either program."""
    return "mig-configs" in body or _is_plugins(body)


def _is_plugins(body: Mapping[str, object]) -> bool:
    """Whether a mapping is a file of the device plugin, which takes these fields in upper and lower case."""
    sharing, flags = mapping(body.get("sharing")), mapping(body.get("flags"))
    is_misplaced = "version" in body and bool(body.keys() & {"timeSlicing", "mps", "migStrategy"})
    named = not _FLAGS.isdisjoint((*flags, *mapping(flags.get("plugin"))))
    return is_misplaced or named or bool({"timeslicing", "mps"} & set(map(str.lower, sharing)))


_FLAGS = frozenset(
    (
        *("cdiAnnotationPrefix", "containerDriverRoot", "deviceDiscoveryStrategy", "deviceIDStrategy"),
        *("deviceListStrategy", "failOnInitError", "gdrcopyEnabled", "gdsEnabled", "migStrategy", "mofedEnabled"),
        *("mpsRoot", "nvidiaCTKPath", "nvidiaDevRoot", "nvidiaDriverRoot", "passDeviceSpecs"),
        *("sharedDevicesAllocationPolicy", "useNodeFeatureAPI"),
    )
)
"""Flags of no other program (`CommandLineFlags` in `api/config/v1/flags.go` of NVIDIA/k8s-device-plugin v0.19.3)."""


def plugin_configs(files: HandFiles) -> Iterator[tuple[Config, ClusterMigStrategy]]:
    """Yield files of the device plugin, with the cluster's strategy, or none if each may have its own."""
    configs = (config for config in _configs(files) if _is_plugins(config.body))
    return ((config, overriding_strategy(files, config.config_map)) for config in configs)


def mig_configs(files: HandFiles) -> Iterator[Config]:
    """Yield files of the MIG manager."""
    return (config for config in _configs(files) if "mig-configs" in config.body)


@lru_cache(maxsize=1)  # a dozen checks on the same files read them
def _configs(files: HandFiles) -> Sequence[Config]:
    alone = [
        Config(at, body)
        for path, documents in files.documents.items()
        if path.rpartition("/")[2] not in KUSTOMIZATION_FILES
        for at, body in ((at, mapping(document)) for at, document in documents)
        if "kind" not in body and any(mark in body for mark in _MARKS)
    ]
    configs = list(alone)
    for at, key, value, name in _texts(files):
        for body in read_text(value):
            file = next((config for config in alone if config.body == body), None)
            if file:
                configs.append(replace(file, key=key, config_map=name))
            else:
                configs.append(Config(at, mapping(body), key, is_inline=True, config_map=name))
    return configs


def holds_config(value: object) -> bool:
    """Whether a value of a ConfigMap is such a file."""
    is_likely = isinstance(value, str) and any(mark in value for mark in _MARKS)
    return is_likely and any(is_config(mapping(body)) for body in read_text(value))


def _texts(files: HandFiles) -> Iterator[tuple[Origin, str, str, str]]:
    """Yield values of ConfigMaps that hold such a file or may do so: their place, key, text and ConfigMap."""
    for config_map in files.of_kind("ConfigMap"):
        for key, value in mapping(config_map.body.get("data")).items():
            if isinstance(value, str) and any(mark in value for mark in _MARKS):
                yield config_map.place("data", key), key, value, config_map.name


# --- What cannot be read -----------------------------------------------------------------------------------------

_BEGINS_AS_ONE = regex(
    r"(?:[ \t]*(?:#.*|---.*)?\n)*[ \t]*[\"']?(?:\{[^{]|(?:version|flags|sharing|resources|imex|mig-configs)\b)"
)
"""The beginning of such a file. Scripts and templates that write one begin otherwise."""
_OF_MIG_MANAGER = regex(r"(?:^|[{,])[ \t]*[\"']?mig-configs\b", re.MULTILINE)
_OF_PLUGIN = regex(r"(?:^|[{,])[ \t]*[\"']?(?:timeSlicing|mps|migStrategy)\b", re.MULTILINE)


def broken_configs(files: HandFiles, *, are_plugins: bool, fact: str) -> Iterator[Finding]:
    """Find texts that are meant for one of the two programs and cannot be parsed."""
    for at, key, value, _ in _texts(files):
        is_mig_managers = bool(_OF_MIG_MANAGER.search(value))
        is_meant = is_mig_managers != are_plugins and (is_mig_managers or bool(_OF_PLUGIN.search(value)))
        if is_meant and _BEGINS_AS_ONE.match(value) and (problem := _syntax_problem(value)):
            yield problem.finding(at, fact, key)


def _syntax_problem(value: str) -> Problem | None:
    """Return what is wrong with the first document of a text, the one that both programs read."""
    if is_yaml(value):
        return None
    _, diagnostics = read_file("", value, strict=False)
    if not diagnostics:
        return None
    finding, line = diagnostics[0].finding, diagnostics[0].finding.at.locate().span.start.line
    written = value.splitlines()[line - 1 : line]
    label = f"there stands `{written[0].strip()}`" if written and written[0].strip() else finding.label
    return Problem((), f"line {line} of the text cannot be parsed: {finding.message}", label, finding.help)
