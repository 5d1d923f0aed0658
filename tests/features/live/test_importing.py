"""What an import writes, and what it leaves as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuplan.compiler.base.diagnostics import GpuplanError, SourceFile
from gpuplan.compiler.documents import find_ignores
from gpuplan.compiler.pipeline import validate
from gpuplan.features.live.drafts import Draft, files_of, text_of
from gpuplan.features.live.importing import adopt, write_import

NODES = {
    "nodes.yaml": b"""
apiVersion: v1
kind: Node
metadata: {name: cpu-1}
status: {nodeInfo: {kubeletVersion: v1.33.2}}
"""
}
CLASS = """\
apiVersion: gpuplan.dev/v1
kind: PriorityClass
metadata: {name: late}
spec: {value: 10}
"""


def written(root: Path, path: str, text: str) -> Path:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)
    return root


def texts(root: Path) -> dict[str, str]:
    return {path.relative_to(root).as_posix(): path.read_text() for path in root.rglob("*") if path.is_file()}


def test_the_same_dump_twice_writes_nothing_the_second_time(tmp_path: Path) -> None:
    first = adopt(NODES, tmp_path, "lab")
    write_import(first, tmp_path)

    second = adopt(NODES, tmp_path, "lab")

    assert set(first.files) == {"overlays/lab/cluster.yaml"}
    assert second.files == {}
    assert second.same == ("Cluster lab",)


def test_policies_that_say_something_else_are_not_touched(tmp_path: Path) -> None:
    write_import(adopt(NODES, tmp_path, "lab"), tmp_path)
    path = tmp_path / "overlays/lab/cluster.yaml"
    path.write_text(path.read_text() + "  taintPools: true\n")

    with pytest.raises(GpuplanError, match="policies that say something else"):
        adopt(NODES, tmp_path, "lab")


def test_a_merge_adds_what_is_missing_and_tells_of_the_rest(tmp_path: Path) -> None:
    write_import(adopt(NODES, tmp_path, "lab"), tmp_path)
    path = tmp_path / "overlays/lab/cluster.yaml"
    path.write_text(path.read_text() + "  taintPools: true\n")

    merged = adopt(NODES, tmp_path, "lab", merges=True)

    assert merged.files == {}
    assert [item.path for item in merged.differing] == ["overlays/lab/cluster.yaml"]


def test_what_the_bases_have_and_the_cluster_lacks_is_taken_away_from_it(tmp_path: Path) -> None:
    written(tmp_path, "policies/classes.yaml", CLASS)

    imported = adopt(NODES, tmp_path, "lab")
    write_import(imported, tmp_path)

    assert "overlays/lab/not-here.yaml" in imported.files
    (plan,) = validate(tmp_path, ["lab"], kustomize="off").plans
    assert plan.priority_classes == ()


def test_a_document_of_the_bases_says_for_a_second_cluster_what_that_has_alone(tmp_path: Path) -> None:
    """An overlay is merged over its base: what the cluster lacks of the base must be `null` there."""
    live = b"""
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: late}
value: 20
"""
    written(tmp_path, "policies/classes.yaml", CLASS.replace("value: 10", "value: 10, description: for later"))

    made = adopt({**NODES, "classes.yaml": live}, tmp_path, "lab")

    [found] = [item for item in made.report.plans[0].priority_classes if item.name == "late"]
    assert (found.spec.value, found.spec.description or "") == (20, "")


def test_a_cluster_that_nobody_names_is_trouble(tmp_path: Path) -> None:
    with pytest.raises(GpuplanError, match="does not say what the cluster is called"):
        adopt(NODES, tmp_path)


@pytest.mark.parametrize("name", ["../x", "A", "a/b", "x" * 64, "-a"])
def test_a_name_that_no_cluster_can_have_is_trouble(name: str, tmp_path: Path) -> None:
    with pytest.raises(GpuplanError, match="cannot be a cluster"):
        adopt(NODES, tmp_path, name)


@pytest.mark.parametrize("name", ["../../etc/passwd", "..", "a/b", "\n", ""])
def test_no_name_in_a_dump_leads_out_of_its_folder(name: str) -> None:
    (path,) = files_of([Draft("Pool", name, {})], "lab", shares=True)
    folder, _, file = path.rpartition("/")
    assert folder == "overlays/lab/pools"
    assert not file.startswith("..")


def test_what_clusters_may_share_is_a_base_of_the_first_one() -> None:
    drafts = [Draft("MigLayout", "small", {}), Draft("Pool", "a", {}), Draft("Cluster", "lab", {})]
    assert set(files_of(drafts, "lab", shares=True)) == {
        "policies/layouts/small.yaml",
        "overlays/lab/pools/a.yaml",
        "overlays/lab/cluster.yaml",
    }
    assert "overlays/lab/layouts/small.yaml" in files_of(drafts, "lab", shares=False)


def test_two_documents_of_one_name_are_both_written() -> None:
    drafts = [Draft("Pool", "a", {"gpu": "A100-80GB"}), Draft("Pool", "a", {"gpu": "H100-SXM5-80GB"})]
    (text,) = files_of(drafts, "lab", shares=True).values()
    assert text.count("kind: Pool") == 2


def test_a_document_says_where_it_is_from_and_what_it_leaves_out() -> None:
    sources = tuple(f"Node `gpu-{number}` (nodes.yaml)" for number in range(40))
    text = text_of(Draft("Pool", "a", {"gpu": "A100-80GB"}, sources, ("the taint\n`x` has no effect",)))
    head = text[: text.index("apiVersion")]
    assert head.startswith("# From nodes.yaml: Node `gpu-0`, Node `gpu-1`, ")
    assert " and 36 more." in head
    assert "# - the taint `x` has no effect\n" in head
    assert all(line.startswith("# ") and len(line) <= 120 for line in head.splitlines())


def test_no_comment_of_a_dump_is_an_instruction() -> None:
    name = "a # gpuplan: ignore[GPU120] so" + " it is" * 20 + " gpuplan: ignore[GPU120] so $schema=https://example.com"
    text = text_of(Draft("Pool", "a", {}, (f"Node `{name}` (a.yaml)",), (f"see `{name}`",)))

    assert not find_ignores(SourceFile("", text))
    assert "gpuplan:" not in text
    assert "$schema=" not in text


@pytest.mark.parametrize("content", [b"", b"NAME STATUS\nnode-1 Ready\n", b"kind: List\napiVersion: v1\nitems: []\n"])
def test_nothing_is_made_of_nothing(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(GpuplanError, match="there is nothing in the dump"):
        adopt({"live.yaml": content}, tmp_path, "lab")


@pytest.mark.parametrize(
    ("content", "instead"),
    [
        (b"error: You must be logged in to the server (Unauthorized)\n", "`live.yaml` holds no object"),
        (CLASS.encode(), "it has 1 PriorityClass"),
    ],
)
def test_nothing_is_made_of_what_no_cluster_printed(tmp_path: Path, content: bytes, instead: str) -> None:
    with pytest.raises(GpuplanError, match=f"nothing in the dump that policies are made of: {instead}"):
        adopt({"live.yaml": content}, tmp_path, "lab")


def test_nothing_is_made_of_a_dump_of_which_a_part_cannot_be_read(tmp_path: Path) -> None:
    imported = adopt(NODES | {"cut.yaml": b"kind: [Node\n"}, tmp_path, "lab")
    assert [item.finding.at.locate().file.path for item in imported.report.diagnostics] == ["cut.yaml"]
    assert imported.files == {}
