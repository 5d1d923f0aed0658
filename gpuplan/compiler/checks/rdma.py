"""Checks on tenants that may use RDMA (GPU466-469)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from gpuplan.compiler.base.diagnostics import Finding, Label, Severity
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.planning.discovered import GPU_RESOURCE, MIG_RESOURCES
from gpuplan.compiler.planning.grants import gpu_resources, has_admission_policies, is_held_by_rules
from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.policy.models import Platform, PodSecurity


@check("GPU466", "rdma-needs-admission-policies")
def rdma_needs_admission_policies(plan: Plan) -> Iterator[Finding]:
    """A tenant may use RDMA on a cluster whose API server cannot hold its pods to anything else.

    ## Why
    RDMA needs the capability IPC_LOCK, and Pod Security knows no level with it but `privileged`, which forbids nothing
    and opens every GPU of a node. So gpuplan gives the tenant's namespaces that level, and an admission policy holds
    their pods to all else of `baseline`. Kubernetes has such policies from 1.30 on.

    ## Instead
    Upgrade the cluster to 1.30 or later, or remove `rdma`.
    """
    for tenant in plan.tenants:
        if is_held_by_rules(tenant) and not has_admission_policies(plan.cluster):
            yield Finding(
                (tenant.at / "allow" / "rdma").key,
                f"Kubernetes {plan.cluster.spec.kubernetes} cannot let pods of tenant `{tenant.name}` use RDMA alone",
                label="needs the level `privileged`, and rules in its place",
                related=(Label(plan.cluster.at / "kubernetes", "admission policies came with 1.30"),),
                help="upgrade the cluster to 1.30 or later, or remove `rdma`",
            )


@check("GPU467", "rdma-beside-restricted")
def rdma_beside_restricted(plan: Plan) -> Iterator[Finding]:
    """A tenant may use RDMA and is held to a level of Pod Security that refuses it.

    ## Why
    The level `restricted` lets pods add no capability but NET_BIND_SERVICE. `rdma` gives them IPC_LOCK, and holds them
    to all else of `baseline`; gpuplan has no rules for `restricted`.

    ## Instead
    Write `podSecurity: baseline`, or give the pods with RDMA a tenant of their own.
    """
    for tenant in plan.tenants:
        if tenant.spec.allow.rdma and tenant.spec.allow.pod_security is PodSecurity.RESTRICTED:
            yield Finding(
                tenant.at / "allow" / "podSecurity",
                f"pods of tenant `{tenant.name}` cannot use RDMA at the level `restricted`",
                label="refuses the capability IPC_LOCK",
                related=(Label((tenant.at / "allow" / "rdma").key, "needs it"),),
                help="write `podSecurity: baseline`, or remove `rdma`",
            )


@check("GPU468", "not-a-network-resource")
def not_a_network_resource(plan: Plan) -> Iterator[Finding]:
    """A tenant is granted as a network card what is none.

    ## Why
    What `rdma` names is for network cards: admission does not take it for a GPU, no quota caps it, and Kueue does not
    count it, nor any resource whose name begins with it.

    Names with `nvidia.com/` are those of GPUs and of what connects them, but for what NVIDIA's network operator is told
    to call its cards, such as `nvidia.com/hostdev`: `gpu`, `mig-*` and shares of them; `pgpu`, `nvswitch` and names in
    capitals from device plugins for virtual machines; `imex-channel`, by which GPUs read each other's memory.

    The kubelet takes no name from a device plugin that has `kubernetes.io/` in it, or that begins with `requests.` as
    quotas do (`IsExtendedResourceName` in `pkg/apis/core/v1/helper/helpers.go` of kubernetes/kubernetes): a quota would
    count something else.

    ## Instead
    Name the resource of the network's device plugin, such as `rdma/hca_shared_devices_a`. GPUs are granted by `quotas`.
    """
    gpus = gpu_resources(plan)
    for tenant in plan.tenants:
        for index, resource in enumerate(tenant.spec.allow.rdma):
            if flaw := _flaw(resource, gpus):
                yield Finding(
                    tenant.at / "allow" / "rdma" / index,
                    f"`{resource}` is no network resource",
                    label=flaw,
                    help="name the resource of the network's device plugin, and grant GPUs by `quotas`",
                )


_RESERVED: Final = "kubernetes.io/"
_OF_QUOTAS: Final = "requests."
_DEVICES: Final = (
    "amd.com/gpu",
    GPU_RESOURCE,
    "nvidia.com/imex-channel",
    MIG_RESOURCES,
    "nvidia.com/nvswitch",
    "nvidia.com/pgpu",
)
"""What device plugins of NVIDIA and AMD call GPUs, parts of them, and what connects them; what begins so is one."""


def _flaw(resource: str, gpus: Iterable[str]) -> str:
    """Why a name is that of no network card; nothing where it may be one.

    In capitals are boards and their shares for virtual machines (`getDeviceName` and `formatDeviceName` in
    `pkg/device_plugin/device_plugin.go` of NVIDIA/kubevirt-gpu-device-plugin v1.6.0 and NVIDIA/sandbox-device-plugin
    v0.0.5).
    """
    if _RESERVED in resource:
        return "Kubernetes has this domain for itself"
    if resource.startswith(_OF_QUOTAS):
        return "how quotas begin"
    if any(name.startswith(resource) or resource.startswith(name) for name in (*gpus, *_DEVICES)):
        return "GPUs, or what connects them, are asked for by it"
    domain, _, name = resource.partition("/")
    is_of_virtual_machines = domain == "nvidia.com" and name.isupper()
    return "how GPUs for virtual machines are called" if is_of_virtual_machines else ""


@check("GPU469", "rdma-needs-a-security-context-constraint", Severity.NOTE)
def rdma_needs_a_security_context_constraint(plan: Plan) -> Iterator[Finding]:
    """On OpenShift a tenant's pods may use RDMA as far as gpuplan has a say, and need the cluster's word as well.

    ## Why
    OpenShift also holds pods to a SecurityContextConstraints. The one that everybody has, `restricted-v2`, refuses
    IPC_LOCK, and gpuplan writes none: its own would have to fit what the cluster's owner allows.

    ## Instead
    Have a SecurityContextConstraints with IPC_LOCK among its `allowedCapabilities`, give the tenant's groups or service
    accounts the right to `use` it, and ignore the note.
    """
    for tenant in plan.tenants:
        if plan.cluster.spec.platform is Platform.OPENSHIFT and tenant.spec.allow.rdma and tenant.spec.namespaces:
            yield Finding(
                (tenant.at / "allow" / "rdma").key,
                f"pods of tenant `{tenant.name}` with IPC_LOCK also need a SecurityContextConstraints that allows it",
                label="gpuplan writes none",
                help="write one with `allowedCapabilities: [IPC_LOCK]`, and ignore the note",
            )
