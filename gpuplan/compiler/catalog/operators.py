"""Facts about the NVIDIA GPU Operator: its releases, its chart's values, the taints that its own pods tolerate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from functools import cache
from typing import Any, Final, Union

from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.catalog.loading import facts, frozen

OPERATORS_CHART: Final = "gpu-operator"
"""The chart of the GPU Operator, and what its release is called."""
OPERATORS_PACKAGE: Final = "gpu-operator-certified"
"""The GPU Operator in the catalogs of OLM."""
NFD_CHART: Final = "node-feature-discovery"
"""The chart of Node Feature Discovery that the operator's chart brings along, under this name in its values."""
CHARTS_POLICY: Final = "cluster-policy"
"""The chart's name of its ClusterPolicy, whatever the values say."""

Version = tuple[int, ...]
"""A dotted version in numbers: ``v26.7.0`` is ``(26, 7, 0)``."""

_VERSION: Final = regex(r"v?([0-9]+(?:\.[0-9]+)+)(?:-[0-9A-Za-z.-]+)?")


@cache
def parse_version(text: str) -> Version | None:
    """Read a release, a line of releases or a driver version; None when it is none of them."""
    match = _VERSION.fullmatch(text)
    return tuple(int(part) for part in match[1].split(".")) if match else None


# --- Releases ----------------------------------------------------------------------------------------------------


class Line(Value):
    """A line of releases, such as v26.7, which has v26.7.0 and v26.7.1.

    ``cdi`` and ``driver_fields`` are fields of `ClusterPolicy.spec` with the defaults that the line's CRD gives them.
    ``device_lists`` is how the device plugin tells a container's runtime of its devices, `with_cdi` and `without`.
    ``drivers`` are the driver versions that single releases install by default. ``oldest_kubernetes`` and
    ``newest_kubernetes`` bound the versions that NVIDIA supports, empty where that was not read.
    ``requires_runtime`` says that a ClusterPolicy must name a container runtime, though nothing reads it.
    ``reads_label_late`` says that pods of the device plugin may begin as if the node had no label,
    ``has_default_driver`` that an NVIDIADriver may be for all nodes that no other one selects, and that each has an
    upgrade policy.
    ``sources`` are keys of the file's sources.
    """

    name: str
    version: Version
    device_plugin: Version
    cdi: Mapping[str, bool]
    device_lists: Mapping[str, str]
    driver_fields: Mapping[str, str]
    sources: Sequence[str]
    drivers: Mapping[str, str] = field(default_factory=dict)
    oldest_kubernetes: str = ""
    newest_kubernetes: str = ""
    requires_runtime: bool = False
    reads_label_late: bool = False
    has_default_driver: bool = False


@cache
def lines() -> tuple[Line, ...]:
    """Every known line, oldest first."""
    return tuple(
        Line(**{**row, "version": parse_version(row["name"]), "device_plugin": parse_version(row["device_plugin"])})
        for row in _releases()["lines"]
    )


def find_line(release: str) -> Line | None:
    """The line that a release belongs to."""
    version = parse_version(release)
    return next((line for line in lines() if version is not None and line.version == version[:2]), None)


def nearest_line(release: str) -> Line:
    """The line of a release, else the newest one before it, else the oldest known; the newest for no release at all."""
    version = parse_version(release)
    older = [line for line in lines() if version is None or line.version <= version[:2]]
    return older[-1] if older else lines()[0]


def default_driver(release: str) -> str:
    """The driver that a release installs where the policy names none; empty where that was not read."""
    line = find_line(release)
    return line.drivers.get(release, "") if line else ""


# --- Drivers -----------------------------------------------------------------------------------------------------


class DriverEffect(StrEnum):
    """A limit that a driver sets to a plan."""

    NO_MIG = "no-mig"
    NO_MIG_BESIDE_WHOLE_GPUS = "no-mig-beside-whole-gpus"
    CDMM = "cdmm"


class DriverDefect(Value):
    """A defect or a mode of some driver versions.

    ``products`` are the beginnings of the product labels of the boards that it hits; empty, it hits all.
    """

    effect: DriverEffect
    source: str
    versions: tuple[str, ...] = ()
    since: str = ""
    products: tuple[str, ...] = ()

    def has(self, driver: str) -> bool:
        """Whether the driver version has it."""
        version, since = parse_version(driver), parse_version(self.since)
        return driver in self.versions or (version is not None and since is not None and version >= since)

    def hits(self, product: str) -> bool:
        """Whether a board with this product label has it."""
        return not self.products or product.startswith(self.products)


@cache
def driver_defects() -> tuple[DriverDefect, ...]:
    rows = _releases()["drivers"]
    return tuple(DriverDefect(**frozen({**row, "effect": DriverEffect(row["effect"])})) for row in rows)


# --- Helm values -------------------------------------------------------------------------------------------------

Keys = Mapping[str, Union["Keys", None]]
"""Keys that a chart reads; None under a key says that it may hold anything."""

_NOTHING: Final[Keys] = {}


class ChartKeys(Value):
    """The keys of one release's chart; ``is_read`` says that this line's chart was read, not only its neighbours'."""

    keys: Keys
    is_read: bool


@cache
def chart_keys(release: str) -> ChartKeys:
    """The keys that a release's chart reads, for a line that was not read those of its neighbours on both sides."""
    version = (parse_version(release) or lines()[-1].version)[:2]
    read = _read_lines()
    if version in read:
        return ChartKeys(_known(lambda first, last: first <= version <= last), is_read=True)
    neighbours = [*[line for line in read if line < version][-1:], *[line for line in read if line > version][:1]]
    return ChartKeys(_known(lambda first, last: any(first <= line <= last for line in neighbours)), is_read=False)


@cache
def all_chart_keys() -> ChartKeys:
    """The keys that the chart of any known release reads."""
    return ChartKeys(_known(lambda _first, _last: True), is_read=True)


def reads_value(release: str, *route: str) -> bool:
    """Whether a release's chart reads a key."""
    return _reaches(chart_keys(release).keys, route)


def runs_nfd_hook(release: str) -> bool:
    """Whether NFD's post-delete hook of the chart runs whatever the values say."""
    return not reads_value(release, "node-feature-discovery", "postDeleteCleanup")


@cache
def lines_that_know(route: tuple[str, ...]) -> tuple[str, ...]:
    """The lines whose chart was read and reads this key."""
    return tuple(line for line in _helm_values()["read"] if _reaches(chart_keys(line).keys, route))


def reads_key(release: str, route: tuple[str, ...]) -> bool:
    """Whether a release's chart, or that of a neighbour where it was not read, hands on what is at this route."""
    return _reaches(chart_keys(release).keys, route)


def _reaches(keys: Keys, route: tuple[str, ...]) -> bool:
    below: Keys | None = keys
    for key in route:
        if below is None:
            return True
        if key not in below:
            return False
        below = below[key]
    return True


def newest_read_line() -> str:
    """The newest line whose chart was read."""
    return str(_helm_values()["read"][-1])


_Wanted = Callable[[Version, Version], bool]
_FIRST: Final[Version] = (0,)
_LAST: Final[Version] = (9999,)


def _known(is_wanted: _Wanted) -> Keys:
    data = _helm_values()
    operands = {name: {**data["operand"], **keys} for name, keys in data["operands"].items()}
    parts = {name: {**data["nfd_part"], **keys} for name, keys in data["nfd_parts"].items()}
    nfd = {"node-feature-discovery": {**data["nfd_settings"], **parts}}
    return _select({**data["settings"], **operands, **nfd}, is_wanted) or _NOTHING


def _select(tree: Mapping[str, Any], is_wanted: _Wanted) -> Keys | None:
    """The part of a tree that the wanted releases know; None where nothing of it is."""
    found: dict[str, Keys | None] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            if below := _select(value, is_wanted):
                found[key] = below
        elif any(is_wanted(*span) for span in _spans(value)):
            found[key] = None
    return found or None


def _spans(value: str | None) -> Iterator[tuple[Version, Version]]:
    """The first and the last line of each run of lines that know a key, which nothing says of all lines.

    Such as ``from v26.3``, ``until v25.3``, ``from v24.9 until v25.3`` and ``until v24.9, from v25.10``.
    """
    for run in (value or "").split(", "):
        words = run.split()
        bounds = dict(zip(words[::2], map(parse_version, words[1::2]), strict=True))
        yield bounds.get("from") or _FIRST, bounds.get("until") or _LAST


@cache
def _read_lines() -> tuple[Version, ...]:
    return tuple(parse_version(line) or () for line in _helm_values()["read"])


@cache
def listed_values() -> Mapping[tuple[str, ...], object]:
    """Values that a chart's own file lists and no template reads, by route: a copy of the file has them so."""
    return {tuple(key.split(".")): value for key, value in _helm_values()["listed"].items()}


def image_repositories(release: str) -> Mapping[tuple[str, ...], str]:
    """The paths in NVIDIA's registry of the images that a release's chart installs, by the route of their block."""
    version = nearest_line(release).version
    return {
        tuple(row["route"].split(".")): row["path"]
        for row in facts("operator_data", "images.yaml")["images"]
        if (parse_version(row.get("from", "")) or _FIRST) <= version <= (parse_version(row.get("until", "")) or _LAST)
    }


# --- Values that gpuplan decides ---------------------------------------------------------------------------------


@cache
def decided_values() -> Mapping[tuple[str, ...], str]:
    """Helm values that follow from the policy, with the policy's field that decides each, empty where the pools do."""
    return {tuple(key.split(".")): field or "" for key, field in _helm_values()["decided"].items()}


@cache
def decided_environment() -> Mapping[tuple[str, str], str]:
    """Environment variables, by operand, that would override what follows from the policy, with its field."""
    decided = _helm_values()["decided_environment"]
    return {(operand, name): field for operand, names in decided.items() for name, field in names.items()}


# --- Tolerations -------------------------------------------------------------------------------------------------

Toleration = Mapping[str, str]

OPERAND_TOLERATIONS: Final[tuple[Toleration, ...]] = (
    {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
)
"""The tolerations of every operand: the chart's `daemonsets.tolerations`, and the operator's manifests without them."""

NFD_WORKER_TOLERATIONS: Final[tuple[Toleration, ...]] = (
    {"key": "node-role.kubernetes.io/control-plane", "operator": "Equal", "value": "", "effect": "NoSchedule"},
    *OPERAND_TOLERATIONS,
)
"""The tolerations that the chart gives the workers of Node Feature Discovery."""


def tolerates(toleration: Mapping[str, Any], key: str, value: str, effect: str) -> bool:
    """Whether a toleration covers a taint, as `Toleration.ToleratesTaint` of k8s.io/api judges it."""
    if toleration.get("effect") not in (None, "", effect):
        return False
    if toleration.get("key") not in (None, "", key):
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("key")) and (toleration.get("value") or "") == value


def is_tolerated(tolerations: Sequence[object], key: str, value: str, effect: str) -> bool:
    """Whether pods with these tolerations run beside a taint; `PreferNoSchedule` keeps no DaemonSet away."""
    return effect == "PreferNoSchedule" or any(
        isinstance(toleration, Mapping) and tolerates(toleration, key, value, effect) for toleration in tolerations
    )


# --- What the chart renders --------------------------------------------------------------------------------------

KindName = tuple[str, str]
"""Group and kind; the core group is empty."""


class ChartKinds(NamedTuple):
    """Kinds of the objects that the chart renders, which no folder of the output holds, by where they live."""

    cluster: frozenset[KindName]
    namespaced: frozenset[KindName]


@cache
def chart_kinds() -> ChartKinds:
    data = facts("operator_data", "chart-kinds.yaml")
    return ChartKinds(*(frozenset((row["group"], row["kind"]) for row in data[scope]) for scope in ChartKinds._fields))


# --- Data --------------------------------------------------------------------------------------------------------


def _releases() -> Mapping[str, Any]:
    releases: Mapping[str, Any] = facts("operator_data", "releases.yaml")
    return releases


def _helm_values() -> Mapping[str, Any]:
    values: Mapping[str, Any] = facts("operator_data", "helm-values.yaml")
    return values
