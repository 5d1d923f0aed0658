"""Checks on hand-written objects of Kueue and KAI-Scheduler (GPU637, GPU696, GPU697, GPU699, GPU881, GPU892)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product

from gpuplan.compiler.base.diagnostics import Finding, Origin, Path, Severity
from gpuplan.compiler.base.plain import inside, mapping, parts_with, sequence, text, value_at
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import misspelling
from gpuplan.compiler.checks.formats import Problem
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.checks.wording import mistyped, those_there_are
from gpuplan.compiler.manifests import parse_quantity
from gpuplan.compiler.planning import kai
from gpuplan.compiler.planning.hand_files import HandFiles, Object
from gpuplan.compiler.planning.kueue import cluster_queue, flavor_name, local_queues
from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.planning.schedulers.kai import QUEUE_LABEL as KAI_QUEUE_LABEL
from gpuplan.compiler.planning.schedulers.kueue import QUEUE_LABEL as KUEUE_QUEUE_LABEL
from gpuplan.compiler.planning.tree import circles

_KUEUE, _KAI = "kueue.x-k8s.io", "scheduling.run.ai"


def _of(files: HandFiles, group: str, *kinds: str) -> Iterator[Object]:
    return (found for found in files.of_kind(*kinds) if found.group == group)


# --- What admits nothing -----------------------------------------------------------------------------------------


@check("GPU637", "cluster-queue-for-no-namespace")
def cluster_queue_for_no_namespace(files: HandFiles) -> Iterator[Finding]:
    """A hand-written ClusterQueue has no `namespaceSelector`, and admits nothing.

    ## Why
    `namespaceSelector` "defaults to null which is a nothing selector (no namespaces eligible)"
    (`apis/kueue/v1beta2/clusterqueue_types.go` of kubernetes-sigs/kueue v0.19.2): the API server takes the object, its
    workloads stay inadmissible, and nothing else in it has an effect.

    ## Instead
    Write `namespaceSelector: {}` for all namespaces, or select those that may use the queue by their labels. A queue in
    a cohort lends its quota to the others, and may be meant for nothing else: there it is a note.
    """
    for found in _of(files, _KUEUE, "ClusterQueue"):
        spec = mapping(found.body.get("spec"))
        if not found.is_patch and spec.get("namespaceSelector") is None:
            yield Finding(
                found.place("spec", "namespaceSelector") if "namespaceSelector" in spec else found.place("spec").key,
                f"{found.title} admits nothing: it has no `namespaceSelector`",
                label="for no namespace",
                notes=("without a selector no namespace is eligible; an empty one selects all",),
                severity=Severity.NOTE if spec.get("cohortName") or spec.get("cohort") else None,
                help="select namespaces by their labels, or write `namespaceSelector: {}` for all",
            )


# --- What the webhooks refuse ------------------------------------------------------------------------------------


@check("GPU696", "quotas-refused-by-kueue")
def quotas_refused_by_kueue(files: HandFiles) -> Iterator[Finding]:
    """A hand-written ClusterQueue or Cohort has quotas that Kueue's webhook refuses.

    ## Why
    `pkg/webhooks/clusterqueue_webhook.go` of kubernetes-sigs/kueue v0.19.2 checks what no schema says: limits on
    borrowing and lending need a cohort to borrow from, no queue can lend more than it has, the resources of each flavor
    are those of `coveredResources` in their order, and a resource or a flavor is in one group only.

    ## Instead
    Correct it as the finding says, or describe the quotas in the policy.
    """
    for found in _of(files, _KUEUE, "ClusterQueue", "Cohort"):
        for problem in _quota_problems(found) if not found.is_patch else ():
            said = problem._replace(message=f"{problem.message} in {found.title}")
            yield said.finding(found.place("spec", *problem.route), "Kueue's webhook refuses the object as a whole")


def _quota_problems(queue: Object) -> Iterator[Problem]:
    spec = mapping(queue.body.get("spec"))
    is_cohort = queue.kind == "Cohort"
    parents = _PARENTS if is_cohort else ("cohortName", "cohort")
    has_parent = any(spec.get(field) for field in parents)
    parent = "cohort" if not is_cohort and queue.body.get("apiVersion") == f"{_KUEUE}/v1beta1" else parents[0]
    covered: dict[str, Path] = {}
    named: dict[str, Path] = {}
    for index, group in enumerate(map(mapping, sequence(spec.get("resourceGroups")))):
        route: Path = ("resourceGroups", index)
        resources = sequence(group.get("coveredResources"))
        for at, resource in enumerate(resources):
            yield from _twice(covered, text(resource), (*route, "coveredResources", at), "resource")
        for at, flavor in enumerate(map(mapping, sequence(group.get("flavors")))):
            place: Path = (*route, "flavors", at)
            yield from _twice(named, text(flavor.get("name")), (*place, "name"), "flavor")
            for number, quota in enumerate(map(mapping, sequence(flavor.get("resources")))):
                wanted = text(resources[number]) if number < len(resources) else ""
                problems = _cell_problems(quota, wanted, "" if has_parent else parent, is_cohort=is_cohort)
                yield from (item._replace(route=(*place, "resources", number, *item.route)) for item in problems)


def _twice(seen: dict[str, Path], name: str, route: Path, thing: str) -> Iterator[Problem]:
    if name and name in seen:
        yield Problem(route, f"{thing} `{name}` is there twice", "the second", "name it once, in one group")
    seen.setdefault(name, route)


def _cell_problems(quota: Mapping[str, object], wanted: str, missing: str, *, is_cohort: bool) -> Iterator[Problem]:
    """Yield the faults of a resource's quota, whose place is that of the resource ``wanted``.

    ``missing`` is the field that limits need and that is absent. A Cohort may lend more than its own quota, since it
    has what its members have as well.
    """
    name = text(quota.get("name"))
    if wanted and name and name != wanted:
        label, help_ = f"`{wanted}` is in this place of `coveredResources`", "list both in one order"
        yield Problem(("name",), f"`{name}` is not where `coveredResources` has it", label, help_)
    for field in ("borrowingLimit", "lendingLimit"):
        if missing and quota.get(field) is not None:
            help_ = f"add `{missing}`, or remove `{field}`"
            yield Problem((field,), f"`{field}` without a cohort", f"no `{missing}`", help_)
    lent, nominal = (parse_quantity(str(quota.get(field))) for field in ("lendingLimit", "nominalQuota"))
    if not (missing or is_cohort) and lent is not None and nominal is not None and lent > nominal:
        message = f"`lendingLimit` is more than the `nominalQuota` of {quota.get('nominalQuota')}"
        yield Problem(("lendingLimit",), message, "more than there is", "write the nominal quota or less")


@check("GPU699", "kai-queue-refused")
def kai_queue_refused(files: HandFiles) -> Iterator[Finding]:
    """A hand-written Queue of KAI-Scheduler has no `resources`.

    ## Why
    The schema calls them optional; the webhook refuses a Queue without them (`pkg/apis/scheduling/v2/queue_webhook.go`
    of NVIDIA/KAI-Scheduler v0.12.0).

    ## Instead
    Write the three resources; `quota: -1` and `limit: -1` mean without a bound.
    """
    for found in _of(files, _KAI, "Queue"):
        if not found.is_patch and value_at(found.body, ("spec", "resources")) is None:
            yield Finding(
                found.place("spec").key,
                f"{found.title} has no `resources`",
                label="refused by KAI-Scheduler's webhook",
                help="write `resources: {gpu: {quota: 1, limit: 1, overQuotaWeight: 1}}`, and `cpu` and `memory`",
            )


# --- Labels of work ----------------------------------------------------------------------------------------------

_READ_OF_JOB = (
    *(("batch", "Job"), ("jobset.x-k8s.io", "JobSet"), ("trainer.kubeflow.org", "TrainJob"), ("apps", "StatefulSet")),
    *(("ray.io", kind) for kind in ("RayCluster", "RayJob", "RayService")),
    *(("kubeflow.org", f"{kind}Job") for kind in ("JAX", "MPI", "Paddle", "PyTorch", "TF", "XGBoost")),
    *(("leaderworkerset.x-k8s.io", "LeaderWorkerSet"), ("sparkoperator.k8s.io", "SparkApplication")),
)
"""The kinds that Kueue queues as one (`pkg/controller/jobs` of kubernetes-sigs/kueue v0.19.2); pods go one by one."""


@check("GPU892", "queue-label-not-read", Severity.WARNING)
def queue_label_not_read(files: HandFiles) -> Iterator[Finding]:
    """Hand-written work names its queue where its scheduler does not look for it.

    ## Why
    Kueue reads the label `kueue.x-k8s.io/queue-name` of the Job, JobSet and so on itself (`QueueNameForObject` in
    `pkg/controller/jobframework/utils.go` of kubernetes-sigs/kueue v0.19.2). On the template of its pods it is read of
    each pod by itself, if at all: the pods are let in one by one, or past the queue. An annotation has not been read
    since v0.15. A CronJob makes Jobs, which have their labels from `spec.jobTemplate.metadata`. Pods of a Deployment
    are let in one by one anyway. KAI-Scheduler reads `kai.scheduler/queue` of the work or of its pods, as a label
    (`CalcPodGroupQueue` in `pkg/podgrouper/podgrouper/plugins/defaultgrouper` of NVIDIA/KAI-Scheduler v0.12.0).

    ## Instead
    Write the label in the object's own `metadata.labels`.
    """
    for work in files.objects:
        above: Path = ("spec", "jobTemplate") if (work.group, work.kind) == ("batch", "CronJob") else ()
        is_one = bool(above) or (work.group, work.kind) in _READ_OF_JOB
        every = parts_with(work.body, "labels", "annotations") if not work.is_patch else ()
        parts = [(route, part) for route, part in every if route[-1:] == ("metadata",)]
        labels = {key: route for route, part in parts for key in mapping(part.get("labels"))}
        is_labelled = KUEUE_QUEUE_LABEL in mapping(value_at(work.body, (*above, "metadata", "labels")))
        is_read = is_one or work.kind in ("Deployment", "Pod")
        for route, part in parts:
            annotations = mapping(part.get("annotations"))
            home = ".".join(map(str, (*above, "metadata", "labels")))
            for key, misread in ((KUEUE_QUEUE_LABEL, is_read and not is_labelled), (KAI_QUEUE_LABEL, True)):
                if key in annotations and misread and key not in labels:
                    yield _unread_queue(work, (*route, "annotations", key), home)
            if is_one and not is_labelled and KUEUE_QUEUE_LABEL in mapping(part.get("labels")):
                yield _unread_queue(work, (*route, "labels", KUEUE_QUEUE_LABEL), home)


def _unread_queue(work: Object, route: Path, home: str) -> Finding:
    is_kais = route[-1] == KAI_QUEUE_LABEL
    return Finding(
        work.place(*route).key,
        f"{'KAI-Scheduler' if is_kais else 'Kueue'} does not read the queue of {work.title} here",
        label="an annotation" if route[-2] == "annotations" else "not a label of the work itself",
        notes=(
            "the work goes to `default-queue`"
            if is_kais
            else "the work runs past its queue, or its pods wait for it one by one",
        ),
        help=f"move it to `{home}`",
    )


# --- Cohorts -----------------------------------------------------------------------------------------------------


@check("GPU881", "cohorts-in-a-circle")
def cohorts_in_a_circle(files: HandFiles) -> Iterator[Finding]:
    """Hand-written Cohorts are each other's parents, and nothing in them is admitted.

    ## Why
    No webhook refuses it. Kueue's scheduler passes over every ClusterQueue whose cohort, or one above, is in a circle
    (`skipInactiveCQReason` in `pkg/cache/scheduler/snapshot.go` and `pkg/cache/hierarchy/cycle.go` of
    kubernetes-sigs/kueue v0.19.2).

    ## Instead
    Let one of them have no `parentName`, or another one.
    """
    cohorts = {found.name: found for found in _of(files, _KUEUE, "Cohort") if not found.is_patch}
    parents = {name: text(inside(item.body, "spec").get(_parent_field(item))) for name, item in cohorts.items()}
    for circle in circles(parents):
        first = cohorts[circle[0]]
        way = " -> ".join(f"`{name}`" for name in (*circle, circle[0]))
        yield Finding(
            first.place("spec", _parent_field(first)),
            f"Cohorts are in a circle: {way}",
            label="its own parent, in the end",
            notes=("Kueue admits nothing in ClusterQueues of these cohorts, or of cohorts below them",),
            help="remove the parent of one of them, or name another one",
        )


def _parent_field(cohort: Object) -> str:
    return next((field for field in _PARENTS if inside(cohort.body, "spec").get(field)), _PARENTS[0])


_PARENTS = ("parentName", "parent")
"""In the order of Kueue's versions of the API, the newest first."""


# --- Names -------------------------------------------------------------------------------------------------------


class _Reference(NamedTuple):
    """A name that an object refers to another one by; ``namespace`` is empty for what is in none."""

    of: Object
    at: Origin
    kind: str
    name: str
    namespace: str = ""


@check("GPU697", "queue-refers-to-nothing", Severity.WARNING)
def queue_refers_to_nothing(files: HandFiles) -> Iterator[Finding]:
    """A hand-written queue, flavor or workload names an object of its scheduler that does not exist.

    ## Why
    A ClusterQueue with a flavor that is missing is inactive (`FlavorNotFound`) and admits nothing. A LocalQueue whose
    ClusterQueue does not exist takes no work (`ClusterQueueDoesNotExist`), and work in a queue that does not exist
    waits. KAI-Scheduler leaves out a Queue whose parent is missing, with all below it (`cleanQueueOrphans` in
    `pkg/scheduler/cache/cluster_info/queue.go`). Known is what gpuplan writes and what is written by hand here; a kind
    of which there is none is thought to be managed elsewhere.

    ## Instead
    Write a name that the finding lists, or add the object. gpuplan names flavors after pools, ClusterQueues after
    tenants, and Queues of KAI-Scheduler after both: `<tenant>-<pool>`.
    """
    plan = files.plan
    if plan is None or plan.broken.pools or plan.broken.tenants or plan.broken.incomplete_tenants:
        return
    known = _known(files, plan)
    for reference in _references(files):
        names = sorted(name for name, namespace in known.get(reference.kind, ()) if namespace == reference.namespace)
        is_managed_here = bool(known.get(reference.kind))
        if is_managed_here and reference.name not in names:
            where = f" in namespace `{reference.namespace}`" if reference.namespace else ""
            yield mistyped(
                reference.at,
                f"{reference.of.title} names {reference.kind} `{reference.name}`{where}, which does not exist",
                misspelling(reference.name, names),
                "does not exist",
                f"add a {reference.kind} `{reference.name}`, or name another one",
                *those_there_are(names),
            )


def _references(files: HandFiles) -> Iterator[_Reference]:
    for found in _of(files, _KUEUE, "ClusterQueue", "Cohort"):
        for index, group in enumerate(sequence(value_at(found.body, ("spec", "resourceGroups")))):
            for at, flavor in enumerate(sequence(mapping(group).get("flavors"))):
                place = found.place("spec", "resourceGroups", index, "flavors", at, "name")
                yield _Reference(found, place, "ResourceFlavor", text(mapping(flavor).get("name")))
    yield from _named(_of(files, _KUEUE, "ResourceFlavor"), ("spec", "topologyName"), "Topology")
    yield from _named(_of(files, _KUEUE, "LocalQueue"), ("spec", "clusterQueue"), "ClusterQueue")
    yield from _named(_of(files, _KAI, "Queue"), ("spec", "parentQueue"), "Queue")
    # Work names queues and classes in labels, its own or those of its pods.
    for work, route in product(files.objects, (("metadata", "labels"), ("spec", "template", "metadata", "labels"))):
        labels, namespace = mapping(value_at(work.body, route)), text(work.metadata.get("namespace"))
        for key, kind in _LABELS.items():
            name, is_local = text(labels.get(key)), kind == "LocalQueue"
            if name and (namespace or not is_local):
                yield _Reference(work, work.place(*route, key), kind, name, namespace if is_local else "")


def _named(objects: Iterable[Object], route: tuple[str, ...], kind: str) -> Iterator[_Reference]:
    for found in objects:
        if name := text(value_at(found.body, route)):
            yield _Reference(found, found.place(*route), kind, name)


_LABELS = {
    KUEUE_QUEUE_LABEL: "LocalQueue",
    "kueue.x-k8s.io/priority-class": "WorkloadPriorityClass",
    KAI_QUEUE_LABEL: "Queue",
}


def _known(files: HandFiles, plan: Plan) -> dict[str, set[tuple[str, str]]]:
    """The names that there are of each kind, with their namespaces."""
    known: dict[str, set[tuple[str, str]]] = {}
    for group, kinds in _KINDS.items():
        for found in _of(files, group, *kinds):
            namespace = text(found.metadata.get("namespace")) if found.kind == "LocalQueue" else ""
            known.setdefault(found.kind, set()).add((found.name, namespace))
    for kind, names in _generated(plan).items():
        known.setdefault(kind, set()).update(names)
    return {kind: names for kind, names in known.items() if names}


_KINDS = {
    _KUEUE: ("ResourceFlavor", "Topology", "ClusterQueue", "LocalQueue", "WorkloadPriorityClass"),
    _KAI: ("Queue",),
}


_OF_KAI_CHART = ("default-parent-queue", "default-queue")
"""The queues of KAI-Scheduler's chart by default (`deployments/kai-scheduler/templates/default-queue.yaml`)."""


def _generated(plan: Plan) -> dict[str, set[tuple[str, str]]]:
    if plan.scheduler.has_queues_by_pool:
        return {"Queue": {(name, "") for name in (*_OF_KAI_CHART, *(queue.name for queue in kai.queues(plan)))}}
    if plan.scheduler.has_queues_for_all_pools:
        return {
            "ResourceFlavor": {(flavor_name(pool), "") for pool in plan.pools},
            "Topology": {(pool.name, "") for pool in plan.pools if pool.spec.topology},
            "ClusterQueue": {(cluster_queue(tenant), "") for tenant in plan.tenants},
            "LocalQueue": {
                (queue, name)
                for tenant in plan.tenants
                for name in tenant.spec.namespaces
                for queue in local_queues(tenant)
            },
            "WorkloadPriorityClass": {(item.name, "") for item in plan.priority_classes},
        }
    return {}
