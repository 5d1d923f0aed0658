"""Where hand-written files of the device plugin and of the MIG manager are found, in ConfigMaps and beside them."""

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

_MARKS = ("mig-configs", "sharing", "migStrategy", "timeSlicing")


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
                yield problem.found(self.at, fact, self.key)
            else:
                yield problem.found(self.at / problem.route, fact)


def is_config(body: Mapping[str, object]) -> bool:
    """Whether it is the content of a file of either program."""
    return "mig-configs" in body or _is_plugins(body)


def _is_plugins(body: Mapping[str, object]) -> bool:
    """Whether it is a file of the device plugin, which takes these fields in upper and lower case."""
    sharing, flags = mapping(body.get("sharing")), mapping(body.get("flags"))
    is_misplaced = "version" in body and bool(body.keys() & {"timeSlicing", "mps", "migStrategy"})
    return is_misplaced or "migStrategy" in flags or bool({"timeslicing", "mps"} & set(map(str.lower, sharing)))


def plugin_configs(files: HandFiles) -> Iterator[tuple[Config, ClusterMigStrategy]]:
    """Files of the device plugin, with the cluster's strategy, which each may have for itself where there is none."""
    found = (config for config in _configs(files) if _is_plugins(config.body))
    return ((config, overriding_strategy(files, config.config_map)) for config in found)


def mig_configs(files: HandFiles) -> Iterator[Config]:
    """Files of the MIG manager."""
    return (config for config in _configs(files) if "mig-configs" in config.body)


@lru_cache(maxsize=1)  # a dozen checks on the same files read them
def _configs(files: HandFiles) -> Sequence[Config]:
    """Files that look like the device plugin's or the MIG manager's, in ConfigMaps and beside a generator."""
    alone = list(_files_alone(files))
    found = list(alone)
    for at, key, value, name in _texts(files):
        for body in read_text(value):
            file = next((item for item in alone if item.body == body), None)
            if file:
                found.append(replace(file, key=key, config_map=name))
            else:
                found.append(Config(at, mapping(body), key, is_inline=True, config_map=name))
    return found


def _files_alone(files: HandFiles) -> Iterator[Config]:
    for path, documents in files.documents.items():
        if path.rpartition("/")[2] not in KUSTOMIZATION_FILES:
            for at, document in documents:
                body = mapping(document)
                if "kind" not in body and any(mark in body for mark in (*_MARKS, "flags")):
                    yield Config(at, body)


def holds_config(value: object) -> bool:
    """Whether a value of a ConfigMap is such a file."""
    is_likely = isinstance(value, str) and any(mark in value for mark in _MARKS)
    return is_likely and any(is_config(mapping(body)) for body in read_text(value))


def _texts(files: HandFiles) -> Iterator[tuple[Origin, str, str, str]]:
    """The values of ConfigMaps that hold such a file, or may do so, with their places and keys, and what has them."""
    for found in files.of_kind("ConfigMap"):
        for key, value in mapping(found.body.get("data")).items():
            if isinstance(value, str) and any(mark in value for mark in _MARKS):
                yield found.place("data", key), key, value, found.name


# --- What cannot be read -----------------------------------------------------------------------------------------

_BEGINS_AS_ONE = regex(
    r"(?:[ \t]*(?:#.*|---.*)?\n)*[ \t]*[\"']?(?:\{[^{]|(?:version|flags|sharing|resources|imex|mig-configs)\b)"
)
"""How both begin; scripts and templates that write one begin otherwise."""
_OF_MIG_MANAGER = regex(r"(?:^|[{,])[ \t]*[\"']?mig-configs\b", re.MULTILINE)
_OF_PLUGIN = regex(r"(?:^|[{,])[ \t]*[\"']?(?:timeSlicing|mps|migStrategy)\b", re.MULTILINE)


def broken_configs(files: HandFiles, *, are_plugins: bool, fact: str) -> Iterator[Finding]:
    """Findings on texts that are meant for one of the two programs and cannot be parsed."""
    for at, key, value, _ in _texts(files):
        problem = _syntax_problem(value) if _is_meant_for(value, are_plugins=are_plugins) else None
        if problem:
            yield problem.found(at, fact, key)


def _is_meant_for(value: str, *, are_plugins: bool) -> bool:
    if not _BEGINS_AS_ONE.match(value):
        return False
    is_mig_managers = bool(_OF_MIG_MANAGER.search(value))
    return not is_mig_managers and bool(_OF_PLUGIN.search(value)) if are_plugins else is_mig_managers


def _syntax_problem(value: str) -> Problem | None:
    """What is wrong with the first document of a text, which is the one that both programs read."""
    if is_yaml(value):
        return None
    _, found = read_file("", value, strict=False)
    if not found:
        return None
    told, line = found[0].finding, found[0].finding.at.locate().span.start.line
    written = value.splitlines()[line - 1 : line]
    label = f"there stands `{written[0].strip()}`" if written and written[0].strip() else told.label
    return Problem((), f"line {line} of the text cannot be parsed: {told.message}", label, told.help)
