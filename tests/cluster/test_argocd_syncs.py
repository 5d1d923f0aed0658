"""Argo CD syncs what `gpuplan build` writes: a new cluster to its end, and what changes after it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.cli.runs import run
from tests.cluster.api import Refused
from tests.cluster.charts import rendered, the
from tests.cluster.dumps import collect
from tests.cluster.example import show
from tests.cluster.lab import CHART, OPERATOR, SCALED, Lab, syncing
from tests.cluster.processes import until
from tests.cluster.programs import source


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with syncing(tmp_path_factory.mktemp("lab"), "dev") as found:
        yield found


def test_a_new_cluster_is_synced_to_its_end(lab: Lab) -> None:
    lab.start()

    lab.settle_wholly(SCALED)


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
    quota = "{pool: a100-shared, guaranteed: "
    lab.edit(("overlays/dev/policies.yaml", f"{quota}4}}", f"{quota}3}}"))
    lab.push("Give development less")

    until(lambda: lab.argocd.synced() != before, "something is synced", seconds=60)
    lab.argocd.settle(SCALED)

    after = lab.argocd.synced()
    assert {name for name in after if after[name] != before[name]} == {"gpu-namespace-dev-development"}
    applied = lab.api.get("/api/v1/namespaces/development/resourcequotas/gpuplan")
    assert "3" in applied["spec"]["hard"].values()


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
