"""The check on fields that no API server lets anybody change (GPU705)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpuplan.backends import BACKENDS
from gpuplan.changes.kinds import locked_fields, value_of
from gpuplan.changes.step import Step
from gpuplan.checks.registry import check
from gpuplan.checks.wording import name_of
from gpuplan.diagnostics import Family, Finding, Origin
from gpuplan.manifests import Identity, Manifest, identity_of
from gpuplan.manifests.kinds import Route
from gpuplan.planning.plan import WORKLOAD_LABEL, Plan, RetainedObject
from gpuplan.wording import joined

Body = Mapping[str, Any]


@check("GPU705", "immutable-field-changes", family=Family.STEP)
def immutable_field_changes(step: Step) -> Iterator[Finding]:
    """A field of a Kubernetes object changes that cannot be changed.

    ## Why
    The API server refuses the object, and with it Argo CD and Flux fail to sync the whole folder: everything else in it
    stays as it was. Such are the value of a PriorityClass and whether it preempts, the ClusterQueue that a LocalQueue
    names, the levels of a Topology, all of a ResourceFlavor with a Topology, and the class and mode of a volume.

    ## Instead
    Give what is new another name, and remove the old one when nothing uses it any more. Or delete the object in the
    cluster before the change is synced, and say so in a comment.
    """
    earlier = _objects(step.before)
    for identity, (body, at) in _objects(step.after).items():
        if identity in earlier and (found := locked_fields(identity, earlier[identity][0], body)):
            fields = joined([f"`{'.'.join(route)}`" for route in found])
            yield Finding(
                at if at is not None else _place(step.after, identity, body, found[0]),
                f"{fields} of {identity.kind} `{identity.name}` cannot be changed",
                label="the API server refuses it",
                notes=(f"in namespace `{identity.namespace}`",) if identity.namespace else (),
                help=_help(identity, is_named=at is not None or identity.kind == "PriorityClass"),
            )


def _help(identity: Identity, *, is_named: bool) -> str:
    """``is_named`` says that policies give the object its name, and can give it another."""
    kind = identity.kind.lower() + (f".{identity.group}" if identity.group else "")
    where = f" -n {identity.namespace}" if identity.namespace else ""
    delete = f"`kubectl delete {kind} {identity.name}{where}` just before it is synced"
    return (
        f"add one with another name and leave this; or run {delete}" if is_named else f"take it back, or run {delete}"
    )


# --- Objects and where they come from ----------------------------------------------------------------------------


def _objects(plan: Plan) -> dict[Identity, tuple[Body, Origin | None]]:
    """All objects but hooks, which are recreated each time; the place only of those that are written as such."""
    found: dict[Identity, tuple[Body, Origin | None]] = {}
    for backend in BACKENDS:
        for artifact in backend.render(plan):
            if isinstance(artifact, Manifest) and artifact.hook is None:
                found[artifact.identity] = artifact.body, None
    for item in plan.retained:
        if isinstance(item.what, RetainedObject):
            found[identity_of(item.what.spec.manifest)] = item.what.spec.manifest, item.what.at
    for document in plan.hand_written:
        identity = identity_of(document.body)
        if identity.kind and identity.name and isinstance(document.body, Mapping) and identity not in found:
            found[identity] = document.body, document.at
    return found


def _place(plan: Plan, identity: Identity, body: Body, route: Route) -> Origin:
    """Where the policies say what an object is made of."""
    if identity.kind == "PriorityClass":
        field = "value" if route == ("value",) else "preempts"
        found = next((item.at / field for item in plan.priority_classes if item.name == identity.name), None)
    elif identity.kind in ("Topology", "ResourceFlavor"):
        pool = plan.find_pool(identity.name)
        found = (pool.at / "topology").key if pool is not None else None
    elif workload := value_of(body, ("metadata", "labels", WORKLOAD_LABEL)):
        names = (item.at for item in plan.workloads if (item.namespace, item.name) == (identity.namespace, workload))
        found = next(names, None)
    else:
        tenants = (tenant for tenant in plan.tenants if identity.namespace in tenant.spec.namespaces)
        found = next((tenant.at / "namespaces" for tenant in tenants), None)
    return found if found is not None else name_of(plan.cluster.at)
