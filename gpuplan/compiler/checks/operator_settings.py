"""Checks on what the GPU Operator is told of its pods, and where it comes from (GPU478-480)."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.compiler.base.diagnostics import Finding, Label, Origin, Severity
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.catalog.operators import decided_environment
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.planning.gpu_operator import closed_variables, stated_environment
from gpuplan.compiler.planning.plan import Plan
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
