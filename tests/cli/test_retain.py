"""`gpuplan retain`: what a change leaves behind is named, written once, and cleared away when nothing needs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpuplan.features.changes import edits
from gpuplan.features.changes.retaining import _HEADER, _digest
from tests.cli import platforms
from tests.cli.platforms import a_broken_platform, a_platform, write
from tests.cli.runs import Run, run
from tests.git import a_repository, commit

LAYOUT = """\
apiVersion: gpuplan.dev/v1
kind: MigLayout
metadata: {name: halves}
spec:
  gpu: A100-80GB
  instances: {3g.40gb: 2}
"""
POOL = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: spare}
spec:
  gpu: A100-80GB
  nodes: {count: 1, gpusPerNode: 8, namePattern: "spare-[0-9]+"}
  sharing: {mig: {layout: halves}}
"""
KEPT = "overlays/dev/retained/halves-d9c2814c.yaml"
OLD_ENTRY = """\
      halves-d9c2814c:
      - devices: all
        mig-enabled: true
        mig-devices:
          "3g.40gb": 2
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A platform whose layout was edited in place since it was committed."""
    root = a_platform(a_repository(tmp_path))
    write(root / "policies/layout.yaml", LAYOUT)
    write(root / "policies/spare.yaml", POOL)
    commit(root)
    write(root / "policies/layout.yaml", LAYOUT.replace("{3g.40gb: 2}", "{1g.10gb: 7}"))
    return root


def retain(root: Path, *options: str) -> Run:
    return run("retain", "-C", str(root), *options)


def prune(root: Path, *options: str) -> Run:
    """Whatever nodes name, unless they are passed."""
    return retain(root, "--prune", "--write", *(options or ("--without-evidence",)))


# --- Writing -----------------------------------------------------------------------------------------------------


def test_without_write_the_documents_are_printed(root: Path) -> None:
    done = retain(root)

    assert done.code == 1
    assert done.out.splitlines()[0] == f"# {KEPT}"
    assert "    configName: halves-d9c2814c\n" in done.out
    assert done.err == (
        f"{KEPT}: `nvidia.com/mig.config: halves-d9c2814c` would be gone\n"
        "1 document missing; `gpuplan retain --write` writes them\n"
    )
    assert not (root / KEPT).exists()


def test_the_old_entry_is_built_as_it_was(root: Path) -> None:
    done = retain(root, "--write")
    run("build", "-C", str(root))

    assert (done.code, done.out) == (0, "")
    assert done.err == f"created {KEPT}: `nvidia.com/mig.config: halves-d9c2814c` stays\n"
    [config_map] = (root / "out/dev/gpu-operator").glob("configmap-gpuplan-mig-parted-*.yaml")
    assert OLD_ENTRY in config_map.read_text()
    assert "      halves-2d7d978e:\n" in config_map.read_text()


def test_what_is_printed_is_what_is_written(root: Path) -> None:
    printed = retain(root).out
    retain(root, "--write")

    assert printed == f"# {KEPT}\n{(root / KEPT).read_text()}"


def test_a_second_run_writes_nothing(root: Path) -> None:
    retain(root, "--write")
    first = (root / KEPT).read_bytes()

    done = retain(root, "--write")

    assert (done.code, done.err) == (0, "nothing to retain: what nodes and queues name at HEAD stays\n")
    assert (root / KEPT).read_bytes() == first
    assert [path.name for path in (root / "overlays/dev/retained").iterdir()] == ["halves-d9c2814c.yaml"]


def test_a_document_that_was_edited_is_left_alone(root: Path) -> None:
    retain(root, "--write")
    text = (root / KEPT).read_text().replace("lists no node", "lists no node, and the team agrees")
    write(root / KEPT, text)

    assert retain(root, "--write").code == 0
    assert (root / KEPT).read_text() == text


def test_only_the_clusters_named_are_compared(tmp_path: Path) -> None:
    root = a_platform(a_repository(tmp_path), "dev", "prod")
    write(root / "policies/layout.yaml", LAYOUT)
    write(root / "policies/spare.yaml", POOL)
    commit(root)
    write(root / "policies/layout.yaml", LAYOUT.replace("{3g.40gb: 2}", "{1g.10gb: 7}"))

    retain(root, "--write", "--cluster", "prod")

    assert not (root / KEPT).exists()
    assert (root / KEPT.replace("dev", "prod")).exists()


def test_another_revision_can_be_named(root: Path) -> None:
    commit(root)

    assert retain(root).code == 0
    assert retain(root, "--against", "HEAD~1").code == 1


def test_a_new_cluster_leaves_nothing_behind(root: Path) -> None:
    a_platform(root, "new")

    assert retain(root, "--cluster", "new").code == 0


# --- Clearing away -----------------------------------------------------------------------------------------------


@pytest.fixture
def done_with(root: Path) -> Path:
    """The platform after the change and its documents are committed."""
    retain(root, "--write")
    commit(root)
    return root


def test_what_nothing_names_is_named_with_what_to_look_at(done_with: Path) -> None:
    done = retain(done_with)

    assert done.code == 0
    assert done.err.splitlines()[1:] == [
        f"{KEPT}: the policies of HEAD do not name `nvidia.com/mig.config: halves-d9c2814c`",
        "  it may go once `kubectl get nodes -l nvidia.com/mig.config=halves-d9c2814c` lists no node",
    ]


def test_what_the_revision_names_is_not_left_over(root: Path) -> None:
    retain(root, "--write")

    assert KEPT not in retain(root).err


def test_prune_alone_deletes_nothing(done_with: Path) -> None:
    done = retain(done_with, "--prune")

    assert done.code == 1
    assert f"would delete {KEPT}: `nvidia.com/mig.config: halves-d9c2814c`\n" in done.err
    assert (done_with / KEPT).exists()


NO_NODE = "`kubectl get nodes -l nvidia.com/mig.config=halves-d9c2814c` lists no node"


def test_prune_and_write_delete_what_nobody_edited(done_with: Path) -> None:
    done = prune(done_with)

    assert done.code == 0
    assert done.err.splitlines()[1:] == [
        f"deleted {KEPT}: `nvidia.com/mig.config: halves-d9c2814c`",
        f"  nobody looked into the cluster: build this once {NO_NODE}",
    ]
    assert not (done_with / "overlays/dev/retained").exists()
    assert run("validate", "-C", str(done_with)).code == 0


def test_prune_spares_what_was_edited(done_with: Path) -> None:
    write(done_with / KEPT, (done_with / KEPT).read_text() + "# until Easter\n")

    done = prune(done_with)

    assert (done_with / KEPT).exists()
    assert "it was edited, so it is yours to delete" in done.err


def test_prune_spares_what_lies_elsewhere(done_with: Path) -> None:
    (done_with / KEPT).rename(done_with / "policies/halves.yaml")

    prune(done_with)

    assert (done_with / "policies/halves.yaml").exists()


def test_prune_knows_its_files_by_more_than_their_line_ends(done_with: Path) -> None:
    (done_with / KEPT).write_bytes((done_with / KEPT).read_bytes().replace(b"\n", b"\r\n"))

    prune(done_with)

    assert not (done_with / KEPT).exists()


def test_what_the_policies_say_again_goes_unseen(root: Path) -> None:
    retain(root, "--write")
    write(root / "policies/layout.yaml", LAYOUT)

    assert retain(root, "--prune", "--write").code == 0
    assert not (root / KEPT).exists()


# --- By evidence -------------------------------------------------------------------------------------------------


def nodes(root: Path, spare: str, count: int = 1) -> tuple[str, str]:
    """The option with a file of all nodes; those of the pool name this entry."""
    listed = {f"spare-{number}": {"gpuplan.dev/pool": "spare", MIG: spare} for number in range(1, count + 1)}
    listed |= {f"research-{number}": {"gpuplan.dev/pool": "research"} for number in (1, 2)}
    items = [{"kind": "Node", "metadata": {"name": name, "labels": found}} for name, found in listed.items()]
    write(root / "nodes.json", json.dumps({"kind": "List", "items": items}))
    return "--nodes", str(root / "nodes.json")


MIG = "nvidia.com/mig.config"


def test_nothing_that_nodes_may_name_is_deleted_unseen(done_with: Path) -> None:
    done = retain(done_with, "--prune", "--write")

    assert done.code == 2
    assert f"policies do not say whether nodes still need `{MIG}: halves-d9c2814c`; so nothing was deleted" in done.err
    assert "`kubectl get nodes -o json | gpuplan retain --prune --write --nodes -`" in done.err
    assert "`--without-evidence`" in done.err
    assert (done_with / KEPT).exists()


OWN = "overlays/dev/retained/device-plugin-research.yaml"
SHARES = "  sharing:\n    timeSlicing: {replicas: 3}\n"


def settled(root: Path, key: str, policy: str) -> tuple[str, str]:
    """A pool went from shares to partitions in one commit, with what `retain` writes; its nodes have this key."""
    assert SHARES in policy
    write(root / "policies/research.yaml", policy)
    write(root / "policies/pool.yaml", "")
    write(root / "policies/layout.yaml", LAYOUT)
    commit(root)
    write(root / "policies/research.yaml", policy.replace(SHARES, "  sharing: {mig: {layout: halves}}  # by two\n"))
    retain(root, "--write")
    commit(root)
    labels = {"gpuplan.dev/pool": "research", "nvidia.com/device-plugin.config": key, MIG: "halves-d9c2814c"}
    items = [{"kind": "Node", "metadata": {"name": f"research-{n}", "labels": labels}} for n in (1, 2)]
    items.append({"kind": "Node", "metadata": {"name": "spare-1", "labels": {"gpuplan.dev/pool": "spare"}}})
    write(root / "nodes.json", json.dumps({"kind": "List", "items": items}))
    return "--nodes", str(root / "nodes.json")


@pytest.mark.parametrize(("key", "is_kept"), [("research.26e351e", False), ("research", True)])
def test_a_pool_keeps_the_key_that_its_nodes_have_as_the_document_goes(root: Path, key: str, *, is_kept: bool) -> None:
    done = prune(root, *settled(root, key, platforms.POOL))

    text = (root / "policies/research.yaml").read_text()
    assert (root / OWN).exists() == is_kept
    assert ("changed policies/research.yaml: pool research keeps the key that its nodes have\n" in done.err) != is_kept
    assert ("  names:\n    devicePluginConfig: research.26e351e\n" in text) != is_kept
    assert "  sharing: {mig: {layout: halves}}  # by two\n" in text
    assert prune(root, "--nodes", str(root / "nodes.json")).code == 0


def test_where_gpuplan_cannot_change_the_pool_the_document_stays(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edits, "with_fields", lambda *_: None)
    done = prune(root, *settled(root, "research.26e351e", platforms.POOL))

    assert done.code == 2
    assert "gpuplan cannot change `policies/research.yaml`, in which a person wrote pool `research`" in done.err
    assert "write `names: {devicePluginConfig: research.26e351e}` there, and run it again" in done.err
    assert (root / OWN).exists()


def test_the_word_is_said_in_place_of_nodes(done_with: Path) -> None:
    done = prune(done_with, "--without-evidence", *nodes(done_with, "halves-2d7d978e"))

    assert done.code == 2
    assert "--without-evidence is for --prune without --nodes: type --prune --without-evidence." in done.err
    assert retain(done_with, "--without-evidence").code == 2


def test_what_no_node_names_is_deleted(done_with: Path) -> None:
    done = prune(done_with, *nodes(done_with, "halves-2d7d978e"))

    assert done.code == 0
    assert done.err.splitlines()[1:] == [f"deleted {KEPT}: `{MIG}: halves-d9c2814c`"]
    assert not (done_with / KEPT).exists()


def test_what_a_node_names_stays(done_with: Path) -> None:
    done = prune(done_with, *nodes(done_with, "halves-d9c2814c"))

    assert done.code == 0
    assert done.err.splitlines()[1:] == [
        f"kept {KEPT}: `{MIG}: halves-d9c2814c`",
        "  it stays: `spare-1` still needs it",
    ]
    assert (done_with / KEPT).exists()


def test_what_may_be_named_by_nodes_that_are_not_listed_stays(done_with: Path) -> None:
    done = prune(done_with, *nodes(done_with, "halves-2d7d978e", count=0))

    assert done.err.splitlines()[1:] == [
        f"kept {KEPT}: `{MIG}: halves-d9c2814c`",
        f"  nodes do not show it: delete the file once {NO_NODE}",
        "the list of nodes lacks 1 of pool `spare`: it is no proof of what no node names",
    ]
    assert (done_with / KEPT).exists()


def test_nodes_of_another_cluster_are_no_proof_though_patterns_match_them(done_with: Path) -> None:
    option = nodes(done_with, "halves-2d7d978e")
    listed = (done_with / "nodes.json").read_text().replace('"research"', '"elsewhere"', 1)
    write(done_with / "nodes.json", listed)
    done = prune(done_with, *option)

    assert done.err.splitlines()[-1] == (
        "node `research-1` in the list is of pool `elsewhere`, which cluster `dev` does not have: it is no proof of "
        "what no node names"
    )
    assert (done_with / KEPT).exists()


def test_prune_with_nodes_says_first_what_would_go(done_with: Path) -> None:
    done = retain(done_with, "--prune", *nodes(done_with, "halves-2d7d978e"))

    assert done.code == 1
    assert f"would delete {KEPT}: `{MIG}: halves-d9c2814c`\n  it may go: no node needs it\n" in done.err
    assert retain(done_with, "--prune", *nodes(done_with, "halves-d9c2814c")).code == 0


def test_an_object_is_not_seen_in_nodes(done_with: Path) -> None:
    path = "overlays/dev/retained/map.yaml"
    write(done_with / path, f"{_HEADER}{_digest(OBJECT)}\n{OBJECT}")
    commit(done_with)
    done = prune(done_with, *nodes(done_with, "halves-2d7d978e"))

    assert f"kept {path}: ConfigMap `old` in namespace `gpu-operator`\n" in done.err
    assert "  nodes do not show it: delete the file once nobody reads it\n" in done.err
    assert prune(done_with).code == 0
    assert not (done_with / path).exists()


@pytest.mark.parametrize(("work", "is_kept"), [(0, False), (1, True)])
def test_a_queue_is_seen_in_what_is_listed_with_the_nodes(done_with: Path, work: int, *, is_kept: bool) -> None:
    path = "overlays/dev/retained/queue.yaml"
    write(done_with / path, f"{_HEADER}{_digest(QUEUE)}\n{QUEUE}")
    commit(done_with)
    live = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": "old"}}
    live |= {"spec": {"stopPolicy": "Hold"}, "status": {"reservingWorkloads": work}}
    write(done_with / "queues.json", json.dumps({"kind": "List", "items": [live]}))
    done = prune(done_with, *nodes(done_with, "halves-2d7d978e"), "--nodes", str(done_with / "queues.json"))

    assert (done_with / path).exists() is is_kept
    assert ("it stays: work that it let in still needs it" in done.err) is is_kept


QUEUE = """\
apiVersion: gpuplan.dev/v1
kind: Retained
metadata: {name: queue}
spec:
  object:
    folder: scheduling
    manifest:
      apiVersion: kueue.x-k8s.io/v1beta2
      kind: ClusterQueue
      metadata: {name: old}
      spec: {stopPolicy: Hold, namespaceSelector: {}}
  until: nobody uses it
"""
OBJECT = """\
apiVersion: gpuplan.dev/v1
kind: Retained
metadata: {name: map}
spec:
  object:
    folder: gpu-operator
    manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: old, namespace: gpu-operator}}
  until: nobody reads it
"""


def test_without_prune_nodes_say_what_is_not_missing(root: Path) -> None:
    """What a pool gave is named by nodes sooner or later; what no pool gave, by those that name it now."""
    write(root / "policies/layout.yaml", LAYOUT)
    write(root / "policies/other.yaml", LAYOUT.replace("halves", "unused").replace("3g.40gb: 2", "2g.20gb: 3"))
    commit(root)
    (root / "policies/other.yaml").unlink()

    assert "`nvidia.com/mig.config: unused-" in retain(root).err
    assert retain(root, *nodes(root, "halves-d9c2814c")).err.startswith("nothing to retain")


# --- What stands in the way --------------------------------------------------------------------------------------


def test_policies_with_errors_are_not_compared(tmp_path: Path) -> None:
    root = a_platform(a_repository(tmp_path))
    commit(root)
    a_broken_platform(root)

    done = retain(root, "--write")

    assert (done.code, done.out) == (1, "")
    assert "error[GPU101]" in done.err
    assert done.err.endswith("nothing was compared\n")


def test_a_revision_with_errors_says_nothing_about_nodes(tmp_path: Path) -> None:
    root = a_broken_platform(a_repository(tmp_path))
    commit(root)
    a_platform(root)

    done = retain(root)

    assert done.code == 2
    assert (
        "the policies at `HEAD` have errors; the first, in `policies/tenant.yaml`: unknown Pool `reserch`" in done.err
    )
    assert "--against REV" in done.err


def test_errors_that_the_revision_ignores_are_none(tmp_path: Path) -> None:
    root = a_platform(a_repository(tmp_path))
    too_long = LAYOUT.replace("{3g.40gb: 2}", "{4g.40gb: 2} # gpuplan: ignore[GPU203,GPU208] a test\n")
    write(root / "policies/layout.yaml", too_long)
    write(root / "policies/spare.yaml", POOL)
    assert run("validate", "-C", str(root)).code == 0
    commit(root)

    assert retain(root).code == 0


def test_without_git_nobody_knows_what_was_before(tmp_path: Path) -> None:
    done = retain(a_platform(tmp_path))

    assert done.code == 2
    assert "is in no Git repository" in done.err


def test_a_file_in_the_way_is_not_overwritten(root: Path) -> None:
    write(root / KEPT, "# mine\n")

    done = retain(root, "--write")

    assert done.code == 2
    assert f"`{KEPT}` is there already, so nothing was written" in done.err
    assert (root / KEPT).read_text() == "# mine\n"


def test_the_platform_as_it_was_may_be_a_folder(root: Path, tmp_path: Path) -> None:
    before = a_platform(tmp_path / "before")
    write(before / "policies/layout.yaml", LAYOUT)
    write(before / "policies/spare.yaml", POOL)

    done = retain(root, "--against", str(before), "--write")

    assert (done.code, done.out) == (0, "")
    assert done.err.startswith(f"created {KEPT}: ")


def test_what_was_built_does_not_say_how_policies_say_it(root: Path) -> None:
    run("build", "-C", str(root))
    done = retain(root, "--against", str(root / "out"))
    assert done.code == 2
    assert "holds what `gpuplan build` wrote" in done.err


def test_what_the_policies_make_again_may_go_at_once(root: Path) -> None:
    retain(root, "--write")
    commit(root)
    write(root / "policies/layout.yaml", LAYOUT)

    done = retain(root, "--prune")

    assert f"would delete {KEPT}: `nvidia.com/mig.config: halves-d9c2814c`\n" in done.err
    assert "  it may go: the policies make that themselves\n" in done.err
    assert "lists no node" not in done.err


def test_a_document_that_goes_says_when_it_may(root: Path) -> None:
    retain(root, "--write")
    commit(root)
    (root / KEPT).unlink()

    done = run("diff", "-C", str(root))

    assert "it may go once `kubectl get nodes -l nvidia.com/mig.config=halves-d9c2814c` lists no node" in done.out


def test_the_plan_lists_what_is_retained(root: Path) -> None:
    assert "Retained" not in run("show", "-C", str(root)).out
    retain(root, "--write")
    *_, heading, _, row = run("show", "-C", str(root)).out.splitlines()
    assert heading == "Retained"
    assert row.split(maxsplit=1) == [
        "halves-d9c2814c",
        "`kubectl get nodes -l nvidia.com/mig.config=halves-d9c2814c` lists no node",
    ]


# --- Along with a build ------------------------------------------------------------------------------------------


def test_a_build_may_retain_first(root: Path) -> None:
    done = run("build", "-C", str(root), "--retain")

    assert done.code == 0
    assert done.err.startswith(f"created {KEPT}: `nvidia.com/mig.config: halves-d9c2814c` stays\n")
    [config_map] = (root / "out/dev/gpu-operator").glob("configmap-gpuplan-mig-parted-*.yaml")
    assert OLD_ENTRY in config_map.read_text()
    assert "created overlays" not in run("build", "-C", str(root), "--retain").err


def test_who_only_looks_retains_nothing(root: Path) -> None:
    assert run("build", "-C", str(root), "--retain", "--check").code == 2
    assert not (root / KEPT).exists()


def test_policies_with_errors_retain_nothing(root: Path) -> None:
    a_broken_platform(root)

    done = run("build", "-C", str(root), "--retain")

    assert (done.code, (root / KEPT).exists()) == (1, False)
    assert done.err.count("error[GPU101]") + done.out.count("error[GPU101]") == 1


# --- What it ends itself -----------------------------------------------------------------------------------------

QUEUED = """\
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata: {name: dev}
spec: {kubernetes: "1.34", gpuOperator: {install: helm, version: v26.7.0}, scheduler: {kind: kueue}}
"""


def test_what_the_policies_make_again_does_not_stand_in_the_way(tmp_path: Path) -> None:
    root = a_platform(a_repository(tmp_path))
    write(root / "overlays/dev/cluster.yaml", QUEUED)
    commit(root)
    tenant = (root / "policies/tenant.yaml").read_text()
    write(root / "policies/tenant.yaml", tenant.replace("name: research", "name: science", 1))
    assert retain(root, "--write").code == 0
    commit(root)
    write(root / "policies/tenant.yaml", tenant)
    assert "GPU721" in run("validate", "-C", str(root)).out

    done = retain(root, "--prune", "--write")

    assert done.code == 0
    assert "deleted overlays/dev/retained/clusterqueue-research.yaml" in done.err
    assert "created overlays/dev/retained/clusterqueue-science.yaml" in done.err
    assert run("validate", "-C", str(root)).code == 0
