"""Flux syncs what `gpuplan build` writes: a new cluster to its end, and what changes after it.

kustomize-controller has the two settings that `docs/how-to/deliver-with-flux.md` asks for.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest
import yaml

from tests.cli.runs import Run, run
from tests.cluster.api import Api
from tests.cluster.control_plane import ControlPlane
from tests.cluster.dumps import collect
from tests.cluster.example import REPOSITORY, show
from tests.cluster.flux_controllers import NAMESPACE, Flux, is_ready, running
from tests.cluster.gpu_operator import CHART, OPERATOR, RELEASE
from tests.cluster.kubelet import ENDLESS, Kubelet
from tests.cluster.lab import World, bring, build, replace_in
from tests.cluster.nodes import granted_but_not_published
from tests.cluster.processes import until
from tests.cluster.programs import need_go, source
from tests.cluster.served import Repository, publish_chart, serving

SETTINGS: Final = (
    "--feature-gates=CancelHealthCheckOnNewRevision=true",
    "--custom-apply-stage-kinds=admissionregistration.k8s.io/ValidatingAdmissionPolicyBinding",
)
ROOT: Final = "gpu-dev"
"""The Kustomization that applies all others, as the guide writes it."""


@dataclass(frozen=True, slots=True)
class Lab:
    """The example's cluster `dev` with a Flux in it, and the repository that it reads."""

    flux: Flux
    repository: Repository

    @property
    def root(self) -> Path:
        return self.repository.tree

    @property
    def api(self) -> Api:
        return self.flux.api

    def edit(self, path: str, before: str, after: str) -> None:
        replace_in(self.root / path, before, after)

    def push(self, subject: str) -> str:
        """Build, commit and push; Flux is told to look."""
        build(self.root)
        revision = self.repository.commit(subject)
        self.flux.refresh()
        return revision

    def drift(self) -> Run:
        """What `gpuplan drift` says of a dump of the cluster."""
        with TemporaryDirectory() as scratch:
            dumps = Path(scratch, "dumps")
            dumps.mkdir()
            for name, text in collect(self.flux.plane, Path(scratch, "cache")):
                (dumps / name).write_bytes(text)
            return run("drift", str(dumps), cwd=self.root)

    def point(self) -> None:
        """Apply what `flux bootstrap` makes, and the one Kustomization of the guide."""
        version = "toolkit.fluxcd.io/v1"
        interval = {"interval": "10m"}
        repository = {"url": self.repository.url, "ref": {"branch": "main"}}
        synced = {"path": "./out/flux/dev", "prune": True, "sourceRef": {"kind": "GitRepository", "name": NAMESPACE}}
        for group, kind, name, spec in (
            ("source", "GitRepository", NAMESPACE, repository),
            ("kustomize", "Kustomization", ROOT, synced),
        ):
            metadata = {"name": name, "namespace": NAMESPACE}
            body = {"apiVersion": f"{group}.{version}", "kind": kind, "metadata": metadata, "spec": interval | spec}
            self.api.apply(body, manager="tests")


@contextmanager
def syncing(scratch: Path) -> Iterator[Lab]:
    """The example's `dev` by Flux, committed, beside a Flux that was told of nothing yet."""
    served, tree = scratch / "served", scratch / "platform"
    served, tree = scratch / "served", scratch / "platform"
    publish_chart(served / "charts", source("gpu-operator", OPERATOR) / CHART, RELEASE)
    with ExitStack() as stack:
        url = stack.enter_context(serving(served))
        shutil.copytree(REPOSITORY / "policies", tree / "policies")
        shutil.copytree(REPOSITORY / "overlays/dev", tree / "overlays/dev")
        repository = Repository.make(tree, served, url)
        cluster = tree / "overlays/dev/cluster.yaml"
        body = yaml.safe_load(cluster.read_text(encoding="utf-8"))
        del body["spec"]["argocd"]
        body["spec"]["flux"] = {}
        body["spec"]["gpuOperator"] |= {"version": RELEASE, "chartRepoURL": f"{url}/charts"}
        cluster.write_text(yaml.safe_dump(body), encoding="utf-8")
        build(tree)
        repository.commit("A platform")
        plan = show("dev", tree)
        plane = stack.enter_context(ControlPlane.start(plan["kubernetes"]))
        bring(plane, tree, "dev", plan)
        stack.enter_context(Kubelet(plane.api, ends_jobs=True))
        stack.enter_context(World(plane.api, tree / "out/dev", plan))
        yield Lab(stack.enter_context(running(plane, SETTINGS)), repository)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    need_go()
    with syncing(tmp_path_factory.mktemp("lab")) as lab:
        yield lab


MANUAL: Final = "gpu-partitions-dev-a100-shared"
"""The pool of dev that a person approves."""
POLICY: Final = "/apis/nvidia.com/v1/clusterpolicies/cluster-policy"
RULES: Final = "/apis/nfd.k8s-sigs.io/v1alpha1/nodefeaturerules"


def test_a_new_cluster_is_synced_but_for_the_pool_that_a_person_approves(lab: Lab) -> None:
    lab.point()

    until(lambda: MANUAL in lab.flux.kustomizations(), "there are Kustomizations", seconds=60)
    lab.flux.settle("", seconds=90)

    assert [body["metadata"]["name"] for body in lab.api.list(RULES)] == ["gpuplan-pool-a100-mixed"]


def test_labels_of_nodes_come_after_the_operator_is_ready_with_their_layouts(lab: Lab) -> None:
    [rule] = lab.api.list(RULES)

    assert age(lab.api.get(POLICY)) < age(rule)


def test_no_tenant_has_a_namespace_or_rights_before_they_are_held_to_anything(lab: Lab) -> None:
    for namespace in (name for tenant in show("dev", lab.root)["tenants"] for name in tenant["namespaces"]):
        space = lab.api.get(f"/api/v1/namespaces/{namespace}")
        path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings"
        bindings = {
            body["metadata"]["name"]: age(body)
            for body in lab.api.list("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings")
        }
        own = bindings[f"gpuplan-grants-{namespace}"]
        for_all = [when for name, when in bindings.items() if not name.startswith("gpuplan-grants-")]

        assert len(for_all) > 2
        assert max(for_all) < age(space) < own
        assert all(own < age(body) for body in lab.api.list(path))


def age(body: Mapping[str, Any]) -> int:
    """When an object was written last, which is when it was made if nothing changes it: a count for the whole cluster.

    (https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions)
    """
    return int(body["metadata"]["resourceVersion"])


def test_a_pool_that_is_resumed_is_applied_and_suspended_again(lab: Lab) -> None:
    lab.flux.resume(MANUAL)
    until(lambda: is_ready(lab.flux.kustomization(MANUAL), ""), "it is applied", seconds=60)
    until(lambda: not granted_but_not_published(lab.api), "its nodes have what is granted", seconds=60)

    lab.flux.reconcile(ROOT)

    until(lambda: lab.flux.kustomization(MANUAL)["spec"]["suspend"], "it is suspended", seconds=60)


def test_drift_finds_nothing(lab: Lab) -> None:
    found = lab.drift()

    assert (found.code, found.out) == (0, ""), found.out


def test_a_change_of_a_quota_is_applied_to_its_namespace_alone(lab: Lab) -> None:
    before = applied(lab.flux.kustomizations().values())
    lab.edit("overlays/dev/policies.yaml", "{pool: a100-shared, guaranteed: 4}", "{pool: a100-shared, guaranteed: 3}")

    lab.flux.settle(lab.push("Give development less"))

    after = applied(lab.flux.kustomizations().values())
    assert {name for name in after if after[name] != before[name]} == {"gpu-namespace-dev-development"}
    quota = lab.api.get("/api/v1/namespaces/development/resourcequotas/gpuplan")
    assert "3" in quota["spec"]["hard"].values()


def applied(kustomizations: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """A digest of what each has applied, of those that are not suspended."""
    return {
        body["metadata"]["name"]: body["status"]["history"][0]["digest"]
        for body in kustomizations
        if not body["spec"].get("suspend")
    }


# --- What waits --------------------------------------------------------------------------------------------------

JOBS: Final = "/apis/batch/v1/namespaces/model-services/jobs"
CHAT: Final = "/apis/apps/v1/namespaces/model-services/deployments/chat"


def test_a_download_takes_the_place_of_the_last_and_holds_no_commit_while_it_hangs(lab: Lab) -> None:
    lab.edit("policies/workloads/services.yaml", "fetch:1.3.0", f"fetch{ENDLESS}")
    lab.flux.settle(lab.push("Download what does not come"))
    [job] = lab.api.list(JOBS)

    lab.edit("policies/workloads/services.yaml", "chat:2.4.1", "chat:2.4.2")
    lab.flux.settle(lab.push("Serve another release"))

    [container] = lab.api.get(CHAT)["spec"]["template"]["spec"]["containers"]
    assert container["image"].endswith(":2.4.2")
    assert lab.api.get(f"{JOBS}/{job['metadata']['name']}")["status"]["active"] == 1


COMPONENT: Final = """\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
resources: [added.yaml]
"""
UNHEALTHY: Final = """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: x, namespace: development}
spec: {accessModes: [ReadWriteOnce], storageClassName: x, resources: {requests: {storage: 1Gi}}}
"""


def test_a_fix_is_picked_up_while_health_is_waited_for(lab: Lab) -> None:
    """Without the feature gate a health check goes on for its five minutes, whatever comes meanwhile."""
    folder = lab.root / "overlays/dev/kustomize/namespaces/development"
    folder.mkdir(parents=True)
    (folder / "kustomization.yaml").write_text(COMPONENT, encoding="utf-8")
    (folder / "added.yaml").write_text(UNHEALTHY, encoding="utf-8")
    wrong = lab.push("Add what is never healthy")
    awaited = f"Running health checks for revision main@sha1:{wrong}"
    until(lambda: awaited in said(lab.flux.kustomization("gpu-namespace-dev-development")), "it waits", seconds=60)

    shutil.rmtree(folder.parents[1])

    lab.flux.settle(lab.push("Take it away"), seconds=60)


def said(body: Mapping[str, Any]) -> str:
    """All messages of a Kustomization's conditions."""
    return " ".join(condition["message"] for condition in body["status"]["conditions"])


def test_a_new_layout_reaches_the_operator_before_a_label_names_it(lab: Lab) -> None:
    lab.edit("policies/layouts.yaml", "2g.20gb: 2", "2g.20gb: 1")
    lab.edit("overlays/dev/policies.yaml", "unit: 2g.20gb, guaranteed: 4", "unit: 2g.20gb, guaranteed: 2")

    lab.flux.settle(lab.push("Cut smaller"))

    [rule] = [body for body in lab.api.list(RULES) if body["metadata"]["name"] == "gpuplan-pool-a100-mixed"]
    assert age(lab.api.get(POLICY)) < age(rule)


SMALLER: Final = """\
  name: chat
spec:
  inference:
    autoscaling:
      minReplicas: 1
      maxReplicas: 2
"""


def test_the_last_workload_of_a_namespace_runs_on_when_it_leaves(lab: Lab) -> None:
    """Its Kustomization goes, and leaves behind what it has applied."""
    lab.edit("overlays/dev/policies.yaml", SMALLER, "  name: chat\n  $patch: delete\n")

    lab.flux.settle(lab.push("Serve nothing"))

    assert "gpu-workloads-dev-model-services" not in lab.flux.kustomizations()
    assert lab.api.get(CHAT)["status"]["readyReplicas"] > 0
