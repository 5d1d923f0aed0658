"""The environment variables that a policy gives to pods of the GPU Operator."""

from __future__ import annotations

from collections.abc import Mapping

from gpuplan.compiler.manifests.provenance import Routes, chosen, copied
from gpuplan.compiler.planning.plan import GpuOperator, Plan
from gpuplan.compiler.planning.visible_devices import DEVICE_PLUGIN, TOOLKIT, closing_environment
from gpuplan.compiler.policy.models import Install


def operand_environment(plan: Plan) -> Mapping[str, Mapping[str, str]]:
    """The variables by operand: those of `gpuOperator.env`, under those that keep images from choosing GPUs.

    There are none with `external`: a list belongs to the ClusterPolicy's owner as a whole.
    """
    operator = plan.cluster.gpu_operator
    stated = {} if operator.spec.install is Install.EXTERNAL else stated_environment(operator)
    closing = closing_environment(plan)
    operands = dict.fromkeys((*stated, *closing))
    return {operand: {**stated.get(operand, {}), **closing.get(operand, {})} for operand in operands}


def stated_environment(operator: GpuOperator) -> Mapping[str, Mapping[str, str]]:
    """What the policy states, by operand; operands without a variable are left out."""
    env = operator.spec.env
    return {key: found for key, found in ((TOOLKIT, env.toolkit), (DEVICE_PLUGIN, env.device_plugin)) if found}


def variable_routes(plan: Plan, operand: str, name: str) -> Routes:
    """Where a variable comes from: its name is a key of the policy, and its value stands there."""
    operator = plan.cluster.gpu_operator
    if name in closing_environment(plan).get(operand, {}):
        cdi = operator.at / "values" / "cdi" / "enabled"
        yield (), chosen(operator.at / "closeVisibleDevices", operator.at / "version", cdi)
        return
    place = operator.at / "env" / operand / name
    yield ("name",), chosen(place)
    yield ("value",), copied(place)
