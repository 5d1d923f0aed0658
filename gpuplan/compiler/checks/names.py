"""Checks on names (GPU120-139, GPU434, GPU499): spelling, length, collisions, words that are taken."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from string import ascii_lowercase, digits
from typing import Final

from gpuplan.compiler.base.diagnostics import Finding, Label, Origin, Path, Severity
from gpuplan.compiler.base.wording import help_on_variables, listing
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.checks.wording import name_of, repeats
from gpuplan.compiler.planning.grants import SYSTEM_NAMESPACE, account_of, role_of
from gpuplan.compiler.planning.kai import queues
from gpuplan.compiler.planning.kueue import cluster_queue, counted_units, flavor_name, has_queue
from gpuplan.compiler.planning.plan import (
    MIG_CONFIG_LABEL,
    POOL_LABEL,
    Cluster,
    Layout,
    Mig,
    OwnGpu,
    Plan,
    Pool,
    PriorityClass,
    Retained,
    Tenant,
    Workload,
    with_places,
)
from gpuplan.compiler.planning.schedulers import SCHEDULERS
from gpuplan.compiler.planning.subjects import subject_of
from gpuplan.compiler.policy.models import Member, Platform
from gpuplan.compiler.policy.names import LAYOUT, LONGEST_LABEL, LONGEST_SUBDOMAIN, NAMESPACE, Naming, Reference
from gpuplan.compiler.policy.walking import Name, names_in, naming_of

# --- Spelling and length -----------------------------------------------------------------------------------------


@check("GPU120", "invalid-name", ignorable=False)
def invalid_name(plan: Plan) -> Iterator[Finding]:
    """A name has characters that Kubernetes does not take.

    ## Why
    Names become names of objects, values of node labels and keys of ConfigMaps. Kubernetes takes lower-case letters,
    digits and `-`, with a letter or digit at both ends; names of priority classes may also have dots. Anything else is
    refused when the objects are applied, on every cluster, long after the policy was merged.

    ## Instead
    Use the spelling that the help line suggests, here and wherever the name is referred to.
    """
    wrong = [(part, name) for part, name in _names(plan) if not name.naming.is_spelt(name.text)]
    taken = {(name.naming, name.text) for _, name in _names(plan)} if wrong else set()
    for part, (naming, text, path) in wrong:
        better = _respell(naming, text)
        referring = [_place(other, name.path) for other, name in _names(plan, Reference) if name[:2] == (naming, text)]
        signs = "digits, `-` and `.`" if naming.is_subdomain else "digits and `-`"
        each = ", here and at each place that refers to it" if referring else ""
        yield Finding(
            _place(part, path),
            f"{naming.what} name `{text}` is not a {naming.form}" if text else f"{naming.what} name is empty",
            label=_flaw(naming, text),
            related=tuple(Label(at, "and here") for at in referring),
            notes=(
                naming.carrier,
                f"a {naming.form} has lower-case letters, {signs}, and a letter or digit at both ends",
            ),
            help=help_on_variables(text)
            or (_PATTERN if naming is NAMESPACE and "*" in text else "")
            or (f"`{better}` is taken: write another name" if better and (naming, better) in taken else "")
            or (f"write `{better}`{each}" if better else "start with a letter, go on with letters, digits and `-`"),
        )


_PATTERN: Final = (
    "write `labelledNamespaces: true` below `spec`, and label such namespaces with `gpuplan.dev/tenant` and its name"
)
"""Advice on a pattern in place of a namespace's name."""


def _flaw(naming: Naming, name: str) -> str:
    allowed = "-." if naming.is_subdomain else "-"
    odd = sorted(set(name) - set(f"{ascii_lowercase}{digits}{allowed}"))
    if odd:
        return f"not allowed: {listing(odd)}"
    if not name:
        return "nothing here"
    return "two dots, or `-` beside a dot" if name[0].isalnum() and name[-1].isalnum() else "starts or ends with a sign"


def _respell(naming: Naming, name: str) -> str:
    """Return the nearest name that Kubernetes takes, or an empty text if no sign of it remains."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    parts = plain.split(".") if naming.is_subdomain else [plain]
    respelt = (re.sub(r"[^a-z0-9]+", "-", part).strip("-") for part in parts)
    return ".".join(part for part in respelt if part)[: naming.longest].strip("-.")


@check("GPU121", "name-too-long")
def name_too_long(plan: Plan) -> Iterator[Finding]:
    """A name is longer than what is made of it may be.

    ## Why
    A label value holds 63 characters. A pool's name becomes one as it is; a layout's name gets a hash of nine more
    characters, so 54 are left; KAI-Scheduler's queues join tenant and pool with a `-`. What is too long is refused when
    it is applied, and a label that is refused leaves nodes unpartitioned.

    ## Instead
    Shorten the name by as many characters as the finding says.
    """
    for part, (naming, text, path) in _names(plan):
        if len(text) > naming.longest and naming.is_spelt(text):
            fact = f"{naming.carrier}: at most {naming.longest} characters"
            yield _too_long(naming.what, text, _place(part, path), naming.longest, fact)
    layouts = [("layout", layout, name_of(layout.at)) for layout in plan.layouts]
    mig_parts = [(part, part.sharing.layout) for part in plan.parts if isinstance(part.sharing, Mig)]
    layouts += (("pool", layout, name_of(part.at)) for part, layout in mig_parts if layout.is_inline)
    for kind, layout, at in layouts:
        room = LONGEST_LABEL - (len(layout.config_name) - len(layout.name))
        if not layout.keeps_name and room < len(layout.name) <= LONGEST_LABEL and LAYOUT.is_spelt(layout.name):
            carried = f"nodes carry it as `{MIG_CONFIG_LABEL}: {layout.config_name}`"
            fact = f"{carried}, {len(layout.config_name)} characters; a label value holds {LONGEST_LABEL}"
            yield _too_long(kind, layout.name, at, room, fact)
    yield from _too_long_for_scheduler(plan)


def _too_long(kind: str, name: str, at: Origin, longest: int, fact: str) -> Finding:
    return Finding(
        at,
        f"{kind} name `{name}` is too long by {len(name) - longest}",
        label=f"{len(name)} characters, {longest} at most",
        notes=(fact,),
        help=f"shorten it, for example to `{name[:longest].rstrip('-.')}`",
    )


def _too_long_for_scheduler(plan: Plan) -> Iterator[Finding]:
    """Find names that are too long for the labels by which workloads give them to the scheduler."""
    label = plan.scheduler.class_label
    for found in plan.priority_classes if label else ():
        if LONGEST_LABEL < len(found.name) <= LONGEST_SUBDOMAIN:
            fact = f"workloads name it in the label `{label}`: at most {LONGEST_LABEL}"
            yield _too_long("priority class", found.name, name_of(found.at), LONGEST_LABEL, fact)
    for queue in queues(plan):
        tenant, pool = queue.tenant, queue.pool
        if queue.takes_work and len(queue.name) > LONGEST_LABEL >= max(len(tenant.name), len(pool.name)):
            over = len(queue.name) - LONGEST_LABEL
            fact = f"KAI-Scheduler has one queue per tenant and pool, `{queue.name}`, named by pods in the label "
            fact += "`kai.scheduler/queue`"
            yield Finding(
                name_of(tenant.at),
                f"tenant `{tenant.name}` and pool `{pool.name}` make a queue name too long by {over}",
                label=f"a queue name of {len(queue.name)} characters",
                related=(Label(name_of(pool.at), "the other part"),),
                notes=(fact, f"a label value holds {LONGEST_LABEL} characters"),
                help="shorten either name",
            )


_Named = Cluster | OwnGpu | Pool | PriorityClass | Tenant | Workload | Retained


def _names(plan: Plan, mark: type[Naming | Reference] = Naming) -> Iterator[tuple[_Named | Layout, Name]]:
    """Yield every name that the policies give, or refer to, with the part of the plan. That of a document has no path.

    Places cost time, so they are for those that something is said of.
    """
    of_cluster: tuple[_Named, ...] = (plan.cluster, *plan.pools, *plan.gpus, *plan.priority_classes)
    found = (*of_cluster, *plan.tenants, *plan.workloads, *plan.retained)
    for part in found:
        yield from ((part, name) for name in names_in(part.spec, mark))
    if mark is Reference:
        return
    yield from ((part, Name(naming_of(subject_of(part).kind), part.name, ())) for part in found)
    yield from ((layout, Name(LAYOUT, layout.name, ())) for layout in plan.layouts)


def _place(part: _Named | Layout, path: Path) -> Origin:
    return part.at / path if path else name_of(part.at)


# --- Collisions --------------------------------------------------------------------------------------------------


@check("GPU122", "queue-names-collide")
def queue_names_collide(plan: Plan) -> Iterator[Finding]:
    """Two pairs of tenant and pool make the same queue name.

    ## Why
    KAI-Scheduler has one queue per tenant and pool, named `<tenant>-<pool>`. Tenant `a` on pool `b-c` and tenant `a-b`
    on pool `c` both make `a-b-c`: the later object replaces the earlier one, and two tenants share one quota. A parent
    has a queue in each pool that its children have a quota on.

    ## Instead
    Rename one of the tenants or pools, so that no name starts with another one and a `-`.
    """
    for queue, first in repeats(queues(plan), lambda queue: queue.name):
        tenant, pool, other, there = queue.tenant, queue.pool, first.tenant, first.pool
        if (other.name, there.name) != (tenant.name, pool.name):
            yield Finding(
                name_of(tenant.at),
                f"tenant `{tenant.name}` on pool `{pool.name}` and tenant `{other.name}` on pool `{there.name}` share "
                f"the queue name `{queue.name}`",
                label="one of these names must change",
                related=(Label(name_of(other.at), f"`{other.name}` and `{there.name}`"),),
                notes=(
                    "KAI-Scheduler's queues are objects of the cluster, one per tenant and pool: `<tenant>-<pool>`",
                ),
                help=f"rename tenant `{tenant.name}` or pool `{pool.name}`",
            )


@check("GPU499", "kept-name-taken", ignorable=False)
def kept_name_taken(plan: Plan) -> Iterator[Finding]:
    """Two pools have one ResourceFlavor, or two tenants one ClusterQueue.

    ## Why
    Of two objects of one kind and name only one is written. Two pools would be one to Kueue, which sends work that asks
    for the one to nodes of the other; two tenants would have one quota. So it is with a name that one keeps (`names`)
    where the other is called so itself.

    ## Instead
    Write another name, or leave it out: the object is then called as the pool or the tenant.
    """
    if not plan.scheduler.has_queues_for_all_pools:
        return
    pools = sorted(plan.pools, key=lambda pool: pool.spec.names.resource_flavor is not None)
    for pool, other in repeats(pools, flavor_name):
        yield _twice("resourceFlavor", f"the ResourceFlavor of pool `{other.name}`", flavor_name(pool), pool, other)
    working = (tenant for tenant in plan.tenants if has_queue(tenant))
    tenants = sorted(working, key=lambda tenant: tenant.spec.names.cluster_queue is not None)
    for tenant, whose in repeats(tenants, cluster_queue):
        yield _twice("clusterQueue", f"the ClusterQueue of tenant `{whose.name}`", cluster_queue(tenant), tenant, whose)


def _twice(field: str, other_object: str, name: str, part: Pool | Tenant, other: Pool | Tenant) -> Finding:
    return Finding(
        part.at / "names" / field,
        f"`{name}` is {other_object}, too",
        label="one object for two",
        related=(Label(name_of(other.at), "also called so"),),
        help=f"write another name, or leave `{field}` out",
    )


@check("GPU434", "kept-name-without-effect", Severity.WARNING)
def kept_name_without_effect(plan: Plan) -> Iterator[Finding]:
    """A pool or a tenant says what its queues are called, and the cluster has none of these.

    ## Why
    ResourceFlavors, ClusterQueues and LocalQueues are Kueue's, queues by pool KAI-Scheduler's, and plain Kubernetes has
    neither. Kueue has a flavor only for a pool whose units it can count, and a queue only for a tenant with namespaces
    and a quota; KAI-Scheduler has a queue where the tenant has a quota in the pool.

    ## Instead
    Remove the name, or write the pool that is meant.
    """
    scheduler = plan.scheduler
    for pool in plan.pools:
        if pool.spec.names.resource_flavor and not (scheduler.has_queues_for_all_pools and counted_units(pool)):
            yield _idle(pool.at / "names" / "resourceFlavor", f"{_no(plan)} ResourceFlavor for pool `{pool.name}`")
    by_pool = {(queue.tenant.name, queue.pool.name) for queue in queues(plan)}
    for tenant in plan.tenants:
        names = tenant.spec.names
        has_one = scheduler.has_queues_for_all_pools and has_queue(tenant)
        given = {"clusterQueue": names.cluster_queue, "localQueue": names.local_queue}
        for field, name in given.items():
            if name and not has_one:
                kind = field[0].upper() + field[1:]
                yield _idle(tenant.at / "names" / field, f"{_no(plan)} {kind} of tenant `{tenant.name}`")
        for pool_name in names.queues:
            if (tenant.name, pool_name) not in by_pool and tenant.name not in plan.broken.incomplete_tenants:
                what = f"{_no(plan)} queue of tenant `{tenant.name}` in pool `{pool_name}`"
                yield _idle((tenant.at / "names" / "queues" / pool_name).key, what)


def _no(plan: Plan) -> str:
    return f"{plan.scheduler.title} has no"


def _idle(at: Origin, message: str) -> Finding:
    return Finding(at, message, label="has no effect", help="remove the name")


# --- Words that are taken ----------------------------------------------------------------------------------------

# What mig-manager generates for itself when it has no file of ours (`mig-parted`, `pkg/mig/builder`), and the entry
# that the device plugin's config-manager looks for under its fallback `named` (`cmd/config-manager`).
_OPERATOR_WORDS = {
    **dict.fromkeys(("all-disabled", "all-enabled", "all-balanced"), "MIG manager makes itself"),
    "default": "device plugin's config-manager falls back to",
}
DELIVERY_FOLDERS: Final = {"argocd": "Argo CD", "flux": "Flux"}
"""Folders of `out/` beside those of clusters, and whose objects they hold."""


@check("GPU123", "reserved-name", Severity.WARNING)
def reserved_name(plan: Plan) -> Iterator[Finding]:
    """A name already means something else to the GPU Operator or to gpuplan.

    ## Why
    `all-disabled`, `all-enabled` and `all-balanced` are entries of the MIG manager's own file, and `default` is the
    entry that the device plugin's config-manager may fall back to. A layout or pool called so reads like one of them:
    on a node, `all-disabled-1a2b3c4d` would look as if MIG were off. A cluster called `argocd` or `flux` would share a
    folder with the objects of Argo CD or Flux, which is an error.

    ## Instead
    Say what the layout or pool is for: `inference-small`, `training`.
    """
    name = plan.cluster.name
    if owner := DELIVERY_FOLDERS.get(name):
        yield Finding(
            name_of(plan.cluster.at),
            f"cluster name `{name}` is taken",
            label=f"also the folder of the {owner} objects",
            notes=(f"`out/<cluster>/` holds a cluster, and `out/{name}/` what {owner} itself needs",),
            help="name the cluster by its purpose, such as `management`",
            severity=Severity.ERROR,
        )
    for layout in plan.layouts:
        yield from _taken("layout", layout, f"nodes would carry `{layout.config_name}`")
    for pool in plan.pools:
        fact = f"nodes would carry `{POOL_LABEL}: {pool.name}`, and nodes without a label do not use it"
        yield from _taken("pool", pool, fact)


def _taken(kind: str, part: Layout | Pool, fact: str) -> Iterator[Finding]:
    if owner := _OPERATOR_WORDS.get(part.name):
        yield Finding(
            name_of(part.at),
            f"{kind} name `{part.name}` means something else to the GPU Operator",
            label=f"an entry that the {owner}",
            notes=(fact,),
            help=f"name the {kind} by its purpose",
        )


@check("GPU124", "reserved-namespace")
def reserved_namespace(plan: Plan) -> Iterator[Finding]:
    """A tenant has a namespace that belongs to the cluster itself.

    ## Why
    In a tenant's namespace gpuplan writes the Namespace object, a Pod Security level, quotas that allow no other GPUs
    than the tenant's, and admission rules. In the GPU Operator's namespace they would keep the driver's privileged pods
    and the validator's GPU pod from starting, and removing the tenant would have Argo CD prune a system namespace.
    Members with the role `edit` read the Secrets of their namespaces: in Argo CD's those are the credentials of
    clusters and repositories, in cert-manager's the keys of issuers.

    ## Instead
    Give the tenant a namespace of its own. For `default`, which every cluster has, this is a warning.
    """
    cluster, watchers = plan.cluster, dict[str, str]()
    if cluster.monitoring:
        watchers |= dict.fromkeys((cluster.monitoring.namespace, cluster.monitoring.dashboards.namespace), "monitoring")
    if cluster.flux:
        watchers[cluster.flux.spec.namespace] = "Flux"
    if cluster.argocd:
        watchers[cluster.argocd.namespace] = "Argo CD"
    taken = {
        "default": "every cluster",
        **_OTHERS,
        **{
            traits.reservation_namespace: traits.title for traits in SCHEDULERS.values() if traits.reservation_namespace
        },
        **watchers,
        SYSTEM_NAMESPACE: "gpuplan's admission parameters",
        "gpu-operator-resources": "the GPU Operator",
        plan.cluster.gpu_operator.namespace: "the GPU Operator",
        **dict.fromkeys(plan.scheduler.namespaces, plan.scheduler.title),
    }
    for tenant in plan.tenants:
        for index, namespace in enumerate(tenant.spec.namespaces):
            owner = taken.get(namespace)
            if not owner and namespace.startswith("kube-"):
                owner = "Kubernetes"
            elif not owner and cluster.spec.platform is Platform.OPENSHIFT and f"{namespace}-".startswith("openshift-"):
                owner = "OpenShift"
            if owner:
                free = f"team-{tenant.name}" if tenant.name == namespace else tenant.name
                yield Finding(
                    tenant.at / "namespaces" / index,
                    f"namespace `{namespace}` of tenant `{tenant.name}` belongs to {owner}",
                    label="not a tenant's",
                    notes=("gpuplan would write its Namespace, GPU quotas, Pod Security level and admission rules",),
                    help=f"write a namespace of the tenant's own, such as `{free}`",
                    severity=Severity.WARNING if namespace == "default" else None,
                )


_OTHERS: Final = {"argocd": "Argo CD", "cert-manager": "cert-manager", "flux-system": "Flux"}
"""The namespaces of programs that may do more than a tenant, by their own manifests."""


# --- Groups ------------------------------------------------------------------------------------------------------


# Groups that the API server puts callers into by itself, and the user without a name
# (`staging/src/k8s.io/apiserver/pkg/authentication/user`).
_EVERYONE = {
    ("Group", "system:authenticated"): "everybody who can log in",
    ("Group", "system:unauthenticated"): "everybody who cannot log in",
    ("Group", "system:serviceaccounts"): "every pod of every namespace",
    ("Group", "system:nodes"): "every kubelet",
    ("User", "system:anonymous"): "everybody who cannot log in",
}


@check("GPU125", "empty-group")
def empty_group(plan: Plan) -> Iterator[Finding]:
    """The name of a member's group or user is empty, or has space around it.

    ## Why
    Kubernetes compares these names as text. The API server refuses an empty one, and one with a space before or after
    it is accepted and matches nobody.

    ## Instead
    Write the name as the cluster's authentication gives it.
    """
    for tenant, at, member in _members(plan):
        _, name, what = account_of(member)
        stripped = name.strip()
        if stripped != name or not stripped:
            yield Finding(
                at,
                f"{what} name `{name}` of tenant `{tenant.name}` has space around it"
                if stripped
                else f"tenant `{tenant.name}` has a member without a {what} name",
                label="matches nobody" if stripped else "empty",
                help=f"write `{stripped}`" if stripped else f"name the {what}, or remove the entry",
            )


@check("GPU126", "group-of-everyone", Severity.WARNING)
def group_of_everyone(plan: Plan) -> Iterator[Finding]:
    """A tenant's members are a group that the API server puts everybody into.

    ## Why
    `system:authenticated` holds every user and every service account of the cluster. As a member it gives all of them
    the tenant's GPUs: a quota protects the other tenants from this one, but nothing protects this one.

    ## Instead
    Name a group of the identity provider, or `system:serviceaccounts:<namespace>` for the pods of one namespace.
    """
    for tenant, at, member in _members(plan):
        if meant := _EVERYONE.get(account_of(member)[:2]):
            yield Finding(
                at,
                f"`{account_of(member).name}` is `{role_of(member)}` in the namespaces of tenant `{tenant.name}`",
                label=meant,
                notes=("the API server adds callers to this group by itself; nobody can be taken out of it",),
                help="name a group of the identity provider",
            )


@check("GPU127", "group-named-twice", Severity.WARNING)
def group_named_twice(plan: Plan) -> Iterator[Finding]:
    """A tenant names the same group or user as a member twice.

    ## Why
    Roles add up: with `view` and `edit` a group may edit, so that the narrower entry restricts nothing.

    ## Instead
    Keep one entry, with the role that is meant.
    """
    for (tenant, at, member), (_, first, _) in repeats(
        _members(plan), lambda named: (named[0].name, account_of(named[2]))
    ):
        _, name, what = account_of(member)
        yield Finding(
            at,
            f"tenant `{tenant.name}` names {what} `{name}` twice",
            label=f"here with role `{role_of(member)}`",
            related=(Label(first, "first named here"),),
            notes=("roles add up: the wider one holds",),
            help="keep one of the two",
        )


@check("GPU129", "group-like-a-person", Severity.WARNING)
def group_like_a_person(plan: Plan) -> Iterator[Finding]:
    """A member that is a bare name is taken for a group, and the name is an address as people have.

    ## Why
    Kubernetes compares the names of groups and of users separately. As a group, a person's address matches nobody where
    groups have other names; with Google Groups, an address is the name of a group.

    ## Instead
    Write `{user: anna@example.com}` for a person, and `{group: research@example.com}` for a group.
    """
    for tenant, at, member in _members(plan):
        name = member.group or ""
        if "@" in name and (at / "group").locate() == at.locate():  # else `group` is written
            yield Finding(
                at,
                f"member `{name}` of tenant `{tenant.name}` is taken for a group",
                label="an address as people have",
                help=f"for a person, write `{{user: {name}}}`; for a group, `{{group: {name}}}`",
            )


@check("GPU470", "member-above-all-rules")
def member_above_all_rules(plan: Plan) -> Iterator[Finding]:
    """A tenant's member is a group or an account that may do everything, or part of the cluster itself.

    ## Why
    The API server asks nobody what `system:masters` may do (`NewPrivilegedGroups` in
    `pkg/kubeapiserver/authorizer/reload.go` of kubernetes/kubernetes, `staging/src/k8s.io/apiserver/pkg/authorization/
    authorizerfactory/builtin.go`): whoever is in it changes quotas and admission policies, whatever role a tenant's
    binding names. A binding for it, or for the accounts of the control plane, gives nobody less; it only says that the
    tenant's people are to be looked for there.

    ## Instead
    Name a group of the identity provider, a user, or a service account as
    `system:serviceaccount:<namespace>:<name>`.
    """
    for tenant, at, member in _members(plan):
        name = account_of(member).name
        if name.startswith(_ABOVE_ALL):
            yield Finding(
                at,
                f"`{name}` is no member for tenant `{tenant.name}`: it belongs to the cluster itself",
                label="may do everything" if name == "system:masters" else "part of the control plane",
                notes=("quotas and admission policies of a tenant do not limit it",),
                help="name a group of the identity provider",
            )


_ABOVE_ALL: Final = ("system:masters", "system:kube-", "system:node:", "system:bootstrappers", "system:apiserver")


@check("GPU471", "cluster-role-too-wide")
def cluster_role_too_wide(plan: Plan) -> Iterator[Finding]:
    """A member gets a ClusterRole that may change what holds its tenant.

    ## Why
    With `cluster-admin` in a namespace one may delete the namespace's ResourceQuota, bind pods to nodes and add
    containers to pods that run. The roles `system:*` are those of the control plane's own programs. Quotas and
    admission policies hold for who cannot do that.

    ## Instead
    Name `view`, `edit`, `admin`, or a ClusterRole of your own that writes no ResourceQuota, LimitRange, `pods/binding`,
    `pods/status`, RoleBinding beyond its own rights, nor queues.
    """
    for tenant, at, member in _members(plan):
        role = role_of(member)
        if role == "cluster-admin" or role.startswith("system:"):
            yield Finding(
                at / "clusterRole",
                f"ClusterRole `{role}` may change what holds tenant `{tenant.name}`",
                label="may delete the tenant's quota"
                if role_of(member) == "cluster-admin"
                else "of the cluster itself",
                help="write `role: admin`, or name a ClusterRole of your own",
            )


def _members(plan: Plan) -> Iterator[tuple[Tenant, Origin, Member]]:
    members = ((tenant, with_places(tenant.at / "members", tenant.spec.members)) for tenant in plan.tenants)
    return ((tenant, at, member) for tenant, placed in members for at, member in placed)
