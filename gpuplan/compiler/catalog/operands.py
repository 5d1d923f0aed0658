"""The DaemonSets of the GPU Operator that a change of its settings restarts, on which nodes, and the fate of pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache
from typing import Any, Final

from gpuplan.compiler.base.plain import value_of
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.catalog.loading import facts
from gpuplan.compiler.catalog.operators import Version, nearest_line, parse_version, reads_key


class Restart(StrEnum):
    """The effect on other pods when a pod of an operand restarts, least first."""

    WATCHES = "watches"
    """Nothing waits for it."""
    PAUSES = "pauses"
    """Running pods go on; new pods wait."""
    ENDS = "ends"
    """Every CUDA process ends that is served by MPS."""
    EVICTS = "evicts"
    """Pods that hold GPUs are evicted from its node first."""


class Where(StrEnum):
    """The nodes that an operand runs on."""

    ALL = "all"
    MIG = "mig"
    """Those whose GPUs can be divided."""
    MPS = "mps"
    """Those that share GPUs by MPS."""


class Read(Value):
    """A setting that stands in a pod template: ``key`` is its route, ``when`` what else must hold on either side.

    ``source`` is the place that says so, for the line that was asked for.
    """

    key: str
    when: str
    source: str


class Operand(Value):
    """A DaemonSet as one line of releases makes it.

    ``enabled`` is the setting that makes it come and go, empty where nothing does, and ``default`` holds without it.
    ``in_place`` are settings that restart its pods and do not evict any other. ``takes_strategy`` says that
    `daemonsets.updateStrategy` is for it.
    """

    daemon_set: str
    restart: Restart
    where: Where
    enabled: str
    default: bool
    reads: tuple[Read, ...]
    in_place: frozenset[str]
    is_replaced_by_hand: bool
    takes_strategy: bool
    sources: tuple[str, ...]


class Setup(Value, eq=False):
    """The settings that the operator is given, and the ``traits`` of the cluster: `cri-o`, `openshift`."""

    settings: Mapping[str, Any]
    installed_by: str
    traits: frozenset[str] = frozenset()

    def value(self, key: str) -> object:
        return value_of(self.settings, key.split("."))

    def is_on(self, key: str, *, default: bool) -> bool:
        found = self.value(key)
        return default if found is None else bool(found)


class Roll(NamedTuple):
    """An operand whose pods restart, and what becomes of others then; or whose DaemonSet ``comes`` or ``goes``."""

    operand: Operand
    restart: Restart
    comes: bool = False
    goes: bool = False


# --- What rolls --------------------------------------------------------------------------------------------------


def rolls(release: str, old: Setup, new: Setup) -> Mapping[str, tuple[Roll, ...]]:
    """The operands whose pods restart, come or go, by each setting that differs and stands in a pod template."""
    found: dict[str, list[Roll]] = {}
    for operand in operands(release, new.installed_by):
        was, is_there = _is_there(operand, old), _is_there(operand, new)
        if was != is_there:
            found.setdefault(operand.enabled, []).append(Roll(operand, operand.restart, comes=is_there, goes=was))
        for key in _differing(operand, release, old, new) if was and is_there else ():
            restart = Restart.PAUSES if key in operand.in_place else operand.restart
            found.setdefault(key, []).append(Roll(operand, restart))
        if (
            was
            and is_there
            and is_left_alone(roll := Roll(operand, operand.restart), old)
            and not is_left_alone(roll, new)
        ):
            found.setdefault(_LETS_WAIT[operand.is_replaced_by_hand], []).append(roll)
    return {key: tuple(rolled) for key, rolled in found.items()}


AUTO_UPGRADE: Final = "driver.upgradePolicy.autoUpgrade"
UPDATE_STRATEGY: Final = "daemonsets.updateStrategy"
_LETS_WAIT: Final = {True: AUTO_UPGRADE, False: UPDATE_STRATEGY}
"""The setting that has pods stay until somebody deletes them: those of the driver, and all others. Taken back, each
restarts that is not of its DaemonSet's revision."""


def running(release: str, setup: Setup) -> tuple[Roll, ...]:
    """The operands that there are."""
    there = (operand for operand in operands(release, setup.installed_by) if _is_there(operand, setup))
    return tuple(Roll(operand, operand.restart) for operand in there)


def is_left_alone(roll: Roll, setup: Setup) -> bool:
    """Whether pods stay until somebody deletes them.

    The operator sees to the driver's where it may upgrade it by itself (`UpgradeReconciler` in
    `controllers/upgrade_controller.go`), and Kubernetes to all others unless the strategy is `OnDelete`.
    """
    if roll.comes or roll.goes:
        return False
    if not roll.operand.is_replaced_by_hand:
        return roll.operand.takes_strategy and setup.value(UPDATE_STRATEGY) == "OnDelete"
    upgrades = setup.is_on(AUTO_UPGRADE, default=True)
    return not upgrades or setup.is_on("sandboxWorkloads.enabled", default=False)


@cache
def sections(release: str, installed_by: str) -> frozenset[str]:
    """The parts of the settings of which it is known what stands in pod templates."""
    known = operands(release, installed_by)
    keys = {key for item in known for key in (item.enabled, *(read.key for read in item.reads)) if key}
    return frozenset((*(key.partition(".")[0] for key in keys), *_table()["elsewhere"]))


def _differing(operand: Operand, release: str, old: Setup, new: Setup) -> Iterator[str]:
    """The settings of it that differ. What a chart does not read does not reach the operator."""
    for read in operand.reads:
        is_same = _value(read.key, release, old) == _value(read.key, release, new)
        counts = not is_same and any(_counts(read.when, release, side) for side in (old, new))
        if counts and (new.installed_by != HELM or reads_key(release, tuple(read.key.split(".")))):
            yield read.key


def _is_there(operand: Operand, setup: Setup) -> bool:
    return not operand.enabled or setup.is_on(operand.enabled, default=operand.default)


def _value(key: str, release: str, setup: Setup) -> object:
    """The value of a setting; a switch that is not set has its default."""
    found = setup.value(key)
    return _defaults(release, setup.installed_by).get(key) if found is None else found or None


def _counts(when: str, release: str, setup: Setup) -> bool:
    return not when or when in setup.traits or bool(_value(when, release, setup))


@cache
def _defaults(release: str, installed_by: str) -> Mapping[str, object]:
    cdi = {f"cdi.{key}": value or None for key, value in nearest_line(release).cdi.items()}
    switches = {item.enabled: item.default or None for item in operands(release, installed_by) if item.enabled}
    return {**cdi, **switches}


# --- The table ---------------------------------------------------------------------------------------------------

HELM: Final = "helm"

_REPOSITORY: Final = "NVIDIA/gpu-operator"
_FILE: Final = "controllers/object_controls.go"
_STATES: Final = "controllers/state_manager.go"


@cache
def operands(release: str, installed_by: str = HELM) -> tuple[Operand, ...]:
    """Return the operands of the line of a release, or of the nearest one that was read."""
    return tuple(
        _operand(row, release, installed_by)
        for row in _table()["operands"]
        if row.get("installed_by", installed_by) == installed_by
    )


@cache
def restart_source(restart: Restart, release: str) -> str:
    """The place that says what becomes of pods."""
    row = _table()["restarts"][restart]
    index = _index(nearest_line(release).version, _table()["tags"])
    return f"{row['repository']} {row['tags'][index]} {row['at'][index]}"


def _operand(row: Mapping[str, Any], release: str, installed_by: str) -> Operand:
    enabled, nodes, line = row.get("enabled") or {}, row["nodes"], nearest_line(release).version
    place = _Place(row.get("repository", _REPOSITORY), tuple(row.get("tags", _table()["tags"])), line)
    switch = [place.of(enabled.get("file", _STATES), enabled["at"])] if enabled else []
    manifest = nodes["manifest"] if "/" in nodes["manifest"] else f"assets/{nodes['manifest']}"
    return Operand(
        daemon_set=row["daemon_set"],
        restart=Restart(row["restart"]),
        where=Where(nodes["which"]),
        enabled=enabled.get("key", ""),
        default=enabled.get("chart" if installed_by == HELM else "policy", True),
        reads=tuple(_reads(row, place, release)),
        in_place=_in_place(row.get("in_place"), line),
        is_replaced_by_hand=bool(row.get("on_delete")),
        takes_strategy="every" in row["through"],
        sources=(*switch, place.of(manifest, nodes["at"])),
    )


class _Place(NamedTuple):
    """Where a row of the table was read, for one line of releases."""

    repository: str
    tags: tuple[str, ...]
    line: Version

    def number(self, lines: Sequence[int]) -> int:
        return lines[_index(self.line, self.tags)]

    def of(self, file: str, lines: Sequence[int]) -> str:
        return f"{self.repository} {self.tags[_index(self.line, self.tags)]} {file}:{self.number(lines)}"


def _index(line: Version, tags: Sequence[str]) -> int:
    """The tag that was read for a line: its own, or the only one."""
    versions = [(parse_version(tag) or ())[:2] for tag in tags]
    return versions.index(line) if line in versions else 0


def _reads(row: Mapping[str, Any], place: _Place, release: str) -> Iterator[Read]:
    shared = ((_FILE, _table()["shared"][name]) for name in row["through"])
    for file, keys in (*shared, (row.get("file", _FILE), row["reads"])):
        for pattern, said in keys.items():
            found = said if isinstance(said, Mapping) else {"at": said}
            when = found.get("when", "") if release in found.get("releases", (release,)) else ""
            if place.number(found["at"]):
                yield from (Read(key, when, place.of(file, found["at"])) for key in _keys(pattern))


def _keys(pattern: str) -> Iterator[str]:
    """``a.b|c`` are `a.b` and `a.c`."""
    route, _, last = pattern.rpartition(".")
    return (f"{route}.{name}" for name in last.split("|"))


def _in_place(statement: Mapping[str, Any] | None, line: Version) -> frozenset[str]:
    since = parse_version(statement["since"]) if statement else None
    if statement is None or since is None or line < since:
        return frozenset()
    return frozenset(key for pattern in statement["keys"] for key in _keys(pattern))


def _table() -> Mapping[str, Any]:
    table: Mapping[str, Any] = facts("operator_data", "operands.yaml")
    return table
