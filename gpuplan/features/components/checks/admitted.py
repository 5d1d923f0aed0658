"""Checks on hand-written work of tenants: what the cluster's admission policies will refuse (GPU422)."""

from __future__ import annotations

from collections.abc import Iterator
from posixpath import dirname
from typing import TYPE_CHECKING

from gpuplan.compiler.base.diagnostics import Finding
from gpuplan.compiler.base.plain import text
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.checks.wording import refused_in, refuses_in
from gpuplan.compiler.planning.hand_files import HandFiles, Object, further_parameters, is_meant, written_classes

if TYPE_CHECKING:
    from gpuplan.compiler.admission.verdicts import Refused


@check("GPU422", "refused-by-admission")
def refused_by_admission(files: HandFiles) -> Iterator[Finding]:
    """A hand-written object in a tenant's namespace makes pods that admission refuses, or is refused itself.

    ## Why
    What the API server refuses is found late: a Deployment or a Job is applied without an error, and the refusal of its
    pods stands in the events of a ReplicaSet, or in the log of a controller. The finding has the words of the admission
    rule, which is evaluated as the API server does it: on the pods as they arrive there, with defaults and with what
    controllers and webhooks add. A part of an object that Components complete is judged once kustomize has built it.

    ## Instead
    Write what the rule asks for, or grant the tenant what the pods need. A rule that is optional can be left out of the
    cluster with `admission: {without: [...]}`.
    """
    plan = files.plan
    if plan is None or plan.broken.pools:
        return
    judged: list[tuple[Object, str]] = []
    for item in files.objects:
        kustomization = files.find_kustomization(dirname(item.path))
        given = text(kustomization.body.get("namespace")) if kustomization else ""
        namespace = text(item.metadata.get("namespace")) or given
        if namespace in plan.owners and _is_whole(files, item):
            judged.append((item, namespace))
    if not judged:
        return
    from gpuplan.compiler.admission.policies import policies
    from gpuplan.compiler.admission.verdicts import refused

    every, classes = policies(plan), written_classes(files)
    for item, namespace in judged:
        tenant, further = plan.owners[namespace], further_parameters(files, namespace)
        if tenant.name not in plan.broken.incomplete_tenants:
            for refusal in refused(plan, every, item.body, tenant, namespace, classes=classes, further=further):
                refuses = refuses_in(plan, tenant, namespace)
                yield refused_in(plan, tenant, namespace, _finding(item, refusal, refuses))


def _finding(written: Object, refused: Refused, refuses: str) -> Finding:
    rule, what = refused.refusal.rule, f"pods of {written.title}" if refused.is_made else written.title
    return Finding(
        written.place(*(refused.route or ("metadata", "name"))),
        f"admission {refuses} {what}: {refused.refusal.message}",
        label="refused by admission",
        notes=(f"rule `{rule.name}` of the ValidatingAdmissionPolicy `{refused.refusal.policy.name}`",),
        help=f"change it as the rule says, or write `without: [{rule.name}]` in the Cluster's `admission`"
        if rule.optional
        else "change it as the rule says, or give the tenant a quota on what it needs",
    )


_COMPLETING = ("commonAnnotations", "commonLabels", "components", "labels", "replacements", "transformers")


def _is_whole(files: HandFiles, written: Object) -> bool:
    """Whether an object is as it is applied: kustomize has built it, or nothing that it reads completes it.

    The API server takes nothing whose kind or version is no text.
    """
    if not all(isinstance(written.body.get(key, ""), str) for key in ("apiVersion", "kind")):
        return False
    if written.parts or written.before is not None:
        return True
    if written.is_patch:
        return False
    kustomization = files.find_kustomization(dirname(written.path))
    is_completed = kustomization is not None and any(key in kustomization.body for key in _COMPLETING)
    return not is_completed and not any(
        patch.kind in (written.kind, "") and is_meant(text(patch.target.get("name")) or patch.name, written.name)
        for patch in files.objects
        if patch.is_patch
    )
