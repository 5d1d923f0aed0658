"""Find what the API server refuses of pods whose fields all have the right types.

These are rules of `pkg/apis/core/validation/validation.go` of kubernetes/kubernetes, release 1.34, on what people add
to pods; its schemas say none of them, nor which values a field may have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.manifests.quantities import exact_quantity


class Misfit(NamedTuple):
    """A part of a pod's `spec` that is refused, by its route; what is wrong with it, and what to do."""

    route: Path
    message: str
    help: str


def misfits(spec: Mapping[str, Any], *, ends: bool) -> Iterator[Misfit]:
    """Those of a template, in the order of the rules; ``ends`` where its pods are those of a Job."""
    for pattern, judge in _RULES:
        for route, value in _parts(spec, pattern):
            yield from (found._replace(route=(*route, *found.route)) for found in judge(value))
    config = spec.get("dnsConfig")
    if spec.get("dnsPolicy") == "None" and not (isinstance(config, Mapping) and config.get("nameservers")):
        message = "`None` needs a server to ask"
        yield Misfit(("dnsPolicy",), message, "add `dnsConfig: {nameservers: [...]}`, or leave it out")
    yield from _mounts(spec)
    yield from _twice(_parts(spec, ("initContainers|containers", "", "name")), "container")
    for route, container in _parts(spec, (_EVERY, "")):
        ports = _twice(_parts(container, ("ports", "", "name")), "port")
        yield from (found._replace(route=(*route, *found.route)) for found in ports)
    if not ends and spec.get("activeDeadlineSeconds") is not None:  # `pkg/apis/apps/validation/validation.go`
        yield Misfit(("activeDeadlineSeconds",), "pods that run all the time may not have it", "leave it out")


def _parts(value: object, pattern: Path) -> Iterator[tuple[Path, object]]:
    """Yield the values at a pattern. A text with `|` is any of these fields, an empty one every key or number."""
    if not pattern:
        yield (), value
        return
    first, *rest = pattern
    found: list[tuple[str | int, object]] = []
    if isinstance(value, Mapping):
        found = [(key, part) for key, part in value.items() if not first or key in str(first).split("|")]
    elif isinstance(value, list) and not first:
        found = [*enumerate(value)]
    for key, part in found:
        if part is not None:
            yield from (((key, *route), inner) for route, inner in _parts(part, tuple(rest)))


# --- Single values -----------------------------------------------------------------------------------------------

_Judge = Callable[[object], Iterator[Misfit]]

_LABEL: Final = regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN: Final = regex(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def _one_of(*known: str) -> _Judge:
    def judge(value: object) -> Iterator[Misfit]:
        if isinstance(value, str) and value not in known:
            yield Misfit((), f"`{value}` is none of {', '.join(f'`{name}`' for name in known)}", "write one of these")

    return judge


def _count(value: object) -> Iterator[Misfit]:
    if isinstance(value, int) and value < 1:
        yield Misfit((), f"{value} is less than 1", "write 1 or more")


def _grace(value: object) -> Iterator[Misfit]:
    """A template with less is taken, and its pods have one second (`pkg/registry/core/pod/strategy.go`)."""
    if isinstance(value, int) and value < 0:
        yield Misfit((), f"{value} is less than 0, and taken for 1", "write 0 or more")


def _label(value: object) -> Iterator[Misfit]:
    if isinstance(value, str) and not _LABEL.fullmatch(value):
        instead = "write 63 lower case letters, digits and `-` at most, with no `-` at an end"
        yield Misfit((), f"`{value}` is no DNS label", instead)


def _subdomain(value: object) -> Iterator[Misfit]:
    if isinstance(value, str) and value and not _SUBDOMAIN.fullmatch(value):
        yield Misfit((), f"`{value}` is no name of an object", "write lower case letters, digits, `-` and `.`")


# --- Parts of which one excludes another -------------------------------------------------------------------------


def _source(volume: object) -> Iterator[Misfit]:
    """A volume without one is an `emptyDir`."""
    found = _fields(volume, lambda name: name != "name")
    if len(found) > 1:
        yield Misfit((), f"a volume has one source, and this one has {_listed(found)}", "leave one")


_HANDLERS: Final = ("exec", "grpc", "httpGet", "sleep", "tcpSocket")


def _handler(asked: object) -> Iterator[Misfit]:
    found = _fields(asked, lambda name: name in _HANDLERS)
    if isinstance(asked, Mapping) and len(found) != 1:
        message = f"there is more than one handler: {_listed(found)}" if found else "there is no handler"
        yield Misfit((), message, "leave one" if found else "add one, such as `exec`, `httpGet` or `tcpSocket`")


def _variable(variable: object) -> Iterator[Misfit]:
    if isinstance(variable, Mapping) and variable.get("value") and variable.get("valueFrom") is not None:
        yield Misfit((), "a variable has a `value` or a `valueFrom`, and this one has both", "leave one")


def _value_from(value: object) -> Iterator[Misfit]:
    found = _fields(value, lambda _: True)
    if isinstance(value, Mapping) and len(found) != 1:
        has = _listed(found) if found else "none"
        yield Misfit((), f"a value is from one place, and this one has {has}", "leave one" if found else "add one")


def _fields(part: object, counts: Callable[[str], bool]) -> list[str]:
    items = part.items() if isinstance(part, Mapping) else ()
    return [name for name, value in items if value is not None and counts(name)]


def _listed(names: list[str]) -> str:
    return " and ".join(f"`{name}`" for name in names)


# --- Containers --------------------------------------------------------------------------------------------------


def _image(container: object) -> Iterator[Misfit]:
    if isinstance(container, Mapping) and not container.get("image"):
        yield Misfit((), "a container needs an `image`", "add `image:`")


def _started_before(container: object) -> Iterator[Misfit]:
    """One that ends before the next one starts is asked for nothing."""
    if isinstance(container, Mapping) and container.get("restartPolicy") != "Always":
        for field in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
            if container.get(field) is not None:
                message = f"an init container that ends has no `{field}`"
                yield Misfit((field,), message, "leave it out, or add `restartPolicy: Always` to the container")


def _amount(value: object) -> Iterator[Misfit]:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        amount = exact_quantity(str(value))
        if amount is None:
            yield Misfit((), f"`{value}` is no quantity", "write one, such as `500m` or `2` CPUs, `512Mi` of memory")
        elif amount < 0:
            yield Misfit((), f"`{value}` is less than 0", "write 0 or more")


def _amounts(resources: object) -> Iterator[Misfit]:
    if not isinstance(resources, Mapping):
        return
    limits, requests = resources.get("limits"), resources.get("requests")
    if isinstance(limits, Mapping) and isinstance(requests, Mapping):
        for name, asked in requests.items():
            most, least = exact_quantity(str(limits.get(name))), exact_quantity(str(asked))
            if most is not None and least is not None and least > most:
                message = f"a request of {asked} is more than the limit of {limits[name]}"
                yield Misfit(("requests", name), message, f"write {limits[name]} or less, or raise the limit")


_EVERY: Final = "containers|initContainers"
_PROBES: Final = "livenessProbe|readinessProbe|startupProbe"

_RULES: Final[tuple[tuple[Path, _Judge], ...]] = (
    (("dnsPolicy",), _one_of("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")),
    (("serviceAccountName",), _subdomain),
    (("terminationGracePeriodSeconds",), _grace),
    (("activeDeadlineSeconds",), _count),
    (("topologySpreadConstraints", "", "maxSkew"), _count),
    (("topologySpreadConstraints", "", "whenUnsatisfiable"), _one_of("DoNotSchedule", "ScheduleAnyway")),
    (("volumes", "", "name"), _label),
    (("volumes", ""), _source),
    ((_EVERY, "", "name"), _label),
    ((_EVERY, ""), _image),
    (("initContainers", ""), _started_before),
    ((_EVERY, "", "imagePullPolicy"), _one_of("Always", "IfNotPresent", "Never")),
    ((_EVERY, "", "terminationMessagePolicy"), _one_of("FallbackToLogsOnError", "File")),
    ((_EVERY, "", "env", ""), _variable),
    ((_EVERY, "", "env", "", "valueFrom"), _value_from),
    ((_EVERY, "", _PROBES), _handler),
    ((_EVERY, "", "lifecycle", "postStart|preStop"), _handler),
    ((_EVERY, "", "resources", "limits|requests", ""), _amount),
    ((_EVERY, "", "resources"), _amounts),
)
"""The parts that are judged, each with its rule."""


# --- Parts that need another -------------------------------------------------------------------------------------


def _mounts(spec: Mapping[str, Any]) -> Iterator[Misfit]:
    names = {name for _, name in _parts(spec, ("volumes", "", "name")) if isinstance(name, str)}
    for route, name in _parts(spec, (_EVERY, "", "volumeMounts", "", "name")):
        if isinstance(name, str) and name not in names:
            yield Misfit(route, f"there is no volume `{name}`", f"add `{name}` to `volumes`, or name one of them")


def _twice(named: Iterator[tuple[Path, object]], thing: str) -> Iterator[Misfit]:
    """Names that one before has. Containers of both lists are told apart by them, and ports of one container."""
    seen: set[str] = set()
    for route, name in named:
        if isinstance(name, str) and name in seen:
            yield Misfit(route, f"another {thing} is `{name}`", "write another name")
        seen |= {name} if isinstance(name, str) else set()
