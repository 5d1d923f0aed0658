"""`gpuplan check`: files of others, judged without a platform."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from gpuplan.compiler.catalog import load
from gpuplan.compiler.documents import MAX_BYTES
from gpuplan.compiler.planning.placement.layouts import maximal_layouts
from gpuplan.features.files.checking import check_files
from tests.cli.platforms import TENANT
from tests.cli.runs import run, spawn

MIG = """\
version: v1
mig-configs:
  all-disabled:
    - {devices: all, mig-enabled: false}
  halves:
    - devices: all
      mig-enabled: true
      mig-devices: {%s}
"""
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: b}
spec:
  containers:
    - name: main
      image: example.com/app:1
      resources: {limits: {%s: 1}}
"""
VALUES = """\
devicePlugin: {enabled: true}
migManager:
  config:
    name: parts
    data:
      config.yaml: |
%s
"""
PLUGIN = """\
version: v1
sharing:
  timeSlicing:
    resources: [{name: nvidia.com/gpu, replicas: 1}]
"""
QUEUE = """\
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: team}
spec:
  namespaceSelector: {}
  resourceGroup: []
"""


def found(*texts: str, gpu: str = "", kubernetes: str = "") -> list[tuple[str, str]]:
    """Codes and messages."""
    files = {f"file-{number}.yaml": text.encode() for number, text in enumerate(texts)}
    report = check_files(files, gpus=[gpu] if gpu else [], kubernetes=kubernetes)
    return [(item.code, item.finding.message) for item in report.diagnostics]


def codes(*texts: str, gpu: str = "", kubernetes: str = "") -> list[str]:
    return [code for code, _ in found(*texts, gpu=gpu, kubernetes=kubernetes)]


# --- Partitions --------------------------------------------------------------------------------------------------


def test_partitions_are_judged_on_whatever_model_fits() -> None:
    assert codes(MIG % '"3g.40gb": 2') == []
    assert found(MIG % '"3g.40gb": 3') == [("GPU632", "no GPU can have what entry `halves` asks for: 3x `3g.40gb`")]


def test_partitions_are_judged_on_the_model_that_is_named() -> None:
    """Seven of 1g.24gb fit on a B200's board, and an H100 has none of them."""
    of_another = MIG % '"1g.23gb": 7'
    assert codes(of_another) == []
    assert found(of_another, gpu="H100-80GB") == [("GPU629", "entry `halves` wants `1g.23gb`, which no H100-80GB has")]


def test_what_fits_instead_is_named_for_a_model() -> None:
    report = check_files({"a.yaml": (MIG % '"3g.40gb": 2, "1g.10gb": 1').encode()}, gpus=["A100-80GB"])
    [item] = report.diagnostics
    assert (item.finding.help or "").startswith("nearest that fit: 2x `3g.40gb`, ")
    assert item.finding.message == "no A100-80GB can have what entry `halves` asks for: 2x `3g.40gb`, 1x `1g.10gb`"


@pytest.mark.parametrize("gpu", [gpu.id for gpu in load().all() if gpu.profiles])
def test_each_full_layout_of_each_model_is_taken(gpu: str) -> None:
    layouts = [{name: n for name, n in counts.items() if n} for counts in maximal_layouts(load().get(gpu))[:8]]
    for counts in layouts:
        assert codes(MIG % ", ".join(f'"{name}": {n}' for name, n in counts.items()), gpu=gpu) == []


def test_files_in_config_maps_and_in_values_of_the_chart_are_judged() -> None:
    text = MIG % '"3g.40gb": 3'
    data = {"config.yaml": text}
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "parts"}, "data": data}
    assert codes(json.dumps(config_map)) == ["GPU632"]
    assert codes(VALUES % "".join(f"        {line}\n" for line in text.splitlines())) == ["GPU632"]
    assert codes(PLUGIN) == ["GPU630"]


# --- Objects -----------------------------------------------------------------------------------------------------


def test_a_device_that_no_board_has_is_a_warning_and_with_a_model_an_error() -> None:
    pod = POD % "nvidia.com/mig-3g.40gb"
    assert codes(pod) == []
    assert codes(pod, gpu="H100-80GB") == []
    [item] = check_files({"a.yaml": pod.encode()}, gpus=["A100-40GB"]).diagnostics
    assert (item.code, str(item.severity)) == ("GPU802", "error")
    assert item.finding.help == "write `3g.20gb`"
    [item] = check_files({"a.yaml": (POD % "nvidia.com/mig-9g.90gb").encode()}).diagnostics
    assert (item.code, str(item.severity)) == ("GPU802", "warning")


@pytest.mark.parametrize("name", ["nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "nvidia.com/mig-1g.10gb.me"])
def test_resources_of_boards_are_taken(name: str) -> None:
    assert codes(POD % name) == []


def test_a_quota_and_a_queue_are_looked_into_as_well() -> None:
    quota = (
        "{apiVersion: v1, kind: ResourceQuota, metadata: {name: a}, spec: {hard: {requests.nvidia.com/mig-9g.90gb: 1}}}"
    )
    assert codes(quota) == ["GPU802"]
    assert codes(quota.replace("9g.90gb", "1g.10gb").replace("requests.", "")) == ["GPU620"]


def test_objects_fit_the_schemas_of_their_kind() -> None:
    assert codes(QUEUE) == ["GPU683"]
    assert codes(POD % "nvidia.com/gpu" + "      portz: []\n") == ["GPU683"]


def test_the_kubernetes_version_picks_the_schemas() -> None:
    claim = "{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: a}, spec: {devices: {request: []}}}"
    assert codes(claim, kubernetes="1.34") == ["GPU683"]


def test_a_list_as_kubectl_prints_it_is_judged_object_by_object() -> None:
    pods = [
        json.loads(json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": n}, "spec": {"x": 1}}))
        for n in "ab"
    ]
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": pods})
    assert [message[:5] for _, message in found(listed)].count("Pod a") >= 1
    assert {message[:5] for _, message in found(listed)} == {"Pod a", "Pod b"}


def test_a_list_of_the_api_server_says_the_kind_once() -> None:
    quota = {"metadata": {"name": "a"}, "spec": {"hard": {"nvidia.com/gpu": "4"}}}
    assert codes(json.dumps({"kind": "ResourceQuotaList", "apiVersion": "v1", "items": [quota]})) == ["GPU620"]


def test_what_a_cluster_has_is_not_judged_as_if_it_were_in_git() -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}
    system = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 2000001000}
    system["metadata"] = {"name": "system-node-critical"}
    written = [json.dumps({"apiVersion": "v1", "kind": "List", "items": [node, system]})]
    live = [text.replace('"metadata": {', '"metadata": {"uid": "a-b", ') for text in written]
    assert codes(*written) == ["GPU623", "GPU624", "GPU624"]
    assert codes(*live) == []


def test_nothing_of_a_secret_is_shown() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"nvidia.com/mig-9g.90gb": 5}}
    assert found(json.dumps(secret)) == [("GPU801", "no rule is about Secret `a`")]
    assert codes(json.dumps({"apiVersion": "v1", "kind": "List", "items": [secret]})) == ["GPU801"]


def test_the_line_of_a_secret_is_not_shown(tmp_path: Path) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"a": "aHVudGVy"}}
    (tmp_path / "a.json").write_text(json.dumps(secret))

    assert "aHVudGVy" not in run("check", "a.json", cwd=tmp_path).out


def test_json_that_is_larger_than_any_policy_is_judged_without_its_lines() -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "a"}}
    quota |= {"spec": {"hard": {"nvidia.com/gpu": "4"}}}
    dump = json.dumps({"apiVersion": "v1", "kind": "List", "items": [quota], "metadata": {"a": "x" * MAX_BYTES}})
    [item] = check_files({"a.json": dump.encode()}).diagnostics
    assert (item.code, item.finding.at.locate().span.start.line) == ("GPU620", 1)


# --- What is not judged ------------------------------------------------------------------------------------------


def test_a_policy_is_for_validate() -> None:
    assert found(TENANT) == [("GPU800", "this Tenant is a policy, which is judged with its platform")]


def test_a_file_of_something_else_is_not_passed_over_in_silence() -> None:
    assert codes("a: 1\n") == ["GPU801"]


@pytest.mark.parametrize("text", ["", "# all of it is a comment\n", "NAME   STATUS\nnode-1   Ready\n", "[]\n"])
def test_nor_is_an_empty_one_such_as_that_of_a_command_that_failed(text: str) -> None:
    assert codes(text) == ["GPU801"]


def test_a_comment_ignores_a_finding_and_one_for_nothing_is_a_finding() -> None:
    quota = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: a}\nspec:\n  hard:\n    nvidia.com/gpu: 4%s\n"
    assert codes(quota % "  # gpuplan: ignore[GPU620] the old cluster") == []
    assert codes((quota % "  # gpuplan: ignore[GPU620] it counts").replace("    nvidia", "    requests.nvidia")) == [
        "GPU112"
    ]


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=8)),
        lambda inner: st.one_of(
            st.lists(inner, max_size=4),
            st.dictionaries(
                st.sampled_from(
                    ("apiVersion", "kind", "metadata", "spec", "data", "mig-configs", "sharing", "items", "name")
                ),
                inner,
                max_size=5,
            ),
        ),
        max_leaves=20,
    )
)
def test_nothing_that_parses_ends_in_a_traceback(body: object) -> None:
    check_files({"a.json": json.dumps(body).encode()})


# --- The command -------------------------------------------------------------------------------------------------


def test_a_folder_is_read_whole_and_a_file_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "a/.git").mkdir(parents=True)
    (tmp_path / "a/mig.yaml").write_text(MIG % '"3g.40gb": 3')
    (tmp_path / "a/.git/x.yaml").write_text("a: [")
    (tmp_path / "a/readme.md").write_text("a: [")
    done = run("check", "a", "-o", "concise", cwd=tmp_path)
    assert done.code == 1
    assert done.err == "1 error in 1 file; `gpuplan explain GPU632` says more\n1 file of settings judged\n"
    assert done.out.startswith("a/mig.yaml:8:20: error[GPU632] ")


def test_files_of_the_folder_that_one_is_in_are_called_as_servers_call_them(tmp_path: Path) -> None:
    (tmp_path / "mig.yaml").write_text(MIG % '"3g.40gb": 3')
    assert run("check", ".", "-o", "concise", cwd=tmp_path).out.startswith("mig.yaml:8:20: ")


def test_links_and_pipes_of_a_folder_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "secret.yaml").write_text("a: [")
    (tmp_path / "a/link.yaml").symlink_to("../secret.yaml")
    os.mkfifo(tmp_path / "a/pipe.yaml")
    (tmp_path / "a/mig.yaml").write_text(MIG % '"3g.40gb": 2')
    done = run("check", "a", cwd=tmp_path)
    assert (done.code, done.err) == (0, "no findings in 1 file\n1 file of settings judged\n")


def test_what_comes_by_a_pipe_is_called_stdin(tmp_path: Path) -> None:
    done = run("check", "-", "-o", "concise", cwd=tmp_path, stdin=POD % "nvidia.com/mig-9g.90gb")
    assert (done.code, done.out[:13]) == (0, "stdin:8:28: w")


def test_a_zero_byte_is_a_finding_of_its_file_and_the_others_are_judged(tmp_path: Path) -> None:
    (tmp_path / "mig.yaml").write_text(MIG % '"3g.40gb": 3')
    (tmp_path / "zero.yaml").write_bytes(b"a: 1\n\0" + b"x" * 3 * 2**20)
    done = run("check", "zero.yaml", "mig.yaml", "-o", "concise", cwd=tmp_path)
    assert done.code == 1
    assert [line.split("] ")[0] for line in done.out.splitlines()] == [
        "mig.yaml:8:20: error[GPU632",
        "zero.yaml:2:1: error[GPU002",
    ]


def test_a_device_without_end_is_a_finding(tmp_path: Path) -> None:
    done = run("check", "/dev/zero", "-o", "concise", cwd=tmp_path)
    assert (done.code, done.out[:30]) == (1, "/dev/zero:1:1: error[GPU002] c")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("missing.yaml",), "missing.yaml"),
        (("empty",), "there is no file below `empty` that ends in .yaml, .yml, .json"),
        (("a.yaml", "--gpu", "H1000"), "H1000"),
        (("a.yaml", "--kubernetes", "1.99"), "there are no schemas for Kubernetes 1.99"),
    ],
)
def test_what_cannot_be_read_is_trouble(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "a.yaml").write_text(PLUGIN)
    done = run("check", *arguments, cwd=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


@pytest.mark.parametrize("nested", ["[" * 100_000, "[" * 100_000 + "]" * 100_000, '["]",' * 100_000, "{a: " * 100_000])
def test_a_file_within_a_value_that_nests_too_deep_is_a_finding(tmp_path: Path, nested: str) -> None:
    config = {"config.yaml": f"version: v1\nmig-configs: {nested}\n"}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}, "data": config}
    (tmp_path / "a.json").write_text(json.dumps(body, indent=1))

    done = spawn("check", "a.json", cwd=tmp_path)  # what overflows the stack ends the process

    assert done.code == 1
    assert "GPU632" in done.out
    assert "line 2 of the text cannot be parsed: values are nested more than 64 levels deep" in done.out
