"""The effects of changes of tenants, their priority classes and their workloads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final

from gpuplan.compiler.base.disturbance import ChangeClass, worst
from gpuplan.compiler.base.plain import grouped
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import count, joined
from gpuplan.compiler.manifests import Identity
from gpuplan.compiler.manifests.quantities import parse_quantity
from gpuplan.compiler.planning.amounts import amount_text
from gpuplan.compiler.planning.apis import needed_api
from gpuplan.compiler.planning.kai import queue_of
from gpuplan.compiler.planning.kueue import cluster_queue, has_queue, local_queue
from gpuplan.compiler.planning.plan import Amount, Plan, PriorityClass, Quota, Stage, Tenant, Workload
from gpuplan.compiler.planning.pods import Defaults, Volume, defaults_of, volumes_of
from gpuplan.compiler.planning.preemption import evicts_within
from gpuplan.compiler.planning.projects import times_of
from gpuplan.compiler.planning.serving import Taking, autoscaler_kind, is_called, routed, takings, way_to
from gpuplan.compiler.planning.subjects import subject_of
from gpuplan.compiler.policy import models
from gpuplan.compiler.policy.walking import changed_fields
from gpuplan.features.changes import enforcing
from gpuplan.features.changes.fields import changes_by_row
from gpuplan.features.changes.hand_written import folder_of
from gpuplan.features.changes.model import (
    NOTHING_RUNS,
    OTHER_WAY_ROUND,
    REVERT,
    Change,
    GrantChange,
    ObjectChange,
    amount,
    deletion,
    fate_of_queues,
    from_to,
    names,
    of,
)
from gpuplan.features.changes.nodes import grants, pods_of, quotas
from gpuplan.features.changes.step import Step, changes_of, successors


def tenant_changes(step: Step) -> Iterator[Change]:
    return changes_of(step, step.tenants, _added, _removed, _changed)


def _added(step: Step, tenant: Tenant) -> Iterator[Change]:
    where = f" with the namespaces {names(tenant.spec.namespaces)}" if tenant.spec.namespaces else ""
    yield Change(
        *of(step.after, tenant),
        ChangeClass.QUOTA,
        f"tenant is added{where}",
        f"its namespaces and quotas are made; {NOTHING_RUNS}",
        _STAY if tenant.spec.namespaces else REVERT,
        grants=grants(None, tenant, {}),
    )


_STAY: Final = "reverting leaves its namespaces in the cluster, with what is in them, until a person deletes them"


def _removed(step: Step, tenant: Tenant) -> Iterator[Change]:
    spaces = tenant.spec.namespaces
    where = f"the namespaces {names(spaces)} leave the policy, and stay until a person deletes them" if spaces else ""
    scheduler = step.before.scheduler
    held = f"; its queues {fate_of_queues(scheduler)}" if scheduler.has_queues else ""
    yield Change(
        *of(step.before, tenant),
        ChangeClass.DESTRUCTIVE,
        "tenant is removed",
        f"{where or 'its quotas leave the policy'}{held}",
        "reverting brings namespaces and quotas back, not what was in them",
        grants=grants(tenant, None, {}),
        pods=pods_of(tenant),
    )


def _changed(step: Step, old: Tenant, new: Tenant) -> Iterator[Change]:
    if old.name != new.name:
        scheduler = step.before.scheduler if step.before.scheduler.has_queues else step.after.scheduler
        is_held = scheduler.has_queues
        yield Change(
            *of(step.after, new),
            ChangeClass.TWO_STEP if is_held else ChangeClass.ADMISSION,
            f"tenant `{old.name}` is called `{new.name}`",
            f"its queues are others: the old ones {fate_of_queues(scheduler)}, and what queues work is in cannot change"
            if is_held
            else "its namespaces get another label; what runs goes on",
            OTHER_WAY_ROUND if is_held else REVERT,
            pods=pods_of(old) if is_held else 0,
        )
    for judge in (enforcing.of_tenant, _names, _namespaces, _quotas, _containers, _times):
        yield from judge(step, old, new)
    yield from changes_by_row(step, old, new)


def _names(step: Step, old: Tenant, new: Tenant) -> Iterator[Change]:
    """The queues of a tenant that stays, by the names that it keeps. A LocalQueue cannot name another ClusterQueue."""
    scheduler = step.after.scheduler
    if old.name != new.name or step.before.scheduler is not scheduler or not scheduler.has_queues:
        return
    was, will = (_called(tenant, plan) for tenant, plan in ((old, step.before), (new, step.after)))
    for what, name in will.items():
        earlier = was.get(what, name)
        if earlier != name:
            yield Change(
                *of(step.after, new, new.at / "names"),
                ChangeClass.TWO_STEP,
                f"its work names the {what} `{name}`, and no longer `{earlier}`",
                f"queues that leave {fate_of_queues(scheduler)}, and what queues work is in cannot change",
                OTHER_WAY_ROUND,
                pods=pods_of(old),
            )


def _called(tenant: Tenant, plan: Plan) -> dict[str, str]:
    """Return the names of a tenant's queues, by their kind."""
    if not plan.scheduler.has_queues_by_pool:
        return {"ClusterQueue": cluster_queue(tenant), "LocalQueue": local_queue(tenant)} if has_queue(tenant) else {}
    pools = dict.fromkeys(quota.pool.name for quota in plan.tree.together.get(tenant.name, ()))
    return {f"queue in pool `{pool}`": queue_of(tenant, pool) for pool in pools}


def _namespaces(step: Step, old: Tenant, new: Tenant) -> Iterator[Change]:
    gone = [name for name in old.spec.namespaces if name not in new.spec.namespaces]
    come = [name for name in new.spec.namespaces if name not in old.spec.namespaces]
    kept = step.after.owners
    place = of(step.after, new, new.at / "namespaces")
    if lost := [name for name in gone if name not in kept]:
        yield Change(
            *place,
            ChangeClass.DESTRUCTIVE,
            f"loses the namespaces {names(lost)}",
            "they leave the policy, and stay with all in them until a person deletes them",
            "reverting brings the namespaces back, not what was in them",
            pods=pods_of(old),
        )
    if given := [name for name in gone if name in kept]:
        is_held = step.after.scheduler.has_queues
        yield Change(
            *place,
            ChangeClass.TWO_STEP if is_held else ChangeClass.ADMISSION,
            f"the namespaces {names(given)} go to another tenant",
            "work there counts for a tenant that did not start it"
            + ("; the queue that work there is in cannot change" if is_held else ""),
            OTHER_WAY_ROUND,
            pods=pods_of(old) if is_held else 0,
        )
    if come:
        yield Change(*place, ChangeClass.QUOTA, f"gets the namespaces {names(come)}", undo=_STAY)


# --- Quotas ------------------------------------------------------------------------------------------------------


def _quotas(step: Step, old: Tenant, new: Tenant) -> Iterator[Change]:
    differing = grants(old, new, step.renamed_pools)
    held, holds = quotas(old, step.renamed_pools), quotas(new, {})
    both = [key for key in holds if key in held]
    divided = [key for key in both if _division(step.before, held[key]) != _division(step.after, holds[key])]
    bounded = [text for key in both for text in _class_texts(held[key], holds[key])]
    splits = [(key, _split(held[key], holds[key])) for key in divided]
    texts = [*map(_grant, differing)]
    texts += [f"{' '.join(key)}{_split_text(split)}" for key, split in splits]
    texts += bounded
    if texts:
        is_cut = any(_is_cut(caps) for _, split in splits for caps in split.values())
        less = (
            bool(bounded)
            or is_cut
            or any(
                item.guaranteed_after < item.guaranteed_before
                or (
                    item.limit_after is not None and (item.limit_before is None or item.limit_after < item.limit_before)
                )
                for item in differing
            )
        )
        is_closed = any((item.pool, item.unit) in held.keys() - holds.keys() for item in differing)
        yield Change(
            *of(step.after, new, new.at / "quotas"),
            ChangeClass.ADMISSION if is_closed else ChangeClass.QUOTA,
            "; ".join(texts),
            "pods that run go on, even beyond a quota; new ones wait or are refused" if less else NOTHING_RUNS,
            grants=differing,
        )


def _grant(grant: GrantChange) -> str:
    """``a100-mixed 3g.40gb: guarantee from 8 to 16``."""
    numbers = zip(("guarantee", "limit"), grant.numbers.values(), strict=True)
    parts = [f"{word} {from_to(amount(old), amount(new))}" for word, (old, new) in numbers if old != new]
    return f"{grant.pool} {grant.unit}: {', '.join(parts)}"


def _class_texts(old: Quota, new: Quota) -> Iterator[str]:
    """``a100-mixed 3g.40gb: limit of class research from no limit to 4``."""
    for name in {**old.class_limits, **new.class_limits}:
        before, after = (quota.class_limits.get(name) for quota in (old, new))
        if before != after:
            yield f"{' '.join(new.key)}: limit of class {name} {from_to(amount(before), amount(after))}"


def _split(old: Quota, new: Quota) -> dict[str, tuple[Amount | None, Amount | None]]:
    """Return what each namespace may have of a quota before and after, where that differs; None is without a bound."""
    found = {name: (old.caps.get(name, 0), new.caps.get(name, 0)) for name in {**old.caps, **new.caps}}
    return {name: caps for name, caps in found.items() if caps[0] != caps[1]}


def _split_text(split: Mapping[str, tuple[Amount | None, Amount | None]]) -> str:
    """``: namespaces `research` from 24 to 20, `research-dev` from 0 to 4``."""
    parts = [f"`{name}` {from_to(amount(before), amount(after))}" for name, (before, after) in split.items()]
    spaces = f": {'namespace' if len(parts) == 1 else 'namespaces'} {', '.join(parts)}"
    return spaces if parts else " is divided or lent otherwise"


def _is_cut(caps: tuple[Amount | None, Amount | None]) -> bool:
    before, after = caps
    return after is not None and (before is None or after < before)


def _division(plan: Plan, quota: Quota) -> object:
    """Return the split of a quota among namespaces, and its lending if the scheduler lends."""
    split = {name: number for name, number in quota.split.items() if name in quota.caps}
    lends = plan.scheduler.supports("lendable") and quota.lendable < quota.guaranteed
    return split, quota.lendable if lends else None


# --- What a tenant may do ----------------------------------------------------------------------------------------


def _containers(step: Step, old: Tenant, new: Tenant) -> Iterator[Change]:
    """Pods have what their containers were given when they were made."""
    before, after = defaults_of(old), defaults_of(new)
    texts = [
        f"{counted.value} {_default(after[counted])}"
        for counted in before
        if _default(before[counted]) != _default(after[counted])
    ]
    if texts and new.spec.namespaces:
        yield Change(
            *of(step.after, new, new.at / "containers"),
            ChangeClass.ADMISSION,
            f"containers that say nothing of it have {'; '.join(texts)}",
            "new pods get it and are judged by it; running pods continue",
        )


def _default(defaults: Defaults) -> str:
    """``500m, 2 at most, 4 times the request at most``."""
    request, limit = (
        amount_text(defaults.counted, item) if item is not None else "" for item in (defaults.request, defaults.limit)
    )
    parts = (
        request,
        limit and f"{limit} at most",
        f"{amount(defaults.ratio)} times the request at most" if defaults.ratio else "",
    )
    return ", ".join(filter(None, parts)) or "what Kubernetes gives"


def _times(step: Step, old: Tenant, new: Tenant) -> Iterator[Change]:
    """Run:ai's rules hold for what is submitted after them."""
    before, after = ({at.path[-2:]: time for at, time in times_of(tenant)} for tenant in (old, new))
    texts = [
        f"{key[0]} {_TIMES[str(key[1])]} {from_to(before.get(key, _EVER), after.get(key, _EVER))}"
        for key in {**before, **after}
        if before.get(key) != after.get(key)
    ]
    if texts and step.after.scheduler.has_projects:
        yield Change(
            *of(step.after, new, new.at / "timeLimits"),
            ChangeClass.ADMISSION,
            f"time of its work: {'; '.join(texts)}",
            "it applies to work that is submitted after Run:ai has the new value; earlier work keeps its times",
        )


_EVER = "any time"
_TIMES = {"run": "run", "idle": "are idle", "preemptibleIdle": "are idle and may be evicted"}
"""The words for the time that a limit bounds."""


# --- Priority classes --------------------------------------------------------------------------------------------


def priority_changes(step: Step) -> Iterator[Change]:
    pairs = successors(step.before.priority_classes, step.after.priority_classes)
    return changes_of(step, pairs, _class_added, _class_removed, _class_changed)


def _class_added(step: Step, new: PriorityClass) -> Iterator[Change]:
    yield Change(
        *of(step.after, new),
        ChangeClass.PREEMPTION_ORDER,
        f"priority class with the value {new.spec.value} is added{_whose(step.after, new)}",
        "pods that name it come before pods of lower classes" + (", and evict them" if new.spec.preempts else ""),
    )


def _class_removed(step: Step, old: PriorityClass) -> Iterator[Change]:
    what = f"priority class is removed{_whose(step.before, old)}"
    effect = "new pods that name it are refused; running pods keep its value"
    yield Change(*of(step.before, old), ChangeClass.ADMISSION, what, effect)


def _class_changed(step: Step, old: PriorityClass, new: PriorityClass) -> Iterator[Change]:
    place, whose = of(step.after, new), _whose(step.after, new)
    if fixed := _fixed(step, old, new):
        yield Change(
            *place,
            ChangeClass.RECREATE,
            "; ".join(fixed) + whose,
            "the API server refuses the change: the class must be deleted and recreated, and meanwhile nobody can "
            "create pods with it; pods that run keep what they had",
            "reverting ends the wait; once the class is recreated, it is refused in the same way",
        )
    if old.spec.default != new.spec.default:
        what = f"pods that name no class {'get this one' if new.spec.default else 'get this one no more'}{whose}"
        value = new.spec.value if new.spec.default else "that of no class"
        effect = f"the priority of new pods without a class is {value}"
        yield Change(*place, ChangeClass.PREEMPTION_ORDER, what, effect)
    if old.spec.preemptible != new.spec.preemptible and _obeys_preemptible(step, new.name):
        what = f"pods of the class may {'be evicted' if new.spec.preemptible else 'not be evicted any more'}{whose}"
        effect, pods = "the scheduler evicts other pods than before", sum(map(pods_of, users_of(step.before, old)))
        yield Change(*place, ChangeClass.PREEMPTION_ORDER, what, effect, pods=pods)
    if old.spec.description != new.spec.description:
        yield Change(*place, ChangeClass.METADATA, "description changes")


def _fixed(step: Step, old: PriorityClass, new: PriorityClass) -> list[str]:
    """Return the changes that no PriorityClass allows. With Kueue, classes never preempt by themselves.

    (`ValidatePriorityClassUpdate` in `pkg/apis/scheduling/validation`.)
    """
    fixed = []
    if old.spec.value != new.spec.value:
        fixed.append(f"value changes {from_to(old.spec.value, new.spec.value)}")
    preempted, preempts = (
        priority.spec.preempts and not plan.scheduler.leaves_preemption_to_queues
        for plan, priority in ((step.before, old), (step.after, new))
    )
    if preempted != preempts:
        fixed.append(f"pods of the class {'evict' if preempts else 'no longer evict'} others")
    return fixed


def _obeys_preemptible(step: Step, name: str) -> bool:
    """Whether an applied object obeys `preemptible`: a queue that evicts for all, or a label of work."""
    before, after = step.before, step.after
    if after.scheduler.leaves_preemption_to_queues:
        old = {tenant.name: evicts_within(tenant) for tenant in before.tenants}
        return any(old.get(tenant.name) != evicts_within(tenant) for tenant in after.tenants)
    named = (item.priority_class for item in after.workloads if after.scheduler.preemptibility_label)
    return any(found is not None and found.name == name for found in named)


def users_of(plan: Plan, priority: PriorityClass) -> list[Tenant]:
    return [tenant for tenant in plan.tenants if priority.name in {found.name for found in tenant.priority_classes}]


def _whose(plan: Plan, priority: PriorityClass) -> str:
    tenants = names([tenant.name for tenant in users_of(plan, priority)])
    return f" (open to {tenants})" if tenants else ""


# --- Workloads ---------------------------------------------------------------------------------------------------


def workload_changes(step: Step, object_changes: Iterable[ObjectChange]) -> Iterator[Change]:
    """Yield the changes of workloads. ``object_changes`` are all those of the cluster."""
    known = {_moving(taking) for taking in takings(step.before)}
    reached = {_key(workload) for workload, *_ in routed(step.before)}
    moved: dict[tuple[str, str], list[str]] = {}
    for taking in takings(step.after):
        if _moving(taking) not in known and _key(taking.of) in reached:
            whose = "" if taking.of.tenant.name == taking.by.tenant.name else f" of tenant `{taking.of.tenant.name}`"
            text = f"requests for `{taking.address}` come to it, and no longer to `{taking.of.name}`{whose}"
            moved.setdefault(_key(taking.by), []).append(text)

    def added(step: Step, new: Workload) -> Iterator[Change]:
        what = f"workload is added: {count(new.most_pods, 'pod')} at most"
        effect = f"its pods take units of its tenant's quota; {NOTHING_RUNS}"
        undo = "reverting removes it, and ends its pods"
        change = Change(*of(step.after, new), ChangeClass.QUOTA, what, effect, undo)
        yield _with_requests(change, moved.get(_key(new), ()))

    of_work = (item for item in object_changes if item.folder.startswith(f"{Stage.WORKLOADS}/"))
    objects = grouped((subject, item) for item in of_work for subject in item.about)

    def changed(step: Step, old: Workload, new: Workload) -> Iterator[Change]:
        if differing := objects.get(subject_of(new)):
            for change in _workload_changed(step, old, new, differing):
                yield _with_requests(change, moved.get(_key(new), ()))

    pairs = successors(step.before.workloads, step.after.workloads, key=_key)
    return changes_of(step, pairs, added, _workload_removed, changed)


def _key(workload: Workload) -> tuple[str, str]:
    return workload.namespace, workload.name


def _moving(taking: Taking) -> tuple[object, ...]:
    return _key(taking.by), _key(taking.of), taking.address


def _with_requests(change: Change, moved: Sequence[str]) -> Change:
    """Return the change with the requests that come to another service now."""
    if not moved:
        return change
    effect = "; ".join((change.effect.removesuffix(f"; {NOTHING_RUNS}"), *moved))
    return change._replace(effect=effect, change_class=worst((change.change_class, ChangeClass.ADMISSION)))


def _workload_removed(step: Step, old: Workload) -> Iterator[Change]:
    """With the last one of a namespace goes its folder, and Argo CD removes nothing (`states.waits`)."""
    folder = f"{Stage.WORKLOADS}/{old.namespace}"
    is_last = not any(item.namespace == old.namespace for item in step.after.workloads)
    is_last = is_last and folder not in map(folder_of, step.after.components)
    if is_last and step.after.cluster.argocd is not None:
        effect = "its pods run on until a person deletes them"
    else:
        effect = (
            "its pods end, and its volume goes when a person confirms it" if any(volumes_of(old)) else "its pods end"
        )
    yield Change(
        *of(step.before, old),
        ChangeClass.DESTRUCTIVE,
        "workload is removed",
        effect,
        "reverting starts it again, from the beginning",
        pods=old.most_pods,
    )


def _workload_changed(step: Step, old: Workload, new: Workload, differing: Sequence[ObjectChange]) -> Iterator[Change]:
    scaled = scalings(old, new)
    found = worst([*(item.change_class for item in differing), *(item.change_class for item in scaled)])
    is_unreachable = is_called(old.work) and not is_called(new.work)
    recreates = any(  # a claim makes no pods
        item.change_class is ChangeClass.RECREATE
        and not item.is_of_number
        and item.identity.kind != "PersistentVolumeClaim"
        for item in differing
    )
    is_made_otherwise = needed_api(old) is not needed_api(new)
    effect, undo, pods = f"{_NUMBER}; {NOTHING_RUNS}", REVERT, 0
    is_recreated = recreates or is_unreachable or is_made_otherwise
    if is_recreated:
        effect, pods = _recreated(step, old, new), old.most_pods
        undo = "reverting recreates them once more"
        if is_unreachable:
            effect = f"{effect}, and its Service goes: who calls it finds nobody"
    elif found is ChangeClass.ADMISSION and is_called(new.work):
        effect = f"it is reached at other ports, or from elsewhere; {NOTHING_RUNS}"
    if not is_recreated and (_route(old) != _route(new) or _way(step.before, old) != _way(step.after, new)):
        effect = f"it is {_reached(new)}{_otherwise(step, old, new)}; {NOTHING_RUNS}"
    if canary := _canary_changed(old, new):
        alone = _without_canary(old) == _without_canary(new)
        effect = canary if alone else f"{effect.removesuffix(f'; {NOTHING_RUNS}')}; {canary}"
        pods = _canary_pods(old, new) if alone else pods
    if told := [*(item.effect for item in scaled), *fates(old, new)]:
        before = effect.removesuffix(f"; {NOTHING_RUNS}").removeprefix(_NUMBER).removeprefix("; ")
        effect = "; ".join([*([before] if before else ()), *told])
        pods = min(max(pods, sum(item.pods for item in scaled)), old.most_pods)
        undo = next((item.undo for item in scaled if not is_recreated), undo)
    words = _differences(old, new)
    if words or found.rank > ChangeClass.METADATA.rank:
        others = "its pool, its tenant or the scheduler asks something else of pods"
        if found is ChangeClass.ADMISSION:
            others = "another object leads to it on the cluster"
        what = words or others
        yield Change(*of(step.after, new), found, what, effect, undo, pods=pods)


_NUMBER: Final = "more or fewer pods"


def _recreated(step: Step, old: Workload, new: Workload) -> str:
    """Return the way in which a workload's pods are replaced, in words."""
    if isinstance(new.work, models.Workspace):
        is_kept = bool(new.storage and old.storage) and not is_refused(old, new)
        kept = "its volume stays" if is_kept else "nothing of it stays"
        return f"its Job is another one: the pod ends, whoever works in it or not, and a new one starts; {kept}"
    if new.is_job:
        return f"its {needed_api(new) or 'Job'} is another one: the pods end, and the new ones start from the beginning"
    if needed_api(old) is not needed_api(new):
        return f"its pods end, and others come of another kind of object, {needed_api(new) or 'Deployment'}"
    if (queue := _queue(step.after, new)) != _queue(step.before, old):
        then = (
            f"wait in queue `{queue}`: run it once that is there" if queue else "start: run it once its queue is gone"
        )
        delete = deletion(_maker(new))
        return f"while a pod is ready, Kueue refuses another queue; {delete} ends all pods at once, and new ones {then}"
    if not new.is_grouped:
        return "its pods are recreated, one after the other"
    at_once = "; all at once where Kueue counts them otherwise" if step.after.scheduler.suspends_jobs else ""
    return f"its replicas are recreated, one after the other, each with all of its pods{at_once}"


def _queue(plan: Plan, workload: Workload) -> str:
    """Return the queue of Kueue that a workload names, or ""."""
    return local_queue(workload.tenant) if plan.scheduler.suspends_jobs else ""


def _maker(workload: Workload) -> Identity:
    """Return the object that makes a service's pods. KServe gives its Deployment the labels of the InferenceService.

    (`reconcileRawDeployment` in `pkg/controller/v1beta1/inferenceservice/components/predictor.go` of kserve/kserve.)
    """
    match needed_api(workload):
        case models.Api.LEADER_WORKER_SET:
            return Identity("leaderworkerset.x-k8s.io", "LeaderWorkerSet", workload.namespace, workload.name)
        case models.Api.INFERENCE_SERVICE:
            return Identity("apps", "Deployment", workload.namespace, f"{workload.name}-predictor")
        case _:
            return Identity("apps", "Deployment", workload.namespace, workload.name)


def _route(workload: Workload) -> models.Route | None:
    return workload.work.route if isinstance(workload.work, models.Inference) else None


def _reached(workload: Workload) -> str:
    """From where outside of the cluster, if at all."""
    route = _route(workload)
    if route is None:
        return "no longer reached from outside"
    return f"reached from outside as {names([f'{host}{route.path}' for host in route.hosts])}"


def _way(plan: Plan, workload: Workload) -> models.Gateway | models.Ingress | None:
    return way_to(plan.cluster.spec, workload.work) if isinstance(workload.work, models.Inference) else None


def _otherwise(step: Step, old: Workload, new: Workload) -> str:
    """Return the new and the old way to a service, in words. The two ways have addresses of their own."""
    one, other = _way(step.before, old), _way(step.after, new)
    if one is None or other is None or one == other:
        return ""
    goes = "" if type(one) is type(other) else f": its {_kind_of(one)} goes, and its {_kind_of(other)} comes"
    return f" by {_named(other)}, and no longer by {_named(one)}{goes}; its hosts must lead there"


def _named(way: models.Gateway | models.Ingress) -> str:
    if isinstance(way, models.Gateway):
        return f"Gateway `{way.namespace}/{way.name}`" + (f", listener `{way.listener}`" if way.listener else "")
    return f"the controller of IngressClass `{way.class_name}`"


def _kind_of(way: models.Gateway | models.Ingress) -> str:
    return "HTTPRoute" if isinstance(way, models.Gateway) else "Ingress"


def _canary_changed(old: Workload, new: Workload) -> str:
    """Return the change of a canary and its share of the requests in words, or "" if it stays the same."""
    one, other = old.canary, new.canary
    if one == other:
        return ""
    if other is None:
        pods = "the pod of the canary ends"
        if one and one.replicas > 1:
            pods = f"the {one.replicas} pods of the canary end"
        return f"{pods}, and all requests go to the other pods" if one else ""
    part = f"{other.weight} of 100 requests"
    if one is None:
        return f"a canary with {count(other.replicas, 'pod')} gets {part}; {NOTHING_RUNS}"
    weighed = f"the canary gets {part}{'' if one.weight == other.weight else f', not {one.weight}'}"
    if _canary_pods(old, new):
        if other.replicas < one.replicas and _is_same_canary(one, other):
            return f"{weighed}, and {one.replicas - other.replicas} of its {one.replicas} pods end"
        return f"{weighed}, and its pods are recreated, one after the other"
    return f"{weighed}; {NOTHING_RUNS}"


def _canary_pods(old: Workload, new: Workload) -> int:
    """Return the number of the canary's pods that end or are replaced."""
    one, other = old.canary, new.canary
    if one is None:
        return 0
    is_same = other is not None and _is_same_canary(one, other)
    return max(one.replicas - other.replicas, 0) if other is not None and is_same else one.replicas


def _is_same_canary(one: models.Canary, other: models.Canary) -> bool:
    """But for the number of its pods, and of its requests."""
    kept = {"weight": 0, "replicas": 1}
    return one.model_copy(update=kept) == other.model_copy(update=kept)


def _without_canary(workload: Workload) -> models.WorkloadSpec:
    work = workload.work
    if not isinstance(work, models.Inference):
        return workload.spec
    return workload.spec.model_copy(update={"inference": work.model_copy(update={"canary": None})})


def _pods_of(workload: Workload) -> str:
    """Return the number of pods: ``4``, or ``2 to 8``."""
    work = workload.work
    scaling = work.autoscaling if isinstance(work, models.Inference) else None
    return f"{workload.fewest_pods} to {workload.most_pods}" if scaling else str(workload.most_pods)


def _differences(old: Workload, new: Workload) -> str:
    """Return the fields of the policy that differ, in words, or "" if none does."""
    if _pods_of(old) != _pods_of(new) and old.canary == new.canary:
        return f"there are {_pods_of(new)} pods, not {_pods_of(old)}"
    found = [change.words for change in changed_fields(old.spec, new.spec)]
    found += ["unit"] if old.unit.name != new.unit.name else []
    names = [item.priority_class and item.priority_class.name for item in (old, new)]
    found += ["priority class"] if names[0] != names[1] else []
    return f"changes: {joined([*dict.fromkeys(found)])}" if found else ""


# --- Numbers of pods and volumes ------------------------------------------------------------------------------------


class Scaling(NamedTuple):
    """An effect in words. At most ``pods`` end."""

    change_class: ChangeClass
    effect: str
    pods: int = 0
    undo: str = REVERT


def scalings(old: Workload, new: Workload) -> list[Scaling]:
    """All that comes of another number of pods, or of another autoscaler."""
    one, other = old.work, new.work
    if not isinstance(one, models.Inference) or not isinstance(other, models.Inference):
        return []
    is_same_kind = needed_api(old) is needed_api(new)
    found = (_unstated(new, one, other) if is_same_kind else None) or _fewer(one, other)
    left = _left_by_keda(new, one.autoscaling, other.autoscaling)
    return [item for item in (found, left) if item is not None]


def _unstated(new: Workload, one: models.Inference, other: models.Inference) -> Scaling | None:
    """`spec.replicas` leaves what makes the pods.

    Argo CD and Flux apply on the server, which takes a field away that no other manager has; without that `kubectl
    apply` sends null. The API server then makes it 1 (`SetDefaults_Deployment` in `pkg/apis/apps/v1/defaults.go` of
    kubernetes/kubernetes; the definition of a LeaderWorkerSet). An autoscaler has the field once it has changed it,
    which it has not in this sync, and brings back the fewest at once (`reconcileAutoscaler` in
    `pkg/controller/podautoscaler/horizontal.go`). The Deployment that KServe makes keeps its number.

    Another manager can take the field over before: "Transferring ownership" in
    https://kubernetes.io/docs/reference/using-api/server-side-apply/.
    """
    gone = (one.replicas - 1) * one.pods_per_replica
    if one.autoscaling or other.autoscaling is None or gone == 0 or needed_api(new) is models.Api.INFERENCE_SERVICE:
        return None
    kind = needed_api(new) or "Deployment"
    fewest = other.autoscaling.min_replicas
    starts = count(fewest, "replica") + " at least" if fewest else "those that there is work for"
    return Scaling(
        ChangeClass.RECREATE,
        f"`spec.replicas` leaves its {kind} and is 1: {_end(gone, one)}, and its autoscaler then starts {starts}; "
        f"none ends where another field manager has `replicas: {one.replicas}` before the sync ({_HANDOVER})",
        gone,
    )


_HANDOVER: Final = "`kubectl apply --server-side --field-manager=handover`"


def _fewer(one: models.Inference, other: models.Inference) -> Scaling | None:
    """Pods beyond the most end at once, and those beyond the fewest when there is less to do."""
    (fewest, most), (least, peak) = _bounds(one), _bounds(other)
    beyond, idle = max(most - peak, 0), max(min(fewest, peak) - least, 0)
    if not beyond and not idle:
        return None
    texts = []
    if beyond:
        texts.append(_end(beyond, one) if one.autoscaling is None else f"up to {_end(beyond, one)}")
    if idle:
        texts.append(f"{count(idle, 'pod')} may end when there is less to do")
    return Scaling(ChangeClass.RECREATE, ", and ".join(texts), beyond + idle, "reverting starts as many again")


def _bounds(work: models.Inference) -> tuple[int, int]:
    """The fewest pods and the most."""
    each, scaling = work.pods_per_replica, work.autoscaling
    fewest, most = (scaling.min_replicas, scaling.max_replicas) if scaling else (work.replicas, work.replicas)
    return fewest * each, most * each


def _end(pods: int, one: models.Inference) -> str:
    """``4 of 5 pods end``."""
    _, most = _bounds(one)
    return f"{pods} of {count(most, 'pod')} {'ends' if pods == 1 else 'end'}"


def _left_by_keda(new: Workload, one: models.Autoscaling | None, other: models.Autoscaling | None) -> Scaling | None:
    """KEDA's ScaledObject goes, and a HorizontalPodAutoscaler of the same name is to follow it.

    That one is there already, and the ScaledObject owns it, so that the garbage collector takes it along
    (`newHPAForScaledObject` in `controllers/keda/hpa.go` of kedacore/keda). KEDA leaves the number of pods as it was
    (`finalizeScaledObject` in `controllers/keda/scaledobject_finalizer.go`), and a HorizontalPodAutoscaler whose fewest
    are 1 or more leaves it at 0 (`ScalingDisabled` in `pkg/controller/podautoscaler/horizontal.go` of
    kubernetes/kubernetes).
    """
    if one is None or other is None:
        return None
    kinds = autoscaler_kind(one), autoscaler_kind(other)
    if kinds != (models.AutoscalerKind.SCALED_OBJECT, models.AutoscalerKind.HORIZONTAL_POD_AUTOSCALER):
        return None
    effect = (
        "the HorizontalPodAutoscaler of KEDA is deleted with its ScaledObject, and nothing scales until the next sync "
        "creates a HorizontalPodAutoscaler"
    )
    if one.min_replicas > 0:
        return Scaling(ChangeClass.QUOTA, effect)
    scaled = _SCALED.get(needed_api(new), "deployment/{}").format(new.name)
    by_hand = f"`kubectl scale -n {new.namespace} {scaled} --replicas=1`"
    return Scaling(
        ChangeClass.TWO_STEP,
        f"an idle service stays at 0 pods, since a HorizontalPodAutoscaler starts none: write `minReplicas: 1` in "
        f"an earlier commit, or run {by_hand} after the sync; {effect}",
        undo="reverting has KEDA start its pods again",
    )


_SCALED: Final[Mapping[models.Api | None, str]] = {
    models.Api.LEADER_WORKER_SET: "leaderworkerset/{}",
    models.Api.INFERENCE_SERVICE: "deployment/{}-predictor",
}
"""The objects that hold the number of pods, where they are no Deployments of the workload's name."""


def fates(old: Workload, new: Workload) -> list[str]:
    """Return the effects on volumes in words: refused changes, growth and removal."""
    refused, grown = [], []
    for one, other in _kept(old, new):
        claim = f"`{other.claim(new)}`"
        if found := joined([*_locked(one, other)], "or"):
            refused.append(
                f"the API server refuses {found} of volume {claim}, and its folder is not synced: it takes its claim "
                "to be deleted first, and all that is in it goes"
            )
        elif _size(one) != _size(other):
            grown.append(f"volume {claim} grows where its StorageClass has {_EXPANSION}, or its folder is not synced")
    return [*refused, *grown, *_volumes_removed(old, new)]


_EXPANSION: Final = "`allowVolumeExpansion: true`"
"""`allowResize` in `plugin/pkg/admission/storage/persistentvolume/resize/admission.go` of kubernetes/kubernetes."""


def is_refused(old: Workload, new: Workload) -> bool:
    """Whether the API server refuses what becomes of a volume, so that nothing of the work's folder is applied."""
    return any(any(_locked(one, other)) for one, other in _kept(old, new))


def _kept(old: Workload, new: Workload) -> Iterator[tuple[Volume, Volume]]:
    before = {volume.claim(old): volume for volume in volumes_of(old)}
    return ((before[name], volume) for volume in volumes_of(new) if (name := volume.claim(new)) in before)


def _locked(one: Volume, other: Volume) -> Iterator[str]:
    """Yield the changes that no claim allows (`ValidatePersistentVolumeClaimUpdate` in `pkg/apis/core/validation`)."""
    old, new = _size(one), _size(other)
    if old is not None and new is not None and new < old:
        yield "a smaller size"
    if one.spec.storage_class != other.spec.storage_class:
        yield "another StorageClass"
    if one.spec.access_mode != other.spec.access_mode:
        yield "another access mode"


def _size(volume: Volume) -> Decimal | None:
    return parse_quantity(volume.spec.size)


def _volumes_removed(old: Workload, new: Workload) -> Iterator[str]:
    kept = {volume.claim(new) for volume in volumes_of(new)}
    if gone := [name for volume in volumes_of(old) if (name := volume.claim(old)) not in kept]:
        volumes, go, them = ("volume", "goes", "it") if len(gone) == 1 else ("volumes", "go", "them")
        yield f"its {volumes} {names(gone)} {go} when a person confirms it, with all that is in {them}"
