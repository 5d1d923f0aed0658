"""A field that the policy language gains is in everything that is told of policies, without a list that names it."""

from __future__ import annotations

from dataclasses import replace

from gpuplan.compiler.checks import names
from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.policy.models import WorkloadSpec
from gpuplan.compiler.policy.names import ServiceAccount
from gpuplan.compiler.policy.walking import changed_fields
from gpuplan.terminal.plan_json import plan_as_data
from tests.plans import a_plan

POLICY = """
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: whole}
spec: {gpu: A100-80GB, nodes: {count: 1, gpusPerNode: 8}, sharing: {exclusive: {}}}
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: research}
spec: {namespaces: [research], quotas: [{pool: whole, guaranteed: 4}]}
---
apiVersion: gpuplan.dev/v1
kind: Workload
metadata: {name: chat}
spec: {tenant: research, pool: whole, inference: {}, image: registry.example.com/chat:1}
"""


class Extended(WorkloadSpec):
    """A workload of a policy language with one field more."""

    identity: ServiceAccount | None = None
    """What its pods are in the cluster."""


def with_identity(name: str) -> Plan:
    plan = a_plan(POLICY)
    (chat,) = plan.workloads
    spec = Extended.model_validate({**chat.spec.model_dump(by_alias=True), "identity": name})
    return replace(plan, workloads=(chat._replace(spec=spec),))


def test_new_field_is_told_to_programs() -> None:
    (chat,) = plan_as_data(with_identity("chat"))["workloads"]
    assert chat["identity"] == "chat"


def test_new_field_has_words_where_it_changes() -> None:
    (old,), (new,) = with_identity("chat").workloads, with_identity("chats").workloads
    assert [(item.path, item.words, item.old, item.new) for item in changed_fields(old.spec, new.spec)] == [
        (("identity",), "identity", "chat", "chats")
    ]


def test_name_in_a_new_field_is_judged() -> None:
    (finding,) = names.invalid_name.find(with_identity("Not Valid!"))
    assert (finding.message, str(finding.at), finding.notes[0]) == (
        "service account name `Not Valid!` is not a DNS subdomain",
        "spec.identity",
        "the ServiceAccount is called so",
    )


def test_new_field_that_is_right_has_no_finding() -> None:
    assert list(names.invalid_name.find(with_identity("chat"))) == []
