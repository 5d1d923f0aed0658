"""Values of the example that can be no others while all else stays as it is, by the reason."""

from __future__ import annotations

from typing import Final

FIXED: Final[dict[str, tuple[str, ...]]] = {
    "one more does not fit onto the GPU, and one less is less than quotas guarantee": (
        "MigLayout/two-large spec.instances.3g.40gb",
        "MigLayout/three-medium spec.instances.2g.20gb",
        "MigLayout/three-medium spec.instances.1g.10gb",
        "MigLayout/seven-small spec.instances.1g.10gb",
        "MigLayout/one-large-two-medium spec.instances.3g.40gb",
        "MigLayout/one-large-two-medium spec.instances.2g.20gb",
    ),
    "no other layout has all units that quotas name": (
        "Pool/a100-production spec.sharing.mig.layout",
        "Pool/a100-agents spec.sharing.mig.layout",
        "Pool/a100-small spec.sharing.mig.layout",
        "Pool/a100-mixed spec.sharing.mig.layout",
    ),
    "no other pool serves the tenant's type of workload, hands out the unit and has as many of it": (
        "Tenant/research spec.quotas.0.pool",
        "Tenant/development spec.quotas.0.pool",
        "Tenant/batch-inference spec.quotas.0.pool",
        "Tenant/fine-tuning spec.quotas.0.pool",
        "Tenant/production-inference spec.quotas.0.pool",
        "Tenant/agents spec.quotas.0.pool",
        "Tenant/agents spec.quotas.1.pool",
        "Tenant/small-inference spec.quotas.0.pool",
        "Tenant/model-services spec.quotas.0.pool",
        "Tenant/model-services spec.quotas.1.pool",
        "[dev] Tenant/development spec.quotas.0.pool",
        "[dev] Tenant/research spec.quotas.0.pool",
        "[dev] Tenant/model-services spec.quotas.0.pool",
        "[dev] Tenant/model-services spec.quotas.1.pool",
        "[openshift] Tenant/production-inference spec.quotas.0.pool",
        "[openshift] Tenant/fine-tuning spec.quotas.0.pool",
    ),
    "the pool hands out no other unit, or the tenant has a quota on it": (
        "Tenant/production-inference spec.quotas.0.unit",
        "Tenant/agents spec.quotas.0.unit",
        "Tenant/agents spec.quotas.1.unit",
        "Tenant/small-inference spec.quotas.0.unit",
        "Tenant/model-services spec.quotas.0.unit",
        "Tenant/model-services spec.quotas.1.unit",
        "[dev] Tenant/model-services spec.quotas.0.unit",
        "[dev] Tenant/model-services spec.quotas.1.unit",
        "[openshift] Tenant/production-inference spec.quotas.0.unit",
    ),
    "a workload needs it, and the pool has no more": ("[dev] Tenant/model-services spec.quotas.0.guaranteed",),
    "no other tenant has a quota on the workload's pool": (
        "Workload/chat spec.tenant",
        "Workload/embeddings spec.tenant",
    ),
    "the workload's tenant has no quota on another pool": (
        "Workload/support-tuning spec.pool",
        "Workload/evaluation spec.pool",
        "Workload/chat spec.pool",
        "Workload/embeddings spec.pool",
    ),
    "a pool is shared in one way": ("[openshift] Pool/h100-training spec.sharing.timeSlicing",),
    "seven of a kind fit onto the GPU only of the smallest": ("MigLayout/seven-small spec.instances.1g.10gb",),
}
