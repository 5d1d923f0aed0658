"""Needs from what pods were measured to use: series of the DCGM exporter, as Prometheus or a table has them.

Labels and units are those of NVIDIA/dcgm-exporter 4.5.3-4.8.2: `DCGM_FI_DEV_FB_USED` is in MiB, the two others are a
part of time or of cycles (etc/default-counters.csv); `GPU_I_PROFILE` and `GPU_I_ID` are there for MIG instances alone
(internal/pkg/rendermetrics/render_metrics.go). Memory of an instance is its own; what the driver reserves is not among
it from driver 510 on (`ReadAndCacheFBMemoryInfo` in dcgmlib/src/DcgmCacheManager.cpp of NVIDIA/DCGM 4.6.0).
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from contextlib import suppress
from datetime import datetime
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor, inf, isfinite, log2
from operator import itemgetter
from typing import Any, Final

from gpuplan.compiler.base.diagnostics import (
    Diagnostic,
    Finding,
    Location,
    Origin,
    Path,
    Severity,
    SourceFile,
    WholeFile,
)
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.base.wording import count, listing
from gpuplan.compiler.catalog import Gpu
from gpuplan.compiler.documents.rules import TOO_LARGE
from gpuplan.compiler.planning.plan import Isolation
from gpuplan.compiler.planning.pools import gpu_memory_mib
from gpuplan.features.packing.rules import DEMAND_ASSUMED, NO_DEMAND, TEAM_NOT_ON_PLATFORM, USE_OF_SHARED_GPU
from gpuplan.features.packing.sizing.demand.tables import Table, cells_of, number_in
from gpuplan.features.packing.sizing.demand.teams import Platform, with_today
from gpuplan.features.packing.sizing.needs import Need

MEMORY: Final = "DCGM_FI_DEV_FB_USED"
ENGINE: Final = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
MULTIPROCESSORS: Final = "DCGM_FI_PROF_SM_ACTIVE"
METRICS: Final = (MEMORY, ENGINE, MULTIPROCESSORS)
MAX_BYTES: Final = 128 * 2**20

_MOST_MIB: Final = 10_000_000
_MOST_ACTIVE: Final = 2.0
"""`SM_ACTIVE` of a MIG instance was seen above 1 (NVIDIA/DCGM#152); far above, it is no part of a whole."""


class Device(NamedTuple):
    """A GPU, or a MIG instance of it."""

    uuid: str
    instance: str
    profile: str
    model: str


class Holder(NamedTuple):
    """A pod."""

    namespace: str
    pod: str


NOBODY: Final = Holder("", "")


class Series(NamedTuple):
    """The samples of a metric: seconds and amounts."""

    metric: str
    holder: Holder
    device: Device
    samples: tuple[tuple[float, float], ...]
    file: str
    is_shared: bool


Read = tuple[tuple[Series, ...], tuple[Diagnostic, ...]]

# --- Readers -----------------------------------------------------------------------------------------------------


def is_range_query(content: bytes) -> bool:
    return content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") and b'"status"' in content[:4096]


def read_range_query(name: str, content: bytes) -> Read:
    """Return the series in an answer of `/api/v1/query_range` of Prometheus."""
    at = Origin(WholeFile(SourceFile(name, "")))
    if len(content) > MAX_BYTES:
        message = f"file is larger than {MAX_BYTES // 2**20} MiB"
        return (), (TOO_LARGE.report(Finding(at, message, help="ask with a longer step, or by namespace")),)
    try:
        answer = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return (), (_no_answer(at, name, "is not JSON", "save the answer as it is: `curl ... -o use.json`"),)
    if not isinstance(answer, dict) or answer.get("status") != "success":
        said = answer.get("error") if isinstance(answer, dict) else None
        words = (
            f"has an error in place of an answer: `{said}`" if isinstance(said, str) else "is no answer of Prometheus"
        )
        return (), (_no_answer(at, name, words, "ask again; `gpuplan pack --queries` prints what to ask"),)
    data = answer.get("data")
    if not isinstance(data, dict) or data.get("resultType") != "matrix" or not isinstance(data.get("result"), list):
        kind = data.get("resultType") if isinstance(data, dict) else None
        words = f"is a `{kind}`, and no matrix" if isinstance(kind, str) else "holds no result"
        return (), (_no_answer(at, name, words, "ask `/api/v1/query_range` in place of `/api/v1/query`"),)
    found, unusable = [], 0
    for item in data["result"]:
        series, wrong = _series(name, item)
        unusable += wrong
        found += [series] if series else []
    return tuple(found), tuple(_unusable(at, name, found, unusable))


def _no_answer(at: Origin, name: str, words: str, help_: str) -> Diagnostic:
    return NO_DEMAND.report(Finding(at, f"`{name}` {words}", help=help_))


def _unusable(at: Origin, name: str, series: Iterable[Series], unusable: int) -> Iterator[Diagnostic]:
    if all(item.holder == NOBODY for item in series):
        note = f"needed are {listing(METRICS[:2])}, with the labels of a pod"
        help_ = "`gpuplan pack --queries` prints what to ask"
        yield NO_DEMAND.report(Finding(at, f"`{name}` has no use of GPUs by pods", notes=(note,), help=help_))
    elif unusable:
        message = f"{count(unusable, 'sample')} of `{name}` are no amounts, and left out"
        help_ = "look at what the exporter says of these devices"
        yield DEMAND_ASSUMED.report(Finding(at, message, help=help_, severity=Severity.NOTE))


def _series(name: str, entry: object) -> tuple[Series | None, int]:
    """A series of a pod, and how many of its samples are no amounts."""
    labels = entry.get("metric") if isinstance(entry, dict) else None
    values = entry.get("values") if isinstance(entry, dict) else None
    if not isinstance(labels, dict) or not isinstance(values, list):
        return None, 0
    samples, wrong = [], 0
    metric = _text(labels, "__name__", "metric")
    for value in values:
        sample = _sample(metric, value)
        wrong += sample is None
        samples += [sample] if sample else []
    return _made(name, metric, labels, samples), wrong


def _made(name: str, metric: str, labels: Mapping[str, Any], samples: Sequence[tuple[float, float]]) -> Series | None:
    """Prometheus puts `exported_` before labels that its target has too, unless it honours those of the series.

    The exporter names no pod of a device that nobody has (`Process` in internal/pkg/transformation/kubernetes.go): its
    series have the labels of their target then, which are the exporter's own namespace and pod.
    """
    namespace = _text(labels, "exported_namespace", "namespace")
    pod = _text(labels, "exported_pod", "pod")
    if metric not in METRICS or not samples or not namespace or not pod:
        return None
    holder = NOBODY if _EXPORTER in pod else Holder(namespace, pod)
    device = Device(*(_text(labels, label) for label in ("UUID", "GPU_I_ID", "GPU_I_PROFILE", "modelName")))
    return Series(metric, holder, device, tuple(samples), name, bool(_text(labels, "vgpu")))


_EXPORTER: Final = "dcgm-exporter"
"""In the names of its pods: `nvidia-dcgm-exporter` of the GPU Operator, and what its chart is installed as."""
_LABEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._:/+-]{0,252}")


def _text(labels: Mapping[str, Any], *names: str) -> str:
    values = (labels.get(name) for name in names)
    return next((value for value in values if isinstance(value, str) and _LABEL.fullmatch(value)), "")


def _sample(metric: str, value: object) -> tuple[float, float] | None:
    if not isinstance(value, list) or len(value) != 2:
        return None
    try:
        time, amount = float(value[0]), float(value[1])
    except (TypeError, ValueError, OverflowError):
        return None
    most = _MOST_MIB if metric == MEMORY else _MOST_ACTIVE
    return (time, amount) if isfinite(time) and abs(time) < _LAST_TIME and 0 <= amount <= most else None


_LAST_TIME: Final = 1e11


def is_use(table: Table) -> bool:
    """Whether a table holds samples: a column for each metric, or the metric's name in one."""
    names = {*table.columns}
    return bool(names & {"pod", "exported_pod"}) and bool(names & {*METRICS} or {"metric", "value"} <= names)


def use_in_table(table: Table) -> Read:
    """Its columns are called as the labels; `timestamp` is in seconds or as ISO 8601. Others are passed over."""
    at, name = table.header, table.file.path
    if "timestamp" not in table.columns:
        finding = Finding(
            at, "table has no column `timestamp`", help="add it: how many pods ran at once follows from it"
        )
        return (), (NO_DEMAND.report(finding),)
    found: dict[tuple[str, Holder, Device], list[tuple[float, float]]] = defaultdict(list)
    shared: set[Holder] = set()
    unusable = 0
    for row in table.rows:
        cells = cells_of(table, row)
        given = {cells.get("metric", ""): cells.get("value", "")} if "value" in table.columns else cells
        for metric in METRICS:
            if metric not in given:
                continue
            sample = _sample(metric, [_time(cells.get("timestamp", "")), number_in(given[metric], table.separator)])
            series = _made(name, metric, cells, [sample]) if sample else None
            unusable += sample is None
            if series:
                found[series[:3]] += series.samples
                shared |= {series.holder} if series.is_shared else set()
    read = tuple(Series(*key, tuple(samples), name, key[1] in shared) for key, samples in found.items())
    return read, tuple(_unusable(at, name, read, unusable))


def _time(text: str) -> float | str:
    with suppress(ValueError):
        return float(text)
    with suppress(ValueError, OverflowError, OSError):
        return datetime.fromisoformat(text).timestamp()
    return text


# --- Needs -------------------------------------------------------------------------------------------------------


class Use(Value):
    """The use of a device by a pod: the percentile of MiB and of the GPU's compute, and the times when it ran."""

    holder: Holder
    device: Device
    file: str
    memory_mib: float
    compute: Fraction
    gpu: Gpu | None
    times: frozenset[float]
    isolation: Isolation


def needs_of_use(
    series: Iterable[Series], platform: Platform, percentile: float, margin: Fraction
) -> tuple[tuple[Need, ...], tuple[Diagnostic, ...]]:
    """One need for each namespace, workload and size: twice the memory is two sizes apart.

    A pod's memory is the percentile of its samples and the margin on top, and never more than its device has, where it
    fitted; so is its compute. Of a need it is the most of its pods. How many run at once is the percentile over the
    times at which any ran.
    """
    uses, found = _uses(series, platform, percentile, margin)
    whole: dict[Holder, set[str]] = defaultdict(set)
    for use in uses:
        if not use.device.profile:
            whole[use.holder].add(use.device.uuid)
    groups: dict[tuple[str, str, int, int], list[Use]] = defaultdict(list)
    for use in uses:
        gpus = len(whole[use.holder]) if not use.device.profile else 0
        size = 0 if gpus > 1 else ceil(2 * log2(max(use.memory_mib, 1)))
        groups[use.holder.namespace, workload_of(use.holder.pod), gpus if gpus > 1 else 0, size].append(use)
    needs = [_need(*key, group, platform, percentile) for key, group in sorted(groups.items(), key=itemgetter(0))]
    return tuple(needs), (*found, *_foreign(uses, platform))


def _need(
    namespace: str, workload: str, gpus: int, _: int, uses: Sequence[Use], platform: Platform, percentile: float
) -> Need:
    running: Counter[float] = Counter()
    for times in {(use.holder, "" if gpus else use.device): use.times for use in uses}.values():
        running.update(times)
    tenant = next(
        (item for item in (platform.plan.tenants if platform.plan else ()) if namespace in item.spec.namespaces), None
    )
    need = Need(
        at=Origin(_Measured(uses[0].file, f"pods of {namespace}/{workload}")),
        team=tenant.name if tenant else namespace,
        name=workload,
        pods=int(_percentile(running.values(), percentile)),
        memory_mib=ceil(max(use.memory_mib for use in uses)),
        compute=Fraction(1) if gpus else max(use.compute for use in uses),
        gpus=gpus,
        isolation=Isolation.WHOLE_GPU if gpus else max((use.isolation for use in uses), key=[*Isolation].index),
        models=tuple(sorted({use.gpu.id for use in uses if use.gpu})),
    )
    return with_today(need, tenant)


def _uses(
    series: Iterable[Series], platform: Platform, percentile: float, margin: Fraction
) -> tuple[list[Use], list[Diagnostic]]:
    samples: dict[tuple[Holder, Device], dict[str, dict[float, float]]] = defaultdict(lambda: defaultdict(dict))
    files: dict[tuple[Holder, Device], str] = {}
    shared = set[tuple[str, str]]()
    sizes: dict[str, set[str]] = defaultdict(set)
    for item in series:
        if item.device.profile:
            sizes[item.device.uuid].add(item.device.profile)
        if item.holder == NOBODY:
            continue
        key = item.holder, item.device
        files.setdefault(key, item.file)
        samples[key][item.metric].update(item.samples)
        shared |= {item.device[:2]} if item.is_shared else set()
    models = _Models(platform)
    own = _with_memory_of_their_own(samples, shared, models)
    uses: list[Use] = []
    left_out: dict[tuple[str, str], list[str]] = defaultdict(list)
    for (holder, device), by_metric in samples.items():
        file, pod = files[holder, device], f"{holder.namespace}/{holder.pod}"
        is_shared = device[:2] in shared
        if is_shared and device[:2] not in own:
            left_out["shared", file].append(pod)
            continue
        used = _percentile(by_metric[MEMORY].values(), percentile)
        if not used:
            left_out["memory", file].append(pod)
            continue
        gpu = models.find(device.model)
        memory, share = _has(gpu, device)
        active = by_metric[MULTIPROCESSORS] or by_metric[ENGINE]
        part = Fraction(str(round(min(_percentile(active.values(), percentile), 1), 4)))
        if is_shared or share is None or not active:
            left_out["compute", file].append(pod)
            part = Fraction(0)
        elif len(sizes[device.uuid]) > 1:
            left_out["mixed", file].append(pod)
            part = Fraction(1)
        elif not any(active.values()):
            left_out["idle", file].append(pod)
        most = memory if memory and memory >= used else inf
        uses.append(
            Use(
                holder,
                device,
                file,
                min(used * float(1 + margin), most),
                min(part * (1 + margin), Fraction(1)) * (share or 0),
                gpu,
                frozenset(by_metric[MEMORY]),
                Isolation.NONE if is_shared else Isolation.HARDWARE,
            )
        )
    return uses, [_left_out(*key, pods) for key, pods in left_out.items()]


def _with_memory_of_their_own(
    samples: Mapping[tuple[Holder, Device], Mapping[str, Mapping[float, float]]],
    shared: set[tuple[str, str]],
    models: _Models,
) -> set[tuple[str, str]]:
    """Devices that several pods have at once are added to those shared; returned are those whose pods differ.

    Pods that mostly have more together than the device itself are not measured one by one, even if they differ.

    With `KUBERNETES_VIRTUAL_GPUS` the exporter gives the GPU's framebuffer to each pod on it, and from 4.5.3-4.8.2 on
    each that of its own processes, where it may see them (`createPerProcessMetrics` there). Without, the last pod that
    kubelet lists has it (`toDeviceToPod`), and their order is that of a map in Go (pkg/kubelet/pod/pod_manager.go): it
    is another one at each scrape.
    """
    most: dict[tuple[str, str], float | None] = {}
    pods: dict[tuple[str, str], dict[float, dict[Holder, float]]] = defaultdict(lambda: defaultdict(dict))
    for (holder, device), by_metric in samples.items():
        most[device[:2]], _ = _has(models.find(device.model), device)
        for time, amount in by_metric.get(MEMORY, {}).items():
            pods[device[:2]][time][holder] = amount
    own = set[tuple[str, str]]()
    for key, by_time in pods.items():
        if key[0] and _is_had_at_once([by_time[time].keys() for time in sorted(by_time)]):
            shared.add(key)
        together = [amounts.values() for amounts in by_time.values() if len(amounts) > 1]
        too_much = sum(sum(amounts) > (most[key] or inf) for amounts in together)
        if 2 * sum(map(_differ, together)) > len(together) >= 2 * too_much:
            own.add(key)
    return own


def _is_had_at_once(holders: Sequence[AbstractSet[Holder]]) -> bool:
    """Whether pods share a device, by who had it from time to time.

    A pod keeps its device for life. One that follows another may have a sample in common with it, and one of a
    StatefulSet may come back by its name, which happens again only where the exporter goes from pod to pod.
    """
    seen, returns = set[Holder](), 0
    for before, now in pairwise(holders):
        if len(before & now) > 1:
            return True
        seen |= before
        returns += len((now - before) & seen)
    return returns > 1


def _differ(amounts: Collection[float]) -> bool:
    """Whether amounts differ by more than one amount does between two scrapes."""
    return max(amounts) - min(amounts) > max(amounts) / 100


_REASONS: Final[Mapping[str, tuple[str, str, str]]] = {
    "shared": (
        "on shared GPUs, measured together",
        "the exporter gives pods of a shared GPU what the GPU as a whole uses",
        "say what they need in a `Demand` document, or measure them on GPUs of their own",
    ),
    "memory": (
        "without use of memory above zero",
        "with `KUBERNETES_VIRTUAL_GPUS` the exporter says zero unless it has `hostPID` and the UIDs of pods",
        "say what they need in a `Demand` document",
    ),
    "compute": (
        "without use of compute of its own",
        f"it is {ENGINE} of a GPU that nobody shares, whose model and profile are known",
        "say what they need in a `Demand` document",
    ),
    "idle": (
        "with memory in use, and with compute in no sample",
        "DCGM may have stopped to measure: it then says zero until it is restarted (NVIDIA/DCGM#303)",
        "restart DCGM and measure again, or say what they need in a `Demand` document",
    ),
    "mixed": (
        "with a MIG instance beside smaller or larger ones",
        "DCGM then shows less than a larger instance uses (NVIDIA/DCGM#138, #248): all of its compute is counted",
        "say what they need in a `Demand` document",
    ),
}


def _left_out(reason: str, file: str, pods: Sequence[str]) -> Diagnostic:
    message, note, help_ = _REASONS[reason]
    finding = Finding(
        Origin(WholeFile(SourceFile(file, ""))),
        f"{count(len(pods), 'pod')} {message}",
        label="left out" if reason in ("shared", "memory") else "",
        notes=(f"these are {listing(sorted({*pods}))}", note),
        help=help_,
        severity=None if reason in ("shared", "memory") else Severity.NOTE,
    )
    return (USE_OF_SHARED_GPU if reason == "shared" else DEMAND_ASSUMED).report(finding)


def _foreign(uses: Sequence[Use], platform: Platform) -> Iterator[Diagnostic]:
    """Namespaces that are no tenant's."""
    if platform.plan is None:
        return
    foreign = sorted({use.holder.namespace for use in uses} - platform.plan.owners.keys())
    if foreign:
        finding = Finding(
            Origin(WholeFile(SourceFile(uses[0].file, ""))),
            f"{count(len(foreign), 'namespace')} of cluster `{platform.plan.cluster.name}` belong to no tenant by name",
            label="counted all the same",
            notes=(f"these are {listing(foreign)}",),
            help="name them in `namespaces` of a `Tenant`",
        )
        yield TEAM_NOT_ON_PLATFORM.report(finding)


class _Models:
    """Models by the driver's name of a board: a node's label has hyphens for blanks, old drivers have no `NVIDIA`."""

    def __init__(self, platform: Platform) -> None:
        gpus = platform.catalog.all()
        self._by_name = {_board(product.label): gpu for gpu in reversed(gpus) for product in gpu.products}

    def find(self, name: str) -> Gpu | None:
        return self._by_name.get(_board(name))


def _board(name: str) -> str:
    return name.replace(" ", "-").removeprefix("NVIDIA-").lower()


def _has(gpu: Gpu | None, device: Device) -> tuple[float | None, Fraction | None]:
    """The MiB of a device, and its part of the GPU's compute.

    The activity of an instance is relative to that instance: one of 1g reaches 100 % alone (NVIDIA/DCGM#138).
    """
    if gpu is None:
        return None, None if device.profile else Fraction(1)
    if not device.profile:
        return gpu_memory_mib(gpu), Fraction(1)
    profile = gpu.find_profile(gpu.current_name(device.profile))
    if profile is None or not gpu.compute_slices:
        return None, None
    memory = profile.memory_mib or (floor(profile.memory_gib * 1024) if profile.memory_gib else None)
    return memory, Fraction(profile.compute_slices, gpu.compute_slices)


def _percentile(values: Iterable[float], percentile: float) -> float:
    """Return the percentile by nearest rank, or 0 if there are no values."""
    found = sorted(values)
    return found[min(max(ceil(percentile / 100 * len(found)), 1), len(found)) - 1] if found else 0


class _Measured(Value):
    """The source of a measured need, which has no lines."""

    file: str
    part: str
    title: str = ""

    def locate(self, path: Path, *, on_key: bool = False) -> Location:  # noqa: ARG002 - a `Source`
        return Location(SourceFile(self.file, ""), part=self.part)


# --- Names -------------------------------------------------------------------------------------------------------

_RANDOM: Final = "[bcdfghjklmnpqrstvwxz2456789]"
"""The characters of which names are made up (`alphanums` in pkg/util/rand of kubernetes/apimachinery)."""
_SUFFIX: Final = re.compile(rf"(-{_RANDOM}{{6,10}})?-{_RANDOM}{{5}}$")
_NUMBERS: Final = re.compile(r"(-[0-9]+)+$")


def workload_of(pod: str) -> str:
    """The pod's name without what its controllers add: a hash, random letters, numbers."""
    return _NUMBERS.sub("", _SUFFIX.sub("", pod)) or pod


# --- What to ask -------------------------------------------------------------------------------------------------


def queries(*, days: int = 14, step_minutes: int = 15) -> str:
    """The command that asks Prometheus for what is read here, whether it honours the exporter's labels or not."""
    by = ", ".join((*_HOLDERS, "UUID", "GPU_I_ID", "GPU_I_PROFILE", "modelName", "vgpu"))
    parts = (
        f'label_replace(max by ({by}) ({function}({metric}[{step_minutes}m])), "metric", "{metric}", "", "")'
        for metric, function in zip(METRICS, ("max_over_time", "avg_over_time", "avg_over_time"), strict=True)
    )
    query = "\n  or ".join(parts)
    return (
        'curl -sSG "$PROMETHEUS/api/v1/query_range" -o use.json \\\n'
        f'  --data-urlencode "start=$(date -d \'{days} days ago\' +%s)" --data-urlencode "end=$(date +%s)" \\\n'
        f"  --data-urlencode step={step_minutes * 60} --data-urlencode query='\n  {query}'\n"
    )


_HOLDERS: Final = ("exported_namespace", "exported_pod", "namespace", "pod")
