"""What is read of a dump, and what is said of the rest."""

from __future__ import annotations

import json

import pytest

from gpuplan.features.live.dump import read_dump
from gpuplan.features.live.importing import unread

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}, "spec": {}}
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}, "data": {"password": "aHVudGVyMg=="}}


def a_list(*items: object) -> bytes:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).encode()


def test_objects_of_lists_are_read_one_by_one_and_secrets_never() -> None:
    dump, found = read_dump({"all.yaml": a_list(NODE, SECRET)})
    assert [item.title for item in dump.objects] == ["Node `a`"]
    assert str(dump.objects[0].at) == "items[0]"
    assert found == ()
    assert "aHVudGVyMg" not in repr(dump)


def test_a_list_of_one_kind_says_it_for_its_items() -> None:
    text = {"apiVersion": "v1", "kind": "NodeList", "items": [{"metadata": {"name": "a"}}]}
    dump, _ = read_dump({"nodes.json": json.dumps(text).encode()})
    assert [item.title for item in dump.of_kind("", "Node")] == ["Node `a`"]


def test_a_list_of_secrets_is_dropped_as_well() -> None:
    text = {"apiVersion": "v1", "kind": "SecretList", "items": [{"metadata": {"name": "a"}, "data": {"key": "eA=="}}]}
    dump, _ = read_dump({"secrets.json": json.dumps(text).encode()})
    assert dump.objects == ()


def test_the_fuller_of_two_that_agree_is_read() -> None:
    full = {**NODE, "spec": {"taints": []}}
    dump, found = read_dump({"git.yaml": a_list(NODE), "live.yaml": a_list(full)})
    assert [item.body["spec"] for item in dump.objects] == [{"taints": []}]
    assert found == ()


def test_two_that_disagree_are_a_finding_and_the_first_counts() -> None:
    other = {**NODE, "spec": {"unschedulable": True}}
    dump, found = read_dump({"one.yaml": a_list({**NODE, "spec": {"podCIDR": "x"}}), "two.yaml": a_list(other)})
    assert [item.body["spec"] for item in dump.objects] == [{"podCIDR": "x"}]
    assert [item.code for item in found] == ["GPU819"]
    assert found[0].finding.at.locate().file.path == "two.yaml"


def test_kinds_that_no_policy_says_are_counted() -> None:
    webhook = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "a"}}
    dump, _ = read_dump({"all.yaml": a_list(NODE, webhook, webhook | {"metadata": {"name": "b"}})})
    (note,) = unread(dump)
    assert note.code == "GPU818"
    assert note.finding.notes == ("these are 2 Gadgets",)


def test_a_list_that_is_cut_off_is_an_error() -> None:
    text = (
        b"apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata: {name: a}\n- apiVersion: v1\n  kind: No"
    )
    dump, (found,) = read_dump({"nodes.yaml": text})
    assert (found.code, found.is_error) == ("GPU818", True)
    assert found.finding.message == "the List has no `kind` beside `items`, as one that was cut off"
    assert dump.objects == ()


def test_yaml_that_is_too_large_is_asked_for_as_json() -> None:
    _, (found,) = read_dump({"nodes.yaml": b"apiVersion: v1\nitems:\n" + b"- {}\n" * 2**21 + b"kind: List\n"})
    assert (found.code, found.is_error) == ("GPU003", True)
    assert found.finding.help == "collect it as JSON, which may be larger: `-o json` in place of `-o yaml`"


def test_policies_are_told_apart_from_what_runs() -> None:
    pool = {"apiVersion": "gpuplan.dev/v1", "kind": "Pool", "metadata": {"name": "a"}, "spec": {}}
    dump, _ = read_dump({"all.yaml": a_list(NODE), "pools.yaml": json.dumps(pool).encode()})
    (note,) = unread(dump)
    assert note.code == "GPU818"
    assert note.finding.message == "1 document of the dump is a policy already"
    assert note.finding.at.locate().file.path == "pools.yaml"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"# nothing\n",
        b"No resources found\n",
        b"error: You must be logged in to the server (Unauthorized)\n",
        b"on: push\njobs: {a: {runs-on: b}}\n",
    ],
)
def test_a_file_of_which_nothing_is_read_is_named(content: bytes) -> None:
    dump, _ = read_dump({"all.yaml": a_list(NODE), "kueue.yaml": content})
    (note,) = unread(dump)
    assert note.code == "GPU818"
    assert note.finding.message == "nothing is read of `kueue.yaml`"
    assert note.finding.at.locate().file.path == "kueue.yaml"


@pytest.mark.parametrize(
    "content",
    [
        b"version: v1\nmig-configs: {a: [{devices: all, mig-enabled: false}]}\n",
        b"version: v1\nsharing: {timeSlicing: {resources: []}}\n",
        b"devicePlugin: {enabled: true}\n",
        b"clientVersion: {}\nserverVersion: {gitVersion: v1.34.1}\n",
        b"formatVersion: 1\nnodeGroups: []\n",
        b'{"name": "a", "labelKey": "b", "labelValue": "c"}',
        b"global: {gpuSharing: true}\n",
        b"# Values for the chart kueue, 0.14.0.\nmanagerConfig: {}\n",
        b"kind: List\napiVersion: v1\nitems: []\n",
    ],
)
def test_files_that_are_no_objects_are_read_all_the_same(content: bytes) -> None:
    dump, _ = read_dump({"all.yaml": a_list(NODE), "other.yaml": content})
    assert list(unread(dump)) == []


def test_a_dump_of_known_kinds_has_no_note() -> None:
    dump, _ = read_dump({"all.yaml": a_list(NODE)})
    assert list(unread(dump)) == []


def test_what_says_how_files_are_put_together_is_passed_over() -> None:
    text = b"apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [a.yaml]\n"
    dump, found = read_dump({"kustomization.yaml": text})
    assert (dump.objects, dump.others, found) == ((), (), ())


def test_json_beyond_what_a_policy_may_be_is_read() -> None:
    nodes = [{**NODE, "metadata": {"name": f"node-{number}"}} for number in range(100_000)]
    dump, found = read_dump({"nodes.json": a_list(*nodes)})
    assert len(dump.objects) == 100_000
    assert found == ()


@pytest.mark.parametrize(
    "line",
    [
        "Warning: v1 ComponentStatus is deprecated in v1.19+",
        "W1130 15:08:12.123456   12345 warnings.go:70] unknown field",
        "Error from server (Forbidden): secrets is forbidden",
        'error: the server doesn\'t have a resource type "clusterpolicies"',
    ],
)
def test_a_line_of_stderr_in_a_file_is_named(line: str) -> None:
    _, (found,) = read_dump({"nodes.json": f"{line}\n".encode() + a_list(NODE)})

    assert (found.code, found.is_error) == ("GPU818", True)
    assert found.finding.message == f"nodes.json has a line that kubectl wrote to stderr: `{line}`"
    assert found.finding.help == "run the command again without `2>&1`, or delete line 1"


def test_a_line_that_kubectl_printed_is_no_line_of_stderr() -> None:
    body = {**NODE, "metadata": {"name": "a", "annotations": {"note": "Warning: hot"}}}
    assert read_dump({"nodes.json": a_list(body)})[1] == ()


def namespace(uid: str, name: str = "kube-system") -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "uid": uid}}


def test_two_clusters_in_one_dump_are_an_error() -> None:
    _, (found,) = read_dump({"a.json": a_list(namespace("1")), "b.json": a_list(namespace("2"))})

    assert (found.code, found.is_error, found.finding.message) == ("GPU819", True, "the dump is of two clusters")
    assert found.finding.at.locate().file.path == "b.json"


@pytest.mark.parametrize("others", [[namespace("1")], [namespace("2", "team")], [{**namespace(""), "spec": {}}]])
def test_one_cluster_in_two_files_is_none(others: list[dict[str, object]]) -> None:
    _, found = read_dump({"a.json": a_list(namespace("1"), namespace("1", "team")), "b.json": a_list(*others)})
    assert [item.code for item in found if item.is_error] == []


def test_an_object_of_another_cluster_is_told_by_its_uid() -> None:
    nodes = [{**NODE, "metadata": {"name": "a", "uid": uid, "labels": {"zone": uid}}} for uid in ("1", "2")]

    _, (found,) = read_dump({"a.json": a_list(nodes[0]), "b.json": a_list(nodes[1])})

    assert found.code == "GPU819"
    assert "another cluster has the name, too" in found.finding.notes[0]
