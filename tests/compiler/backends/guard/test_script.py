"""The script that guards a repartition, against a fake API server."""

from __future__ import annotations

import ast
import json
import ssl
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gpuplan.compiler.backends.guard import script
from tests.compiler.backends.guard.certificates import serve_with_old_certificate
from tests.compiler.backends.guard.fake_api import CLAIMS, NODES, PODS, Cluster, claim, listening, pod, serving

CONFIG, STATE = script.CONFIG, script.STATE
NAMED: dict[str, Any] = {"config": "new", "names": ["a", "b"]}
SETTINGS: dict[str, Any] = {
    "pool": "p",
    "namespace": "gpu-operator",
    "timeoutSeconds": 600,
    "targets": [NAMED],
    "leaving": "all-disabled",
}
DONE = {CONFIG: "new", STATE: "success"}


class Run(NamedTuple):
    code: int
    said: list[str]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def run(verb: str, cluster: Cluster, **settings: Any) -> Run:
        path = tmp_path / "settings.json"
        path.write_text(json.dumps({**SETTINGS, **settings}))
        with serving(cluster, tmp_path) as api:
            code = script.main([verb, str(path)], api)
        return Run(code, capsys.readouterr().out.splitlines())

    return run


# --- Before ------------------------------------------------------------------------------------------------------


def test_a_pod_on_a_node_that_changes_stops_the_sync(run: Any) -> None:
    cluster = Cluster(
        {"a": {CONFIG: "old"}, "b": DONE}, pod("train", "a", {"mig-1g.10gb": "2"}), pod("serve", "b", {"gpu": "1"})
    )
    assert run("before", cluster) == Run(
        1,
        [
            "a: from old to new",
            "a: team/train holds nvidia.com/mig-1g.10gb",
            (
                "pods hold GPUs: wait until they end, or `kubectl drain a --ignore-daemonsets --delete-emptydir-data`, "
                "and sync again"
            ),
        ],
    )


def test_nodes_without_pods_may_change(run: Any) -> None:
    found = run("before", Cluster({"a": {CONFIG: "old"}, "b": {}}))
    assert found.code == 0
    assert found.said == [
        "a: from old to new",
        "b: from no configuration to new",
        "2 nodes are to be partitioned anew, and no pod holds a GPU of theirs",
    ]


def test_nodes_that_are_there_already_are_not_asked_about(run: Any) -> None:
    cluster = Cluster({"a": DONE, "b": DONE}, pod("train", "a", {"gpu": "1"}))
    assert run("before", cluster).code == 0
    assert (cluster.questions(PODS), cluster.questions(CLAIMS)) == (0, 0)


def test_nodes_of_others_and_nodes_that_are_gone_do_not_matter(run: Any) -> None:
    cluster = Cluster(
        {"b": DONE, "c": {CONFIG: "old"}}, pod("train", "c", {"gpu": "1"}), pod("late", "a", {"gpu": "1"})
    )
    assert run("before", cluster) == Run(0, ["0 nodes are to be partitioned anew, and no pod holds a GPU of theirs"])


def test_a_node_whose_gpus_the_operator_has_not_found_does_not_matter(run: Any) -> None:
    cluster = Cluster({"a": {CONFIG: "old"}}, pod("train", "a", {"gpu": "1"}))
    del cluster.nodes["a"]["nvidia.com/gpu.present"]
    assert run("before", cluster).code == 0


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_holds_nothing(run: Any, phase: str) -> None:
    assert run("before", Cluster({"a": {}}, pod("train", "a", {"gpu": "1"}, phase))).code == 0


@pytest.mark.parametrize("phase", ["Running", "Pending", "Unknown"])
def test_a_pod_that_has_not_ended_holds_its_gpus(run: Any, phase: str) -> None:
    assert run("before", Cluster({"a": {}}, pod("train", "a", {"gpu": "1"}, phase))).code == 1


@pytest.mark.parametrize("resource", ["gpu", "gpu.shared", "mig-1g.10gb", "mig-1g.10gb.shared"])
def test_whatever_stands_for_a_gpu_or_a_part_of_one_counts(run: Any, resource: str) -> None:
    assert run("before", Cluster({"a": {}}, pod("train", "a", {resource: "1"}))).code == 1


@pytest.mark.parametrize("asked", [{}, {"hostdev": "1"}, {"gpu": "0"}])
def test_pods_without_gpus_do_not_matter(run: Any, asked: dict[str, str]) -> None:
    """Those of the operator's DaemonSets are such pods."""
    assert run("before", Cluster({"a": {}}, pod("plugin", "a", asked))).code == 0


def test_what_init_containers_ask_for_counts(run: Any) -> None:
    found = run("before", Cluster({"a": {}}, pod("train", "a", init="gpu")))
    assert "a: team/train holds nvidia.com/gpu" in found.said


def test_claims_of_nvidias_driver_count(run: Any) -> None:
    pods = [pod("train", "a"), pod("watch", "a"), pod("net", "a"), pod("ended", "a", phase="Succeeded")]
    claims = [
        claim("gpus", "train", "ended"),
        claim("nic", "net", driver="dra.example.com"),
        claim("all", "watch", adminAccess=True),
        {"metadata": {"namespace": "x", "name": "new"}},
    ]
    found = run("before", Cluster({"a": {}}, *pods, claims=claims))
    assert found.said[1:-1] == ["a: team/train holds the claim gpus"]


def test_a_cluster_without_claims_has_none(run: Any) -> None:
    cluster = Cluster({"a": {}})
    assert run("before", cluster).code == 0
    assert cluster.questions(CLAIMS) == 1


def test_lists_are_read_to_their_last_page(run: Any) -> None:
    cluster = Cluster(
        {"x": {}, "y": {}, "a": {}}, *(pod(f"cpu-{n}", "a") for n in range(5)), pod("train", "a", {"gpu": "1"})
    )
    cluster.page = 2
    assert run("before", cluster).code == 1
    assert (cluster.questions(NODES), cluster.questions(PODS)) == (2, 3)


def test_a_node_that_leaves_the_pool_loses_its_partitions(run: Any) -> None:
    """The operator labels it `all-disabled` as soon as no rule does."""
    cluster = Cluster({"z": {"gpuplan.dev/pool": "p", CONFIG: "old"}}, pod("train", "z", {"gpu": "1"}))
    assert run("before", cluster).said[:2] == ["z: from old to all-disabled", "z: team/train holds nvidia.com/gpu"]
    assert run("before", cluster, leaving=None).code == 0
    cluster.nodes["z"]["gpuplan.dev/pool"] = "another"
    assert run("before", cluster).code == 0


def test_a_pattern_is_for_the_whole_name(run: Any) -> None:
    targets = [{"config": "new", "pattern": "gpu-[0-9]|edge"}]
    cluster = Cluster({"gpu-1": {}, "gpu-10": {}, "my-gpu-1": {}, "edge": {}, "edge-2": {}})
    assert run("before", cluster, targets=targets).said[:-1] == [
        "edge: from no configuration to new",
        "gpu-1: from no configuration to new",
    ]


def test_each_half_of_a_rollout_has_its_own_configuration(run: Any) -> None:
    targets = [{"config": "old", "pattern": "gpu-.", "except": ["gpu-2"]}, {"config": "new", "names": ["gpu-2"]}]
    cluster = Cluster({"gpu-1": {CONFIG: "old"}, "gpu-2": {CONFIG: "old"}}, pod("train", "gpu-1", {"gpu": "1"}))
    found = run("before", cluster, targets=targets)
    assert (found.code, found.said[0]) == (0, "gpu-2: from old to new")


# --- After -------------------------------------------------------------------------------------------------------


def test_it_waits_until_every_node_is_partitioned(run: Any) -> None:
    cluster = Cluster({"a": {CONFIG: "old", STATE: "success"}, "b": DONE})
    cluster.at(20, "a", config="new")
    cluster.at(30, "a", state="pending")
    cluster.at(200, "a", state="success")
    found = run("after", cluster)
    assert (found.code, found.said[-1]) == (0, "2 nodes are partitioned as they should be")
    assert "a: new is pending, as yet" in found.said
    assert "a: old is success, and not yet new" in found.said
    assert cluster.time == 260


def test_the_word_on_the_configuration_before_is_not_taken_for_this_one(run: Any) -> None:
    """mig-manager looks at the GPUs before it says `pending`."""
    cluster = Cluster({"a": {CONFIG: "new", STATE: "success"}})
    cluster.at(40, "a", state="pending")
    cluster.at(50, "a", state="failed")
    assert run("after", cluster).code == 1
    cluster = Cluster({"a": {CONFIG: "new", STATE: "failed"}})
    cluster.at(40, "a", state="pending")
    cluster.at(50, "a", state="success")
    assert run("after", cluster).code == 0


def test_failure_ends_it_and_says_where_and_what_to_do(run: Any) -> None:
    cluster = Cluster({"a": {CONFIG: "new", STATE: "failed"}, "b": {CONFIG: "new", STATE: "pending"}})
    found = run("after", cluster)
    assert (found.code, cluster.time) == (1, 60)
    assert found.said[-3:] == [
        "a: mig-manager has failed to apply new",
        (
            "to see why: `kubectl logs -n gpu-operator $(kubectl get pods -n gpu-operator -l app=nvidia-mig-manager "
            "--field-selector spec.nodeName=a -o name)`"
        ),
        (
            "mig-manager does not try again by itself; to have it try: `kubectl delete pods -n gpu-operator "
            "-l app=nvidia-mig-manager --field-selector spec.nodeName=a`"
        ),
    ]


def test_failure_of_another_configuration_is_none_of_this_one(run: Any) -> None:
    cluster = Cluster({"a": {CONFIG: "old", STATE: "failed"}})
    cluster.at(100, "a", config="new", state="success")
    assert run("after", cluster).code == 0


def test_a_node_that_reboots_is_waited_for(run: Any) -> None:
    cluster = Cluster({"a": {CONFIG: "new", STATE: "rebooting"}})
    cluster.at(400, "a", state="success")
    assert run("after", cluster).code == 0


def test_it_gives_up_in_the_end(run: Any) -> None:
    cluster = Cluster({"a": {CONFIG: "new", STATE: "pending"}, "b": {}})
    found = run("after", cluster)
    assert (found.code, cluster.time) == (1, 600)
    assert found.said[-5:-2] == [
        "a: new is pending, as yet",
        "b: no configuration is not begun, and not yet new",
        "not done after 600 seconds",
    ]


def test_what_has_not_changed_is_not_said_again(run: Any) -> None:
    assert run("after", Cluster({"a": {CONFIG: "new", STATE: "pending"}})).said.count("a: new is pending, as yet") == 2


def test_nodes_that_leave_or_have_no_gpus_are_not_waited_for(run: Any) -> None:
    cluster = Cluster({"z": {"gpuplan.dev/pool": "p", CONFIG: "old"}, "a": {}})
    del cluster.nodes["a"]["nvidia.com/gpu.present"]
    assert run("after", cluster) == Run(0, ["0 nodes are partitioned as they should be"])


# --- The API server ----------------------------------------------------------------------------------------------


def test_who_may_not_ask_is_told_what_was_refused(run: Any) -> None:
    cluster = Cluster({"a": {}})
    cluster.faults = [(403, json.dumps({"message": "nodes is forbidden"}))]
    found = run("before", cluster)
    assert found.code == 1
    (said,) = found.said
    assert said.startswith("GET /api/v1/nodes?")
    assert said.endswith(": 403 nodes is forbidden")


def test_only_claims_may_be_unknown(run: Any) -> None:
    cluster = Cluster({"a": {}})
    cluster.faults = [(404, "404 page not found")]
    assert run("before", cluster).said[0].endswith(": 404 404 Not Found")


def test_an_outage_is_waited_for(run: Any) -> None:
    cluster = Cluster({"a": {}})
    cluster.faults = [(500, "{}"), (503, "no leader"), (429, "[]"), None, (200, "cut o")]
    assert run("before", cluster).code == 0
    assert cluster.time == 1 + 2 + 4 + 8 + 15


def test_an_outage_is_not_waited_for_without_end(run: Any) -> None:
    cluster = Cluster({"a": {}})
    cluster.faults = [(503, "no leader")] * 100
    found = run("before", cluster)
    assert found.code == 1
    assert found.said[0].endswith(": no answer for 120 seconds: 503 Service Unavailable")
    assert cluster.time < 140


def test_it_asks_with_the_token_and_for_no_more_of_nodes_than_their_labels(run: Any) -> None:
    cluster = Cluster({"a": {}})
    run("before", cluster)
    nodes, *others = cluster.headers
    assert nodes["Authorization"] == "Bearer secret"
    assert nodes["Accept"].startswith("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,")
    assert {header["Accept"] for header in others} == {"application/json"}


def as_python_3_13_does(cafile: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cafile)
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    return context


@pytest.fixture
def in_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[script.Api]:
    """As a pod finds the server, whose certificate is an old one."""
    monkeypatch.setattr(ssl, "create_default_context", as_python_3_13_does)
    (tmp_path / "token").write_text("secret\n")
    cluster = Cluster({"a": {}})
    with listening(cluster, serve_with_old_certificate(tmp_path)) as port:
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(port))
        yield script.in_cluster(tmp_path)


def test_in_a_cluster_it_trusts_the_clusters_certificates(in_cluster: script.Api) -> None:
    assert [name for name, _ in script.gpu_nodes(in_cluster)] == ["a"]


def test_in_a_cluster_it_trusts_no_others(in_cluster: script.Api, tmp_path: Path) -> None:
    serve_with_old_certificate(tmp_path)
    status, answer = script.in_cluster(tmp_path).ask(NODES)
    assert (status, "CERTIFICATE_VERIFY_FAILED" in answer["message"]) == (0, True)


# --- The file ----------------------------------------------------------------------------------------------------


def test_it_needs_python_3_9_and_no_package() -> None:
    tree = ast.parse(Path(script.__file__).read_text(), feature_version=(3, 9))
    names = {item.name for found in ast.walk(tree) if isinstance(found, ast.Import) for item in found.names}
    names |= {found.module or "" for found in ast.walk(tree) if isinstance(found, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names
