"""Checks on what the cluster's scheduler cannot keep (GPU511-519, 530-539, 553).

What each scheduler keeps is data, the capability matrix; these say where a policy asks for what is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gpuplan.compiler.base.diagnostics import Finding, Label, Origin, Severity
from gpuplan.compiler.base.wording import joined, listing
from gpuplan.compiler.catalog.schedulers import Concept, Needs, Support, concepts, get_concept
from gpuplan.compiler.checks.caps import cap_field
from gpuplan.compiler.checks.losses import Use, losses, uncounted_profiles, uses
from gpuplan.compiler.checks.registry import Check, check
from gpuplan.compiler.checks.wording import severity_of_loss
from gpuplan.compiler.planning.grants import has_admission_policies
from gpuplan.compiler.planning.plan import Fraction, Mig, Plan
from gpuplan.compiler.planning.schedulers import keepers

# --- What is kept in part, or not at all -------------------------------------------------------------------------


def _lost(
    code: str,
    name: str,
    *concepts: str,
    place: str = "kind",
    note: str = "",
    help_: str = "",
    when: Callable[[Plan], bool] | None = None,
) -> Callable[[Callable[[], None]], Check[Plan]]:
    """Declare a check of what is lost of concepts of the capability matrix; the function is but its page."""

    def declare(page: Callable[[], None]) -> Check[Plan]:
        def find(plan: Plan) -> Iterator[Finding]:
            for concept in concepts:
                yield from _losses(plan, concept, place, note, help_)

        find.__doc__ = page.__doc__
        return Check(check(code, name, Severity.NOTE)(find).rule, find, when)

    return declare


@_lost("GPU511", "parent-does-not-bound", "parent", when=lambda plan: not plan.scheduler.counts_tenants)
def parent_does_not_bound() -> None:
    """On plain Kubernetes, a tenant's children may together use more than their parent.

    ## Why
    A ResourceQuota counts one namespace, and nothing counts namespaces together. The parent's numbers are checked
    against the pool's capacity, but in the cluster only the children's caps hold.

    ## Instead
    Lower the children's caps until they fit into the parent's, or use a scheduler with a tree of queues.
    """


@_lost(
    *("GPU512", "limit-not-allowed", "limit"),
    place="cap",
    note="`cap: guaranteed` makes the guarantee the one number of a ResourceQuota",
    help_="accept it, or remove `cap`: tenants may then use their limits, and guarantees hold as far as the limits fit",
    when=lambda plan: cap_field(plan) == "guaranteed",
)
def limit_not_allowed() -> None:
    """On plain Kubernetes with `cap: guaranteed`, tenants cannot use more than their guarantee.

    ## Why
    A ResourceQuota has one number. With the guarantee as the cap, all guarantees hold, and nobody can use what others
    leave idle, whatever `limit` says.

    ## Instead
    Accept it, or write `cap: limit`: then tenants may use more, and guarantees hold as far as the caps fit.
    """


@_lost("GPU555", "class-limits-not-kept", "class-limits")
def class_limits_not_kept() -> None:
    """A quota has a limit for a priority class, and nothing bounds it, or not in this pool alone.

    ## Why
    A ResourceQuota counts the pods of a class (`scopeSelector`). Where queues cap what tenants use there is none: it
    would refuse some pods of work that a queue has let in as a whole. No queue has a limit for a class. And what is
    claimed, or a fraction of a GPU, a ResourceQuota does not count by class. Nor does it know pools: where the tenant
    has quotas on the same resource in two, what pods of the class may use is the sum, in either, and without a bound
    where one of the two has none.

    ## Instead
    Write `scheduler: {cap: limit}` in the Cluster, for a ResourceQuota beside the queues; or make the class a tenant of
    its own, with this one as its `parent`. Where pools share a resource, give each a tenant of its own.
    """


@_lost("GPU556", "labelled-namespaces-not-counted", "labelled-namespaces")
def labelled_namespaces_not_counted() -> None:
    """A tenant has namespaces by their label, and nothing counts what they use.

    ## Why
    Queues of Kueue and of KAI-Scheduler count a tenant's work in any of its namespaces. A ResourceQuota is an object of
    one namespace, and a project of Run:ai has one that it is told by name. Admission policies hold everywhere: pods get
    the units that the tenant has a quota on, in its pools and classes, and any number of them.

    ## Instead
    Let whoever makes these namespaces make a ResourceQuota in each, or use a scheduler with queues.
    """


@_lost("GPU513", "lendable-not-kept", "lendable")
def lendable_not_kept() -> None:
    """Tenants bound what others may borrow of their guarantee, and the scheduler cannot.

    ## Why
    Only Kueue has a lending limit. KAI-Scheduler and Run:ai lend out whatever is idle and reclaim it later. On plain
    Kubernetes whoever comes first has it. Where all caps fit into the pool, or nobody else has a limit above its
    guarantee, nothing is borrowed, and this check is silent.

    ## Instead
    Leave `lendable` out where it cannot be kept, or lower the others' limits until the caps fit into the pool.
    """


@_lost("GPU514", "surplus-not-divided", "surplus-weight", "surplus-rank")
def surplus_not_divided() -> None:
    """Tenants have a weight or a rank in the surplus, and the scheduler knows none.

    ## Why
    On plain Kubernetes idle units go to whoever comes first. Kueue shares by weight but has no order of ranks among
    tenants; Run:ai has seven ranks. Where all caps fit into the pool there is enough for everybody, and this check is
    silent.

    ## Instead
    Leave `surplus` at its defaults where it cannot be kept, or use KAI-Scheduler, which knows both.
    """


@_lost("GPU515", "protection-not-kept", "protect")
def protection_not_kept() -> None:
    """Tenants ask for a minimum run time before eviction, and the scheduler knows none, or one for all.

    ## Why
    kube-scheduler and Kueue evict a pod as soon as a more urgent one needs its place, after a minute as after a day.
    Run:ai waits as long for every tenant of a node pool, KAI-Scheduler as each tenant asks. Where nobody can want the
    units that a tenant has, this check is silent.

    ## Instead
    Leave `protect` out where it cannot be kept; let long runs write checkpoints, or give them a higher priority class.
    """


@_lost("GPU530", "namespaces-counted-apart", "namespaces", when=lambda plan: plan.scheduler.has_projects)
def namespaces_counted_apart() -> None:
    """On a cluster with Run:ai, the namespaces of one tenant are meant to share a quota.

    ## Why
    A project of Run:ai has one namespace. Further namespaces are projects of their own with quotas of their own, and
    what one leaves idle is surplus to all tenants, not to its sister. Without a `split` each gets an equal part.

    ## Instead
    Say with `split` what each namespace has, or give the tenant one namespace. On plain Kubernetes a tenant without
    a `split` is an error.
    """


@_lost("GPU531", "units-counted-together", "unit")
def units_counted_together() -> None:
    """A tenant has several units of one pool, which the scheduler counts as one number.

    ## Why
    KAI-Scheduler and Run:ai count GPUs. A queue that is guaranteed four `1g.10gb` and two `2g.20gb` of a pool is
    guaranteed eight slices there, and may hold them as eight `1g.10gb` before anybody reclaims one. A ResourceQuota
    beside it (`scheduler.cap: limit`, as always with Run:ai) caps each unit at its limit; where there is one and every
    limit is the guarantee, this check is silent.

    ## Instead
    Give each unit a pool of its own, or leave `limit` out and write `scheduler: {cap: limit}`.
    """


@_lost(
    *("GPU532", "priority-across-tenants", "priority"),
    help_="see `gpuplan show --preemption` for who evicts whom; to accept it, write `# gpuplan: ignore[GPU532] REASON` "
    "above that line of the Cluster",
)
def priority_across_tenants() -> None:
    """On plain Kubernetes, pods of one tenant may evict those of another from what both may use.

    ## Why
    kube-scheduler looks at the values of the priority classes and at nothing else. Where tenants may together use more
    units than there are, a pod of a higher class evicts a lower one, whoever is within its guarantee. So it is with CPU
    and memory, also for pods without GPUs; this check looks at them where the pool says what its nodes have.

    ## Instead
    Lower the limits until all caps fit into the pool, `cpu` and `memory` included (`followUnits: true` caps both for
    all of a pool's tenants), write `preempts: false` on the class, or use a scheduler that compares pods of one tenant
    only. Where the pool has no taint, caps of its tenants bound nobody else (GPU425).
    """


@_lost("GPU533", "never-evicted-not-kept", "preemptible", when=lambda plan: plan.scheduler.leaves_preemption_to_queues)
def never_evicted_not_kept() -> None:
    """On a cluster with Kueue, pods of a class that says `preemptible: false` are evicted all the same.

    ## Why
    Kueue has no workload that is exempt. Within a queue a higher class evicts a lower one, and whoever wants its
    guarantee back takes it from any workload that runs on borrowed units.

    ## Instead
    Keep such work within the guarantee: leave `limit` out for the tenant that names the class. KAI-Scheduler and Run:ai
    keep it there themselves.
    """


@_lost("GPU534", "fraction-does-not-grow", "fraction-range", when=lambda plan: plan.scheduler.supports("fraction"))
def fraction_does_not_grow() -> None:
    """A workload asks for a range of a GPU, and the scheduler hands out fixed fractions.

    ## Why
    Only Run:ai lets a pod use more than it asked for while the rest of the GPU is idle. KAI-Scheduler gives a pod its
    `min` and never more.

    ## Instead
    Write one number, as much as the pod needs at its busiest, or accept that it stays at `min`.
    """


@_lost("GPU535", "gang-not-kept", "gang")
def gang_not_kept() -> None:
    """A training job's pods must start together, and the scheduler starts them as they come.

    ## Why
    kube-scheduler places one pod at a time: two jobs of four pods on six GPUs may get three each and wait for ever.
    Kueue admits a job as a whole, so that a gang which is smaller than its job still waits for all of it.

    ## Instead
    Use a scheduler that knows gangs; with Kueue, let the gang be as large as the job.
    """


@_lost("GPU536", "topology-not-kept", "topology", "topology-level")
def topology_not_kept() -> None:
    """A pool says where its nodes are, or a training how close its pods are, and the scheduler does not look.

    ## Why
    kube-scheduler places each pod by itself. The pods of one job may end up in racks far apart and wait for the network
    between them. Run:ai is told of a topology by node pool, and what gpuplan writes for a workload says no level.

    ## Instead
    Leave `topology` out, give pods an affinity to a rack by hand, or use a scheduler that knows topology.
    """


@_lost("GPU594", "deadline-counts-waiting", "deadline")
def deadline_counts_waiting() -> None:
    """Work has a limit on its time, and the time in which its pods wait counts as well.

    ## Why
    A Job's `activeDeadlineSeconds` counts from when the Job starts, which is when it is made, unless it is suspended
    (https://kubernetes.io/docs/concepts/workloads/controllers/job/#suspending-a-job). Kueue keeps Jobs suspended until
    they are admitted. Elsewhere the pods are there from the beginning, and a job that waits in a queue for as long as
    its `deadline`, or as a workspace's `runTime`, fails without having run.

    ## Instead
    Allow for the wait in it, or use Kueue.
    """


@_lost("GPU554", "time-limits-not-kept", "time-limits")
def time_limits_not_kept() -> None:
    """A tenant's work has limits on its time or on its idle GPUs, and the scheduler ends none.

    ## Why
    Run:ai measures how long GPUs are idle, and ends what a project's rules say. kube-scheduler, Kueue and KAI-Scheduler
    know neither what a GPU does nor how long work of a queue may run: a notebook that was forgotten keeps its GPUs.

    ## Instead
    Give trainings a `deadline` and workspaces `idle` and `runTime`, and look at the alert `GpuAllocatedIdle`; or use
    Run:ai.
    """


@_lost("GPU537", "placement-not-kept", "placement")
def placement_not_kept() -> None:
    """A pool asks for bin packing or spreading, and the scheduler has one way for the whole cluster.

    ## Why
    How kube-scheduler scores nodes is part of its own configuration (`NodeResourcesFit`), for every pod of the cluster.
    Kueue leaves the choice of the node to it.

    ## Instead
    Leave `placement` out and configure kube-scheduler, or use KAI-Scheduler or Run:ai, which place by pool.
    """


@_lost("GPU553", "fallback-not-kept", "fallback")
def fallback_not_kept() -> None:
    """A pool has a `fallback`, and the scheduler does not send work there as the policy says, or not at all.

    ## Why
    kube-scheduler takes the first pool for a preference, one among others. Kueue takes flavors in order, but pods that
    ask for a Topology get none of a flavor without it. KAI-Scheduler has a scheduler for each pool, which sees no other
    nodes. To Run:ai a Workload names its one node pool by a label.

    ## Instead
    Nothing, where a preference is enough. Give both pools the same `topology`, or neither. With KAI-Scheduler or Run:ai
    leave `fallback` out, or use Kueue, which takes pools in their order.
    """


@_lost("GPU538", "claims-not-counted", "dra")
def claims_not_counted() -> None:
    """A pool is allocated by DRA, and the scheduler does not count claims as the policy does.

    ## Why
    KAI-Scheduler counts claimed devices one by one: where a pool hands out large and small partitions, it divides them
    among tenants as if they were worth the same. Run:ai's projects count no claims.

    ## Instead
    Give each unit a pool of its own, write `allocation: devicePlugin` for the pool, or use plain Kubernetes or Kueue,
    which count by device class.
    """


@_lost("GPU456", "compute-not-kept", "compute", "pods")
def compute_not_kept() -> None:
    """Tenants have quotas of CPU, memory or pods in a pool, and the scheduler does not count them by pool.

    ## Why
    A ResourceQuota of plain Kubernetes counts all pods of a namespace, on whatever nodes: a tenant with 64 CPUs of each
    of two pools may have 128 of one. It lends nothing and takes nothing back. Where each tenant has them in one pool,
    and all caps fit into it, nothing is lost, and this check is silent.

    ## Instead
    Give the tenant a namespace for each pool, and `split` each quota so that one of them has all of it; lower the
    limits until they fit; or use a scheduler that counts them in its queues.
    """


def _losses(plan: Plan, concept: str, place: str, note: str, help_: str) -> Iterator[Finding]:
    """Find all that is lost in one way, as one finding, since the cluster loses it and a fleet has many tenants."""
    scheduler = plan.cluster.scheduler
    kept = plan.scheduler.capability(concept)
    verb = "does not keep" if kept.support is Support.IMPOSSIBLE else "keeps only in part:"
    if found := losses(plan, concept, plan.scheduler):
        yield _asked(
            found,
            scheduler.at / place,
            f"{plan.scheduler.title} {verb} {get_concept(concept).title}",
            help_
            or f"see `gpuplan explain scheduler/{scheduler.kind}` for what it keeps, `gpuplan show --scheduler` for "
            "what another would",
            notes=(note or kept.loss,),
            severity=severity_of_loss(plan, Severity.NOTE),
        )


def _asked(
    places: tuple[Use, ...],
    at: Origin,
    message: str,
    help_: str,
    *,
    notes: tuple[str, ...] = (),
    severity: Severity | None = None,
) -> Finding:
    return Finding(
        at,
        message,
        label="asked for in one place" if len(places) == 1 else f"asked for in {len(places)} places",
        related=tuple(Label(use.at, use.text) for use in places[:_SHOWN]),
        notes=(*notes, f"{len(places) - _SHOWN} more like these") if len(places) > _SHOWN else notes,
        help=help_,
        severity=severity,
    )


_SHOWN = 3


def _kind_of(plan: Plan) -> Origin:
    return plan.cluster.scheduler.at / "kind"


# --- What cannot be counted at all -------------------------------------------------------------------------------


@check("GPU516", "unit-unknown-to-scheduler")
def unit_unknown_to_scheduler(plan: Plan) -> Iterator[Finding]:
    """A pool hands out a unit that the cluster's scheduler cannot count.

    ## Why
    Fractions of a GPU are an idea of KAI-Scheduler and Run:ai: to Kubernetes and Kueue a pool of fractions has nothing
    to hand out and nothing to cap. Those two in turn do not count the device plugin's shares. KAI-Scheduler reads the
    size of a MIG device from its name: profiles with an attribute, such as `1g.10gb+me`, cost nothing there, so that
    a tenant may take all of them.

    ## Instead
    On plain Kubernetes and Kueue, share by time-slicing, MPS or MIG. With KAI-Scheduler and Run:ai, use `fraction` for
    shares, and with KAI-Scheduler MIG profiles without attributes. Of shares under Run:ai this is a warning, because
    its documentation does not say.
    """
    kept, by_scheduler = plan.scheduler.capability("shares"), (_scheduler_label(plan),)
    for pool in plan.parts:
        if isinstance(pool.sharing, Fraction) and not plan.scheduler.supports("fraction"):
            yield Finding(
                pool.sharing.at.key,
                f"{plan.scheduler.title} cannot hand out fractions of pool `{pool.name}`",
                label=f"needs {joined(keepers('fraction'), 'or')}",
                related=by_scheduler,
                notes=(plan.scheduler.capability("fraction").loss,),
                help="write `timeSlicing: {replicas: 4}` or another kind of sharing, or change the cluster's scheduler",
            )
        elif pool.shares and kept.support is Support.IMPOSSIBLE:
            yield Finding(
                pool.shares.at.key,
                f"{plan.scheduler.title} does not count the shares of pool `{pool.name}`",
                label="shares of the device plugin",
                related=by_scheduler,
                notes=(kept.loss,),
                help="write `sharing: {fraction: {}}`; a share of one in four is then `gpu-fraction: 0.25`",
                severity=severity_of_loss(plan, Severity.WARNING) if kept.is_uncertain else None,
            )
        elif isinstance(pool.sharing, Mig) and plan.scheduler.reads_sizes_from_names and uncounted_profiles(pool):
            odd = uncounted_profiles(pool)
            yield Finding(
                pool.sharing.layout_at,
                f"KAI-Scheduler counts {listing([unit.name for unit in odd])} of pool `{pool.name}` as nothing",
                label=f"`{odd[0].resource}` has no size in its name",
                related=by_scheduler,
                notes=("it reads names of the form `nvidia.com/mig-2g.20gb`; a quota does not count others",),
                help="use profiles without an attribute",
            )


def _scheduler_label(plan: Plan) -> Label:
    return Label(_kind_of(plan), f"this cluster has {plan.scheduler.title}")


# --- The tree of tenants -----------------------------------------------------------------------------------------


@check("GPU518", "tenant-tree-too-deep")
def tenant_tree_too_deep(plan: Plan) -> Iterator[Finding]:
    """On a cluster with Run:ai, a tenant's parent has a parent itself.

    ## Why
    Run:ai has two levels: projects, and the departments that they belong to. A department cannot be part of another.

    ## Instead
    Name the top tenant as the parent of all of them.
    """
    most = plan.scheduler.most_levels
    for tenant in plan.tenants if most is not None else ():
        above = list(plan.tree.above(tenant))
        if len(above) >= (most or 0):
            route = " -> ".join(f"`{name}`" for name in (tenant.name, *(item.name for item in above)))
            yield Finding(
                tenant.at / "parent",
                f"tenant `{tenant.name}` is on level {len(above) + 1} of {most}",
                label=f"`{above[0].name}` has a parent itself",
                related=(Label(above[0].at / "parent", f"`{above[1].name}`"), _scheduler_label(plan)),
                notes=(f"{route}; {plan.scheduler.capability('parent').loss}",),
                help=f"write `parent: {above[-1].name}`",
            )


# --- What the scheduler needs beside its objects -----------------------------------------------------------------


@check("GPU519", "no-admission-policies", Severity.WARNING)
def no_admission_policies(plan: Plan) -> Iterator[Finding]:
    """The cluster is too old for the admission policies that keep tenants to their own pools and classes.

    ## Why
    ValidatingAdmissionPolicy is part of Kubernetes since 1.30. On an older cluster only ResourceQuotas are written.
    They count resource names, so that a tenant may use its units in any pool that hands them out, under any priority
    class, and reach GPUs around the device plugin.

    ## Instead
    Upgrade the cluster, or enforce the same rules with an admission webhook. With `onLoss: refuse` this is an error.
    """
    if plan.tenants and not has_admission_policies(plan.cluster):
        titles = joined([concept.title for concept, _ in _needing(plan, Needs.ADMISSION)])
        yield Finding(
            plan.cluster.at / "kubernetes",
            f"Kubernetes {plan.cluster.spec.kubernetes} cannot keep tenants to their own pools and priority classes",
            label="admission policies came with 1.30",
            notes=(
                "written for tenants: Namespaces, ResourceQuotas and RoleBindings",
                *((f"{plan.scheduler.title} keeps by admission policies alone: {titles}",) if titles else ()),
            ),
            help="upgrade the cluster to 1.30 or later",
            severity=severity_of_loss(plan, Severity.WARNING),
        )


@check("GPU539", "scheduler-needs-configuration", Severity.NOTE)
def scheduler_needs_configuration(plan: Plan) -> Iterator[Finding]:
    """The policy asks for something that the scheduler does only if its own configuration says so.

    ## Why
    Some switches are no objects in the cluster but parts of the scheduler's configuration file or of its chart's
    values. Where they are off, the objects that gpuplan writes are accepted and do nothing: a weight of a Kueue queue
    divides nothing as long as fair sharing is off.

    ## Instead
    Set it where the scheduler is installed. This stays a note with `onLoss: refuse`: nothing is lost once it is set,
    and gpuplan cannot see whether it is. A comment keeps it quiet then.
    """
    for concept, found in _needing(plan, Needs.CONFIGURATION):
        message = f"{plan.scheduler.title} keeps {concept.title} only if it is configured to"
        setting = plan.scheduler.capability(concept.id).setting
        yield _asked(found, _kind_of(plan), message, f"set {setting}")


def _needing(plan: Plan, needs: Needs) -> list[tuple[Concept, tuple[Use, ...]]]:
    """Return what the plan asks for that the scheduler does not keep by its own objects, with the places."""
    needing = (concept for concept in concepts() if plan.scheduler.capability(concept.id).needs is needs)
    asked = ((concept, uses(plan, concept.id)) for concept in needing)
    return [(concept, found) for concept, found in asked if found]
