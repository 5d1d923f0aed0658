"""The files that the MIG manager and the device plugin read, in ConfigMaps, in Helm values and beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from gpuplan.compiler.backends.gpu_operator import device_plugin
from gpuplan.compiler.base.diagnostics import Origin, Rule, Severity
from gpuplan.compiler.base.plain import inside, is_yaml, mapping, read_text
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.checks.formats.files import is_config
from gpuplan.features.live.dump import Dump, Item
from gpuplan.features.live.pools.operator import Operator, is_settings
from gpuplan.features.live.pools.telling import Told
from gpuplan.features.live.rules import LAYOUT_NOT_SAID, SHARING_NOT_SAID


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


class Operand(NamedTuple):
    """A program that reads files: what the operator is told of it, and by what one knows its files and gpuplan's.

    Of a ConfigMap it reads the ``key`` alone, or each where that is empty: then nodes choose by label. ``begins`` are
    words by which one may know a text that cannot be parsed.
    """

    called: str
    section: str
    config_map: str
    key: str
    begins: tuple[str, ...]
    is_file: Callable[[Mapping[str, object]], bool]
    rule: Rule


MIG_MANAGER: Final = Operand(
    called="MIG manager",
    section="migManager",
    config_map="gpuplan-mig-parted",
    key="config.yaml",
    begins=("mig-configs:",),
    is_file=lambda body: "mig-configs" in body,
    rule=LAYOUT_NOT_SAID,
)
DEVICE_PLUGIN: Final = Operand(
    called="device plugin",
    section="devicePlugin",
    config_map=device_plugin.CONFIG_MAP,
    key="",
    begins=("timeSlicing:", "mps:", "migStrategy:"),
    is_file=lambda body: "mig-configs" not in body and is_config(body),
    rule=SHARING_NOT_SAID,
)


def read_files(dump: Dump, operator: Operator, operand: Operand, told: Told) -> tuple[ConfigFile, ...]:
    """The files of an operand: those of the ConfigMap that the operator is told of, else all that look like one.

    What is meant to be one and cannot be parsed is a finding.
    """
    return tuple(_Files(operator, operand, told).read(dump))


OPERATORS_OWN: Final = "default-mig-parted-config"
"""What the GPU Operator calls the file that it brings (`MigPartedDefaultConfigMapName` in its `object_controls.go`)."""
_OF_ONE_NODE: Final = "nvidia.com/node-name"
"""The label of a ConfigMap in which the MIG manager of a node shows the file that it has made there.

Nobody reads it, and it says nothing of other nodes. The file that the operator brings is for nodes that cannot make one
(`setupMigConfig` and `createNodeConfigMap` in `cmd/nvidia-mig-manager/main.go` of NVIDIA/mig-parted v0.14.0).
"""


class _Files(NamedTuple):
    """Where an operand's files are looked for."""

    operator: Operator
    operand: Operand
    told: Told

    def read(self, dump: Dump) -> Iterator[ConfigFile]:
        wanted, maps = self.operator.text(self.operand.section, "config", "name"), dump.of_kind("", "ConfigMap")
        if any(_OF_ONE_NODE in item.labels for item in maps):
            maps = tuple(item for item in maps if _OF_ONE_NODE not in item.labels and item.name != OPERATORS_OWN)
        named = [item for item in maps if self._is_named(item, wanted)]
        for item in named or maps:
            yield from self._of_map(item, is_named=bool(named))
        for part in self.operator.settings:
            for key, value in inside(part.body, self.operand.section, "config", "data").items():
                at = part.at / (self.operand.section, "config", "data", key)
                yield from self._parsed(at, key, value, part.source)
        for document in dump.others:
            body = mapping(document.data)
            if self.operand.is_file(body) and not is_settings(body):
                path = document.file.path
                yield ConfigFile(
                    document.origin,
                    path.rpartition("/")[2].partition(".")[0],
                    body,
                    f"file of the {self.operand.called} ({path})",
                )

    def _is_named(self, item: Item, wanted: str) -> bool:
        return item.name == wanted if wanted else item.name.startswith(self.operand.config_map)

    def _of_map(self, item: Item, *, is_named: bool) -> Iterator[ConfigFile]:
        for key, value in inside(item.body, "data").items():
            is_read = is_named and self.operand.key in ("", key)
            if is_read or self._may_be(value):
                yield from self._parsed(item.at / "data" / key, key, value, item.source, item.name)

    def _may_be(self, value: object) -> bool:
        """Whether a text of some ConfigMap is meant to be such a file."""
        if not isinstance(value, str) or not any(word in value for word in self.operand.begins):
            return False
        bodies = read_text(value)
        if bodies:
            return self.operand.is_file(mapping(bodies[0]))
        return value.lstrip().startswith(("version:", *self.operand.begins))

    def _parsed(self, at: Origin, key: str, value: object, source: str, owner: str = "") -> Iterator[ConfigFile]:
        if isinstance(value, Mapping):
            yield ConfigFile(at, key, mapping(value), source, owner)
        elif isinstance(value, str) and is_yaml(value):
            bodies = read_text(value)
            yield ConfigFile(at, key, mapping(bodies[0]) if bodies else {}, source, owner, is_inline=True)
        elif isinstance(value, str):
            self.told.say(
                self.operand.rule,
                at,
                f"the file `{key}` of {source} cannot be parsed",
                label="no YAML",
                notes=("the program that reads it fails, and with it all nodes that name the file",),
                help="correct it, and import again",
                severity=Severity.ERROR,
            )
