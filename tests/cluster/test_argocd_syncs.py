"""Argo CD syncs what `gpuplan build` writes: a new cluster to its end, and what changes after it."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self

import pytest
import yaml

from tests.cli.runs import run
from tests.cluster import nodes
from tests.cluster.api import Api, Refused
from tests.cluster.argo_cd import ArgoCd, Repository, running, teach
from tests.cluster.charts import rendered, the
from tests.cluster.control_plane import ControlPlane
from tests.cluster.delivery import deliveries
from tests.cluster.dumps import collect
from tests.cluster.example import REPOSITORY, provide_volumes, show
from tests.cluster.kubelet import ENDLESS, Kubelet
from tests.cluster.processes import until
from tests.cluster.programs import need_go, source
from tests.cluster.served import publish_chart, serving

OPERATOR: Final = "github.com/NVIDIA/gpu-operator"
RELEASE: Final = "v25.3.4"
"""The release of the GPU Operator that the module is, whose chart lies in it."""
CHART: Final = "deployments/gpu-operator"


@dataclass(frozen=True, slots=True)
class Lab:
    """The example's cluster `dev` with an Argo CD in it, and the repository that it reads."""

    argocd: ArgoCd
    repository: Repository
    plane: ControlPlane

    @property
    def root(self) -> Path:
        return self.repository.tree

    @property
    def api(self) -> Api:
        return self.plane.api

    def edit(self, path: str, before: str, after: str) -> None:
        text = (self.root / path).read_text(encoding="utf-8")
        assert before in text
        (self.root / path).write_text(text.replace(before, after, 1), encoding="utf-8")

    def push(self, subject: str) -> str:
        """Build, commit and push; Argo CD is told to look."""
        built = run("build", cwd=self.root)
        assert built.code == 0, built.err
        revision = self.repository.commit(subject)
        self.argocd.refresh()
        return revision


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    need_go()
    served, tree = tmp_path_factory.mktemp("served"), tmp_path_factory.mktemp("platform")
    publish_chart(served / "charts", source("gpu-operator", OPERATOR) / CHART, RELEASE)
    with ExitStack() as stack:
        url = stack.enter_context(serving(served))
        repository = Repository.make(tree, served, url)
        shutil.copytree(REPOSITORY / "policies", tree / "policies")
        shutil.copytree(REPOSITORY / "overlays/dev", tree / "overlays/dev")
        cluster = tree / "overlays/dev/cluster.yaml"
        text = cluster.read_text(encoding="utf-8")
        text = text.replace("https://git.example.com/platform/gpu.git", repository.url)
        text = text.replace("version: v26.7.0", f"version: {RELEASE}\n    chartRepoURL: {url}/charts")
        cluster.write_text(
            text.replace("destination: {name: dev}", "destination: {name: in-cluster}"), encoding="utf-8"
        )
        built = run("build", cwd=tree)
        assert built.code == 0, built.err
        repository.commit("A platform")
        plane = stack.enter_context(ControlPlane.start("1.34"))
        nodes.make_nodes(plane.api, show("dev", tree)["pools"])
        provide_volumes(plane.api, tuple(deliveries(plane, tree, "dev")))
        stack.enter_context(Kubelet(plane.api, ends_jobs=True))
        stack.enter_context(World(plane, tree))
        argocd = stack.enter_context(running(plane))
        teach(plane, tree / "out/argocd/dev")
        yield Lab(argocd, repository, plane)


class World:
    """Plays the GPU Operator and Node Feature Discovery, as far as Argo CD sees them.

    The one says that its ClusterPolicy is ready, the other gives nodes labels and taints by the rules that are there.
    """

    def __init__(self, plane: ControlPlane, platform: Path) -> None:
        self._api, self._platform = plane.api, platform
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="world", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_stopped.set()
        self._thread.join()

    def _run(self) -> None:
        said: dict[str, int] = {}
        plan, is_labelled = show("dev", self._platform), False
        while not self._is_stopped.wait(1):
            try:
                for policy in self._api.list("/apis/nvidia.com/v1/clusterpolicies"):
                    uid, generation = policy["metadata"]["uid"], policy["metadata"]["generation"]
                    if said.get(uid) != generation:
                        self._say_ready(policy)
                        said[uid] = generation
                rules = self._api.list("/apis/nfd.k8s-sigs.io/v1alpha1/nodefeaturerules")
                if len(rules) == len(plan["pools"]) and not is_labelled:
                    nodes.publish(self._api, plan, self._platform / "out/dev")
                    is_labelled = True
            except (Refused, OSError):  # there is no such kind yet
                continue

    def _say_ready(self, policy: Mapping[str, Any]) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        conditions = [
            {"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": now}
            for kind, status, reason in (("Ready", "True", "Reconciled"), ("Error", "False", "Ready"))
        ]
        status = {"namespace": "gpu-operator", "state": "ready", "conditions": conditions}
        path = f"/apis/nvidia.com/v1/clusterpolicies/{policy['metadata']['name']}/status"
        self._api.patch(path, {"status": status})


PARENT: Final = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: gpuplan-dev, namespace: argocd}
spec:
  project: default
  source: {repoURL: ADDRESS, targetRevision: main, path: out/argocd/dev}
  destination: {server: "https://kubernetes.default.svc", namespace: argocd}
  syncPolicy:
    automated: {selfHeal: true}
    retry: {limit: 5, refresh: true}
"""

MANUAL: Final = ("gpu-partitions-dev-a100-shared",)
"""Which of dev's pools a person approves."""
SCALED: Final = {"gpu-workloads-dev-model-services": "Synced"}
"""What is scaled by a HorizontalPodAutoscaler, which is not well without the metrics that nothing here measures."""


def test_a_new_cluster_is_synced_to_its_end(lab: Lab) -> None:
    lab.api.apply(yaml.safe_load(PARENT.replace("ADDRESS", lab.repository.url)), manager="tests")

    work = ("gpu-workloads-dev-model-services", "gpu-workloads-dev-research")  # which needs nodes of pools
    lab.argocd.settle({**dict.fromkeys(work, ""), **dict.fromkeys(MANUAL, "OutOfSync Missing")})
    for name in MANUAL:
        lab.argocd.sync(name)
    lab.argocd.settle(SCALED)


def test_no_tenant_has_a_namespace_or_rights_before_they_are_held_to_anything(lab: Lab) -> None:
    """Objects are as old as their creation says, in seconds."""
    for namespace in (name for tenant in show("dev", lab.root)["tenants"] for name in tenant["namespaces"]):
        space = lab.api.get(f"/api/v1/namespaces/{namespace}")
        path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings"
        bindings = {
            body["metadata"]["name"]: since(body)
            for body in lab.api.list("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings")
        }
        own = bindings[f"gpuplan-grants-{namespace}"]
        for_all = [when for name, when in bindings.items() if not name.startswith("gpuplan-grants-")]

        assert len(for_all) > 2
        assert max(for_all) <= since(space) <= own
        assert all(own <= since(body) for body in lab.api.list(path))


def since(body: Mapping[str, Any]) -> str:
    found: str = body["metadata"]["creationTimestamp"]
    return found


def test_no_object_differs_and_drift_finds_nothing(lab: Lab, tmp_path: Path) -> None:
    dumps = tmp_path / "dumps"
    dumps.mkdir()
    for name, text in collect(lab.plane, tmp_path / "cache"):
        (dumps / name).write_bytes(text)

    found = run("drift", str(dumps), cwd=lab.root)

    assert (found.code, found.out) == (0, ""), found.out


def test_the_operators_chart_is_refused_of_a_server_side_apply_and_taken_of_a_clients(lab: Lab) -> None:
    """It renders null where a block has nothing set: ADR 42."""
    values = yaml.safe_load((lab.root / "out/dev/gpu-operator/values.yaml").read_text(encoding="utf-8"))
    objects = rendered(source("gpu-operator", OPERATOR) / CHART, "gpu-operator", "gpu-operator", values)
    policy = the("ClusterPolicy", "cluster-policy", objects)
    assert policy["spec"]["mig"] is None

    with pytest.raises(Refused, match="null"):
        lab.api.apply(policy, manager="tests", force=True, dry_run=True)
    assert "cluster-policy" in lab.plane.kubectl("apply", "--dry-run=server", "-f", "-", stdin=json.dumps(policy))


def test_a_change_of_a_quota_is_applied_to_its_namespace_alone(lab: Lab) -> None:
    before = lab.argocd.synced()
    lab.edit("overlays/dev/policies.yaml", "{pool: a100-shared, guaranteed: 4}", "{pool: a100-shared, guaranteed: 3}")
    lab.push("Give development less")

    until(lambda: lab.argocd.synced() != before, "something is synced", seconds=60)
    lab.argocd.settle(SCALED)

    after = lab.argocd.synced()
    assert {name for name in after if after[name] != before[name]} == {"gpu-namespace-dev-development"}
    quota = lab.api.get("/api/v1/namespaces/development/resourcequotas/gpuplan")
    assert "3" in quota["spec"]["hard"].values()


COMPONENT: Final = """\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
resources: [thing.yaml]
"""
UNKNOWN: Final = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: x, namespace: development}\n"


def test_a_fix_is_picked_up_while_a_failed_sync_is_retried(lab: Lab) -> None:
    """Unless it is told to look for a newer one, Argo CD tries the commit that failed for 15 minutes, and gives up."""
    folder = lab.root / "overlays/dev/kustomize/namespaces/development"
    folder.mkdir(parents=True)
    (folder / "kustomization.yaml").write_text(COMPONENT, encoding="utf-8")
    (folder / "thing.yaml").write_text(UNKNOWN, encoding="utf-8")
    lab.push("Add what the cluster does not know")
    until(lambda: has_failed(lab, "gpu-namespace-dev-development"), "the sync fails", seconds=60)

    shutil.rmtree(folder.parents[1])
    lab.push("Take it away")

    lab.argocd.settle(SCALED, seconds=90)


def has_failed(lab: Lab, name: str) -> bool:
    operation = lab.argocd.application(name)["status"].get("operationState", {})
    return bool(operation.get("phase") == "Failed" or operation.get("retryCount", 0) > 0)


# --- What waits --------------------------------------------------------------------------------------------------

TRAINING: Final = f"""\
apiVersion: gpuplan.dev/v1
kind: Workload
metadata: {{name: sweep}}
spec:
  tenant: model-services
  training: {{}}
  pool: a100-mixed
  unit: 2g.20gb
  priorityClass: training
  image: registry.example.com/model-services/sweep{ENDLESS}
"""
PRIORITY: Final = """\
apiVersion: gpuplan.dev/v1
kind: PriorityClass
metadata: {name: nightly}
spec: {value: 50}
"""


def test_a_training_that_runs_holds_no_commit_though_its_namespace_has_a_download(lab: Lab) -> None:
    (lab.root / "policies/workloads/sweep.yaml").write_text(TRAINING, encoding="utf-8")
    assert told(lab) == {}
    lab.push("Train beside a service")
    until(lambda: [job for job in lab.api.list(JOBS) if is_running(job, "sweep")], "it trains", seconds=60)

    lab.edit("policies/workloads/services.yaml", "chat:2.4.1", "chat:2.4.2")
    assert told(lab) == {}
    lab.push("Serve another release")

    until(lambda: image_of_chat(lab).endswith(":2.4.2"), "the service has another image", seconds=60)
    assert [job for job in lab.api.list(JOBS) if is_running(job, "sweep")]


def test_a_download_that_hangs_holds_its_application_until_what_diff_says_is_typed(lab: Lab) -> None:
    name = "gpu-workloads-dev-model-services"
    lab.edit("policies/workloads/services.yaml", "fetch:1.3.0", f"fetch{ENDLESS}")
    [job] = told(lab)[name]
    lab.push("Download what does not come")
    message = f"waiting for healthy state of batch/Job/{job}"
    until(lambda: message in operation(lab, name), "it waits", seconds=60)
    lab.edit("policies/workloads/services.yaml", "chat:2.4.2", "chat:2.4.3")
    lab.edit("policies/workloads/services.yaml", f"fetch{ENDLESS}", "fetch:1.3.1")
    mended = lab.push("Download what comes")
    until(lambda: compared(lab, name) == mended, "what is mended is compared", seconds=60)
    assert message in operation(lab, name)
    assert image_of_chat(lab).endswith(":2.4.2")

    lab.argocd.terminate(name)
    until(lambda: "terminated" in operation(lab, name), "the sync ends", seconds=60)
    lab.argocd.sync(name)

    until(lambda: image_of_chat(lab).endswith(":2.4.3"), "the service has another image", seconds=60)


def test_a_class_that_leaves_holds_its_application_until_a_person_confirms_it(lab: Lab) -> None:
    name = "gpu-tenancy-dev"
    path = lab.root / "policies/nightly.yaml"
    path.write_text(PRIORITY, encoding="utf-8")
    assert told(lab) == {}
    lab.push("Run at night")
    until(lambda: lab.api.find(f"{CLASSES}/nightly"), "the class is there", seconds=60)
    path.unlink()
    assert told(lab) == {name: ["nightly"]}
    lab.push("Do not")
    message = "waiting for pruning confirmation of scheduling.k8s.io/PriorityClass/nightly"
    until(lambda: message in operation(lab, name), "it waits", seconds=60)

    lab.argocd.confirm(name)

    until(lambda: lab.api.find(f"{CLASSES}/nightly") is None, "the class goes", seconds=60)


JOBS: Final = "/apis/batch/v1/namespaces/model-services/jobs"
CLASSES: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"


def told(lab: Lab) -> dict[str, list[str]]:
    """By Application what `gpuplan diff` says that is waited for."""
    found = run("diff", "--output-format", "json", cwd=lab.root)
    waits = [wait for cluster in json.loads(found.out)["clusters"] for wait in cluster["waits"]]
    return {wait["application"]: [item["name"] for item in (*wait["pruned"], *wait["ended"])] for wait in waits}


def operation(lab: Lab, name: str) -> str:
    """What the last operation of an Application says."""
    found: str = lab.argocd.application(name)["status"].get("operationState", {}).get("message", "")
    return found


def compared(lab: Lab, name: str) -> str:
    """The commit that an Application was compared with."""
    found: str = lab.argocd.application(name)["status"]["sync"]["revision"]
    return found


def is_running(job: Mapping[str, Any], workload: str) -> bool:
    return bool(job["metadata"]["name"].startswith(f"{workload}-") and job["status"].get("active"))


def image_of_chat(lab: Lab) -> str:
    found = lab.api.get("/apis/apps/v1/namespaces/model-services/deployments/chat")
    return str(found["spec"]["template"]["spec"]["containers"][0]["image"])
