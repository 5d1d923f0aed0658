"""`gpuplan drift`."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from gpuplan.compiler.pipeline.loading import load
from gpuplan.terminal.schemas import schema
from tests.cli.platforms import a_broken_platform, a_platform
from tests.cli.runs import run
from tests.features.live.dumps import listed, nodes

QUOTA = "out/dev/namespaces/research/resourcequota-gpuplan.yaml"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A platform that was built: a cluster in which its `out/` was applied."""
    found = a_platform(tmp_path)
    assert run("build", cwd=found).code == 0
    return found


def edit(root: Path, path: str, key: str, value: object) -> None:
    """Change what runs."""
    body = yaml.safe_load((root / path).read_text())
    body["spec"]["hard"][key] = value
    (root / path).write_text(yaml.safe_dump(body))


def test_what_was_built_is_what_is_compared(root: Path) -> None:
    done = run("drift", "out/dev", cwd=root)

    assert (done.code, done.out) == (0, "")
    assert "dev: nothing differs; " in done.err


def test_a_difference_is_told_with_the_line_of_the_policy(root: Path) -> None:
    edit(root, QUOTA, "requests.nvidia.com/gpu.shared", "3")

    done = run("drift", "out/dev", cwd=root)

    assert done.code == 1
    assert done.out.startswith("ResourceQuota research/gpuplan  [quota]\n")
    assert "policies/tenant.yaml:10  Tenant research spec.quotas[0].guaranteed\n" in done.out
    assert "    cluster  3\n" in done.out
    assert "dev: 1 difference in 1 object; " in done.err


def test_json_keeps_its_contract(root: Path) -> None:
    edit(root, QUOTA, "requests.nvidia.com/gpu.shared", "3")

    done = run("drift", "out/dev", "-o", "json", cwd=root)

    body = json.loads(done.out)
    jsonschema.validate(body, schema("drift"))
    [difference] = body["differences"]
    assert (difference["written"], difference["live"]) == ("16", "3")
    assert difference["owner"] is None


def test_markdown_has_a_row_for_each_difference(root: Path) -> None:
    edit(root, QUOTA, "requests.nvidia.com/gpu.shared", "3")

    done = run("drift", "out/dev", "-o", "markdown", cwd=root)

    assert done.out.count("\n| <code>ResourceQuota research/gpuplan</code> |") == 1


def test_no_sync_mends_a_node(root: Path) -> None:
    labels = {"gpuplan.dev/pool": "gone"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "stray", "labels": labels}}
    (root / "node.yaml").write_text(yaml.safe_dump(node))

    done = run("drift", "node.yaml", cwd=root)

    assert done.code == 1
    assert "    note     there is no pool `gone`\n    next     nothing: no sync changes it\n" in done.out


def test_what_takes_something_away_is_an_error(root: Path) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "old", "namespace": "research"}}
    (root / "quota.yaml").write_text(
        yaml.safe_dump({**quota, "spec": {"hard": {"requests.nvidia.com/gpu.shared": "3"}}})
    )

    done, markdown = (run("drift", "quota.yaml", *options, cwd=root) for options in ((), ("-o", "markdown")))

    assert (done.code, done.out) == (1, "")
    assert "error[GPU816]" in done.err
    assert "dev: nothing differs; 1 object of others acts against the policies; " in done.err
    assert "- ResourceQuota <code>old</code> in namespace <code>research</code> caps" in markdown.out


def test_what_lets_others_have_more_is_a_warning(root: Path) -> None:
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "new", "labels": {"nvidia.com/gpu.present": "true"}},
    }
    (root / "node.yaml").write_text(yaml.safe_dump({**node, "status": {"capacity": {"nvidia.com/gpu": "8"}}}))

    done, strict = (run("drift", "node.yaml", *options, cwd=root) for options in ((), ("--warnings-as-errors",)))

    assert (done.code, done.out, strict.code) == (0, "", 1)
    assert "warning[GPU816]" in done.err
    assert "dev: nothing differs; 0 objects compared\n" in done.err


def test_a_stopped_queue_ends_with_1(root: Path) -> None:
    path = next((root / "out/dev").rglob("resourcequota-gpuplan.yaml"))
    body = yaml.safe_load(path.read_text())
    body["spec"]["scopes"] = ["BestEffort"]
    path.write_text(yaml.safe_dump(body))

    done = run("drift", "out/dev", cwd=root)

    assert done.code == 1
    assert "  spec.scopes\n    policy   says nothing\n" in done.out
    assert "    note     it counts only the pods of these scopes\n" in done.out
    assert "    next     nothing: no sync changes it\n" in done.out


def another_cluster(root: Path, labels: dict[str, str]) -> None:
    """Nodes and namespaces that are nobody's here."""
    labels = {"nvidia.com/gpu.product": "Tesla-T4", "nvidia.com/gpu.present": "true", **labels}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "x", "labels": labels}}
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "web"}}
    items = [{**node, "status": {"capacity": {"nvidia.com/gpu": "4"}}}, space]
    (root / "live.yaml").write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items}))


def test_a_dump_that_has_nothing_in_common_is_of_another_cluster(root: Path) -> None:
    another_cluster(root, {})

    done, named = (run("drift", "live.yaml", *options, cwd=root) for options in ((), ("-c", "dev")))

    assert (done.code, done.out) == (2, "")
    why = "no node is in a pool, and no namespace is a tenant's"
    assert f"error: the dump is of another cluster than `dev`, as it seems: {why}\n" in done.err
    assert named.code == 1
    assert named.err.startswith(f"the dump is of another cluster, as it seems: {why}\n")
    assert named.err.count("another cluster") == 1


def test_a_dump_of_another_cloud_is_of_another_cluster(root: Path) -> None:
    pool = next((root / "policies").glob("pool*.yaml"))
    document = yaml.safe_load(pool.read_text())
    document["spec"]["nodes"] = {"count": 1, "gpusPerNode": 8, "selector": {"eks.amazonaws.com/nodegroup": "gpu"}}
    pool.write_text(yaml.safe_dump(document))
    cluster = root / "overlays/dev/cluster.yaml"
    cluster.write_text(f"{cluster.read_text()}  nodeLabels: external\n")
    another_cluster(root, {"kubernetes.azure.com/agentpool": "gpu"})

    done = run("drift", "live.yaml", cwd=root)
    another_cluster(root, {"eks.amazonaws.com/nodegroup": "gpu"})
    same = run("drift", "live.yaml", cwd=root)

    assert done.code == 2
    assert "its nodes have labels of `kubernetes.azure.com`, and pools select by `eks.amazonaws.com`" in done.err
    assert same.code == 1
    assert "another cluster" not in same.err


def without_annotations(root: Path, kind: str = "namespace") -> None:
    for path in sorted((root / "out/dev").rglob(f"{kind}-*.yaml")):
        body = yaml.safe_load(path.read_text())
        del body["metadata"]["annotations"]
        path.write_text(yaml.safe_dump(body))


def test_annotations_that_nobody_reads_are_one_line(root: Path) -> None:
    without_annotations(root)

    done, data = (run("drift", "out/dev", *options, cwd=root) for options in ((), ("-o", "json")))

    assert (done.code, done.out) == (0, "")
    assert "left alone, since neither syncs: 9 annotations of Argo CD and Flux on 3 objects\n" in done.err
    body = json.loads(data.out)
    jsonschema.validate(body, schema("drift"))
    assert {item["object"].partition(" ")[0] for item in body["left_alone"]} == {"Namespace"}


@pytest.mark.parametrize(
    "mark",
    [
        {"labels": {"kustomize.toolkit.fluxcd.io/name": "gpu"}},
        {"managedFields": [{"manager": "argocd-controller", "operation": "Apply", "fieldsV1": {}}]},
    ],
)
def test_annotations_that_somebody_reads_differ(root: Path, mark: dict[str, object]) -> None:
    without_annotations(root)
    quota = root / QUOTA
    body = yaml.safe_load(quota.read_text())
    body["metadata"] |= mark
    quota.write_text(yaml.safe_dump(body))

    done = run("drift", "out/dev", cwd=root)

    assert done.code == 1
    assert done.out.count("  metadata.annotations\n") == 3


def test_policies_with_errors_are_trouble(tmp_path: Path) -> None:
    root = a_broken_platform(tmp_path)
    (root / "live.yaml").write_text("kind: Node\napiVersion: v1\nmetadata: {name: a}\n")

    done = run("drift", "live.yaml", cwd=root)

    assert (done.code, done.out) == (2, "")


def test_the_cluster_must_be_known(tmp_path: Path) -> None:
    root = a_platform(tmp_path, "dev", "prod")
    (root / "live.yaml").write_text("kind: Node\napiVersion: v1\nmetadata: {name: a}\n")

    done = run("drift", "live.yaml", cwd=root)

    assert done.code == 2
    assert "help: name it, with the same files: `-c dev` or `-c prod`" in done.err


def test_a_dump_of_another_cluster_is_trouble_unless_the_cluster_is_named(root: Path) -> None:
    project = {"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": "gpuplan-prod"}}
    project |= {"spec": {"description": "GPU configuration of the cluster prod"}}
    (root / "out/dev/project.yaml").write_text(yaml.safe_dump(project))

    done, named = (run("drift", "out/dev", *options, cwd=root) for options in ((), ("-c", "dev")))

    assert (done.code, done.out) == (2, "")
    assert (
        "the dump is of cluster `prod`, as gpuplan's own objects in it say, and the policies are of `dev`" in done.err
    )
    assert named.code == 0
    assert "the dump is of cluster `prod`, as gpuplan's own objects in it say\n" in named.err


def test_a_dump_that_shows_nothing_of_the_cluster_is_trouble(root: Path) -> None:
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs", "namespace": "kube-system"}}
    (root / "live.yaml").write_text(yaml.safe_dump(other))

    done = run("drift", "live.yaml", cwd=root)

    assert (done.code, done.out) == (2, "")
    assert "error: the dump shows nothing of cluster `dev`" in done.err


def test_nodes_alone_are_compared(root: Path) -> None:
    bodies = nodes(load(root, ("dev",)).plans[0])
    (root / "nodes.json").write_bytes(listed(bodies)["live.json"])

    done = run("drift", "nodes.json", cwd=root)

    assert done.code == 0
    assert f"dev: nothing differs; {len(bodies)} object{'s' * (len(bodies) > 1)} compared\n" in done.err


def test_a_secret_is_never_printed(root: Path) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "gpuplan-x"}, "stringData": {"a": "hunter2"}}
    (root / "live.yaml").write_text(yaml.safe_dump(secret))

    for form in ("table", "json", "markdown"):
        done = run("drift", "live.yaml", "-o", form, cwd=root)
        assert "hunter2" not in done.out + done.err
