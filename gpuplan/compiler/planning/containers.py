"""What containers of a tenant have of CPU and memory that say nothing of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.manifests import quantity
from gpuplan.compiler.planning.amounts import amount_of, amount_text, compute_cap
from gpuplan.compiler.planning.plan import Amount, Counted, Tenant
from gpuplan.compiler.planning.schedulers import SchedulerTraits
from gpuplan.compiler.planning.tenants import amount
from gpuplan.compiler.policy.models import ContainerDefaults


class Defaults(NamedTuple):
    """Millicores or bytes; None where the tenant says nothing.

    ``request`` is as much as ``limit`` where ``request_field`` says so; ``ratio`` is how many times its request a
    container's limit may be.
    """

    at: Origin
    counted: Counted
    request: int | None
    limit: int | None
    ratio: Amount | None
    request_field: str

    @property
    def stated(self) -> tuple[Origin, ...]:
        """The fields that the tenant writes."""
        fields = {"request": self.request, "limit": self.limit, "maxRatio": self.ratio}
        names = [name for name, value in fields.items() if value is not None]
        return tuple(self.at / name for name in names if name != "request" or self.request_field == name)


def defaults_of(tenant: Tenant) -> Mapping[Counted, Defaults]:
    """For CPU and for memory, whether the tenant says something or not."""
    said = tenant.spec.containers
    both = {Counted.CPU: said.cpu, Counted.MEMORY: said.memory}
    return {counted: _resolved(tenant, counted, spec or ContainerDefaults()) for counted, spec in both.items()}


def _resolved(tenant: Tenant, counted: Counted, spec: ContainerDefaults) -> Defaults:
    request = spec.request if spec.request is not None else spec.limit
    return Defaults(
        at=tenant.at / "containers" / counted.value,
        counted=counted,
        request=None if request is None else amount_of(counted, request),
        limit=None if spec.limit is None else amount_of(counted, spec.limit),
        ratio=None if spec.max_ratio is None else amount(spec.max_ratio),
        request_field="limit" if spec.request is None else "request",
    )


# --- What is written for them ------------------------------------------------------------------------------------

DEFAULT_REQUESTS: Final = {Counted.CPU: "100m", Counted.MEMORY: "128Mi"}
"""What a container counts as that asks for nothing, where nobody says more of it: little."""


def compute_caps(tenant: Tenant, namespace: str, scheduler: SchedulerTraits) -> Mapping[Counted, int]:
    """Caps on CPU, memory and pods in a ResourceQuota, where no queue counts them.

    Beside a queue they would hold for pods on other nodes too. And they need defaults for containers that say nothing,
    which Kueue takes before it looks at limits: work that states limits alone would count as next to nothing there
    (`AdjustResources` in `pkg/workload/resources.go` of Kueue 0.19).
    """
    if scheduler.counts_tenants:
        return {}
    caps = {counted: compute_cap(tenant.quotas, namespace, counted) for counted in Counted}
    return {counted: cap for counted, cap in caps.items() if cap is not None}


def container_limits(tenant: Tenant, namespace: str, scheduler: SchedulerTraits) -> Mapping[str, Mapping[str, str]]:
    """What a LimitRange says of containers: what the tenant does, and what the ResourceQuota needs.

    It would refuse pods with containers that say nothing of what it counts (`Constraints` in
    `pkg/quota/v1/evaluator/core/pods.go` of kubernetes/kubernetes). A container that has a limit asks for as much,
    whatever stands here. A request that is left out is written all the same, so that the file shows what holds: the API
    server fills it in from the limit (`SetDefaults_LimitRangeItem` in `pkg/apis/core/v1/defaults.go` there).
    """
    capped = compute_caps(tenant, namespace, scheduler)
    limits: dict[str, dict[str, str]] = {"default": {}, "defaultRequest": {}, "maxLimitRequestRatio": {}}
    for counted, found in defaults_of(tenant).items():
        if found.limit is not None:
            limits["default"][counted.value] = amount_text(counted, found.limit)
        if found.request is not None:
            limits["defaultRequest"][counted.value] = amount_text(counted, found.request)
        elif counted in capped:
            limits["defaultRequest"][counted.value] = DEFAULT_REQUESTS[counted]
        if found.ratio is not None:
            limits["maxLimitRequestRatio"][counted.value] = quantity(found.ratio)
    return {field: amounts for field, amounts in limits.items() if amounts}
