"""What workloads lay over their pods, whatever runs these."""

from __future__ import annotations

from typing import Any

import pytest

from gpuplan.compiler.admission.arriving import templates
from gpuplan.compiler.planning.plan import WORKLOAD_LABEL
from gpuplan.compiler.planning.schedulers import SCHEDULERS
from tests.compiler.backends.workloads.rendered import SERVICE, TRAINING, manifests, planned
from tests.laws.tracing.told import find, told

PATCH = """
podPatch:
  spec:
    serviceAccountName: reader
    volumes: [{name: shm, emptyDir: {medium: Memory}}]
    containers:
      - {name: proxy, image: "registry.example.com/proxy:1"}
      - {name: main, volumeMounts: [{name: shm, mountPath: /dev/shm}]}
"""
KINDS = (SERVICE, TRAINING, "training: {pods: 4, gang: 4, peers: {}}", "batch: {pods: 2}", "workspace: {}")


def pods(spec: str, **more: str) -> list[dict[str, Any]]:
    """The templates of the workload's own pods."""
    found = [template for manifest in manifests(spec, **more) for _, template in templates(manifest.body)]
    return [dict(template["spec"]) for template in found if WORKLOAD_LABEL in template["metadata"]["labels"]]


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("kind", KINDS)
def test_it_is_laid_over_the_pods_of_each_kind_of_work(kind: str, scheduler: str) -> None:
    [pod] = pods(kind + PATCH, scheduler=scheduler)

    assert pod["serviceAccountName"] == "reader"
    assert [container["name"] for container in pod["containers"]] == ["main", "proxy"]
    assert {"name": "shm", "mountPath": "/dev/shm"} in pod["containers"][0]["volumeMounts"]
    assert pod["volumes"][-1] == {"name": "shm", "emptyDir": {"medium": "Memory"}}


def test_a_download_is_as_it_was() -> None:
    model = "model: {size: 10Gi, download: {image: 'registry.example.com/get:1'}}"
    jobs = [
        {manifest.name: manifest.body for manifest in manifests(f"{SERVICE}\n{model}{patch}") if manifest.kind == "Job"}
        for patch in ("", PATCH)
    ]

    assert jobs[0] == jobs[1]


def test_a_training_with_another_patch_is_another_job() -> None:
    names = {find(manifests(TRAINING + patch), "Job").name for patch in ("", PATCH, PATCH.replace("reader", "writer"))}

    assert len(names) == 3


def test_a_patch_that_says_nothing_changes_nothing() -> None:
    assert pods(f"{TRAINING}\npodPatch: {{spec: {{}}}}") == pods(TRAINING)


def test_what_it_replaces_is_traced_to_it_alone() -> None:
    tolerations = (
        "podPatch: {spec: {tolerations: [{key: spot, operator: Exists}], securityContext: {runAsNonRoot: false}}}"
    )
    spec = f"{SERVICE}\n{tolerations}"
    leaves = told(planned(spec, security="restricted"), find(manifests(spec, security="restricted"), "Deployment"))

    at = "spec.template.spec"
    assert leaves[f"{at}.tolerations[0].key"] == ["copied Workload/app spec.podPatch.spec.tolerations[0].key"]
    key = "securityContext.runAsNonRoot"
    assert leaves[f"{at}.{key}"] == [f"copied Workload/app spec.podPatch.spec.{key}"]


def test_what_it_adds_to_a_container_is_traced_to_its_name_as_well() -> None:
    spec = f"{SERVICE}\nconfig: {{a.txt: x}}{PATCH}"
    leaves = told(planned(spec), find(manifests(spec), "Deployment"))

    inner = "Workload/app spec.podPatch.spec.containers[1]"
    assert leaves["spec.template.spec.containers[0].volumeMounts[1].mountPath"] == [
        f"chosen by {inner}.name",
        f"copied {inner}.volumeMounts[0].mountPath",
    ]
    assert leaves["spec.template.spec.containers[1].image"] == [
        "copied Workload/app spec.podPatch.spec.containers[0].image"
    ]


def test_a_job_is_named_after_its_patch_as_well() -> None:
    spec = TRAINING + PATCH
    leaves = told(planned(spec), find(manifests(spec), "Job"))

    assert "hash of Workload/app spec.podPatch.spec.serviceAccountName" in leaves["metadata.name"]
