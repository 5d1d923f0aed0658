"""Checks on what Workloads lay over their pods (GPU440-443)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from posixpath import normpath
from typing import Any, Final

from gpuplan.compiler.admission.arriving import templates
from gpuplan.compiler.admission.policies import level_of
from gpuplan.compiler.admission.verdicts import refused
from gpuplan.compiler.base.diagnostics import Finding, Label, Origin, Path, Severity, field_path
from gpuplan.compiler.base.plain import items, mapping
from gpuplan.compiler.base.trees import ABSENT
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.checks.generated.admitted import Generated, GeneratedWork, RefusedWork
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.checks.wording import in_flow, refused_in, refuses_in
from gpuplan.compiler.manifests import check_schemas
from gpuplan.compiler.manifests.merging.strategic import Patched, patched
from gpuplan.compiler.manifests.pod_rules import misfits
from gpuplan.compiler.manifests.provenance import How, Link
from gpuplan.compiler.manifests.selectors import matches
from gpuplan.compiler.manifests.shapes import shape_of_pods
from gpuplan.compiler.planning.discovered import GPU_RESOURCE, MIG_RESOURCES
from gpuplan.compiler.planning.dra import CLASS_PREFIX
from gpuplan.compiler.planning.grants import gpu_resources
from gpuplan.compiler.planning.hand_files import UNKNOWN_FIELD
from gpuplan.compiler.planning.linking import Linked, find_written
from gpuplan.compiler.planning.plan import MAIN_CONTAINER, POOL_LABEL, WORKLOAD_LABEL, Plan, Workload
from gpuplan.compiler.planning.schedulers.kai import CLASS_LABEL, CONTAINER_ANNOTATIONS
from gpuplan.compiler.planning.schedulers.runai import FRACTION_ANNOTATIONS
from gpuplan.compiler.policy.models import Inference


class _Laid(NamedTuple):
    """A patch laid over one template of a workload's objects, which is at a route of them."""

    plan: Plan
    work: GeneratedWork
    at: Path
    template: Mapping[str, Any]
    result: Patched

    @property
    def workload(self) -> Workload:
        return self.work.workload

    def place(self, inner: Path) -> Origin:
        """Return where the patch says something."""
        return self.workload.patch_at / inner

    def before(self, route: Path) -> object:
        """Return what is there without the patch and stays, or that nothing is if the patch takes it away."""
        is_gone = any(len(at) < len(route) and route[: len(at)] == at for at, _ in self.result.removed)
        return ABSENT if is_gone else _get(self.template, route)

    def stated(self, inner: Path) -> object:
        """Return what the patch itself says."""
        return _get(self.workload.pod_patch, inner)

    def name(self, route: Path, inner: Path) -> str | None:
        """Return the name of an item of a list, by the patch or without it."""
        for item in (self.stated(inner), _get(self.template, route)):
            if isinstance(item, Mapping) and "name" in item:
                return str(item["name"])
        return None

    def links(self, route: Path) -> Sequence[Link]:
        """Return where a part comes from that is there without the patch, places of the workload first."""
        trace = self.work.unpatched.trace if self.work.unpatched else None
        linked, own = Linked(trace), self.workload.at.source
        whole = linked.of(())  # why there is an object at all
        found = [link for link in linked.about((*self.at, *route)) if link not in whole]
        return sorted(found, key=lambda link: (link.at.source is not own, link.how is not How.COPIED))


def _laid(generated: Generated) -> Iterator[_Laid]:
    """Yield each patch on each template that it is for. Pods of a download are none of the workload's."""
    shape = shape_of_pods(generated.plan.cluster.spec.kubernetes)
    for work in generated.work:
        body = work.unpatched.body if work.unpatched else {}
        for route, template in templates(body):
            if WORKLOAD_LABEL in template.get("metadata", {}).get("labels", {}):
                yield _Laid(generated.plan, work, route, template, patched(template, work.workload.pod_patch, shape))


# --- What can be applied -----------------------------------------------------------------------------------------


@check("GPU440", "pod-patch-cannot-be-applied")
def pod_patch_cannot_be_applied(generated: Generated) -> Iterator[Finding]:
    """A part of a workload's `podPatch` cannot be laid over its pods, or changes nothing.

    ## Why
    A strategic merge patch tells the items of a list apart by one field: containers, volumes and variables by `name`,
    mounts by `mountPath`, ports by `containerPort`. An item without it could be any. `$patch: delete` takes out an item
    or a mapping, and an item `$patch: replace` makes the others the whole list. What `kubectl patch` writes beside that
    to compare objects, such as `$setElementOrder`, is not for people. What removes nothing is most likely misspelt,
    which is a warning.

    ## Instead
    Write the field that the help names, or leave the part out.
    """
    for laid in _laid(generated):
        for fault in laid.result.faults:
            yield Finding(
                laid.place(fault.route),
                f"`podPatch` of workload `{laid.workload.name}`: {fault.message}",
                label="removes nothing" if fault.is_idle else "cannot be applied",
                help=fault.help,
                severity=Severity.WARNING if fault.is_idle else None,
            )


# --- What the policy decides -------------------------------------------------------------------------------------


@check("GPU441", "pod-patch-changes-what-policy-says")
def pod_patch_changes_what_policy_says(generated: Generated) -> Iterator[Finding]:
    """A workload's `podPatch` changes what another field of the policy decides.

    ## Why
    Quotas, sums and findings count what the policy says: units of GPUs, the pool, the class, the queue, how many pods
    there are. A patch of these would make all of it wrong without a word. Units in further containers would be counted
    by no check, and so would claims of further devices. A pod that does not tolerate the taints of its pool never
    starts, nor does one with an affinity to other pools. What a kind of work needs is decided as well: that pods of a
    Job are not started again in place, what its volumes are and where they are mounted, and the ports that the Service
    leads to.

    ## Instead
    Write it in the field that the help names. What the policy language does not say may be patched.
    """
    for laid in _laid(generated):
        seen: set[Path] = set()
        for inner, message, place, instead in _changes(laid):
            if inner not in seen:
                seen.add(inner)
                link = find_written(Link(How.COPIED, place)) if place else None
                yield Finding(
                    laid.place(inner),
                    f"`podPatch` of workload `{laid.workload.name}` {message}",
                    label="said by another field",
                    related=(Label(link.at, "decided here"),) if link else (),
                    help=instead,
                )


_Change = tuple[Path, str, Origin | None, str]
"""A route in the patch, its effect, the place that decides it otherwise, and what to write."""


def _changes(laid: _Laid) -> Iterator[_Change]:
    for route, inner in _set(laid.result).items():
        before, after = laid.before(route), laid.stated(inner)
        if before is ABSENT:
            if (instead := _decided_elsewhere(laid, route, inner)) is not None:
                yield inner, f"sets `{_shown(laid, route, inner)}`", None, instead
        elif isinstance(before, list) and isinstance(after, list) and (what := _MAY_BE_LONGER.get(route[-1])):
            if missing := [item for item in before if item not in after]:
                add = ", ".join(f"`{in_flow(entry)}`" for entry in missing)
                yield inner, f"takes away {what}", laid.links(route)[0].at, f"the list is replaced: add {add}"
        elif before != after:
            yield from _changed(laid, route, inner, "changes")
    for route, inner in laid.result.removed:
        yield from _changed(laid, route, inner, "removes")
    yield from _kept_off(laid)


def _set(result: Patched) -> Mapping[Path, Path]:
    """Return routes in the template that a patch sets, with those in the patch. A list that it replaces is one."""
    whole = set(result.replaced)
    return {
        route[:length]: inner[: len(inner) - len(route) + length]
        for route, inner in result.decided
        for length in (next((size for size in range(len(route)) if route[:size] in whole), len(route)),)
    }


def _changed(laid: _Laid, route: Path, inner: Path, verb: str) -> Iterator[_Change]:
    """Yield a change of what the policy decides by a field, or by the kind of work. Anybody may decide the rest."""
    route = _GROUP if route == _GROUP[: len(route)] and laid.before(_GROUP) is not ABSENT else route
    if route != _GROUP and not _FREE.isdisjoint(route):
        return
    what, links = f"{verb} `{_shown(laid, route, inner)}`", laid.links(route)
    if links:
        yield inner, what, links[0].at, _instead(laid, links[0])
    else:
        yield inner, what, None, _added(route) or "leave it out: it follows from the kind of work"


_FREE: Final = frozenset(
    ("securityContext", "terminationGracePeriodSeconds", "automountServiceAccountToken", "enableServiceLinks")
)
"""The fields that a tenant's level or bound decides only as far as admission goes, or that make pods safer."""

_GROUP: Final = ("spec", "securityContext", "fsGroup")
"""The field that says who may write to volumes, if the policy says it."""

_MAY_BE_LONGER: Final[Mapping[str | int, str]] = {
    "tolerations": "tolerations of the pool's taints",
    "claims": "claims of the units",
}
"""The lists that a patch replaces and that may hold more than a pod needs for its pool, with their content."""


# An affinity beside the pool's own selector.

_TERMS: Final = (
    "spec",
    "affinity",
    "nodeAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms",
)


def _kept_off(laid: _Laid) -> Iterator[_Change]:
    """Yield an affinity whose terms all keep pods off the pool. One term that admits it is enough."""
    terms, pool = laid.stated(_TERMS), laid.before(("spec", "nodeSelector", POOL_LABEL))
    if (
        isinstance(terms, list)
        and isinstance(pool, str)
        and all(matches(mapping(term), {POOL_LABEL: pool}, (POOL_LABEL,)) is False for term in terms)
    ):
        message, instead = (
            f"keeps its pods off pool `{pool}`",
            "leave it out: `pool` of the workload says where it runs",
        )
        yield _TERMS, message, laid.links(("spec", "nodeSelector"))[0].at, instead


def _instead(laid: _Laid, link: Link) -> str:
    path = link.at.path
    field = field_path(path[1:] if path[:1] == ("spec",) else path)
    whose = "the workload" if link.at.source is laid.workload.at.source else link.at.source.title
    if link.how is How.COPIED and path[:1] == ("spec",):
        return f"leave it out, and write `{field}` of {whose}"
    return f"leave it out: `{field}` of {whose} decides it"


_ADDED: Final[Mapping[Path, str]] = {
    ("spec", "schedulerName"): "leave it out: `scheduler.kind` of the Cluster decides it",
    ("spec", "priorityClassName"): "write `priorityClass` of the workload",
    ("spec", "priority"): "write `priorityClass` of the workload",
    ("spec", "preemptionPolicy"): "write `preempts` in the PriorityClass",
    ("spec", "nodeName"): "write `pool` of the workload",
    ("spec", "restartPolicy"): "leave it out: it follows from the kind of work",
    ("spec", "subdomain"): "write `training.peers`",
    ("spec", "hostname"): "write `training.peers`",
    ("spec", "ephemeralContainers"): "leave them out: a template has none",
    ("spec", "schedulingGates"): "leave it out: nobody would open the gate",
    ("spec", "overhead"): "leave it out: it belongs to the RuntimeClass that `runtimeClassName` names",
    ("spec", "resources"): "write `cpu` and `memory` of the workload, and those of each further container",
}
"""The routes that the policy decides also if it writes nothing there, with what to do instead."""

_IN_MAIN: Final[Mapping[str, str]] = {
    "image": "write `image` of the workload",
    "command": "write `command` of the workload",
    "args": "write `args` of the workload",
}

_BY_TERMS: Final = "leave it out: it follows from `pool`, `priorityClass`, `fraction` and `training`"

_OF_SCHEDULERS: Final = (
    "gpuplan.dev/",
    "kueue.x-k8s.io/",
    "kai.scheduler/",
    "runai/",
    "run.ai/",
    *CONTAINER_ANNOTATIONS,
)


def _decided_elsewhere(laid: _Laid, route: Path, inner: Path) -> str | None:
    """Return what to do about a new part that is for the policy to say, or None if anybody may say it."""
    match route:
        case ("metadata", "labels", str(key)) if key == CLASS_LABEL and laid.plan.scheduler.has_queues_by_pool:
            return _ADDED["spec", "priorityClassName"]
        case ("metadata", "labels" | "annotations", str(key), *_):
            is_theirs = key.startswith(_OF_SCHEDULERS) or key in FRACTION_ANNOTATIONS
            return _BY_TERMS if is_theirs else None
        case ("metadata", *_):
            return "leave it out: pods have labels and annotations of their own, and nothing else"
        case ("spec", "containers" | "initContainers" as field, int(), *rest):
            is_main = laid.name(route[:3], inner[:3]) == MAIN_CONTAINER
            if is_main and field == "initContainers":
                return "write another name: the policy describes `main`" if rest == ["name"] else None
            return _in_item(laid, route[3:], route, inner) or _in_container(laid, tuple(rest), inner, is_main=is_main)
        case ("spec", "resourceClaims", int(), "resourceClaimTemplateName"):
            return _BY_COUNT if str(laid.stated(inner)).startswith(CLASS_PREFIX) else None
        case _:
            return _in_item(laid, route[1:], route, inner) or _added(route)


def _added(route: Path) -> str | None:
    return next((text for prefix, text in _ADDED.items() if route[: len(prefix)] == prefix), None)


_ITEMS: Final[Mapping[str | int, str]] = {
    "volumes": "write another name: the policy says what this volume is",
    "volumeMounts": "mount it elsewhere: the policy says what is here",
    "env": "leave it out: the policy says what this variable is",
    "resourceClaims": "write another name: the policy says what this claim is",
}
"""The lists whose items are whole if they are there, with what to do instead of adding to one."""

_OF_PORT: Final = ("protocol",)


def _in_item(laid: _Laid, rest: Path, route: Path, inner: Path) -> str | None:
    """Return what to do about a part of an item that the policy made. ``rest`` begins with the item's list."""
    match rest:
        case (str(field), int(), *_) if laid.before(route[: len(route) - len(rest) + 2]) is not ABSENT:
            return "leave it out: the Service leads to this port" if rest[2:] == _OF_PORT else _ITEMS.get(field)
        case ("volumeMounts", int(), "mountPath"):
            mounts = [mapping(item).get("mountPath") for item in items(laid.before(route[:-2]))]
            is_taken = normpath(str(laid.stated(inner))) in map(normpath, map(str, mounts))
            return _ITEMS["volumeMounts"] if is_taken else None
        case _:
            return None


_BY_COUNT: Final = "leave it out: the units of a pod are those of its main container, by `count` of the workload"


def _in_container(laid: _Laid, rest: Path, inner: Path, *, is_main: bool) -> str | None:
    match rest:
        case ("resources", "claims"):
            units = items(laid.before(("spec", "resourceClaims")))
            used = [mapping(item).get("name") for item in items(laid.stated(inner))]
            return _BY_COUNT if any(unit["name"] in used for unit in units) else None
        case ("resources", "limits" | "requests", str(resource)) if _is_of_gpus(laid.plan, resource):
            return "write `count` of the workload" if is_main else _BY_COUNT
        case ("resources", "limits" | "requests", "cpu" | "memory" as amount) if is_main:
            return f"write `{amount}` of the workload"
        case ("readinessProbe" | "startupProbe", *_) if is_main and isinstance(laid.workload.work, Inference):
            return "write `inference.probe` and `inference.startup`"
        case (str(field), *_) if is_main:
            return _IN_MAIN.get(field)
        case _:
            return None


def _is_of_gpus(plan: Plan, resource: str) -> bool:
    return resource in gpu_resources(plan) or resource.startswith((GPU_RESOURCE, MIG_RESOURCES))


def _shown(laid: _Laid, route: Path, inner: Path) -> str:
    """Return a route with the names of containers, volumes and variables in place of their numbers."""
    shown: list[str | int] = []
    for length, part in enumerate(route, start=1):
        name = laid.name(route[:length], inner[:length]) if isinstance(part, int) else None
        shown.append(part if name is None else name)
    return field_path(tuple(shown))


def _get(value: Any, route: Path) -> Any:  # noqa: ANN401 - any part of an object
    for part in route:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return ABSENT
    return value


# --- What the API server takes -----------------------------------------------------------------------------------


@check("GPU442", "pod-patch-does-not-fit")
def pod_patch_does_not_fit(generated: Generated) -> Iterator[Finding]:
    """With its `podPatch`, a workload's pods are none that the API server takes.

    ## Why
    The API server refuses an object with a field of the wrong type, and one with a field that it does not know where
    it is asked to be strict, as Argo CD and Flux ask it; elsewhere it drops that field without a word. It refuses as
    well what its schema lets through: a mount of no volume, a volume with two sources, a request above its limit, a
    probe with two handlers, names that are no DNS label. A quantity that nobody can read counts nowhere.

    ## Instead
    Correct the field: `kubectl explain pod.spec` shows what there is.
    """
    found = list(_misfits(generated))
    yield from found
    known = {(item.at.source.title, item.at.path) for item in found}
    patching = {id(work.manifest): work for work in generated.work if work.unpatched}
    manifests = [work.manifest for work in patching.values()]
    for problem in check_schemas(manifests, generated.plan.cluster.spec.kubernetes):
        work = patching[id(problem.manifest)]
        unknown = UNKNOWN_FIELD.fullmatch(problem.message)
        at = _find_place(work, (*problem.path, *(unknown.groups() if unknown else ())))
        if at is not None and (at.source.title, at.path) not in known:
            yield Finding(
                at.key if unknown else at,
                f"`{field_path(at.path[1:])}` of workload `{work.workload.name}`: {problem.message}",
                label="not a field here" if unknown else "does not fit",
                notes=(f"judged by the schema of {problem.source}",),
                help="remove it, or correct it" if unknown else "correct it",
            )


def _misfits(generated: Generated) -> Iterator[Finding]:
    """Find faults of patched pods that they do not have without the patch and that no other rule reports."""
    for laid in _laid(generated):
        ends = not isinstance(laid.workload.work, Inference)
        told = [inner for inner, *_ in _changes(laid)]
        known = {(found.route, found.message) for found in misfits(mapping(laid.before(("spec",))), ends=ends)}
        for found in misfits(mapping(laid.result.body.get("spec")), ends=ends):
            inner = _inner(laid, ("spec", *found.route))
            is_told = any(inner[: len(other)] == other or other[: len(inner)] == inner for other in told)
            if (found.route, found.message) not in known and not is_told:
                yield Finding(
                    laid.place(inner),
                    f"`{field_path(('podPatch', *inner))}` of workload `{laid.workload.name}`: {found.message}",
                    label="does not fit",
                    help=found.help,
                )


def _inner(laid: _Laid, route: Path) -> Path:
    """Return the part of the patch that is nearest to a route of the patched template."""
    for length in range(len(route), 0, -1):
        for at, inner in laid.result.decided:
            if at[:length] == route[:length]:
                return inner[:length]
    return ()


def _find_place(work: GeneratedWork, route: Path) -> Origin | None:
    """Return where the patch says what is at a route or a part of it, or None."""
    at = work.workload.patch_at
    depth = len(at.path)
    for link in Linked(work.manifest.trace).about(route):
        if link.how is How.COPIED and link.at.source is at.source and link.at.path[:depth] == at.path:
            path, wanted = link.at.path, route[-1]
            return link.at._replace(path=path[: len(path) - path[::-1].index(wanted)] if wanted in path else path)
    return None


# --- What the tenant's level allows ------------------------------------------------------------------------------


@check("GPU443", "pod-patch-above-its-level")
def pod_patch_above_its_level(generated: Generated) -> Iterator[Finding]:
    """With its `podPatch`, a workload's pods are more than the Pod Security level of their tenant allows.

    ## Why
    The API server holds each namespace to its level: the object is applied without an error, and its pods are refused.
    `baseline` keeps pods from the host. Under `restricted` every container says besides that it is no root, gains no
    privileges and drops all capabilities; what gpuplan writes says so, and containers that a patch adds have to.

    ## Instead
    Write what the level asks for. The level is `allow.podSecurity` of the tenant.
    """
    for work in generated.work:
        workload = work.workload
        tenant, levels = workload.tenant, level_of(generated.plan, workload.tenant)
        is_known = workload.namespace in tenant.spec.namespaces and workload.name not in generated.faulty
        if not is_known or tenant.name in generated.plan.broken.incomplete_tenants:
            continue
        for item in refused(generated.plan, levels, work.manifest.body, tenant, workload.namespace):
            level, at = item.refusal.policy.name, tenant.at / "allow" / "podSecurity"
            refuses = refuses_in(generated.plan, tenant, workload.namespace)
            finding = Finding(
                RefusedWork(work, item).find_place() or workload.patch_at,
                f"the level `{level}` {refuses} pods of workload `{workload.name}`: {item.refusal.message}",
                label="refused by the API server",
                related=(Label(at, "the level"),) if find_written(Link(How.CHOSEN, at)) else (),
                notes=(f"namespace `{workload.namespace}` has the level `{tenant.spec.allow.pod_security}`",),
                help="change it as the level says",
            )
            yield refused_in(generated.plan, tenant, workload.namespace, finding)
