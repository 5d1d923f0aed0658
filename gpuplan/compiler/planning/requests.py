"""What the pods of workloads ask for of CPU and memory, further containers included."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.manifests import exact_quantity
from gpuplan.compiler.planning.amounts import amount_of
from gpuplan.compiler.planning.containers import defaults_of
from gpuplan.compiler.planning.plan import Counted, Workload
from gpuplan.compiler.planning.pod_patches import PatchedContainer, mapping, patched_containers

OF_NODES: Final = (Counted.CPU, Counted.MEMORY)


class Request(NamedTuple):
    """Millicores or bytes that a container asks for, and where the policy says so.

    ``container`` is its name, empty for the one that the policy describes. An init container that does not go on has
    ended when the next one starts.
    """

    at: Origin
    container: str
    amount: int
    is_init: bool = False
    goes_on: bool = True


def requests_of(workload: Workload, counted: Counted) -> tuple[Request, ...]:
    """What each container asks for, by itself or by its tenant's default; those that say nothing are not there."""
    return tuple(_requests(workload, counted))


def asked_by_pod(workload: Workload, counted: Counted) -> int | None:
    """What a pod counts as; None where nobody says anything.

    All that run together are added up, and an init container asks for itself and those before it that go on
    (`AggregateContainerRequests` in `resource/helpers.go` of kubernetes/component-helpers).
    """
    found = requests_of(workload, counted)
    return _together(found) if found else None


def _together(found: tuple[Request, ...]) -> int:
    most = going_on = 0
    for request in found:
        if not request.goes_on:
            most = max(most, going_on + request.amount)
        elif request.is_init:
            going_on += request.amount
    return max(most, sum(request.amount for request in found if request.goes_on))


def silent_containers(workload: Workload, counted: Counted) -> tuple[PatchedContainer, ...]:
    """Those that a workload adds, that go on beside the main one, and that no request is known of."""
    asking = {request.container for request in _requests(workload, counted)}
    added = (found for found in patched_containers(workload) if found.is_added and found.goes_on)
    return tuple(found for found in added if found.name not in asking)


def asked_by_main(workload: Workload, counted: Counted) -> Request | None:
    """What the container asks for that the policy describes."""
    return next((found for found in _requests(workload, counted) if not found.container), None)


def _requests(workload: Workload, counted: Counted) -> Iterator[Request]:
    """In the order in which a pod starts them, init containers first."""
    text = workload.spec.cpu if counted is Counted.CPU else workload.spec.memory
    default = defaults_of(workload.tenant)[counted]
    for container in patched_containers(workload):
        if container.is_added:
            resources = mapping(container.body.get("resources"))
            said = next((found for kind in ("requests", "limits") if (found := _said(resources, kind, counted))), None)
            if said is not None:
                route, written = said
                yield _request(container, container.at / "resources" / route, amount_of(counted, written))
            elif default.request is not None:
                yield _request(container, default.at / default.request_field, default.request)
    if text:
        yield Request(workload.at / counted.value, "", amount_of(counted, text))
    elif default.request is not None:
        yield Request(default.at / default.request_field, "", default.request)


def _request(container: PatchedContainer, at: Origin, amount: int) -> Request:
    return Request(at, container.name, amount, container.is_init, container.goes_on)


def _said(resources: Mapping[str, Any], kind: str, counted: Counted) -> tuple[tuple[str, str], str] | None:
    """A limit is a request where there is none beside it. What is no amount, or less than none, is found by a check."""
    value = mapping(resources.get(kind)).get(counted.value)
    text = str(value) if isinstance(value, str | int | float) else ""
    amount = exact_quantity(text)
    return None if amount is None or amount < 0 else ((kind, counted.value), text)
