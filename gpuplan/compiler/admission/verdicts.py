"""Find what a cluster's policies refuse of an object in a tenant's namespace, and which part of it is to blame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from gpuplan.compiler.admission.arriving import Body, Route, arrivals, blamed, without
from gpuplan.compiler.admission.judging import Refusal, Request, concerns, refusals
from gpuplan.compiler.admission.policies import holds_for
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.manifests.admission import AdmissionPolicy
from gpuplan.compiler.planning.grants import parameters
from gpuplan.compiler.planning.plan import Plan, Tenant


class Refused(Value):
    """A refusal of an object, or of what controllers make of it, and the route in it to what is to blame.

    The route is empty if something is missing.
    """

    refusal: Refusal
    route: Route
    is_made: bool


def refused(
    plan: Plan,
    policies: Sequence[AdmissionPolicy],
    body: Body,
    tenant: Tenant,
    namespace: str,
    *,
    classes: Mapping[str, int] = MappingProxyType({}),
    further: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Refused]:
    """Yield what the policies of a plan refuse: each part that is to blame once, and nothing that follows from it.

    ``classes`` are the values of priority classes that are written by hand, ``further`` what is written by hand into
    the parameters of the namespace.
    """
    granted = {**parameters(tenant, namespace, plan.scheduler), **further}
    held = [policy for policy in policies if holds_for(policy.name, tenant)]
    stopped: set[Route] = set()
    for arrival in arrivals(plan, body, classes, tenant):
        concerned = [policy for policy in held if policy.rules and concerns(policy, arrival.body)]
        if not concerned or (arrival.sources and arrival.route in stopped):
            continue  # nothing is made of a pod that is refused
        request = Request(arrival.body, namespace=namespace, parameters=granted)
        said: set[Route] = set()
        for refusal in refusals(concerned, request):
            if said and not _judged(refusal, request, without(arrival.body, said)):
                continue
            parts = [part for part in blamed(arrival.body, partial(_judged, refusal, request)) if part not in said]
            said.update(parts)
            stopped.add(arrival.route)
            for part in parts:
                others = [other for other in parts if other != part]
                alone = _judged(refusal, request, without(arrival.body, others)) if others else None
                yield Refused(refusal=alone or refusal, route=arrival.source(part), is_made=bool(arrival.route))


def _judged(refusal: Refusal, request: Request, body: Body) -> Refusal | None:
    """Return what the rule of a refusal says of another object, if it refuses that."""
    rule = refusal.policy.only((refusal.rule.name,))
    return next(refusals([rule], replace(request, object=body)), None)
