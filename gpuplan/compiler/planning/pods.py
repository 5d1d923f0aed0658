"""The pods of workloads: their containers and volumes, the CPU and memory that they ask for, how many a node takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, Final

from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.plain import items, mapping, mappings, section
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.manifests import exact_quantity, quantity
from gpuplan.compiler.manifests.selectors import matches
from gpuplan.compiler.planning.amounts import amount_of, amount_text, compute_cap, per_node
from gpuplan.compiler.planning.discovered import HOST_LABEL
from gpuplan.compiler.planning.plan import (
    MAIN_CONTAINER,
    TENANT_LABEL,
    WORKLOAD_LABEL,
    Amount,
    Counted,
    Pool,
    Tenant,
    Workload,
)
from gpuplan.compiler.planning.schedulers import SchedulerTraits
from gpuplan.compiler.planning.serving import is_called
from gpuplan.compiler.planning.tenants import amount
from gpuplan.compiler.policy.models import Checkpoint, ContainerDefaults, ModelVolume, Storage, Training


class Defaults(NamedTuple):
    """A tenant's defaults for containers, in millicores or bytes, or None if the tenant states none.

    ``request`` is as much as ``limit`` where ``request_field`` says so; ``ratio`` is how many times its request a
    container's limit may be.
    """

    at: Origin
    counted: Counted
    request: int | None
    limit: int | None
    ratio: Amount | None
    request_field: str

    @property
    def stated(self) -> tuple[Origin, ...]:
        """The fields that the tenant writes."""
        fields = {"request": self.request, "limit": self.limit, "maxRatio": self.ratio}
        names = [name for name, value in fields.items() if value is not None]
        return tuple(self.at / name for name in names if name != "request" or self.request_field == name)


def defaults_of(tenant: Tenant) -> Mapping[Counted, Defaults]:
    """Return the defaults for CPU and for memory, also if the tenant states none."""
    stated, found = tenant.spec.containers, {}
    for counted, written in ((Counted.CPU, stated.cpu), (Counted.MEMORY, stated.memory)):
        spec = written or ContainerDefaults()
        request = spec.request if spec.request is not None else spec.limit
        found[counted] = Defaults(
            at=tenant.at / "containers" / counted.value,
            counted=counted,
            request=None if request is None else amount_of(counted, request),
            limit=None if spec.limit is None else amount_of(counted, spec.limit),
            ratio=None if spec.max_ratio is None else amount(spec.max_ratio),
            request_field="limit" if spec.request is None else "request",
        )
    return found


# --- What is written for them ------------------------------------------------------------------------------------

DEFAULT_REQUESTS: Final = {Counted.CPU: "100m", Counted.MEMORY: "128Mi"}
"""The small request of containers that state none and have no default."""


def compute_caps(tenant: Tenant, namespace: str, scheduler: SchedulerTraits) -> Mapping[Counted, int]:
    """Return the caps on CPU, memory and pods in a ResourceQuota, or none if queues count them.

    Beside a queue they would also hold for pods on other nodes. They need defaults for containers that say nothing,
    which Kueue takes before it looks at limits: work that states limits alone would count as next to nothing there
    (`AdjustResources` in `pkg/workload/resources.go` of Kueue 0.19).
    """
    if scheduler.counts_tenants:
        return {}
    caps = {counted: compute_cap(tenant.quotas, namespace, counted) for counted in Counted}
    return {counted: cap for counted, cap in caps.items() if cap is not None}


def container_limits(tenant: Tenant, namespace: str, scheduler: SchedulerTraits) -> Mapping[str, Mapping[str, str]]:
    """Return a LimitRange's values for containers: those of the tenant, and defaults that the ResourceQuota needs.

    It would refuse pods with containers that say nothing of what it counts (`Constraints` in
    `pkg/quota/v1/evaluator/core/pods.go` of kubernetes/kubernetes). A container that has a limit asks for as much,
    whatever stands here. A request that is left out is written all the same, so that the file shows what holds: the API
    server fills it in from the limit (`SetDefaults_LimitRangeItem` in `pkg/apis/core/v1/defaults.go` there).
    """
    capped = compute_caps(tenant, namespace, scheduler)
    limits: dict[str, dict[str, str]] = {"default": {}, "defaultRequest": {}, "maxLimitRequestRatio": {}}
    for counted, found in defaults_of(tenant).items():
        if found.limit is not None:
            limits["default"][counted.value] = amount_text(counted, found.limit)
        if found.request is not None:
            limits["defaultRequest"][counted.value] = amount_text(counted, found.request)
        elif counted in capped:
            limits["defaultRequest"][counted.value] = DEFAULT_REQUESTS[counted]
        if found.ratio is not None:
            limits["maxLimitRequestRatio"][counted.value] = quantity(found.ratio)
    return {field: amounts for field, amounts in limits.items() if amounts}


INIT_CONTAINERS: Final = "initContainers"
_LISTS: Final = (INIT_CONTAINERS, "containers")


class PatchedContainer(NamedTuple):
    """A container in a patch. One that ``is_init`` starts before others, and may go on beside them."""

    at: Origin
    name: str
    body: Mapping[str, Any]
    is_init: bool

    @property
    def is_added(self) -> bool:
        """Whether the policy says nothing else of it."""
        return self.name != MAIN_CONTAINER

    @property
    def goes_on(self) -> bool:
        return not self.is_init or self.body.get("restartPolicy") == "Always"


def patched_containers(workload: Workload) -> Iterator[PatchedContainer]:
    """Yield the containers of a patch in the order in which a pod starts them."""
    for field in _LISTS:
        for index, item in enumerate(items(section(workload.pod_patch, "spec").get(field))):
            body: Mapping[str, Any] = mapping(item)
            if isinstance(body.get("name"), str) and "$patch" not in body:
                at = workload.patch_at / ("spec", field, index)
                yield PatchedContainer(at, body["name"], body, field == INIT_CONTAINERS)


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
    """Return the request of each container, its own or its tenant's default, in the order in which a pod starts them.

    A limit is a request if there is none beside it. Checks report what is no amount, or a negative one.
    """
    text = workload.spec.cpu if counted is Counted.CPU else workload.spec.memory
    default = defaults_of(workload.tenant)[counted]
    usual = [] if default.request is None else [(default.at / default.request_field, default.request)]
    requests = []
    for container in patched_containers(workload):
        stated = []
        for kind in ("requests", "limits") if container.is_added else ():
            value = section(container.body, "resources", kind).get(counted.value)
            quantity = exact_quantity(str(value))
            if quantity is not None and quantity >= 0:
                at = container.at / "resources" / (kind, counted.value)
                stated.append((at, amount_of(counted, str(value))))
        for at, asked in (stated or usual)[:1] if container.is_added else ():
            requests.append(Request(at, container.name, asked, container.is_init, container.goes_on))
    for at, asked in [(workload.at / counted.value, amount_of(counted, text))] if text else usual:
        requests.append(Request(at, "", asked))
    return tuple(requests)


def asked_by_pod(workload: Workload, counted: Counted) -> int | None:
    """Return the sum that a pod counts as, or None if no container has a request.

    All that run together are added up, and an init container asks for itself and those before it that go on
    (`AggregateContainerRequests` in `resource/helpers.go` of kubernetes/component-helpers).
    """
    requests = requests_of(workload, counted)
    if not requests:
        return None
    most = going_on = 0
    for request in requests:
        if not request.goes_on:
            most = max(most, going_on + request.amount)
        elif request.is_init:
            going_on += request.amount
    return max(most, sum(request.amount for request in requests if request.goes_on))


def silent_containers(workload: Workload, counted: Counted) -> tuple[PatchedContainer, ...]:
    """Return added containers that run beside the main one and have no known request."""
    asking = {request.container for request in requests_of(workload, counted)}
    added = (found for found in patched_containers(workload) if found.is_added and found.goes_on)
    return tuple(found for found in added if found.name not in asking)


def asked_by_main(workload: Workload, counted: Counted) -> Request | None:
    """Return the request of the container that the policy describes, or None."""
    return next((request for request in requests_of(workload, counted) if not request.container), None)


class Volume(NamedTuple):
    """A volume by the name that pods know it by; ``example`` is where it could be mounted."""

    name: str
    at: Origin
    spec: ModelVolume | Checkpoint | Storage
    example: str

    def claim(self, workload: Workload) -> str:
        """Return the name of its claim, which outlasts the work."""
        return f"{workload.name}-{self.name}"


def model_of(workload: Workload) -> Volume | None:
    """Return the volume that holds a model, or None."""
    spec = workload.spec.model
    return Volume("model", workload.at / "model", spec, "/models") if spec else None


def checkpoint_of(workload: Workload) -> Volume | None:
    """Return the volume of a training's checkpoints, or None."""
    spec = workload.work.checkpoint if isinstance(workload.work, Training) else None
    return Volume("checkpoint", workload.work_at / "checkpoint", spec, "/checkpoints") if spec else None


def storage_of(workload: Workload) -> Volume | None:
    """Return the volume of a workspace, or None."""
    spec = workload.storage
    return Volume("storage", workload.work_at / "storage", spec, "/work") if spec else None


def volumes_of(workload: Workload) -> Iterator[Volume]:
    """Yield all volumes of a workload."""
    return (found for found in (model_of(workload), checkpoint_of(workload), storage_of(workload)) if found)


class Short(StrEnum):
    """The thing that a node runs out of first."""

    UNITS = "units"
    CPU = "cpu"
    MEMORY = "memory"
    PLACES = "places"
    """Pods that may not share a node, by a port of it or by their affinity."""


class Room(NamedTuple):
    """A number of pods, and the thing that is missing for one more."""

    pods: int
    short: Short


def room_on_node(workload: Workload, part: Pool) -> Room:
    """Return the room on an empty node of a pool or of a part of a pool."""
    unit, pods = part.find_unit(workload.unit.name), 0
    if unit is not None and workload.fraction is not None:
        pods = workload.fraction.per_gpu * part.nodes.gpus_per_node
    elif unit is not None:
        pods = unit.per_node // workload.spec.count
    rooms = [Room(pods, Short.UNITS)]
    for counted, short in ((Counted.CPU, Short.CPU), (Counted.MEMORY, Short.MEMORY)):
        has, asked = per_node(part.nodes, counted), asked_by_pod(workload, counted)
        if has is not None and asked:
            rooms.append(Room(has // asked, short))
    if is_apart(workload):
        rooms.append(Room(1, Short.PLACES))
    return min(rooms, key=lambda room: room.pods)


# --- Pods that may not share a node ------------------------------------------------------------------------------


def is_apart(workload: Workload) -> bool:
    """Whether the workload's patch keeps a second of its pods off a node."""
    spec = section(workload.pod_patch, "spec")
    # In the node's network every port of a container is a port of the node (`SetDefaults_PodSpec` of Kubernetes).
    containers = patched_containers(workload)
    ports = [mapping(port) for container in containers for port in items(container.body.get("ports"))]
    listens = bool(ports) or is_called(workload.work)
    takes_ports = any(port.get("hostPort") for port in ports) or (spec.get("hostNetwork") is True and listens)
    return takes_ports or _keeps_off_itself(workload, spec)


def _keeps_off_itself(workload: Workload, spec: Mapping[str, Any]) -> bool:
    """Whether anti-affinity keeps its pods off each other's nodes. A term without a selector chooses no pods."""
    labels = {
        **section(workload.pod_patch, "metadata", "labels"),
        TENANT_LABEL: workload.tenant.name,
        WORKLOAD_LABEL: workload.name,
    }
    affinity = section(spec, "affinity", "podAntiAffinity")
    for term in mappings(affinity.get("requiredDuringSchedulingIgnoredDuringExecution")):
        selector, is_here = term.get("labelSelector"), "namespaces" not in term and "namespaceSelector" not in term
        is_meant = is_here and isinstance(selector, Mapping) and matches(selector, labels) is True
        if is_meant and term.get("topologyKey") == HOST_LABEL:
            return True
    return False
