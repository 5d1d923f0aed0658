"""Where the leaves of a guard's objects come from."""

from __future__ import annotations

from collections.abc import Mapping

from gpuplan.compiler.backends import guard
from gpuplan.compiler.manifests import Hook, Manifest
from gpuplan.compiler.planning.plan import Plan
from tests.compiler.backends.guard.test_objects import ARGO_CD, a_guard
from tests.laws.tracing.told import find, told, told_of_all

OPERATOR = "install: external, version: v26.7.0, namespace: gpus"


def job(plan: Plan, hook: Hook) -> Manifest:
    (found,) = (item for item in guard.render(plan) if (item.kind, item.hook) == ("Job", hook))
    return found


def settings(plan: Plan) -> Mapping[str, list[str]]:
    return told(plan, find(guard.render(plan), "ConfigMap"))


def test_the_settings_are_told_value_by_value() -> None:
    found = settings(a_guard(timeout=", timeout: 1h30m", operator=OPERATOR))

    at = 'data["settings.json"]'
    assert found[f"{at}.namespace"] == ["copied Cluster/test spec.gpuOperator.namespace"]
    assert found[f"{at}.timeoutSeconds"] == ["product of Pool/p spec.disruption.guard.timeout"]
    assert found[f"{at}.targets[0].config"] == [
        "copied Pool/p metadata.name",
        'hash of Pool/p spec.sharing.mig.instances["1g.10gb"]',
    ]
    assert found[f"{at}.targets[0].names[0]"] == [
        "copied Pool/p spec.nodes.names[1]",
        "order of Pool/p spec.nodes.names[0]",
    ]
    assert found['data["guard.py"]'] == []


def test_the_texts_are_called_by_a_digest_that_the_jobs_name() -> None:
    plan = a_guard(timeout=", timeout: 1h30m")
    named = told(plan, job(plan, Hook.BEFORE))["spec.template.spec.volumes[0].configMap.name"]

    assert "hash of Pool/p spec.disruption.guard.timeout" in named
    assert 'hash of Pool/p spec.sharing.mig.instances["1g.10gb"]' in named
    assert set(named) <= set(settings(plan)["metadata.name"])


def test_only_the_job_afterwards_waits_for_nodes() -> None:
    plan = a_guard(timeout=", timeout: 1h30m")

    limits = [told(plan, job(plan, hook))["spec.activeDeadlineSeconds"] for hook in (Hook.BEFORE, Hook.AFTER)]
    assert limits == [[], ["sum of Pool/p spec.disruption.guard.timeout"]]


def test_on_openshift_the_platform_leaves_the_user_to_the_namespace() -> None:
    plan = a_guard(spec=f"{ARGO_CD}\n  platform: kubernetes")

    found = told(plan, job(plan, Hook.AFTER))
    assert found["spec.template.spec.securityContext.runAsUser"] == ["chosen by Cluster/test spec.platform"]
    assert found["spec.template.spec.containers[0].image"] == ["copied Pool/p spec.disruption.guard.image"]


def test_what_holds_in_all_namespaces_is_there_whatever_the_operator_s_is() -> None:
    plan = a_guard(operator=OPERATOR)

    role, account = (told_of_all(plan, find(guard.render(plan), kind)) for kind in ("ClusterRole", "ServiceAccount"))
    assert [text for text in role if "namespace" in text] == []
    assert "chosen by Cluster/test spec.gpuOperator.namespace" in account


def test_a_patterns_exceptions_are_the_nodes_of_a_rollout() -> None:
    found = settings(
        a_guard("namePattern: 'n[0-9]+'", more="rollout: {sharing: {mig: {instances: {3g.40gb: 2}}}, nodes: [n2]}")
    )

    at = 'data["settings.json"].targets'
    assert found[f"{at}[0].pattern"] == ["copied Pool/p spec.nodes.namePattern"]
    assert found[f"{at}[0].except[0]"] == found[f"{at}[1].names[0]"] == ["copied Pool/p spec.rollout.nodes[0]"]
