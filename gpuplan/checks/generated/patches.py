"""Checks on what Workloads lay over their pods (GPU440-443)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from gpuplan.admission import level_of
from gpuplan.admission.arriving import templates
from gpuplan.admission.verdicts import refused
from gpuplan.checks.generated.work import Generated, GeneratedWork, RefusedWork
from gpuplan.checks.registry import check
from gpuplan.diagnostics import Finding, Label, Origin, Path, Severity, field_path
from gpuplan.manifests import check_schemas
from gpuplan.manifests.provenance import How, Link
from gpuplan.manifests.strategic import Patched, patched, shape_of_pods
from gpuplan.patterns import regex
from gpuplan.planning.grants import gpu_resources
from gpuplan.planning.linking import Linked, find_written
from gpuplan.planning.plan import MAIN_CONTAINER, WORKLOAD_LABEL, Plan, Workload
from gpuplan.planning.schedulers.kai import CONTAINER_ANNOTATIONS
from gpuplan.planning.schedulers.runai import FRACTION_ANNOTATIONS
from gpuplan.policy.models import Inference
from gpuplan.values import NamedTuple


class _Laid(NamedTuple):
    """A patch laid over one template of a workload's objects, which is at a route of them."""

    plan: Plan
    work: GeneratedWork
    at: Path
    template: Mapping[str, Any]
    found: Patched

    @property
    def workload(self) -> Workload:
        return self.work.workload

    def place(self, inner: Path) -> Origin:
        """Where the patch says something."""
        return self.workload.patch_at / inner

    def before(self, route: Path) -> object:
        return _get(self.template, route)

    def links(self, route: Path) -> Sequence[Link]:
        """Where what is there without the patch comes from, the nearest places of the workload first."""
        trace = self.work.unpatched.trace if self.work.unpatched else None
        linked, own = Linked(trace), self.workload.at.source
        whole = linked.of(())  # why there is an object at all
        found = [link for link in linked.about((*self.at, *route)) if link not in whole]
        return sorted(found, key=lambda link: (link.at.source is not own, link.how is not How.COPIED))


def _laid(generated: Generated) -> Iterator[_Laid]:
    """Each patch on each template that it is for: the pods of a download are none of the workload's."""
    shape = shape_of_pods(generated.plan.cluster.spec.kubernetes)
    for work in generated.work:
        body = work.unpatched.body if work.unpatched else {}
        for route, template in templates(body):
            if WORKLOAD_LABEL in template.get("metadata", {}).get("labels", {}):
                found = patched(template, work.workload.pod_patch, shape)
                yield _Laid(generated.plan, work, route, template, found)


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
        for fault in laid.found.faults:
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
    by no check, and a pod that does not tolerate the taints of its pool never starts.

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
"""A route in the patch, what it does, the place that decides it otherwise, and what to write."""


def _changes(laid: _Laid) -> Iterator[_Change]:
    for route, inner in _set(laid.found).items():
        before, after = laid.before(route), _get(laid.found.body, route)
        if (instead := _decided_elsewhere(laid, route)) is not None:
            yield inner, f"sets `{_shown(laid, route)}`", None, instead
        elif route == ("spec", "tolerations") and isinstance(before, list) and isinstance(after, list):
            yield from _tolerations(laid, inner, before, after)
        elif not _is_missing(before) and before != after:
            yield from _changed(laid, route, inner, "changes")
    for route, inner in laid.found.removed:
        yield from _changed(laid, route, inner, "removes")


def _set(found: Patched) -> Mapping[Path, Path]:
    """What a patch sets, a list that it replaces once for all items: routes in the template, and in the patch."""
    whole = set(found.replaced)
    return {
        route[:length]: inner[: len(inner) - len(route) + length]
        for route, inner in found.decided
        for length in (next((size for size in range(len(route)) if route[:size] in whole), len(route)),)
    }


def _changed(laid: _Laid, route: Path, inner: Path, verb: str) -> Iterator[_Change]:
    """Nothing, where no field of the policy decides it, or what admission judges it by."""
    if _FREE.isdisjoint(route) and (links := laid.links(route)):
        yield inner, f"{verb} `{_shown(laid, route)}`", links[0].at, _instead(laid, links[0])


_FREE: Final = frozenset(("securityContext", "terminationGracePeriodSeconds"))
"""What a level or a bound of the tenant decides only as far as admission goes."""


def _tolerations(laid: _Laid, inner: Path, before: Sequence[Any], after: Sequence[Any]) -> Iterator[_Change]:
    """A pod may have more of them than its pool needs."""
    if missing := [item for item in before if item not in after]:
        add = ", ".join(map(_flow, missing))
        at = laid.links(("spec", "tolerations"))[0].at
        yield inner, "takes away tolerations of the pool's taints", at, f"the list is replaced: add {add}"


def _flow(item: Mapping[str, object]) -> str:
    return f"`{{{', '.join(f'{key}: {value}' for key, value in item.items())}}}`"


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
    ("spec", "resources"): "write `cpu` and `memory` of the workload, and those of each further container",
}
"""What the policy decides also where nothing is written of it, by the route in the template, and what to do."""

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


def _decided_elsewhere(laid: _Laid, route: Path) -> str | None:
    """What to do about a part that is for the policy to say; None where anybody may say it, or it is there already."""
    if not _is_missing(laid.before(route)):
        return None
    match route:
        case ("metadata", "labels" | "annotations", str(key), *_):
            is_theirs = key.startswith(_OF_SCHEDULERS) or key in FRACTION_ANNOTATIONS
            return (
                "leave it out: it follows from `pool`, `priorityClass`, `fraction` and `training`"
                if is_theirs
                else None
            )
        case ("metadata", *_):
            return "leave it out: pods have labels and annotations of their own, and nothing else"
        case ("spec", "containers" | "initContainers" as field, int(index), *rest):
            container = _get(laid.found.body, ("spec", field, index))
            name = container.get("name") if isinstance(container, Mapping) else None
            is_main = name == MAIN_CONTAINER
            if is_main and field == "initContainers":
                return "write another name: the policy describes `main`" if rest == ["name"] else None
            return _in_container(laid, tuple(rest), is_main=is_main)
        case _:
            return next((text for prefix, text in _ADDED.items() if route[: len(prefix)] == prefix), None)


def _in_container(laid: _Laid, rest: Path, *, is_main: bool) -> str | None:
    match rest:
        case ("resources", "limits" | "requests", str(resource)) if _is_of_gpus(laid.plan, resource):
            if is_main:
                return "write `count` of the workload"
            return "leave it out: the units of a pod are those of its main container, by `count` of the workload"
        case ("resources", "limits" | "requests", "cpu" | "memory" as amount) if is_main:
            return f"write `{amount}` of the workload"
        case ("readinessProbe" | "startupProbe", *_) if is_main and isinstance(laid.workload.work, Inference):
            return "write `inference.probe` and `inference.startup`"
        case (str(field), *_) if is_main:
            return _IN_MAIN.get(field)
        case _:
            return None


def _is_of_gpus(plan: Plan, resource: str) -> bool:
    return resource in gpu_resources(plan) or resource.startswith(("nvidia.com/gpu", "nvidia.com/mig-"))


def _shown(laid: _Laid, route: Path) -> str:
    """A route with the names of containers, volumes and variables in place of their numbers."""
    shown: list[str | int] = []
    for length, part in enumerate(route):
        item = _get(laid.found.body, route[: length + 1])
        if _is_missing(item):
            item = laid.before(route[: length + 1])
        name = item.get("name") if isinstance(part, int) and isinstance(item, Mapping) else None
        shown.append(part if name is None else str(name))
    return field_path(tuple(shown))


_MISSING: Final = object()


def _is_missing(value: object) -> bool:
    return value is _MISSING


def _get(value: Any, route: Path) -> Any:  # noqa: ANN401 - any part of an object
    for part in route:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return _MISSING
    return value


# --- What the API server takes -----------------------------------------------------------------------------------

_UNKNOWN_FIELD: Final = regex(r"unknown field `([^`]+)`")


@check("GPU442", "pod-patch-does-not-fit")
def pod_patch_does_not_fit(generated: Generated) -> Iterator[Finding]:
    """With its `podPatch`, a workload's object does not fit the schema of the cluster's Kubernetes.

    ## Why
    The API server refuses an object with a field of the wrong type, and one with a field that it does not know where
    it is asked to be strict, as Argo CD and Flux ask it; elsewhere it drops that field without a word.

    ## Instead
    Correct the field: `kubectl explain pod.spec` shows what there is.
    """
    patching = {id(work.manifest): work for work in generated.work if work.unpatched}
    manifests = [work.manifest for work in patching.values()]
    for problem in check_schemas(manifests, generated.plan.cluster.spec.kubernetes):
        work = patching[id(problem.manifest)]
        unknown = _UNKNOWN_FIELD.fullmatch(problem.message)
        at = _find_place(work, (*problem.path, *(unknown.groups() if unknown else ())))
        if at is not None:
            yield Finding(
                at.key if unknown else at,
                f"`{field_path(at.path[1:])}` of workload `{work.workload.name}`: {problem.message}",
                label="not a field here" if unknown else "does not fit",
                notes=(f"judged by the schema of {problem.source}",),
                help="remove it, or correct it" if unknown else "correct it",
            )


def _find_place(work: GeneratedWork, route: Path) -> Origin | None:
    """Where the patch says what is at a route, or a part of it; None where it says nothing of it."""
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
            yield Finding(
                RefusedWork(work, item).find_place() or workload.patch_at,
                f"the level `{level}` refuses pods of workload `{workload.name}`: {item.refusal.message}",
                label="refused by the API server",
                related=(Label(at, "the level"),) if find_written(Link(How.CHOSEN, at)) else (),
                notes=(f"namespace `{workload.namespace}` has the level `{tenant.spec.allow.pod_security}`",),
                help="change it as the level says",
            )
