"""Checks on CPU, memory and pods of quotas (GPU433, GPU445-459)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from operator import itemgetter

from gpuplan.compiler.base.diagnostics import Finding, Label, Origin, Severity
from gpuplan.compiler.base.plain import grouped
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import SHOWN, count, listing
from gpuplan.compiler.checks.caps import each_quota
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.checks.wording import crossing, name_of, number, severity_of_loss
from gpuplan.compiler.manifests import exact_quantity
from gpuplan.compiler.planning.amounts import (
    LEAST_BYTES,
    amount_of,
    amount_text,
    capacity,
    compute_cap,
    of_node,
    share_of_units,
)
from gpuplan.compiler.planning.fallbacks import reach
from gpuplan.compiler.planning.plan import MAIN_CONTAINER, Compute, Counted, Plan, Pool, Quota, Tenant, Workload
from gpuplan.compiler.planning.pods import (
    DEFAULT_REQUESTS,
    OF_NODES,
    asked_by_main,
    asked_by_pod,
    compute_caps,
    defaults_of,
    requests_of,
)
from gpuplan.compiler.planning.preemption import standing_together
from gpuplan.compiler.planning.tree import Tree

_NOBODY = Tree(())


def words_for(counted: Counted, amount: int) -> str:
    """Return an amount in words, such as ``64 CPUs``, ``512Gi of memory``, ``1 pod``."""
    text = amount_text(counted, amount)
    match counted:
        case Counted.CPU:
            return f"{text} {'CPU' if amount == 1000 else 'CPUs'}"
        case Counted.MEMORY:
            return f"{text} of memory"
        case Counted.PODS:
            return count(amount, "pod")


def _noun(counted: Counted) -> str:
    return {Counted.CPU: "CPUs", Counted.MEMORY: "memory", Counted.PODS: "pods"}[counted]


def _place(compute: Compute, field: str = "guaranteed") -> Origin:
    """Return where a number is written. The pool says what follows from units."""
    return compute.at if compute.is_derived or compute.counted is Counted.PODS else compute.at / field


# --- Amounts -----------------------------------------------------------------------------------------------------


class _Written(NamedTuple):
    """A quantity with the place that says it, and whose it is."""

    at: Origin
    counted: Counted
    text: str
    whose: str


@check("GPU445", "unlikely-amount")
def unlikely_amount(plan: Plan) -> Iterator[Finding]:
    """Kubernetes cannot count an amount of CPU or memory, or the amount is probably a mistake.

    ## Why
    Schedulers count thousandths of a CPU and whole bytes, and round up what is finer. `32` is 32 bytes of memory and
    `400m` less than one, in which no container starts; and no node has thousands of CPUs, which `64000` is without an
    `m` behind it.

    ## Instead
    Write CPUs as `64` or `1500m`, and memory with a unit: `512Gi`.
    """
    for written in _written(plan):
        if label := _flaw(written):
            yield Finding(
                written.at,
                f"`{written.text}` of {written.whose} is not an amount of {_noun(written.counted)}",
                label=label,
                help="write a number such as `64`, or thousandths such as `1500m`"
                if written.counted is Counted.CPU
                else f"write `{written.text}Gi`"
                if written.text.isdecimal() and int(written.text) in _GIBIBYTES
                else "write a number with a unit, such as `512Gi`",
            )


_MOST_MILLICORES = 1_000_000_000
_GIBIBYTES = range(1, 10_000)
"""Numbers without a unit that are most likely GiB."""
_MOST_BYTES = 2**63 - 1


def _flaw(written: _Written) -> str:
    exact, amount = exact_quantity(written.text) or 0, amount_of(written.counted, written.text)
    if written.counted is Counted.CPU:
        if amount != exact * 1000:
            return "finer than a thousandth of a CPU"
        return "more than any cluster has" if amount > _MOST_MILLICORES else ""
    if amount != exact:
        return "a part of a byte"
    if 0 < amount < LEAST_BYTES:
        return count(amount, "byte")
    return "more than Kubernetes can count" if amount > _MOST_BYTES else ""


def _written(plan: Plan) -> Iterator[_Written]:
    for pool in plan.pools:
        nodes, whose = pool.spec.nodes, f"pool `{pool.name}`"
        texts = {Counted.CPU: (nodes.cpu, nodes.reserve.cpu), Counted.MEMORY: (nodes.memory, nodes.reserve.memory)}
        for counted, (has, reserved) in texts.items():
            at = pool.nodes.at
            yield from _texts(((at / counted.value, has), (at / "reserve" / counted.value, reserved)), counted, whose)
    for tenant, quota in each_quota(plan):
        for counted, bounds in ((Counted.CPU, quota.spec.cpu), (Counted.MEMORY, quota.spec.memory)):
            if bounds:
                at, limit = quota.at / counted.value, bounds.limit if bounds.limit != "none" else None
                texts_ = ((at / "guaranteed", bounds.guaranteed), (at / "limit", limit))
                yield from _texts(texts_, counted, f"tenant `{tenant.name}`")
    for tenant in plan.tenants:
        both = {Counted.CPU: tenant.spec.containers.cpu, Counted.MEMORY: tenant.spec.containers.memory}
        for counted, bounds_of in both.items():
            at = tenant.at / "containers" / counted.value
            if bounds_of:
                of_container = ((at / "request", bounds_of.request), (at / "limit", bounds_of.limit))
                yield from _texts(of_container, counted, f"containers of tenant `{tenant.name}`")


def _texts(texts: Sequence[tuple[Origin, str | None]], counted: Counted, whose: str) -> Iterator[_Written]:
    return (_Written(at, counted, text, whose) for at, text in texts if text is not None)


# --- Nodes -------------------------------------------------------------------------------------------------------


@check("GPU446", "reserve-is-the-node")
def reserve_is_the_node(plan: Plan) -> Iterator[Finding]:
    """A pool's reserve leaves nothing of a node.

    ## Why
    What `reserve` names is for pods of no tenant. Where it is all that a node has, no pod of a tenant that asks for CPU
    or memory is meant to run there.

    ## Instead
    Sum up what the DaemonSets of the cluster ask for on each node, and reserve that.
    """
    for pool in plan.pools:
        nodes, at = pool.spec.nodes, pool.nodes.at
        for counted, text in ((Counted.CPU, nodes.reserve.cpu), (Counted.MEMORY, nodes.reserve.memory)):
            has = nodes.cpu if counted is Counted.CPU else nodes.memory
            if has is not None and of_node(nodes, counted) == 0:
                yield Finding(
                    at / "reserve" / counted.value,
                    f"the reserve of pool `{pool.name}` leaves no {_noun(counted)} to tenants",
                    label=f"reserved: {text}",
                    related=(Label(at / counted.value, f"a node has {has}"),),
                    help=f"write less than `{has}`",
                )


@check("GPU447", "nothing-to-follow")
def nothing_to_follow(plan: Plan) -> Iterator[Finding]:
    """CPU and memory are to follow the units of a pool that does not say what its nodes have.

    ## Why
    A unit's part of a node is a part of something: of `nodes.cpu` and of `nodes.memory`. Where the pool says neither,
    `followUnits` does nothing, and tenants have no bound.

    ## Instead
    Write what a node has for pods, as `kubectl describe node` shows it under Allocatable, or leave `followUnits` out.
    """
    for pool in plan.pools:
        if pool.spec.follow_units and pool.spec.nodes.cpu is None and pool.spec.nodes.memory is None:
            yield Finding(
                pool.at / "followUnits",
                f"pool `{pool.name}` does not say what CPU and memory its nodes have",
                label="of what",
                related=(Label(pool.nodes.at.key, "neither `cpu` nor `memory`"),),
                help="add `cpu:` and `memory:` to `nodes`",
            )


@check("GPU448", "unknown-nodes", Severity.WARNING)
def unknown_nodes(plan: Plan) -> Iterator[Finding]:
    """Quotas promise CPU or memory of nodes of which nobody says what they have.

    ## Why
    gpuplan adds up what tenants are guaranteed and compares it with the nodes. It cannot where the pool does not say
    how much a node has: a promise may then be more than there is.

    ## Instead
    Write `cpu` and `memory` into the pool's `nodes`, as `kubectl describe node` shows them under Allocatable.
    """
    for pool in plan.pools:
        for counted in OF_NODES:
            held = (quota.find_compute(counted) for _, quota in each_quota(plan) if quota.pool is pool)
            first = next(filter(None, held), None) if capacity(pool, counted) is None else None
            if first:
                yield Finding(
                    pool.nodes.at.key,
                    f"pool `{pool.name}` does not say how {'many' if counted is Counted.CPU else 'much'} "
                    f"{_noun(counted)} a node has",
                    label=f"no `{counted.value}`",
                    related=(Label(_place(first), f"{words_for(counted, first.guaranteed)} promised"),),
                    help=f"add `{counted.value}:` to `nodes`",
                )


# --- Sums --------------------------------------------------------------------------------------------------------


@check("GPU449", "compute-over-capacity")
def compute_over_capacity(plan: Plan) -> Iterator[Finding]:
    """The tenants' guarantees on CPU or memory add up to more than a pool's nodes have.

    ## Why
    A guarantee that the nodes cannot keep is not one: pods that are within it wait for ever. The reserve of a pool is
    not the tenants'. A child counts within its parent's quota, as its units do.

    ## Instead
    Lower a guarantee and let `limit` say how far the tenant may go beyond it, or add nodes. With `followUnits` in the
    pool, and no numbers in its quotas, CPU and memory always fit where the units do.
    """
    for counted in OF_NODES:
        outermost = plan.compute_trees.get(counted, _NOBODY).outermost
        held = grouped((quota.pool.name, (tenant, quota)) for tenant, quota in outermost)
        for pool in plan.pools:
            yield from _over_capacity(pool, counted, held.get(pool.name, ()))


def _over_capacity(pool: Pool, counted: Counted, held: Sequence[tuple[Tenant, Quota]]) -> Iterator[Finding]:
    """Find guarantees that are too much. Those that all follow from units are a finding of their own."""
    there, amounts = capacity(pool, counted) or 0, [int(quota.guaranteed) for _, quota in held]
    stated = [(tenant, quota) for tenant, quota in held if not _compute_of(quota, counted).is_derived]
    over = sum(amounts) - there
    if not there or over <= 0 or not stated:
        return
    tenant, quota = held[crossing(amounts, there)]
    if (tenant, quota) not in stated:
        tenant, quota = stated[-1]
    listed = zip(held, amounts, strict=True)
    terms = " + ".join(f"`{holder.name}` {amount_text(counted, part)}" for (holder, _), part in listed)
    total, has = amount_text(counted, sum(amounts)), words_for(counted, there)
    yield Finding(
        _place(_compute_of(quota, counted)),
        f"guarantees on {_noun(counted)} of pool `{pool.name}` add up to {total}, and its nodes have {has}",
        label=f"`{tenant.name}` makes it {amount_text(counted, over)} too much",
        related=(Label(pool.nodes.at / counted.value, f"{count(pool.nodes.count, 'node')}, less the reserve: {has}"),),
        notes=(f"{terms} = {total}",) if len(held) <= 8 else (),
        help=f"lower the guarantees by {amount_text(counted, over)}, or add nodes",
    )


def _compute_of(quota: Quota, counted: Counted) -> Compute:
    """Return what a quota of a tree of CPU, memory or pods was in the policy."""
    return next(compute for compute in quota.compute if compute.counted is counted)


@check("GPU450", "compute-over-parent")
def compute_over_parent(plan: Plan) -> Iterator[Finding]:
    """The CPU or memory that a tenant's children are guaranteed adds up to more than its own.

    ## Why
    A parent that states a quota is an envelope: its children divide its CPU and memory among them, as its units. What
    they promise beyond it is nobody's.

    ## Instead
    Raise the parent's guarantee, or lower those of the children.
    """
    for counted, tree in plan.compute_trees.items():
        for parts in grouped(((part.holder.name, part.whole.at), part) for part in tree.nested_quotas).values():
            parent, whole, amounts = parts[0].holder, parts[0].whole, [int(part.quota.guaranteed) for part in parts]
            if sum(amounts) <= int(whole.guaranteed):
                continue
            child = parts[crossing(amounts, int(whole.guaranteed))]
            held, total = amount_text(counted, int(whole.guaranteed)), amount_text(counted, sum(amounts))
            yield Finding(
                _place(_compute_of(child.quota, counted)),
                f"children of `{parent.name}` have guarantees of {words_for(counted, sum(amounts))} in pool "
                f"`{whole.pool.name}`, and it has {held}",
                label=f"`{child.tenant.name}` makes it too much",
                related=(Label(_place(_compute_of(whole, counted)), f"`{parent.name}` has {held} to divide"),),
                help=f"raise that of `{parent.name}` to {total}, or lower those of its children",
            )


# --- One quota ---------------------------------------------------------------------------------------------------


@check("GPU451", "compute-limit-below-guaranteed")
def compute_limit_below_guaranteed(plan: Plan) -> Iterator[Finding]:
    """A limit on CPU or memory is lower than the guarantee.

    ## Why
    The limit holds for all that a tenant uses, what it is guaranteed included. The rest of the guarantee is kept free
    for it and can never be used.

    ## Instead
    Raise the limit, or leave it out: it is then as high as the guarantee.
    """
    for tenant, quota in each_quota(plan):
        for compute in quota.compute:
            if not compute.is_derived and compute.limit is not None and compute.limit < compute.guaranteed:
                held = amount_text(compute.counted, compute.guaranteed)
                yield Finding(
                    compute.at / "limit",
                    f"tenant `{tenant.name}` may use less {_of_nodes(compute.counted)} of pool `{quota.pool.name}` "
                    "than guaranteed",
                    label=f"{amount_text(compute.counted, compute.limit)} at most",
                    related=(Label(compute.at / "guaranteed", f"{held} guaranteed"),),
                    help=f"write `limit: {held}` or more, or leave it out",
                )


def _of_nodes(counted: Counted) -> str:
    return "CPU" if counted is Counted.CPU else "memory"


@check("GPU452", "uncapped-compute", Severity.WARNING)
def uncapped_compute(plan: Plan) -> Iterator[Finding]:
    """On plain Kubernetes, a bound on CPU, memory or pods is lost: another quota of the tenant has none.

    ## Why
    A ResourceQuota counts all pods of a namespace, on whatever nodes they are. With 64 CPUs of one pool and any number
    of another, any number is all that it can say.

    ## Instead
    State it in each quota of the tenant, or give the tenant a namespace for each pool and `split` each quota so that
    one of them has all of it. Schedulers with queues count by pool. With `onLoss: refuse` this is an error.
    """
    for tenant in plan.tenants if not plan.scheduler.counts_tenants else ():
        for counted in Counted:
            yield from islice(_uncapped(plan, tenant, counted), 1)


def _uncapped(plan: Plan, tenant: Tenant, counted: Counted) -> Iterator[Finding]:
    """Find the namespaces in which something bounds it and nothing caps it."""
    for namespace in tenant.spec.namespaces:
        granted = [quota for quota in tenant.quotas if quota.caps[namespace] != 0]
        stated = [part for quota in granted if (part := quota.find_compute(counted)) and part.limit is not None]
        bounded = {quota.pool.name for quota in granted if quota.find_compute(counted) in stated}
        others = [quota for quota in granted if quota.pool.name not in bounded]
        if stated and others and compute_cap(tenant.quotas, namespace, counted) is None:
            names = listing(list(dict.fromkeys(quota.pool.name for quota in others)))
            yield Finding(
                _place(stated[0]),
                f"nothing caps the {_noun(counted)} of tenant `{tenant.name}`: it has no bound in {names}",
                label="lost",
                related=(Label(others[0].at, f"says nothing of {_noun(counted)}, or has no limit"),),
                notes=("a ResourceQuota counts the pods of a namespace on whatever nodes they are",),
                help=f"add `{counted.value}:` to the other quotas as well, with a limit",
                severity=severity_of_loss(plan, Severity.WARNING),
            )


# --- Containers that say nothing ---------------------------------------------------------------------------------


@check("GPU457", "defaults-refuse-containers")
def defaults_refuse_containers(plan: Plan) -> Iterator[Finding]:
    """The default limit of containers is below their default request, or above `maxRatio` times the request.

    ## Why
    The API server refuses a LimitRange whose default request is above its default limit (`ValidateLimitRange` in
    `pkg/apis/core/validation/validation.go` of kubernetes/kubernetes). It takes one whose default limit is more times
    the default request than the ratio says, and then refuses every container that says nothing. So it does beside a
    ratio where the default request is 0, which no limit is a number of times of (`limitRequestRatioConstraint` in
    `plugin/pkg/admission/limitranger/admission.go` there).

    ## Instead
    Write a `limit` of `request` or more, and of no more times that than `maxRatio`; beside it, a `request` above 0.
    """
    for tenant in plan.tenants:
        for counted, default in defaults_of(tenant).items():
            request, limit, ratio = default.request, default.limit, default.ratio
            if request is None or limit is None:
                continue
            least, asked = amount_text(counted, request), amount_text(counted, limit)
            related = (Label(default.at / "request", f"{least} by default"),)
            message = f"containers of tenant `{tenant.name}` have {asked} of {_of_nodes(counted)} at most"
            if limit < request:
                yield Finding(
                    default.at / "limit",
                    f"{message} and ask for {least}",
                    label="less than the request",
                    related=related,
                    help=f"write `limit: {least}` or more",
                )
            elif ratio is not None and request == 0:
                yield Finding(
                    default.at / default.request_field,
                    f"containers of tenant `{tenant.name}` ask for no {_of_nodes(counted)}, and a ratio needs a "
                    "request",
                    label="every container that says nothing is refused",
                    related=(Label(default.at / "maxRatio", f"{number(ratio)} times at most"),),
                    help=f"write `{default.request_field}: {DEFAULT_REQUESTS[counted]}` or more, or remove `maxRatio`",
                )
            elif ratio is not None and limit > request * ratio:
                most = _Written(default.at / "limit", counted, amount_text(counted, int(request * ratio)), tenant.name)
                less = "raise `request`" if _flaw(most) else f"write `limit: {most.text}` or less"
                yield Finding(
                    default.at / "limit",
                    f"{message}, more than {number(ratio)} times the {least} that they ask for",
                    label="every container that says nothing is refused",
                    related=(*related, Label(default.at / "maxRatio", f"{number(ratio)} times at most")),
                    help=f"{less}, or raise `maxRatio`",
                )


@check("GPU458", "ratio-without-defaults", Severity.WARNING)
def ratio_without_defaults(plan: Plan) -> Iterator[Finding]:
    """A largest ratio of limits to requests refuses containers that state only one of them, or neither.

    ## Why
    A LimitRange with a `maxLimitRequestRatio` refuses a container without a request, and one without a limit
    (`limitRequestRatioConstraint` in `plugin/pkg/admission/limitranger/admission.go` of kubernetes/kubernetes). A
    default limit gives both to those that say nothing.

    ## Instead
    Add a `limit`, and a `request` where it is to be less. Or ignore this with a comment, where everybody is to say it.
    """
    for tenant in plan.tenants:
        for default in defaults_of(tenant).values():
            if default.ratio is not None and default.limit is None:
                name = _of_nodes(default.counted)
                yield Finding(
                    default.at / "maxRatio",
                    f"containers of tenant `{tenant.name}` that state no limit of {name} are refused",
                    label="a ratio needs both",
                    help="add a `limit` beside it, which they have by default",
                )


@check("GPU459", "defaults-hide-limits")
def defaults_hide_limits(plan: Plan) -> Iterator[Finding]:
    """On a cluster with Kueue, a quota of CPU or memory stands beside a default for containers that say nothing of it.

    ## Why
    A container that states a limit alone asks for as much once its pod is made. Kueue counts a Job by its template, and
    takes the default of the LimitRange first (`AdjustResources` in `pkg/workload/resources.go` of Kueue 0.19): such a
    Job counts as little as a container that says nothing, and uses as much as its limits. So anybody could use more
    than the quota.

    ## Instead
    Remove the default, or the CPU or memory from the quotas: those of units hold as before.
    """
    # What holds Jobs back counts them before they have pods.
    for tenant in plan.tenants if plan.scheduler.suspends_jobs else ():
        for counted, default in defaults_of(tenant).items():
            counting = [part for quota in tenant.quotas if (part := quota.find_compute(counted))]
            if default.request is not None and counting:
                yield Finding(
                    default.at / default.request_field,
                    f"work of tenant `{tenant.name}` that states limits alone counts as a default of "
                    f"{amount_text(counted, default.request)} {_of_nodes(counted)}",
                    label="Kueue takes it before limits",
                    related=(Label(_place(counting[0]), "a quota that so can be passed by"),),
                    help=f"remove `{counted.value}` here, or from the quotas",
                )


@check("GPU433", "defaults-too-large")
def defaults_too_large(plan: Plan) -> Iterator[Finding]:
    """The default requests of containers exceed their tenant's quota, or a node of its pools.

    ## Why
    A container that says nothing has the default request, or as much as the default limit. On plain Kubernetes a
    ResourceQuota refuses each pod that asks for more than it has (`CheckRequest` in
    `staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go` of kubernetes/kubernetes). A pod
    that asks for more than any node has waits for ever; nodes that are in no pool may have more, so that is a warning.

    ## Instead
    Write a `request` that one container needs.
    """
    for tenant in plan.tenants:
        for counted, default in defaults_of(tenant).items():
            if default.request is None:
                continue
            at, asked = default.at / default.request_field, words_for(counted, default.request)
            message = f"a container of tenant `{tenant.name}` that says nothing asks for {asked}"
            caps = [
                compute_caps(tenant, namespace, plan.scheduler).get(counted) for namespace in tenant.spec.namespaces
            ]
            cap = max((cap for cap in caps if cap is not None), default=None)
            counting = [part for quota in tenant.quotas if (part := quota.find_compute(counted))]
            sizes = [(of_node(quota.pool.spec.nodes, counted), quota.pool) for quota in tenant.quotas]
            known = [(size, pool) for size, pool in sizes if size is not None]
            if cap is not None and None not in caps and counting and default.request > cap:
                yield Finding(
                    at,
                    f"{message}, and the tenant may use {amount_text(counted, cap)}",
                    label="every such pod is refused",
                    related=(Label(_place(counting[0], "limit"), "its quota"),),
                    help=f"write `request: {DEFAULT_REQUESTS[counted]}`, or what a container needs",
                )
            elif known and len(known) == len(sizes) and default.request > max(size for size, _ in known):
                has, pool = max(known, key=itemgetter(0))
                yield Finding(
                    at,
                    f"{message}, and a node of pool `{pool.name}` has {amount_text(counted, has)}",
                    label="fits on no node of its pools",
                    related=(Label(pool.nodes.at / counted.value, "a node has this much, with the reserve"),),
                    help=f"write `request: {DEFAULT_REQUESTS[counted]}`, or what a container needs",
                    severity=Severity.WARNING,
                )


# --- Workloads ---------------------------------------------------------------------------------------------------


@check("GPU453", "pod-larger-than-a-node")
def pod_larger_than_a_node(plan: Plan) -> Iterator[Finding]:
    """A workload's pod asks for more CPU or memory than a node of its pool has.

    ## Why
    A pod runs on one node. Where none has as much, it waits for ever, whatever the quota says.

    ## Instead
    Ask for less in each pod, and run more of them, or choose a pool with larger nodes.
    """
    for workload in plan.workloads:
        for counted, asked in _asked(workload).items():
            sizes = [(of_node(pool.spec.nodes, counted), pool) for pool in reach(plan, workload)]
            has, pool = max(((asked if size is None else size, pool) for size, pool in sizes), key=itemgetter(0))
            if asked > has:
                requests, main, excess = requests_of(workload, counted), asked_by_main(workload, counted), asked - has
                is_a_sum = all(request.goes_on for request in requests)
                yield Finding(
                    _asked_at(workload, counted),
                    f"a pod of `{workload.name}` asks for {words_for(counted, asked)}, and a node of pool "
                    f"`{pool.name}` has {amount_text(counted, has)}",
                    label="fits on no node",
                    related=(Label(pool.nodes.at / counted.value, "a node has this much, with the reserve"),),
                    notes=tuple(
                        f"`{request.container or MAIN_CONTAINER}`: {words_for(counted, request.amount)}"
                        for request in requests
                        if len(requests) > 1
                    ),
                    help=f"write `{counted.value}: {amount_text(counted, main.amount - excess)}` or less"
                    if main and is_a_sum and main.amount > excess
                    else f"ask for {words_for(counted, excess)} less in the containers of a pod",
                )


@check("GPU454", "workloads-over-compute")
def workloads_over_compute(plan: Plan) -> Iterator[Finding]:
    """Workloads ask together for more CPU, memory or pods than their tenant may use in a pool.

    ## Why
    Pods beyond the quota are refused or wait for ever. All services must fit at once, with the largest of the jobs;
    jobs take turns. What counts is the most pods that there can be. On plain Kubernetes a ResourceQuota holds each
    namespace to its part, of the guarantee where that is the cap.

    With every scheduler but plain Kubernetes, queues count CPU and memory. They count preemptible work separately if a
    higher class of the same tenant may evict it: the scheduler frees its place.

    ## Instead
    Ask for less in each pod, or raise the limit in the tenant's quota.
    """
    for counted in Counted:
        held: dict[tuple[str, str], list[Workload]] = {}
        for workload in plan.workloads:
            if len(reach(plan, workload)) > 1:
                continue  # what does not fit here goes elsewhere
            for holder in plan.tree.path(workload.tenant):
                if holder.name in plan.broken.incomplete_tenants:
                    continue  # what its other quotas allow is not known
                held.setdefault((holder.name, workload.pool.name), []).append(workload)
        for (name, pool), workloads in held.items():
            holder = next(tenant for tenant in plan.tenants if tenant.name == name)
            groups = standing_together(plan.scheduler, workloads) if plan.scheduler.counts_tenants else (workloads,)
            findings = (finding for group in groups for finding in _over_compute(holder, pool, counted, group))
            yield from islice(findings, 1)
        yield from _over_namespaces(plan, counted)


def _over_namespaces(plan: Plan, counted: Counted) -> Iterator[Finding]:
    """Find what a ResourceQuota refuses that has less than the tenant's limit, by `split` or since guarantees cap."""
    for tenant in plan.tenants:
        for namespace in tenant.spec.namespaces:
            cap = compute_caps(tenant, namespace, plan.scheduler).get(counted)
            workloads = [each for each in plan.workloads if each.tenant is tenant and each.namespace == namespace]
            if cap is None or not workloads or tenant.name in plan.broken.incomplete_tenants:
                continue
            parts = _at_once([(workload, _most(workload, counted)) for workload in workloads])
            total = sum(amount for _, amount in parts)
            quotas = [quota for quota in tenant.quotas if quota.find_compute(counted)]
            limits = [part.limit for quota in quotas if (part := quota.find_compute(counted))]
            is_reported = None not in limits and len(limits) == 1 and total > (limits[0] or 0)
            if total > cap and not is_reported:
                workload, _ = parts[crossing([amount for _, amount in parts], cap)]
                yield Finding(
                    workload.pods_at if counted is Counted.PODS else _asked_at(workload, counted),
                    f"workloads in namespace `{namespace}` ask for {words_for(counted, total)}, and pods there may use "
                    f"{amount_text(counted, cap)}",
                    label=f"`{workload.name}` makes it too much",
                    related=tuple(
                        Label(
                            quota.at / "split" / namespace if namespace in quota.split else _place_of(quota, counted),
                            "its part",
                        )
                        for quota in quotas[:2]
                    ),
                    help="ask for less, or give the namespace a larger part in `split`"
                    if quotas[0].split
                    else f"ask for less, or raise what is capped to `{amount_text(counted, total)}`",
                )


def _over_compute(holder: Tenant, pool: str, counted: Counted, workloads: Sequence[Workload]) -> Iterator[Finding]:
    bounds = [quota.find_compute(counted) for quota in holder.quotas if quota.pool.name == pool]
    limits = [bound.limit for bound in bounds if bound and bound.limit is not None]
    first = next(filter(None, bounds), None)
    if first is None or len(limits) < len(bounds):
        return
    parts, bound = _at_once([(workload, _most(workload, counted)) for workload in workloads]), sum(limits)
    total = sum(amount for _, amount in parts)
    if total > bound:
        workload, _ = parts[crossing([amount for _, amount in parts], bound)]
        largest = sorted(parts, key=lambda part: (-part[1], part[0].name))[:SHOWN]
        yield Finding(
            workload.pods_at if counted is Counted.PODS else _asked_at(workload, counted),
            f"workloads of `{holder.name}` ask for {words_for(counted, total)} in pool `{pool}`, and it may use "
            f"{amount_text(counted, bound)}",
            label=f"`{workload.name}` makes it too much",
            related=(Label(_place(first, "limit"), f"{amount_text(counted, bound)} at most"),),
            notes=tuple(
                f"`{each.name}`: {count(each.most_pods, 'pod')}, {words_for(counted, amount)}"
                for each, amount in largest
                if counted is not Counted.PODS
            ),
            help=f"ask for less, or raise the limit to `{amount_text(counted, total)}`",
        )


def _at_once(parts: Sequence[tuple[Workload, int]]) -> list[tuple[Workload, int]]:
    """Return what has to fit together though jobs take turns: all services, and the largest of the jobs."""
    jobs = [part for part in parts if part[0].ends]
    largest = [max(jobs, key=lambda part: part[1])] if jobs else []
    return [*(part for part in parts if part not in jobs), *largest]


def _most(workload: Workload, counted: Counted) -> int:
    """Return what all pods take at most, or 0 if the workload does not say it."""
    return workload.most_pods * (1 if counted is Counted.PODS else _asked(workload).get(counted, 0))


def _asked(workload: Workload) -> Mapping[Counted, int]:
    """Return what each pod asks for, by itself or by default. A text that is no quantity is reported for itself."""
    asked = {counted: asked_by_pod(workload, counted) for counted in OF_NODES}
    return {counted: amount for counted, amount in asked.items() if amount is not None}


def _asked_at(workload: Workload, counted: Counted) -> Origin:
    """Return where a workload says what a pod asks for, or else its tenant."""
    main = asked_by_main(workload, counted)
    return main.at if main else requests_of(workload, counted)[0].at


@check("GPU455", "uncounted-workload", Severity.NOTE)
def uncounted_workload(plan: Plan) -> Iterator[Finding]:
    """A workload says nothing of CPU or memory, of which its tenant has a quota.

    ## Why
    Quotas count what pods ask for, not what they use. A pod that asks for nothing counts as next to nothing, gets the
    least when others want the same, and is the first to be evicted when a node runs out of memory.

    ## Instead
    Write `cpu` and `memory` into the workload: what one of its pods needs.
    """
    for workload in plan.workloads:
        quota = plan.tree.find_quota(workload.tenant, workload.key)
        for counted in OF_NODES:
            if quota and quota.find_compute(counted) and asked_by_main(workload, counted) is None:
                part = share_of_units(workload.pool, workload.unit, workload.amount_per_pod, counted)
                yield Finding(
                    name_of(workload.at),
                    f"workload `{workload.name}` does not say how {'many' if counted is Counted.CPU else 'much'} "
                    f"{_noun(counted)} a pod needs",
                    label=f"no `{counted.value}`",
                    related=(Label(_place_of(quota, counted), f"`{workload.tenant.name}` has a quota of it"),),
                    notes=(f"its units are {words_for(counted, part)} of a node",) if part else (),
                    help=f"add `{counted.value}: {amount_text(counted, part) if part else '...'}`",
                )


def _place_of(quota: Quota, counted: Counted) -> Origin:
    compute = quota.find_compute(counted)
    return _place(compute) if compute else quota.at
