"""Checks on the settings of the GPU Operator's pods, and on whether images may choose GPUs (GPU463-465, 478-480)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpuplan.compiler.base.diagnostics import Finding, Label, Origin, Severity
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.catalog.operators import decided_environment
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.planning.grants import has_admission_policies
from gpuplan.compiler.planning.operand_environment import stated_environment
from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.planning.visible_devices import (
    closed_variables,
    has_fractions,
    is_closed,
    is_told,
    starts_all_containers,
)
from gpuplan.compiler.policy.models import Install

_NAME = regex("[-._a-zA-Z][-._a-zA-Z0-9]*")


@check("GPU478", "operand-variable-unusable")
def operand_variable_unusable(plan: Plan) -> Iterator[Finding]:
    """An environment variable for a pod of the GPU Operator cannot be set, or follows from the policy.

    ## Why
    The API server refuses a ClusterPolicy for one variable whose name it does not take, and nothing of the operator is
    synced. `MIG_STRATEGY` would override every pool's own, and what keeps images from choosing GPUs follows from
    `closeVisibleDevices`.

    ## Instead
    Write names of letters, digits, `_`, `-` and `.`; say in the policy what follows from it.
    """
    operator = plan.cluster.gpu_operator
    closed = dict.fromkeys(closed_variables(plan), "spec.gpuOperator.closeVisibleDevices")
    decided = {**decided_environment(), **closed}
    for operand, variables in stated_environment(operator).items():
        for name in variables:
            at = (operator.at / "env" / operand / name).key
            if not is_variable(name):
                yield unusable_name(at, name)
            elif field := decided.get((operand, name)):
                yield Finding(
                    at,
                    f"variable `{name}` of {operand} follows from the policy",
                    label="gpuplan decides this one",
                    notes=(f"it follows from `{field}`",),
                    help=f"remove it, and set `{field}` if that is not what you mean",
                )


def is_variable(name: str) -> bool:
    """Whether the API server takes it for the name of an environment variable."""
    return bool(_NAME.fullmatch(name))


def unusable_name(at: Origin, name: str) -> Finding:
    return Finding(
        at,
        f"`{name}` is no name of an environment variable",
        label="the API server refuses it",
        help="write letters, digits, `_`, `-` and `.`, and no digit first",
    )


@check("GPU479", "operator-not-told", Severity.WARNING)
def operator_not_told(plan: Plan) -> Iterator[Finding]:
    """The policy says something of the GPU Operator that whoever installs it here does not read.

    ## Why
    `env` is written into Helm values or a ClusterPolicy that is gpuplan's. With `external` the ClusterPolicy is
    somebody else's, and a list in it belongs to its owner as a whole. `olm` is read where OLM installs the operator.
    `registry` goes into Helm values: OLM's bundle names each image by its digest, and on OpenShift an
    ImageDigestMirrorSet says where those are mirrored.

    ## Instead
    Remove it, or add it where the operator is configured.
    """
    operator = plan.cluster.gpu_operator
    install = operator.spec.install
    unread = {
        "env": bool(stated_environment(operator)) and install is Install.EXTERNAL,
        "olm": bool(operator.spec.olm.model_fields_set) and install is not Install.OLM,
        "registry": bool(operator.spec.registry) and install is not Install.HELM,
        "imagePullSecrets": bool(operator.spec.image_pull_secrets) and install is Install.EXTERNAL,
    }
    for field, is_unread in unread.items():
        if is_unread:
            yield Finding(
                (operator.at / field).key,
                f"`gpuOperator.{field}` has no effect with `install: {install.value}`",
                label="nothing reads this",
                related=(Label(operator.at / "install", "installed otherwise"),),
                help=f"remove `{field}`",
            )


_FORMER_NAMESPACE = "gpu-operator-resources"


@check("GPU480", "former-operator-namespace", Severity.WARNING)
def former_operator_namespace(plan: Plan) -> Iterator[Finding]:
    """The GPU Operator is to be in the namespace that its operands had until release 1.8.

    ## Why
    Up to v1.8 the operator made the namespace `gpu-operator-resources` for its pods (`assets/` of NVIDIA/gpu-operator
    v1.8.2); since v1.9.0 they are in the operator's own. Guides from that time still name it. It works as any other
    name, but whoever looks for the operator's pods looks elsewhere.

    ## Instead
    Leave `namespace` out: it is `gpu-operator`, on OpenShift `nvidia-gpu-operator`.
    """
    operator = plan.cluster.gpu_operator
    if operator.spec.namespace == _FORMER_NAMESPACE:
        yield Finding(
            operator.at / "namespace",
            f"namespace `{_FORMER_NAMESPACE}` is that of operands until v1.8",
            label="left with v1.9.0",
            help="remove `namespace`",
        )


_FIELD: Final = "closeVisibleDevices"


@check("GPU463", "images-choose-gpus", Severity.NOTE)
def images_choose_gpus(plan: Plan) -> Iterator[Finding]:
    """Tenants share a cluster on which a container image chooses its GPUs, whatever its pod asks for.

    ## Why
    CUDA images carry the variable `NVIDIA_VISIBLE_DEVICES=all`, and NVIDIA's container toolkit gives a container that
    it starts the GPUs that this variable names. Without CDI, which the operator uses by default from v25.10 on, its
    runtime starts all containers, or with CRI-O its hook runs before each of them: a pod that asks for no GPU then sees
    all GPUs of its node. With CDI it starts those of its RuntimeClasses, which admission policies keep for pods with
    GPUs, on clusters that can have these policies. No policy sees what is in an image.

    ## Instead
    Write `closeVisibleDevices: true`. The toolkit then reads the variable of privileged containers alone, and the
    device plugin uses mounts where it used the variable. It restarts both on all nodes, once. Pods that rely on the
    variable, of monitoring for instance, must ask for GPUs or be privileged. Ignore the note where tenants trust each
    other.
    """
    operator = plan.cluster.gpu_operator
    is_open = starts_all_containers(operator) or not has_admission_policies(plan.cluster)
    is_shared = len([tenant for tenant in plan.tenants if tenant.spec.namespaces]) > 1
    if is_open and is_shared and is_told(operator) and not is_closed(plan) and not has_fractions(plan):
        yield Finding(
            operator.at,
            "images of tenants choose their GPUs by `NVIDIA_VISIBLE_DEVICES`, whatever their pods ask for",
            label="the container toolkit reads it" if starts_all_containers(operator) else "under a RuntimeClass",
            notes=("CUDA images carry `NVIDIA_VISIBLE_DEVICES=all`, which no quota and no policy sees",),
            help=f"write `{_FIELD}: true`",
        )


@check("GPU464", "fractions-need-visible-devices")
def fractions_need_visible_devices(plan: Plan) -> Iterator[Finding]:
    """The variable `NVIDIA_VISIBLE_DEVICES` is closed on a cluster whose scheduler hands out fractions by it.

    ## Why
    A pod with a fraction asks the device plugin for nothing. The scheduler chooses a GPU and writes it into
    `NVIDIA_VISIBLE_DEVICES`, by a ConfigMap of the pod (`AddGPUSharingEnvVars` in `pkg/binder/common/gpu_access.go` of
    KAI-Scheduler v0.13.0; Run:ai, which KAI-Scheduler comes from, is not public up to 2.26). A toolkit that ignores the
    variable gives such pods no GPU.

    ## Instead
    Remove `closeVisibleDevices`, or share the pool by time-slicing, MPS or MIG.
    """
    at = plan.cluster.gpu_operator.at / _FIELD
    if plan.cluster.gpu_operator.spec.close_visible_devices and has_fractions(plan):
        pools = [pool for pool in plan.pools if pool.spec.sharing.fraction is not None]
        yield Finding(
            at,
            "pods with fractions of a GPU get none with `closeVisibleDevices: true`",
            label="their GPU is named by the variable that this closes",
            related=tuple(Label(pool.at / "sharing", "fractions") for pool in pools),
            help=f"remove `{_FIELD}`",
        )


@check("GPU465", "visible-devices-not-told")
def visible_devices_not_told(plan: Plan) -> Iterator[Finding]:
    """A cluster closes `NVIDIA_VISIBLE_DEVICES`, and gpuplan does not tell its container toolkit.

    ## Why
    With `install: external` somebody else owns the ClusterPolicy, and with it the lists `toolkit.env` and
    `devicePlugin.env`; whether the operator uses CDI, which decides what belongs there, is not in the policy either.
    With `toolkit.enabled: false` among the Helm values the nodes bring a toolkit of their own, and a device plugin that
    uses mounts would hand out no GPUs where that one does not accept them.

    ## Instead
    Remove `closeVisibleDevices`. The ClusterPolicy's owner adds
    `ACCEPT_NVIDIA_VISIBLE_DEVICES_ENVVAR_WHEN_UNPRIVILEGED=false` to `toolkit.env`. Where the operator uses no CDI it
    also needs `ACCEPT_NVIDIA_VISIBLE_DEVICES_AS_VOLUME_MOUNTS=true` there and `DEVICE_LIST_STRATEGY=volume-mounts` in
    `devicePlugin.env`.
    On nodes with a toolkit of their own the same is in `/etc/nvidia-container-runtime/config.toml`.
    """
    operator = plan.cluster.gpu_operator
    if operator.spec.close_visible_devices and not is_told(operator):
        is_external = operator.spec.install is Install.EXTERNAL
        place = operator.at / "install" if is_external else operator.at / "values" / "toolkit" / "enabled"
        yield Finding(
            operator.at / _FIELD,
            f"`{_FIELD}` has no effect on a toolkit that gpuplan does not configure",
            label="nothing tells the toolkit",
            related=(Label(place, "somebody else tells it"),),
            help=f"remove `{_FIELD}`, and close the variable where the toolkit is configured",
        )
