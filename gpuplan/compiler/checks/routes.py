"""Checks on how requests come from outside to services (GPU523, GPU564, GPU569)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from gpuplan.compiler.base.diagnostics import Finding, Label, Origin, Severity
from gpuplan.compiler.base.wording import joined, listing
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.checks.wording import name_of
from gpuplan.compiler.planning.plan import Plan, Workload
from gpuplan.compiler.planning.serving import canary_name, ports_of, route_kind, routed, routed_port, takings
from gpuplan.compiler.policy.models import Api, Inference, Route, RouteKind
from gpuplan.compiler.policy.names import LONGEST_LABEL


@check("GPU564", "route-leads-nowhere")
def route_leads_nowhere(plan: Plan) -> Iterator[Finding]:
    """A service is to be reached from outside, and the cluster has nothing that would bring requests to it.

    ## Why
    An HTTPRoute says nothing to a cluster without Gateway API: the API server does not know the kind, and the sync
    fails. It names its Gateway, which is the cluster's and not the workload's. An Ingress is served by the controller
    whose class it names. The certificate of a Gateway is its listener's; an HTTPRoute has no place for one
    (`apis/v1/httproute_types.go` of kubernetes-sigs/gateway-api).

    ## Instead
    Say once in the Cluster what it has: `apis: [HTTPRoute]` with `gateway: {name: public, namespace: gateways}`, or
    `ingress: {className: nginx}`.
    """
    for workload, work, route in routed(plan):
        at = workload.work_at / "route"
        known = ports_of(work)
        if routed_port(work) not in known:
            yield Finding(
                at / "port",
                f"`{workload.name}` has no port `{route.port}` for requests from outside",
                label=f"it has {listing([*known])}",
                help=f"write {joined([f'`port: {name}`' for name in known], 'or')}",
            )
        yield from _way(plan, workload, work, route)


def _way(plan: Plan, workload: Workload, work: Inference, route: Route) -> Iterator[Finding]:
    at, cluster, spec = workload.work_at / "route", plan.cluster, plan.cluster.spec
    place = (at / "kind") if route.kind is not None else at.key
    match route_kind(spec, work):
        case RouteKind.HTTP_ROUTE:
            if Api.HTTP_ROUTE not in spec.apis:
                gateway = (Label((cluster.at / "gateway").key, "for routes that nobody reads"),) if spec.gateway else ()
                yield Finding(
                    place,
                    f"`{workload.name}` is reached by an HTTPRoute, which cluster `{cluster.name}` does not know",
                    label="no such kind",
                    related=gateway,
                    help="add `apis: [HTTPRoute]`"
                    + ("" if spec.gateway else " and `gateway: {name: <Gateway>, namespace: <namespace>}`")
                    + " to the Cluster"
                    + ("" if spec.ingress or spec.gateway else ", or `ingress: {className: <IngressClass>}`"),
                )
            elif spec.gateway is None:
                yield Finding(
                    place,
                    f"`{workload.name}` is reached by an HTTPRoute, and cluster `{cluster.name}` names no Gateway",
                    label="has no Gateway",
                    related=(Label(cluster.at / "apis", "the kind is known"),),
                    help="add `gateway: {name: <Gateway>, namespace: <namespace>}` to the Cluster",
                )
            if route.tls_secret is not None:
                yield Finding(
                    at / "tlsSecret",
                    f"the HTTPRoute of `{workload.name}` has no certificate of its own",
                    label="has no effect",
                    notes=("a Gateway's certificates are those of its listeners",),
                    help="leave it out",
                )
        case RouteKind.INGRESS:
            if route.grpc:
                yield Finding(
                    at / "grpc",
                    f"nothing in the Ingress of `{workload.name}` says that its server speaks gRPC",
                    label="a Gateway reads it",
                    notes=("each controller of Ingresses has an annotation of its own for it",),
                    help="write `kind: HTTPRoute`, or leave it out and patch the annotation in",
                )
            if spec.ingress is None:
                yield Finding(
                    place,
                    f"`{workload.name}` is reached by an Ingress, which nobody serves on cluster `{cluster.name}`",
                    label="has no IngressClass",
                    help="add `ingress: {className: <IngressClass>}` to the Cluster"
                    + (", or leave `kind` out" if spec.gateway else ""),
                )
        case unknown:
            assert_never(unknown)


@check("GPU569", "route-asked-for-twice")
def route_asked_for_twice(plan: Plan) -> Iterator[Finding]:
    """Two services of a cluster are to answer for the same host and path.

    ## Why
    A host and a path lead to one of them: of HTTPRoutes to the older one, which is none that anybody chose
    (`HTTPRouteRule.Matches` in `apis/v1/httproute_types.go` of kubernetes-sigs/gateway-api). Controllers of Ingresses
    take one of the two, or refuse the second.

    If a host with a longer path, or a host beneath another's `*`, belongs to another tenant, the finding is a warning.
    The other tenant gets these requests without asking the first tenant. Within a tenant nothing is found.

    ## Instead
    Write another host or `path` for one of them. Two versions of one service are a `canary`. Where the tenants agree,
    say so in a comment.
    """
    first: dict[tuple[str, str], tuple[Workload, Origin]] = {}
    for workload, _, route in routed(plan):
        for index, host in enumerate(route.hosts):
            at = workload.work_at / "route" / "hosts" / index
            other = first.setdefault((host, route.path), (workload, at))
            if other[1] != at:
                again = other[0] is workload
                yield Finding(
                    at,
                    f"`{workload.name}` has host `{host}` twice"
                    if again
                    else f"`{workload.name}` and `{other[0].name}` both answer for `{host}{route.path}`",
                    label="there already" if again else "one of them gets the requests",
                    related=(Label(other[1], "asked for here"),),
                    help="leave one of them out" if again else "write another host or `path`",
                )
    for taking in takings(plan):
        by, of = taking.by, taking.of
        if by.tenant.name != of.tenant.name:
            yield Finding(
                by.work_at / "route" / "hosts" / taking.host,
                f"`{by.name}` of tenant `{by.tenant.name}` gets requests of `{of.name}`, tenant `{of.tenant.name}`'s",
                label=f"`{taking.address}` is part of `{taking.whole}`",
                related=(Label(of.work_at / "route" / "hosts" / taking.other_host, "asked for here"),),
                help="write another host or `path`; where the tenants agree: `# gpuplan: ignore[GPU569] REASON`",
                severity=Severity.WARNING,
            )


@check("GPU523", "canary-without-weights")
def canary_without_weights(plan: Plan) -> Iterator[Finding]:
    """A service has a canary, and nothing can give it a part of the requests.

    ## Why
    Only an HTTPRoute weighs where requests go (`backendRefs` in `apis/v1/httproute_types.go` of
    kubernetes-sigs/gateway-api). Within the cluster a service is called by the name of its Service, which leads to its
    own pods alone; an Ingress has one Service for each path. The canary's objects are called `<name>-canary`, and are
    in the way of a workload with that name.

    ## Instead
    Add a `route` by the cluster's `gateway`, or try the new version as a Workload of its own.
    """
    names = {(found.namespace, found.name): found for found in plan.workloads}
    for workload in plan.workloads:
        work = workload.work
        if not isinstance(work, Inference) or work.canary is None:
            continue
        at = workload.work_at / "canary"
        yield from _weighed(plan, workload, work)
        if not work.canary.model_fields_set & {"image", "command", "args", "env"}:
            yield Finding(
                at.key,
                f"the canary of `{workload.name}` runs what the service runs",
                label="tries nothing",
                help="add the `image`, `args` or `env` that it tries, or leave it out",
                severity=Severity.WARNING,
            )
        name = canary_name(workload.name)
        if len(name) > LONGEST_LABEL:
            yield Finding(
                name_of(workload.at),
                f"the canary of `{workload.name}` would be called `{name}`",
                label=f"{len(name)} characters",
                notes=(f"its pods have the name as a label, in at most {LONGEST_LABEL} characters",),
                help=f"rename the workload, in at most {LONGEST_LABEL - len(name) + len(workload.name)} characters",
            )
        if other := names.get((workload.namespace, name)):
            yield Finding(
                name_of(other.at),
                f"`{name}` is what the canary of `{workload.name}` is called",
                label="two Deployments with one name",
                related=(Label(at.key, "has a canary"),),
                help="rename it, or remove it where it was the canary",
            )


_BY_GATEWAY = ", and `apis: [HTTPRoute]` with `gateway: {name: <Gateway>, namespace: <namespace>}` to the Cluster"


def _weighed(plan: Plan, workload: Workload, work: Inference) -> Iterator[Finding]:
    at, spec = workload.work_at / "canary", plan.cluster.spec
    if work.pods_per_replica > 1:
        yield Finding(
            at.key,
            f"a replica of `{workload.name}` is several pods, and its canary would be one",
            label="made by a Deployment",
            related=(Label(workload.gang_at, "pods that come and go together"),),
            help="try the new version as a Workload of its own",
        )
    if work.route is None:
        yield Finding(
            at.key,
            f"nothing gives the canary of `{workload.name}` requests",
            label="its pods would get none",
            help=f"add `route: {{hosts: [<host>]}}`{'' if spec.gateway else _BY_GATEWAY}",
        )
    elif route_kind(spec, work) is RouteKind.INGRESS:
        yield Finding(
            workload.work_at / "route" / "kind",
            f"an Ingress gives the canary of `{workload.name}` no part of its requests",
            label="leads to one Service",
            related=(Label(at / "weight", "weighs requests"),),
            help="write `kind: HTTPRoute`",
        )
