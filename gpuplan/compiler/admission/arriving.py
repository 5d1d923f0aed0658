"""Find what arrives at the API server of an object with pods: itself, and the pods that controllers make of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from gpuplan.compiler.base.plain import sequence
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.catalog.frameworks import frameworks
from gpuplan.compiler.manifests import parse_quantity, quantity
from gpuplan.compiler.planning.grants import GRACE_SECONDS
from gpuplan.compiler.planning.kueue import ADMISSION_GATE, frameworks as known_to
from gpuplan.compiler.planning.plan import POOL_LABEL, Plan, Tenant
from gpuplan.compiler.planning.schedulers.kai import CLASS_LABEL, OWN_CLASSES, QUEUE_LABEL
from gpuplan.compiler.planning.schedulers.kubernetes import DEFAULT_SCHEDULER

Route = tuple[str | int, ...]
Body = Mapping[str, Any]


class Arrival(Value):
    """An object as policies see it, and the route in its maker to what it was made of.

    ``sources`` are the routes in the maker of the object's parts, where it has another shape. One ``is_flat`` where
    what is in the `metadata` and the `spec` of a pod is side by side there.
    """

    body: Body
    route: Route
    sources: Mapping[Route, Route] | None = None
    is_flat: bool = False

    def source(self, route: Route) -> Route:
        """Return where the maker says a part. The route is empty if the maker does not."""
        if self.sources is not None:
            return self.sources.get(route, ())
        return (*self.route, *(route[1:] if self.is_flat else route))


_OWNERS: Final[Mapping[tuple[str, str], tuple[str, str]]] = {
    ("apps", "Deployment"): ("apps/v1", "ReplicaSet"),
    ("batch", "CronJob"): ("batch/v1", "Job"),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): ("apps/v1", "StatefulSet"),
    ("serving.kserve.io", "InferenceService"): ("apps/v1", "ReplicaSet"),
    ("trainer.kubeflow.org", "TrainingRuntime"): ("batch/v1", "Job"),
}
"""The owners of pods by the kind of work, beside what Kueue's table says of kinds that make others."""


def arrivals(plan: Plan, body: Body, values: Mapping[str, int], tenant: Tenant | None = None) -> Iterator[Arrival]:
    """Yield an object itself, and a pod of each of its templates. ``values`` are those of further priority classes.

    Kueue starts what a ``tenant`` has made in pools of that tenant.

    What has a `spec` with containers is taken for a template, in kinds of anybody. Pods that the API server itself
    refuses do not arrive at policies.
    """
    group, kind = body.get("apiVersion", "").rpartition("/")[0], body.get("kind", "")
    classes = {**{found.name: found.spec.value for found in plan.priority_classes}, **values}
    if (group, kind) == ("", "Pod"):
        pod = _pod(plan, body, None, classes)
        yield Arrival(pod, ())
        yield from _pod_groups(plan, {}, (), pod)
        return
    yield Arrival(body, ())
    owner = _owner(body.get("apiVersion", ""), kind)
    for route, template in templates(body):
        pod = _pod(plan, {**template, "apiVersion": "v1", "kind": "Pod"}, owner, classes, tenant)
        if all(map(_is_valid, sequence(pod["spec"].get("containers")))):
            yield Arrival(pod, route)
            yield from _pod_groups(plan, body, route, pod)
    # The parts of an InferenceService of KServe have containers without a `spec` around them. Labels and
    # annotations are those of the object and of the part (`buildObjectMeta` in
    # `pkg/controller/v1beta1/inferenceservice/components/predictor.go` there). Containers that KServe makes
    # itself, of a model and its runtime, are not known here.
    if body.get("kind") != "InferenceService" or not str(body.get("apiVersion")).startswith("serving.kserve.io/"):
        return
    own = _map(body.get("metadata"))
    for name in _COMPONENTS:
        part = _map(_map(body.get("spec")).get(name))
        if not isinstance(part.get("containers"), list):
            continue
        marks = {field: {**_map(own.get(field)), **_map(part.get(field))} for field in _MARKS}
        spec = {key: value for key, value in part.items() if key not in _OF_COMPONENTS}
        pod = _pod(plan, {"apiVersion": "v1", "kind": "Pod", "metadata": marks, "spec": spec}, owner, classes, tenant)
        if all(map(_is_valid, sequence(pod["spec"].get("containers")))):
            yield Arrival(pod, ("spec", name), is_flat=True)


_COMPONENTS: Final = ("predictor", "transformer", "explainer")

_MARKS: Final = ("labels", "annotations")
_OF_COMPONENTS: Final = (
    *("minReplicas", "maxReplicas", "scaleTarget", "scaleMetric", "scaleMetricType", "autoScaling", "timeout"),
    *("containerConcurrency", "canaryTrafficPercent", "logger", "batcher", "deploymentStrategy", *_MARKS),
)
"""The fields of parts beside those of pods (`ComponentExtensionSpec` in `pkg/apis/serving/v1beta1/component.go`)."""


def _owner(api: str, kind: str) -> tuple[str, str]:
    """Return version and kind of what the pods of an object name as their controller."""
    group = api.rpartition("/")[0]
    known = frameworks().get(kind)
    if known and known.group == group and known.makes and not known.owns_pods:
        made = frameworks()[known.makes[0]]
        return _owner(made.api, made.kind)
    return _OWNERS.get((group, kind), (api, kind))


def templates(body: Body) -> Iterator[tuple[Route, Body]]:
    left: list[tuple[Route, object]] = [(("spec",), body.get("spec"))]
    seen: set[int] = set()
    while left:
        route, part = left.pop(0)
        if id(part) in seen:  # an alias may have a part in many places, in itself as well
            continue
        seen.add(id(part))
        if isinstance(part, Mapping) and isinstance(_map(part.get("spec")).get("containers"), list):
            yield route, part
            continue
        left += [((*route, key), item) for key, item in _items(part)]


def _items(part: object) -> Iterable[tuple[str | int, object]]:
    return part.items() if isinstance(part, Mapping) else enumerate(part) if isinstance(part, list) else ()


# --- Pods ------------------------------------------------------------------------------------------------------------


def _pod(
    plan: Plan, body: Body, owner: tuple[str, str] | None, classes: Mapping[str, int], tenant: Tenant | None = None
) -> Body:
    """Return a pod with the API server's defaults, and what webhooks and admission plugins add before policies look."""
    metadata, spec = _map(body.get("metadata")), _map(body.get("spec"))
    if owner is not None:
        version, kind = owner
        metadata = {**metadata, "ownerReferences": [{"apiVersion": version, "kind": kind, "controller": True}]}
    spec = {"schedulerName": DEFAULT_SCHEDULER, "terminationGracePeriodSeconds": GRACE_SECONDS, **spec}
    for field in ("containers", "initContainers"):
        if isinstance(spec.get(field), list):
            spec[field] = [_container(item) for item in spec[field]]
    spec |= _priority(plan, spec, classes)
    # Kueue does not gate pods whose owner it has held back.
    held = {(framework.api, framework.kind) for framework in known_to(plan.cluster) if framework.owns_pods}
    if plan.scheduler.suspends_jobs and owner not in held:
        spec["schedulingGates"] = [*sequence(spec.get("schedulingGates")), {"name": ADMISSION_GATE}]
    elif plan.scheduler.suspends_jobs and tenant is not None:
        spec["nodeSelector"] = _selector_of_flavor(spec, tenant)
    return {**body, "metadata": metadata, "spec": spec}


def _selector_of_flavor(spec: Body, tenant: Tenant) -> Body:
    """Return a pod's node selector once Kueue has started its owner, in the first pool that has what it asks for.

    Kueue writes the labels of the flavor into the owner's template, those of a pool of gpuplan among them
    (`FromAssignment` in `pkg/podset/podset.go`).
    """
    selector = _map(spec.get("nodeSelector"))
    if POOL_LABEL in selector or POOL_LABEL in str(spec.get("affinity")):
        return selector
    limits = (_map(_map(_map(item).get("resources")).get("limits")) for item in sequence(spec.get("containers")))
    asked = {resource for found in limits for resource in found}
    pool = next((quota.pool.name for quota in tenant.quotas if quota.unit.resource in asked), None)
    return selector if pool is None else {**selector, POOL_LABEL: pool}


def _priority(plan: Plan, spec: Body, classes: Mapping[str, int]) -> Body:
    """Return the number of a pod's class, or that of the default class if it names none.

    That of a class which is nowhere in the files is not known; it is taken for one that gives no power over others.
    """
    default = next((found for found in plan.priority_classes if found.spec.default), None)
    usual = default.spec.value if default else 0
    if name := spec.get("priorityClassName"):
        return {"priority": classes.get(name, usual) if isinstance(name, str) else usual}
    return {"priority": usual, **({"priorityClassName": default.name} if default else {})}


def _container(container: object) -> object:
    """Return a container with canonical limits and requests. Its limit is also the request if it has none."""
    if not isinstance(container, Mapping) or not isinstance(container.get("resources"), Mapping):
        return container
    resources = dict(container["resources"])
    limits, requests = _map(resources.get("limits")), _map(resources.get("requests"))
    for field, amounts in (("limits", limits), ("requests", {**limits, **requests})):
        if amounts:
            resources[field] = {name: _canonical(amount) for name, amount in amounts.items()}
    return {**container, "resources": resources}


def _is_valid(container: object) -> bool:
    """Whether extended resources have equal limits and requests."""
    resources = _map(_map(container).get("resources"))
    limits, requests = _map(resources.get("limits")), _map(resources.get("requests"))
    return all(limits.get(name) == amount for name, amount in requests.items() if "/" in name)


def _canonical(amount: object) -> object:
    parsed = parse_quantity(str(amount))
    return amount if parsed is None else quantity(int(parsed) if parsed == int(parsed) else parsed)


def _map(value: object) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}


# --- What KAI-Scheduler makes of pods --------------------------------------------------------------------------------


def _pod_groups(plan: Plan, owner: Body, template: Route, pod: Body) -> Iterator[Arrival]:
    """Yield the PodGroup that the pod grouper makes of a pod. Labels of its owner come first.

    (`CalcPodGroupQueue` and `calcPodGroupPriorityClass` in `pkg/podgrouper/podgrouper/plugins/defaultgrouper/
    default_grouper.go` of KAI-Scheduler.) A pod without a queue is in one that no tenant has, one without a class has
    one of the scheduler's own.
    """
    spec = pod["spec"]
    if not plan.scheduler.has_queues_by_pool or spec["schedulerName"] == DEFAULT_SCHEDULER:
        return
    labels: dict[str, tuple[Route, object]] = {
        key: ((*route, "metadata", "labels", key), text)
        for part, route in ((pod, template), (owner, ()))
        for key, text in _map(_map(part.get("metadata")).get("labels")).items()
    }
    queue_at, queue = labels.get(QUEUE_LABEL, ((), "default-queue"))
    named = spec.get("priorityClassName")
    class_at, priority = labels.get(
        CLASS_LABEL, ((*template, "spec", "priorityClassName"), named) if named else ((), next(iter(OWN_CLASSES)))
    )
    body = {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {},
        "spec": {"queue": queue, "priorityClassName": priority},
    }
    # Every group is in a queue: what cannot be taken away is that it is in this one.
    yield Arrival(body, template, {(): queue_at, ("spec", "priorityClassName"): class_at})


# --- The part that is to blame ---------------------------------------------------------------------------------------

_MOST_PARTS: Final = 300


def blamed(body: Body, is_refused: Callable[[Body], object]) -> list[Route]:
    """Return the smallest part without which an object passes, in each container that is refused by itself.

    It is the empty route if something is missing.
    """
    spec = _map(body.get("spec"))
    none: Body = {**spec, "containers": [], "initContainers": []}
    each = [
        (field, index, {**body, "spec": {**none, field: [container]}})
        for field in _CONTAINERS
        for index, container in enumerate(sequence(spec.get(field)))
    ]
    routes = [
        (*_CONTAINERS[field], index, *route[3:])
        for field, index, alone in each
        if is_refused(alone) and _smallest(alone, is_refused)[:2] == _CONTAINERS[field]
        for route in _narrowed(alone, _smallest(alone, is_refused), is_refused)
    ]
    return routes or _narrowed(body, _smallest(body, is_refused), is_refused)


def _narrowed(body: Body, route: Route, is_refused: Callable[[Body], object]) -> list[Route]:
    """Return each entry of a list, of labels or of annotations that is refused by itself, or the whole."""
    part: Any = body
    for key in route:
        part = part[key]
    keys = [key for key, _ in _items(part)] if isinstance(part, list) or route[-2:-1] == ("metadata",) else []
    alone = [key for key in keys if is_refused(without(body, [(*route, other) for other in keys if other != key]))]
    return [(*route, key) for key in alone] or [route]


_CONTAINERS: Final[Mapping[str, Route]] = {name: ("spec", name) for name in ("containers", "initContainers")}


def _smallest(body: Body, is_refused: Callable[[Body], object]) -> Route:
    found: Route = ()
    for route in _routes(body):
        if len(route) > len(found) and not is_refused(_without(body, route)):
            found = route
    return found


def without(body: Body, routes: Iterable[Route]) -> Body:
    """Return an object without some of its parts."""

    def order(route: Route) -> list[str]:
        return [f"{part:09}" if isinstance(part, int) else part for part in route]

    for route in sorted(filter(None, routes), key=order, reverse=True):
        body = _without(body, route)
    return body


def _routes(body: Body) -> list[Route]:
    """Return the routes to all parts of an object that people write, less what says which object it is."""
    found: list[Route] = []
    left: list[tuple[Route, object]] = [((key,), body[key]) for key in ("metadata", "spec") if key in body]
    while left and len(found) < _MOST_PARTS:
        route, part = left.pop(0)
        found.append(route)
        left += [((*route, key), item) for key, item in _items(part)]
    return found


def _without(part: Any, route: Route) -> Any:  # noqa: ANN401 - any part of an object
    first, rest = route[0], route[1:]
    items = ((key, _without(item, rest) if rest and key == first else item) for key, item in _items(part))
    kept = {key: item for key, item in items if rest or key != first}
    return kept if isinstance(part, Mapping) else list(kept.values())
