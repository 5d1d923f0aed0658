"""Every object and file that is written says which documents of the policy it is about."""

from __future__ import annotations

import pytest

from gpuplan.compiler.manifests import File, Manifest, Subject
from gpuplan.compiler.pipeline.rendering import artifacts
from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.planning.subjects import about
from gpuplan.compiler.policy import KINDS
from tests.features.changes import edits
from tests.features.changes.platform import Edit, Platform, original, state

A_BODY = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lab"}}


def schedule_by_kai(platform: Platform) -> None:
    platform.cluster("prod")["scheduler"] = {"kind": "kai"}


def schedule_by_runai(platform: Platform) -> None:
    platform.cluster("prod")["scheduler"] = {"kind": "runai"}


def documents(plan: Plan) -> set[Subject]:
    """All documents that a plan is made of."""
    named = about(*plan.pools, *plan.gpus, *plan.layouts, *plan.priority_classes)
    return {*about(plan.cluster, *plan.tenants, *plan.workloads, *plan.retained), *named}


def named(subject: Subject, known: set[Subject]) -> set[Subject]:
    """The documents that a subject stands for."""
    return {document for document in known if subject in (document, document._replace(name=""))}


@pytest.mark.parametrize(
    "edit",
    [
        original,
        schedule_by_kai,
        schedule_by_runai,
        edits.go_from_argocd_to_flux,
        edits.label_nodes_elsewhere,
        edits.guard_a_pool,
        edits.add_parents,
        edits.edit_a_layout_and_retain_the_old_one,
        edits.claim_devices,
    ],
    ids=lambda edit: edit.__name__,
)
def test_all_that_is_written_is_about_documents_of_the_policy(edit: Edit) -> None:
    for plan in state(edit).plans:
        for _, artifact in artifacts(plan):
            assert artifact.about
            assert all(named(subject, documents(plan)) for subject in artifact.about if subject.name)
            assert {subject.kind for subject in artifact.about} <= KINDS.keys()


def test_every_document_has_something_written_about_it() -> None:
    for plan in state(edits.edit_a_layout_and_retain_the_old_one).plans:
        told = {subject for _, artifact in artifacts(plan) for subject in artifact.about}

        assert set().union(*(named(subject, documents(plan)) for subject in told)) == documents(plan)


def test_nothing_is_made_that_is_about_nothing() -> None:
    with pytest.raises(ValueError, match="say what of the policy it is about"):
        Manifest("namespaces/lab", A_BODY, about=(), trace=None)
    with pytest.raises(ValueError, match="say what of the policy it is about"):
        File("gpu-operator/values.yaml", b"", about=(), trace=None)
