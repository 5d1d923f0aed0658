"""The admission policies of a plan: which rows of the data files belong to it, and what stands in their places."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

from gpuplan.compiler.base.trees import unlike
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.catalog.frameworks import Framework, Says, frameworks as known_frameworks, known_to_kueue
from gpuplan.compiler.catalog.operators import Version, parse_version
from gpuplan.compiler.manifests.admission import AdmissionPolicy, AdmissionRule, policy_of
from gpuplan.compiler.manifests.provenance import Links, Routes, chosen
from gpuplan.compiler.manifests.templates import Row, read_rows
from gpuplan.compiler.planning.amounts import counted_pools
from gpuplan.compiler.planning.dra import CLASS_PREFIX, uses_claims
from gpuplan.compiler.planning.grants import (
    DEVICE_VARIABLES,
    FRACTION,
    GRANTS_POLICY,
    QUEUES_POLICY,
    RUNTIME_CLASS,
    USUAL_GRACE_SECONDS,
    Barrier,
    barriers,
    grace_seconds,
    has_admission_policies,
    is_held_by_rules,
    runtime_class,
)
from gpuplan.compiler.planning.kueue import ADMISSION_GATE, elastic_kinds, elastic_of, frameworks
from gpuplan.compiler.planning.plan import POOL_LABEL, Plan, Tenant
from gpuplan.compiler.planning.schedulers import SCHEDULERS, SchedulerTraits
from gpuplan.compiler.planning.schedulers.kai import (
    CONTAINER_ANNOTATIONS,
    FRACTION_ANNOTATIONS as COUNTED_BY_KAI,
    NODE_POOL_LABEL,
    OWN_CLASSES,
    PREEMPTIBLE_BELOW,
    QUEUE_LABEL,
    SCHEDULER_NAME,
)
from gpuplan.compiler.planning.schedulers.kueue import PRIORITY_LABEL, QUEUE_LABEL as KUEUE_QUEUE_LABEL
from gpuplan.compiler.planning.schedulers.runai import (
    FRACTION_ANNOTATIONS,
    NODE_POOL_LABEL as RUNAI_NODE_POOL_LABEL,
    NODE_POOLS_ANNOTATIONS,
    PROJECT_LABEL,
    SCHEDULER_NAME as RUNAI_SCHEDULER,
)
from gpuplan.compiler.planning.sources import (
    admission_of,
    claims_of,
    counted_in,
    default_priority_of,
    frameworks_of,
    named,
    names_of_counted,
    scheduler_of,
    taints_of,
)
from gpuplan.compiler.policy.models import PodSecurity

DEVICES_POLICY: Final = "gpuplan-devices"
JOBS_POLICY: Final = "gpuplan-jobs"
FRAMEWORKS_POLICY: Final = "gpuplan-frameworks"
GRACE_POLICY: Final = "gpuplan-grace"
RUNNING_POLICY: Final = "gpuplan-running"
PROJECTS_POLICY: Final = "gpuplan-projects"
CLAIMS_POLICY: Final = "gpuplan-claims"
NODE_FEATURES_POLICY: Final = "gpuplan-node-features"
POD_SECURITY_POLICY: Final = "gpuplan-pod-security"

_PODS: Final = "scheduling"
"""The file that holds with every scheduler; those with queues have one by their own name beside it."""
_RUNNING: Final = "running"
"""The file on work that is there."""
_POD_SECURITY: Final = "pod-security"
"""The file on what the host is kept from, where the level of Pod Security is not."""
_LEVELS: Final = "pod-security-levels"
"""The file on what that level asks beside it, of which nothing is written."""
_FILES: Final = (_PODS, _RUNNING, _POD_SECURITY, *(kind for kind, traits in SCHEDULERS.items() if traits.has_queues))


def policies(plan: Plan) -> tuple[AdmissionPolicy, ...]:
    """Return all policies of a cluster that have a rule. There are none if its API server is too old for them."""
    return rules_of(plan) if has_admission_policies(plan.cluster) else ()


def rules_of(plan: Plan) -> tuple[AdmissionPolicy, ...]:
    """Return the policies that a cluster has, or would have if its API server were not too old."""
    setting = _setting(plan)
    every = (_policy(name, setting) for name in _rows(setting))
    return tuple(found for found in every if found.rules)


def policy(plan: Plan, name: str) -> AdmissionPolicy:
    """Return a policy by its name."""
    return _policy(name, _setting(plan))


def holds_for(name: str, tenant: Tenant) -> bool:
    """Whether a policy is bound in a tenant's namespaces."""
    return name != POD_SECURITY_POLICY or is_held_by_rules(tenant)


def level_of(plan: Plan, tenant: Tenant) -> tuple[AdmissionPolicy, ...]:
    """Return what the API server holds a tenant's pods to by their level of Pod Security, in the form of policies.

    There is none if the level is `privileged` or not known, or if a policy stands in for it.
    """
    level = tenant.spec.allow.pod_security
    if level in (PodSecurity.PRIVILEGED, PodSecurity.EXTERNAL) or is_held_by_rules(tenant):
        return ()
    setting = _setting(plan)
    facts = _facts(setting)
    baseline = _read(_POD_SECURITY)[_POD_SECURITY]
    # Our policy allows one capability more than the level itself, for RDMA.
    listed = (name for names in baseline["allowed"]["capabilities"].values() for name in names if name != _OF_RDMA)
    usual = {**_allowed(setting), "capabilities": _listed(listed), "but_for_rdma": ""}
    rows = [(PodSecurity.BASELINE, baseline)]
    if level is PodSecurity.RESTRICTED:
        rows.append((level, _read(_LEVELS)[level]))
    return tuple(policy_of(name, found, facts, usual) for name, found in rows)


_OF_RDMA: Final = "IPC_LOCK"


def left_out(plan: Plan) -> tuple[AdmissionRule, ...]:
    """Return the optional rules that the cluster would have if its policy left none out."""
    if not plan.cluster.spec.admission.without or not has_admission_policies(plan.cluster):
        return ()
    setting = _setting(plan)
    every = [_policy(name, replace(setting, without=())) for name in _rows(setting)]
    return tuple(rule for found in every for rule in found.rules if rule.optional and rule.name in setting.without)


def known_rules() -> Mapping[str, str]:
    """Return every rule that any cluster may have, by name, with what becomes possible without it if it is optional."""
    files = (_read(file) for file in _FILES)
    return {
        rule["name"]: rule.get("optional", "") for file in files for rows in file.values() for rule in rows["rules"]
    }


def rules_of_queues() -> frozenset[str]:
    """Return the rules that keep work behind its queue, and as its queue has counted it."""
    names = (JOBS_POLICY, RUNNING_POLICY, FRAMEWORKS_POLICY)
    return frozenset(rule.name for rule in every_rule() if rule.policy in names)


class KnownRule(Value):
    """A rule as some cluster may have it; ``schedulers`` are the titles of those whose clusters do.

    ``messages`` are what it says: another thing with another scheduler, for some.
    """

    policy: str
    name: str
    messages: tuple[str, ...]
    optional: str
    schedulers: tuple[str, ...]


def every_rule() -> tuple[KnownRule, ...]:
    """Return every rule in the order of the files, with any scheduler and any way of allocation."""
    found: dict[str, KnownRule] = {}
    for scheduler in SCHEDULERS.values():
        for name, rule in _rules_with(scheduler):
            known = found.get(rule.name, KnownRule(name, rule.name, (), rule.optional, ()))
            messages = tuple(dict.fromkeys((*known.messages, rule.message)))
            found[rule.name] = replace(known, messages=messages, schedulers=(*known.schedulers, scheduler.title))
    return tuple(found[name] for name in known_rules())


def _rules_with(scheduler: SchedulerTraits) -> Iterator[tuple[str, AdmissionRule]]:
    """Yield the rules of each policy once, with the policy's name."""
    everything = tuple(known_frameworks().values())
    pools = ("any",) if scheduler.counts_tenants else ()
    settings = [
        _Setting(
            scheduler=scheduler,
            has_claims=has_claims,
            default_priority=0,
            harmless_classes=(),
            harmless_labels=(),
            barriers=(),
            preemptible_classes=(),
            grace_seconds=USUAL_GRACE_SECONDS,
            without=(),
            frameworks=everything,
            elastic_kinds=tuple(found.kind for found in everything if found.elastic),
            counted_pools=pools,
        )
        for has_claims in (False, True)
    ]
    settings.append(replace(settings[0], kubernetes=_OLDEST))
    for name in dict.fromkeys(name for setting in settings for name in _rows(setting)):
        every = [rule for setting in settings if name in _rows(setting) for rule in _policy(name, setting).rules]
        yield from ((name, rule) for rule in {rule.name: rule for rule in every}.values())


@cache
def _read(file: str) -> Row:
    return read_rows(Path(__file__).with_name(f"{file}.yaml"))


def _rows(setting: _Setting) -> Mapping[str, Row]:
    """Return what the files say of each policy."""
    pods, running, scheduler = _read(_PODS), _read(_RUNNING), setting.scheduler
    found = {GRANTS_POLICY: pods["grants"], DEVICES_POLICY: pods["devices"], GRACE_POLICY: running["grace"]}
    found[NODE_FEATURES_POLICY] = pods["node-features"]
    found[POD_SECURITY_POLICY] = _read(_POD_SECURITY)[_POD_SECURITY]
    if scheduler.counts_tenants:
        match = pods["devices"]["match"]  # a queue may have counted the CPU and memory that a resize changes
        match = {**match, "v1": {**match["v1"], "pods/resize": ("UPDATE",)}}
        found[DEVICES_POLICY] = {**pods["devices"], "match": match}
    if setting.has_claims:
        found[CLAIMS_POLICY] = pods["claims"]
    if scheduler.suspends_jobs:
        found[JOBS_POLICY] = pods["jobs"]
    if scheduler.project_label:
        match = {**_matching(_whole(), ("CREATE", "UPDATE")), **pods["projects"]["match"]}
        found[PROJECTS_POLICY] = {**pods["projects"], "match": match}
    if scheduler.counts_tenants:
        match = {**running["running"]["match"], **_matching(_whole(), ("CREATE", "UPDATE", "DELETE"))}
        found[RUNNING_POLICY] = {**running["running"], "match": match}
    if scheduler.has_queues:
        rows = _read(scheduler.kind.value)
        found[QUEUES_POLICY] = rows["queues"]
        if "frameworks" in rows and (held := _held(setting.frameworks)):
            match = {api: dict(resources) for api, resources in _matching(held, ("CREATE", "UPDATE")).items()}
            for framework in held:
                if framework.scales:
                    match[framework.api][f"{framework.resource}/scale"] = ("UPDATE",)
            found[FRAMEWORKS_POLICY] = {**rows["frameworks"], "match": match}
    return found


def _held(known: Iterable[Framework]) -> tuple[Framework, ...]:
    """Return the kinds that are suspended as a whole, beside those that are always there."""
    return tuple(found for found in known if found.suspend and not found.always)


def _whole() -> tuple[Framework, ...]:
    """Return the kinds whose objects are counted as a whole, on any cluster.

    Of Deployments and StatefulSets Kueue counts each pod, and most of them ask for no GPUs.
    """
    return tuple(found for found in known_to_kueue() if found.group not in ("", "apps"))


def _matching(kinds: Iterable[Framework], operations: Sequence[str]) -> Mapping[str, Mapping[str, Sequence[str]]]:
    """Return the operations by version and resource, as the data files say them."""
    match: dict[str, dict[str, Sequence[str]]] = {}
    for framework in kinds:
        match.setdefault(framework.api, {})[framework.resource] = operations
    return match


_OLDEST: Final[Version] = (1, 0)
_NEWEST: Final[Version] = (9999,)


class _Setting(Value):
    """The part of a plan that the texts depend on."""

    scheduler: SchedulerTraits
    has_claims: bool
    default_priority: int
    harmless_classes: tuple[str, ...]
    """The policy's classes with no more than the priority of pods that name none, which give no power over others."""
    harmless_labels: tuple[str, ...]
    """The values of Kueue's label that give no power over others."""
    barriers: tuple[Barrier, ...]
    preemptible_classes: tuple[str, ...]
    """The classes whose work KAI-Scheduler may evict."""
    grace_seconds: int | None
    """The most seconds that a pod with GPUs may ask for to end, or None if the policy does not bound it."""
    without: tuple[str, ...]
    frameworks: tuple[Framework, ...]
    """The kinds that Kueue knows."""
    elastic_kinds: tuple[str, ...]
    """The kinds of which Kueue counts objects that grow while they run."""
    kubernetes: Version = _NEWEST
    """The API server's version: the level `baseline` is another one in some; the newest one where it is not said."""
    runtime_class: str = RUNTIME_CLASS
    """The RuntimeClass that the GPU Operator makes for pods with GPUs."""
    counted_pools: tuple[str, ...] = ()
    """The pools whose CPU, memory or pods are counted by queues."""


def _setting(plan: Plan) -> _Setting:
    default = max((priority.spec.value for priority in plan.priority_classes if priority.spec.default), default=0)
    own = {priority.name: priority.spec.value for priority in plan.priority_classes}
    # Kueue takes an empty label for no class. If a class `default` exists its webhook gives it to all work that names
    # none (`ApplyDefaultWorkloadPriorityClass` in `pkg/controller/jobframework/defaults.go`): that class is judged by
    # its number if it is not the policy's own.
    of_labels, of_kai = {"": default, "default": default} | own, {**OWN_CLASSES, **own}
    return _Setting(
        scheduler=plan.scheduler,
        has_claims=uses_claims(plan),
        default_priority=default,
        harmless_classes=tuple(name for name, value in own.items() if value <= default),
        harmless_labels=tuple(sorted(name for name, value in of_labels.items() if value <= default)),
        barriers=barriers(plan),
        preemptible_classes=tuple(sorted(name for name, value in of_kai.items() if value < PREEMPTIBLE_BELOW)),
        grace_seconds=grace_seconds(plan.cluster),
        without=tuple(plan.cluster.spec.admission.without),
        frameworks=frameworks(plan.cluster),
        elastic_kinds=elastic_kinds(plan),
        kubernetes=parse_version(plan.cluster.spec.kubernetes) or (),
        runtime_class=runtime_class(plan.cluster),
        counted_pools=counted_pools(plan) if plan.scheduler.counts_tenants else (),
    )


def _policy(name: str, setting: _Setting) -> AdmissionPolicy:
    facts = _facts(setting)
    without = [rule for rule in setting.without if known_rules().get(rule)]
    return policy_of(name, _rows(setting)[name], facts, _values(setting, facts), without)


def _facts(setting: _Setting) -> set[str]:
    facts = {
        "claims": setting.has_claims,
        "elastic": setting.scheduler.suspends_jobs and bool(setting.elastic_kinds),
        "crosses-pools": setting.scheduler.crosses_pools,
        "finds-pools": setting.scheduler.finds_pools,
        "fractions": setting.scheduler.supports("fraction"),
        "frameworks": setting.scheduler.suspends_jobs and bool(_held(setting.frameworks)),
        "grace": setting.grace_seconds is not None,
        "probe-hosts": setting.kubernetes >= _PROBE_HOSTS,
        "user-namespaces": setting.kubernetes >= _USER_NAMESPACES,
        setting.scheduler.kind.value: True,
        f"counted-by-{setting.scheduler.kind.value}": bool(setting.counted_pools),
    }
    return {fact for fact, is_so in facts.items() if is_so}


_PROBE_HOSTS: Final = (1, 34)
_USER_NAMESPACES: Final = (1, 35)
"""From which versions on the level `baseline` forbids and allows these."""


def _values(setting: _Setting, facts: set[str]) -> Mapping[str, str]:
    """Return what stands in the places of the files' texts."""
    uses = {"claims": "size(variables.claims) > 0 || ", "fractions": "variables.asksFraction || "}
    schedulers = setting.scheduler.pod_schedulers
    held, unknown = _held(setting.frameworks), _held(known_frameworks().values())
    fraction = _FRACTION_OF if "fractions" in facts else ""
    return {
        **_allowed(setting),
        "but_for_rdma": f", but for {_OF_RDMA}",
        "barriers": str([[[*taint] for taint in taints] for taints in setting.barriers]),
        "counted_annotations": str(["pod-group-name", *COUNTED_BY_KAI]),
        # Kueue does not know all kinds of the groups that are left out.
        "counted_groups": str(sorted({framework.group for framework in known_to_kueue()} - {"", "batch"})),
        "counted_pools": str(list(setting.counted_pools)),
        "default_priority": str(setting.default_priority),
        "device_variables": str(list(DEVICE_VARIABLES)),
        "elastic_kinds": str(list(setting.elastic_kinds)),
        "fraction": FRACTION,
        "fraction_annotations": str(list(FRACTION_ANNOTATIONS)),
        "of_containers": " || ".join(f"a.startsWith('{prefix}')" for prefix in CONTAINER_ANNOTATIONS),
        "free_marks": str(list(_FREE_MARKS)),
        "gate": ADMISSION_GATE,
        "held_by_cluster": _listed(found.kind for found in held if "rayClusterConfig" in found.suspend),
        "held_by_run_policy": _listed(found.kind for found in held if "runPolicy" in found.suspend),
        "grace_seconds": str(setting.grace_seconds),
        "harmless_classes": str(sorted(setting.harmless_classes)),
        "harmless_labels": str(list(setting.harmless_labels)),
        "is_for_counted_pool": _in_pools(setting, "variables.pod"),
        "groups": _part(held, Says.GROUPS, "object", "{}"),
        "groups_before": _part(held, Says.GROUPS, "oldObject", "{}"),
        "is_in_counted_pool": _in_pools(setting, "variables.made.spec"),
        "is_in_pool_before": _in_pools(setting, "oldObject.spec"),
        "jobs": _part(held, Says.JOBS, "object", "[]"),
        "jobs_before": _part(held, Says.JOBS, "oldObject", "[]"),
        "kai_scheduler": SCHEDULER_NAME,
        "node_pool_label": NODE_POOL_LABEL,
        "own_classes": str(list(OWN_CLASSES)),
        "pod_owners": _listed(found.type for found in setting.frameworks if found.owns_pods),
        "places_of_kai": str([NODE_POOL_LABEL, QUEUE_LABEL, *_PLACES_OF_KAI]),
        "pool_label": POOL_LABEL,
        "preemptible_classes": str(list(setting.preemptible_classes)),
        "priority_label": PRIORITY_LABEL,
        "project_label": PROJECT_LABEL,
        "queue_label": QUEUE_LABEL,
        "runai_node_pool_label": RUNAI_NODE_POOL_LABEL,
        "runai_node_pools": str(list(NODE_POOLS_ANNOTATIONS)),
        "runai_node_pools_asked": " + ".join(
            f"('{name}' in variables.annotations ? variables.annotations['{name}'].split(' ') : [])"
            for name in NODE_POOLS_ANNOTATIONS
        ),
        "runai_node_pools_named": " and ".join(NODE_POOLS_ANNOTATIONS),
        "runai_scheduler": RUNAI_SCHEDULER,
        "or_elastic": _OR_ELASTIC if setting.elastic_kinds else "",
        "or_several": _OR_SEVERAL if "crosses-pools" in facts else "",
        "or_fraction": " || variables.asksFraction" if "fractions" in facts else "",
        "roles": _part(held, Says.ROLES, "object", "{}"),
        "roles_before": _part(held, Says.ROLES, "oldObject", "{}"),
        "runtime_class": repr(setting.runtime_class),
        "schedulers": str(list(schedulers)),
        "schedulers_listed": " or ".join(schedulers),
        "unknown_owners": _listed(found.type for found in unknown if found not in held),
        "was_in_counted_pool": _in_pools(setting, "variables.oldMade.spec"),
        "whole_kinds": _listed(found.kind for found in held if found.says is Says.WHOLE),
        "template_prefix": CLASS_PREFIX,
        "used_fraction_within": fraction.replace("<pod>", "variables.oldMade"),
        "uses_fraction_before": fraction.replace("<pod>", "oldObject"),
        "uses_fraction_within": fraction.replace("<pod>", "variables.made"),
        "uses_otherwise": "".join(text for fact, text in uses.items() if fact in facts),
    }


def _allowed(setting: _Setting) -> Mapping[str, str]:
    """Return what the level `baseline` allows in the API server's version."""
    lists = _read(_POD_SECURITY)[_POD_SECURITY]["allowed"]
    return {
        field: _listed(
            name
            for since, names in by_version.items()
            if setting.kubernetes >= (parse_version(since) or ())
            for name in names
        )
        for field, by_version in lists.items()
    }


def _in_pools(setting: _Setting, spec: str) -> str:
    """Return the first part of an expression, that a pod says to be in a counted pool, or an empty text.

    If affinities choose pools, too, an affinity that names such a pool says so, whatever else it names.
    """
    if not setting.counted_pools:
        return ""
    selector, pools = f"{spec}.nodeSelector", [*setting.counted_pools]
    by_selector = f"(has({selector}) && '{POOL_LABEL}' in {selector} && {selector}['{POOL_LABEL}'] in {pools}) || "
    if not setting.scheduler.crosses_pools:
        return by_selector
    nodes = f"{spec}.affinity.nodeAffinity"
    required = f"{nodes}.requiredDuringSchedulingIgnoredDuringExecution"
    return by_selector + (
        f"(has({spec}.affinity) && has({nodes}) && has({required}) && "
        f"{required}.nodeSelectorTerms.exists(term, has(term.matchExpressions) && term.matchExpressions.exists(e, "
        f"e.key == '{POOL_LABEL}' && has(e.values) && e.values.exists(v, v in {pools})))) || "
    )


def _part(held: Iterable[Framework], says: Says, body: str, nothing: str) -> str:
    """Return an expression for the field in which an object says how many pods it has, whichever its kind."""
    found = nothing
    for framework in held:
        if framework.says is says:
            field = f"{body}.{framework.at}"
            there = field if framework.at == "spec" else f"(has({field}) ? {field} : {nothing})"
            found = f"request.kind.kind == '{framework.kind}' ? {there} : {found}"
    return found


def _listed(items: Iterable[str]) -> str:
    return str([*items])


_OR_ELASTIC: Final = ", or elastic work by the annotation kueue.x-k8s.io/elastic-job"
_OR_SEVERAL: Final = "+ ', or name several of them by a required nodeAffinity'"
_FRACTION_OF: Final = (
    "(has(<pod>.metadata) && has(<pod>.metadata.annotations) && <pod>.metadata.annotations.exists(a, "
    "a in ['gpu-fraction', 'gpu-memory'] || a.startsWith('nvidia.com/container.'))) || "
)
_FREE_MARKS: Final = (
    PRIORITY_LABEL,
    KUEUE_QUEUE_LABEL,
    "kueue.x-k8s.io/job-min-parallelism",
    "kueue.x-k8s.io/max-exec-time-seconds",
)
"""The marks whose changes Kueue's webhook judges (`ValidateJobOnUpdate` in `pkg/controller/jobframework`)."""
_PLACES_OF_KAI: Final = ("kai.scheduler/skip-podgrouper", "kai.scheduler/subgroup-name", "runai-gpu-group")


# --- Work that runs ----------------------------------------------------------------------------------------------


class RunningWork(Value):
    """One thing that a tenant may try. ``by`` is the rule that refuses it, empty if nothing does.

    ``schedulers`` are those that it is about, none if it is about all.
    """

    id: str
    act: str
    by: str
    schedulers: tuple[str, ...]
    why: str


@cache
def running_work() -> tuple[RunningWork, ...]:
    """Return the table of what tenants may do to work that is queued or runs."""
    rows = _read("running-work")["rows"]
    return tuple(
        RunningWork(row["id"], row["act"], row.get("by", ""), tuple(row.get("with", ())), row["why"]) for row in rows
    )


# --- Where it comes from -----------------------------------------------------------------------------------------


def trace_policy(plan: Plan, name: str) -> Routes:
    """Yield the routes of a policy's texts that would differ in another setting, with what decides them.

    The empty route is for the policy itself, which comes from the scheduler if some have none.
    """
    setting = _setting(plan)
    is_of_scheduler = any(name not in _rows(replace(setting, scheduler=traits)) for traits in SCHEDULERS.values())
    is_of = {FRAMEWORKS_POLICY: frameworks_of, CLAIMS_POLICY: claims_of, GRACE_POLICY: _grace_of}
    others = is_of[name](plan) if name in is_of else ()
    yield (), (*admission_of(plan), *(scheduler_of(plan) if is_of_scheduler else ()), *others)
    body = _policy(name, setting).body
    for other, links in _otherwise(plan, setting):
        if name in _rows(other) and not (is_of_scheduler and other.scheduler is not setting.scheduler):
            for route, _, _ in unlike(body, _policy(name, other).body):
                yield route, links


def _grace_of(plan: Plan) -> Links:
    return chosen(plan.cluster.at / "admission" / "gracePeriod")


def _otherwise(plan: Plan, setting: _Setting) -> Iterator[tuple[_Setting, Links]]:
    """Yield each other setting, with what of the policy makes the difference."""
    for traits in SCHEDULERS.values():
        yield replace(setting, scheduler=traits), scheduler_of(plan)
    yield replace(setting, has_claims=not setting.has_claims), claims_of(plan)
    yield replace(setting, default_priority=setting.default_priority + 1), default_priority_of(plan)
    yield (
        replace(setting, harmless_labels=(), harmless_classes=()),
        (*default_priority_of(plan), *_of_classes(plan, setting.harmless_classes)),
    )
    yield replace(setting, barriers=()), taints_of(plan)
    yield replace(setting, frameworks=()), frameworks_of(plan)
    if setting.scheduler.suspends_jobs:
        yield replace(setting, elastic_kinds=() if setting.elastic_kinds else ("Job",)), elastic_of(plan)
    runtime_class_at = plan.cluster.gpu_operator.at / "values" / "operator" / "runtimeClass"
    yield replace(setting, runtime_class=RUNTIME_CLASS), chosen(runtime_class_at)
    yield replace(setting, counted_pools=()), counted_in(plan)
    yield replace(setting, counted_pools=tuple(f"{name}-" for name in setting.counted_pools)), names_of_counted(plan)
    yield replace(setting, preemptible_classes=()), _of_classes(plan, setting.preemptible_classes)
    for kubernetes in (_OLDEST, _NEWEST):
        yield replace(setting, kubernetes=kubernetes), chosen(plan.cluster.at / "kubernetes")
    for seconds in (None, (setting.grace_seconds or 0) + 1):
        yield replace(setting, grace_seconds=seconds), _grace_of(plan)
    for index, rule in enumerate(setting.without):
        left = tuple(name for name in setting.without if name != rule)
        yield replace(setting, without=left), chosen(plan.cluster.at / "admission" / "without" / index)


def _of_classes(plan: Plan, names: Container[str]) -> Links:
    """Return the names of these classes, and the values of all, by which it is known which classes these are."""
    listed = [priority for priority in plan.priority_classes if priority.name in names]
    return (*named(*listed), *chosen(*(priority.at / "value" for priority in plan.priority_classes)))
