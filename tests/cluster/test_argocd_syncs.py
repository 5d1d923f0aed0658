"""Argo CD syncs what `gpuplan build` writes: a new cluster to its end, and what changes after it."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.cli.runs import run
from tests.cluster.api import Refused
from tests.cluster.argo_cd import state_of
from tests.cluster.charts import rendered, the
from tests.cluster.dumps import collect
from tests.cluster.example import show
from tests.cluster.gpu_operator import CHART, OPERATOR
from tests.cluster.held import created_early
from tests.cluster.kubelet import ENDLESS
from tests.cluster.lab import Lab, syncing
from tests.cluster.processes import until
from tests.cluster.programs import need_go, source


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    need_go()
    with syncing(tmp_path_factory.mktemp("lab"), "dev") as lab:
        yield lab


def test_a_new_cluster_is_synced_to_its_end(lab: Lab) -> None:
    lab.adopt()
    lab.finish()


def test_no_tenant_has_a_namespace_or_rights_before_they_are_held_to_anything(lab: Lab) -> None:
    namespaces = [name for tenant in show("dev", lab.root)["tenants"] for name in tenant["namespaces"]]
    assert namespaces
    assert created_early(lab.api, namespaces) == []


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

    until(lambda: lab.argocd.synced() != before, "something is synced", seconds=180)
    lab.argocd.settle(lab.scaled())

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
    name = "gpu-namespace-dev-development"
    folder = lab.root / "overlays/dev/kustomize/namespaces/development"
    folder.mkdir(parents=True)
    (folder / "kustomization.yaml").write_text(COMPONENT, encoding="utf-8")
    (folder / "thing.yaml").write_text(UNKNOWN, encoding="utf-8")
    lab.push("Add what the cluster does not know")
    until(lambda: has_failed(lab, name), "the sync fails", seconds=180)

    shutil.rmtree(folder.parents[1])
    lab.push("Take it away")

    until(lambda: operation(lab, name).startswith("successfully"), "the next try ends well", seconds=180)
    lab.argocd.settle(lab.scaled())


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
    until(lambda: [job for job in lab.api.list(JOBS) if is_running(job, "sweep")], "it trains", seconds=180)

    lab.edit("policies/workloads/services.yaml", "chat:2.4.1", "chat:2.4.2")
    assert told(lab) == {}
    lab.push("Serve another release")

    until(lambda: image_of_chat(lab).endswith(":2.4.2"), "the service has another image", seconds=180)
    assert [job for job in lab.api.list(JOBS) if is_running(job, "sweep")]


def test_a_download_that_hangs_holds_its_application_until_what_diff_says_is_typed(lab: Lab) -> None:
    name = "gpu-workloads-dev-model-services"
    lab.edit("policies/workloads/services.yaml", "fetch:1.3.0", f"fetch{ENDLESS}")
    [job] = told(lab)[name]
    lab.push("Download what does not come")
    message = f"waiting for healthy state of batch/Job/{job}"
    until(lambda: message in operation(lab, name), "it waits", seconds=180)
    lab.edit("policies/workloads/services.yaml", "chat:2.4.2", "chat:2.4.3")
    lab.edit("policies/workloads/services.yaml", f"fetch{ENDLESS}", "fetch:1.3.1")
    mended = lab.push("Download what comes")
    until(lambda: compared(lab, name) == mended, "what is mended is compared", seconds=180)
    assert message in operation(lab, name)
    assert image_of_chat(lab).endswith(":2.4.2")

    lab.argocd.terminate(name)
    until(lambda: "terminated" in operation(lab, name), "the sync ends", seconds=180)
    lab.argocd.sync(name)

    until(lambda: image_of_chat(lab).endswith(":2.4.3"), "the service has another image", seconds=180)


def test_a_class_that_leaves_holds_its_application_until_a_person_confirms_it(lab: Lab) -> None:
    name = "gpu-tenancy-dev"
    path = lab.root / "policies/nightly.yaml"
    path.write_text(PRIORITY, encoding="utf-8")
    assert told(lab) == {}
    lab.push("Run at night")
    until(lambda: lab.api.find(f"{CLASSES}/nightly"), "the class is there", seconds=180)
    path.unlink()
    assert told(lab) == {name: ["nightly"]}
    lab.push("Do not")
    message = "waiting for pruning confirmation of scheduling.k8s.io/PriorityClass/nightly"
    until(lambda: message in operation(lab, name), "it waits", seconds=180)

    lab.argocd.confirm(name)

    until(lambda: lab.api.find(f"{CLASSES}/nightly") is None, "the class goes", seconds=180)


# --- What does not begin, and what is left ----------------------------------------------------------------------


def test_a_class_that_changes_keeps_its_application_from_syncing_until_what_diff_says_is_typed(lab: Lab) -> None:
    name, hourly = "gpu-tenancy-dev", f"{CLASSES}/hourly"
    path = lab.root / "policies/hourly.yaml"
    path.write_text(PRIORITY.replace("nightly", "hourly"), encoding="utf-8")
    lab.push("Run every hour")
    until(lambda: lab.api.find(hourly) and operation(lab, name).startswith("successfully"), "it ends", seconds=180)
    path.write_text(PRIORITY.replace("nightly", "hourly").replace("50", "60"), encoding="utf-8")
    assert told(lab) == {name: ["hourly"]}
    [delete] = commands(lab)
    first = lab.api.get(hourly)
    type_in(lab, delete)
    until(lambda: is_another(lab, hourly, first), "what is deleted too early comes back", seconds=180)
    assert lab.api.get(hourly)["value"] == 50

    commit = lab.push("Run them sooner")
    # It says why for as long as until it looks again: then it goes by what it compared before (`useDiffCache`).
    until(lambda: compared(lab, name) == commit, "it compares", seconds=180)
    assert "PriorityClass" in condition(lab, name, "ComparisonError") or is_synced(lab, name)
    assert lab.api.get(hourly)["value"] == 50
    type_in(lab, delete)

    until(lambda: (lab.api.find(hourly) or {}).get("value") == 60, "the class has another value", seconds=180)
    until(lambda: state_of(lab.argocd.application(name)) == "Synced Healthy", "it is synced", seconds=180)


def test_a_tenant_that_leaves_is_there_until_what_diff_says_is_typed(lab: Lab) -> None:
    name, space = "gpu-namespace-dev-development", "/api/v1/namespaces/development"
    path = lab.root / "overlays/dev/policies.yaml"
    text = path.read_text(encoding="utf-8")
    gone = re.sub(r"  name: development\nspec:\n(  .*\n)+", "  name: development\n  $patch: delete\n", text)
    path.write_text(gone, encoding="utf-8")
    assert "development" in told(lab)[name]
    typed = commands(lab)
    lab.push("Let a team go")
    until(lambda: state_of(lab.argocd.application(name)).startswith("Unknown"), "its folder is gone", seconds=180)
    assert lab.api.get(space)["status"]["phase"] == "Active"

    for command in typed:
        type_in(lab, command)

    until(lambda: name not in lab.argocd.applications(), "its Application goes", seconds=180)
    assert [body["metadata"]["name"] for body in lab.api.list(BINDINGS) if "development" in json.dumps(body)] == []
    until(lambda: lab.api.find(space) is None, "its namespace goes", seconds=180)


BINDINGS: Final = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"


def commands(lab: Lab) -> list[str]:
    """The commands that `gpuplan diff` says under `waits`, in their order."""
    page = run("diff", "--cluster", "dev", cwd=lab.root).out
    return re.findall(r"`((?:kubectl|argocd) [^`]+)`", page[page.index("  waits ") :].partition("\n\n")[0])


def type_in(lab: Lab, command: str) -> None:
    program, *words = shlex.split(command)
    match program, words:
        case "kubectl", _:
            lab.plane.kubectl(*words)
        case "argocd", ["app", "delete", name]:
            lab.argocd.delete(name)
        case "argocd", ["app", "confirm-deletion", name]:
            lab.argocd.confirm(name)
        case _:
            pytest.fail(f"nobody here types `{command}`")


def is_another(lab: Lab, path: str, body: Mapping[str, Any]) -> bool:
    """Whether there is an object of the same name that is a later one."""
    found = lab.api.find(path)
    return found is not None and found["metadata"]["uid"] != body["metadata"]["uid"]


def condition(lab: Lab, name: str, kind: str) -> str:
    found = lab.argocd.application(name)["status"].get("conditions", [])
    return next((str(item["message"]) for item in found if item["type"] == kind), "")


JOBS: Final = "/apis/batch/v1/namespaces/model-services/jobs"
CLASSES: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"


def told(lab: Lab) -> dict[str, list[str]]:
    """By Application what `gpuplan diff` says that is waited for."""
    found = run("diff", "--output-format", "json", cwd=lab.root)
    waits = [wait for cluster in json.loads(found.out)["clusters"] for wait in cluster["waits"]]
    groups = ("pruned", "ended", "refused", "left")
    return {wait["application"]: [item["name"] for group in groups for item in wait[group]] for wait in waits}


def operation(lab: Lab, name: str) -> str:
    """What the last operation of an Application says."""
    found: str = lab.argocd.application(name)["status"].get("operationState", {}).get("message", "")
    return found


def is_synced(lab: Lab, name: str) -> bool:
    return state_of(lab.argocd.application(name)).startswith("Synced")


def compared(lab: Lab, name: str) -> str:
    """The commit that an Application was compared with."""
    found: str = lab.argocd.application(name)["status"]["sync"]["revision"]
    return found


def is_running(job: Mapping[str, Any], workload: str) -> bool:
    return bool(job["metadata"]["name"].startswith(f"{workload}-") and job["status"].get("active"))


def image_of_chat(lab: Lab) -> str:
    found = lab.api.get("/apis/apps/v1/namespaces/model-services/deployments/chat")
    return str(found["spec"]["template"]["spec"]["containers"][0]["image"])
