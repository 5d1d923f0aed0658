"""`gpuplan init`: a starter that stands on its own."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from gpuplan.compiler.catalog import Gpu, load
from gpuplan.compiler.planning.placement.layouts import maximal_layouts
from gpuplan.terminal.schemas import schema
from tests.cli.runs import run, spawn
from tests.docs.pages import DOCS
from tests.git import a_repository, git


def a_starter(root: Path, *options: str) -> Path:
    assert run("init", str(root), "-q", *options).code == 0
    return root


@pytest.mark.parametrize("cluster", ["dev", "prod-1"])
def test_the_starter_validates_without_a_finding_and_builds(tmp_path: Path, cluster: str) -> None:
    root = a_starter(tmp_path, "--cluster", cluster)

    validated, built = run("validate", "--warnings-as-errors", cwd=root), run("build", cwd=root)

    assert (validated.code, validated.out) == (0, "")
    assert validated.err == "no findings in 4 files, 1 cluster\n"
    assert built.code == 0
    assert run("build", "--check", cwd=root).code == 0
    assert (root / f"out/{cluster}/kustomization.yaml").is_file()


def test_every_file_and_what_to_type_next_is_said(tmp_path: Path) -> None:
    done = run("init", "platform", cwd=tmp_path)

    assert (done.code, done.out) == (0, "")
    assert done.err.splitlines() == [
        "created files to edit:",
        "  platform/README.md",
        "  platform/overlays/dev/cluster.yaml  the program that syncs out/: `argocd` or `flux`",
        "  platform/policies/pools.yaml  the names of your nodes",
        "  platform/policies/priority-classes.yaml",
        "  platform/policies/tenants.yaml  groups and quotas of your teams",
        "created files for Git and editors:",
        "  platform/.gitattributes",
        "  platform/.gpuplan/policy.schema.json",
        "  platform/.gpuplan/overlay.schema.json",
        "  platform/.vscode/settings.json",
        "next:",
        "  cd platform",
        "  git init --initial-branch main",
        "  gpuplan validate",
        "  gpuplan show",
        "  gpuplan build",
        '  git add . && git commit -m "Describe our GPUs"',
    ]
    written = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert written == {line.split()[0] for line in done.err.splitlines() if line.startswith("  platform/")}


def test_the_version_and_the_repository_may_be_named(tmp_path: Path) -> None:
    root = a_starter(tmp_path, "--kubernetes=1.33", "--argocd=git@git.example.com:platform/gpus.git")

    spec = yaml.safe_load((root / "overlays/dev/cluster.yaml").read_text())["spec"]

    assert spec["kubernetes"] == "1.33"
    assert spec["argocd"] == {"repoURL": "git@git.example.com:platform/gpus.git"}


@pytest.mark.parametrize(
    ("option", "instead"),
    [
        ("--kubernetes=v1.33", 'write "1.33"'),
        ("--kubernetes=1.2", 'write one from "1.25" to '),
        ("--argocd=../gpus", "write it as `argocd repo list` shows it"),
        ("--argocd=https://git.example.com/all.git@main", "`https://git.example.com/all.git`, and `revision: main`"),
    ],
)
def test_a_wrong_version_or_address_is_told_before_anything_is_written(
    option: str, instead: str, tmp_path: Path
) -> None:
    done = run("init", "platform", option, cwd=tmp_path)

    assert (done.code, done.out) == (2, "")
    assert instead in done.err
    assert not [*tmp_path.iterdir()]


def test_a_model_may_be_named_without_its_memory_if_there_is_one_alone(tmp_path: Path) -> None:
    assert pools_of(a_starter(tmp_path, "--pool=one=2x4xL4"))["one"]["gpu"] == "L4-24GB"

    with_profile = a_starter(tmp_path / "mig", "--pool=one=2x4xA100:mig=3g.40gb+2g.20gb:2")
    assert pools_of(with_profile)["one"]["gpu"] == "A100-80GB"
    done = run("init", "other", "--pool=one=2x4xA100", cwd=tmp_path)

    assert (done.code, "one=2x4xA100-80GB`" in done.err, "one=2x4xA100-40GB`" in done.err) == (2, True, True)


def test_the_attributes_of_others_stay_and_a_line_says_what_to_add(tmp_path: Path) -> None:
    (tmp_path / ".gitattributes").write_text("* text=auto\n")

    done = run("init", ".", cwd=tmp_path)

    assert done.code == 0
    assert (
        done.err.partition("next:")[0].splitlines()[-1]
        == "add `out/** -text` to .gitattributes, so that Git changes no line ends there"
    )
    assert (tmp_path / ".gitattributes").read_text() == "* text=auto\n"


def next_steps(words: str) -> list[str]:
    return [line.strip() for line in words.partition("next:\n")[2].splitlines()]


def test_here_needs_no_cd(tmp_path: Path) -> None:
    assert next_steps(run("init", ".", cwd=tmp_path).err)[0] == "git init --initial-branch main"


def test_a_repository_needs_no_git_init(tmp_path: Path) -> None:
    a_repository(tmp_path)

    assert next_steps(run("init", "platform", cwd=tmp_path).err)[:2] == ["cd platform", "gpuplan validate"]


def test_a_folder_of_a_repository_is_named_to_argo_cd_with_the_branch(tmp_path: Path) -> None:
    git(a_repository(tmp_path), "checkout", "--quiet", "-b", "trunk")
    url = "https://git.example.com/platform/all.git"

    root = a_starter(tmp_path / "teams/gpus", f"--argocd={url}")
    argocd = yaml.safe_load((root / "overlays/dev/cluster.yaml").read_text())["spec"]["argocd"]
    assert argocd == {"repoURL": url, "revision": "trunk", "path": "teams/gpus/out"}
    assert run("validate", "--warnings-as-errors", cwd=root).out == ""

    text = (a_starter(tmp_path / "other") / "overlays/dev/cluster.yaml").read_text()
    assert text.endswith(
        "  #   revision: trunk\n  #   path: other/out  # this folder is not the top of the repository\n"
    )


def test_the_commands_of_the_first_sync_are_those_of_the_documentation(tmp_path: Path) -> None:
    url = "https://git.example.com/platform/gpus.git"

    steps = next_steps(run("init", "my-platform", "--cluster=prod", f"--argocd={url}", cwd=tmp_path).err)

    commits = steps.index('git add . && git commit -m "Describe our GPUs"')
    page = [line.removeprefix("$ ").strip() for line in (DOCS / "start.md").read_text().splitlines()]
    sync = steps[commits + 1 :]
    assert [line for line in sync if line not in page] == []
    assert (len(sync), sync[0], sync[-1]) == (
        *(7, f"git remote add origin {url}"),
        "--project default --sync-policy automated --sync-retry-limit 5 --sync-retry-refresh",
    )
    assert next_steps(run("init", "other", cwd=tmp_path).err)[-1].startswith("git add . && git commit")


def test_the_commands_of_the_first_sync_name_the_folder_and_the_branch(tmp_path: Path) -> None:
    git(a_repository(tmp_path), "checkout", "--quiet", "-b", "trunk")
    url = "https://git.example.com/platform/all.git"

    steps = next_steps(run("init", "gpus", f"--argocd={url}", cwd=tmp_path).err)

    assert steps[-6:-2] == [
        "git push",
        "kubectl patch configmap argocd-cm -n argocd --type merge --patch-file out/argocd/dev/argocd-cm.yaml",
        "argocd app create gpuplan-dev \\",
        f"--repo {url} --revision trunk --path gpus/out/argocd/dev \\",
    ]


def test_a_schema_is_one_line_and_reviews_hide_it(tmp_path: Path) -> None:
    root = a_starter(tmp_path)

    texts = [path.read_text() for path in sorted((root / ".gpuplan").iterdir())]
    assert [text.count("\n") for text in texts] == [1, 1]
    assert [json.loads(text) for text in texts] == [schema("overlay"), schema("policy")]
    assert "out/** -text\n.gpuplan/** linguist-generated\n" in (root / ".gitattributes").read_text()


def test_the_way_to_a_folder_with_a_space_can_be_typed(tmp_path: Path) -> None:
    assert next_steps(run("init", "my platform", cwd=tmp_path).err)[0] == "cd 'my platform'"


@pytest.mark.parametrize("folder", ["taken", "taken/platform"])
def test_a_file_is_no_folder(tmp_path: Path, folder: str) -> None:
    (tmp_path / "taken").touch()

    done = run("init", folder, cwd=tmp_path)

    assert done.code == 2
    assert done.err == (
        "error: cannot make a folder of `taken`: it is a file\n  = help: name another: `gpuplan init my-platform`\n"
    )


def test_a_folder_that_nobody_may_write_into_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)  # root may write everywhere

    done = run("init", "platform", cwd=tmp_path)

    assert done.code == 2
    assert "cannot make a folder of `.`: you may not write there" in done.err


@pytest.mark.parametrize("folder", ["policies", "overlays", "overlays/prod", ".gpuplan"])
def test_nothing_is_written_beside_a_platform(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir(parents=True)

    done = run("init", str(tmp_path))

    assert (done.code, done.out) == (2, "")
    assert f"{folder.split('/', maxsplit=1)[0]}` exists already, so nothing was written" in done.err
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_link_that_leads_nowhere_is_no_room(tmp_path: Path) -> None:
    (tmp_path / "policies").symlink_to("nowhere")

    assert run("init", str(tmp_path)).code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["policies"]


def test_the_readme_of_a_new_repository_stays(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine\n")

    done = run("init", str(tmp_path))

    assert done.code == 0
    assert "README.md" not in done.err
    assert (tmp_path / "README.md").read_text() == "mine\n"
    assert (tmp_path / "policies/pools.yaml").is_file()


@pytest.mark.parametrize("name", ["Prod", "a/b", "..", "-x", ""])
def test_a_cluster_name_must_be_one(tmp_path: Path, name: str) -> None:
    assert run("init", str(tmp_path), f"--cluster={name}").code == 2
    assert list(tmp_path.iterdir()) == []


STARTER = (
    "overlays/dev/cluster.yaml",
    "policies/pools.yaml",
    "policies/priority-classes.yaml",
    "policies/tenants.yaml",
)
MODELINE = re.compile(r"# yaml-language-server: \$schema=(\S+)\n")
"""What the YAML language server reads at the head of a document, for this document alone."""


@pytest.mark.parametrize("name", STARTER)
def test_the_modeline_of_each_document_leads_to_a_schema_that_accepts_it(tmp_path: Path, name: str) -> None:
    path = a_starter(tmp_path) / name
    for document in path.read_text().split("\n---\n"):
        modeline = MODELINE.match(document)
        assert modeline is not None

        validator = jsonschema.Draft7Validator(json.loads((path.parent / modeline[1]).read_text()))

        assert [error.message for error in validator.iter_errors(yaml.safe_load(document))] == []


def test_an_editor_finds_the_schema_of_every_policy(tmp_path: Path) -> None:
    root = a_starter(tmp_path)
    schemas = json.loads((root / ".vscode/settings.json").read_text())["yaml.schemas"]

    assert schemas == {
        ".gpuplan/policy.schema.json": ["policies/**/*.yaml", "policies/**/*.yml"],
        ".gpuplan/overlay.schema.json": ["overlays/**/*.yaml", "overlays/**/*.yml", "!overlays/*/kustomize/**"],
    }
    assert all((root / schema).is_file() for schema in schemas)


def test_an_editors_settings_stay(tmp_path: Path) -> None:
    (tmp_path / ".vscode").mkdir()
    (tmp_path / ".vscode/settings.json").write_text("{}\n")

    assert run("init", str(tmp_path)).code == 0
    assert (tmp_path / ".vscode/settings.json").read_text() == "{}\n"


def test_a_process_ends_as_told(tmp_path: Path) -> None:
    assert spawn("init", "platform", cwd=tmp_path).code == 0
    assert spawn("init", "platform", cwd=tmp_path).code == 2


def test_guarantees_hold_while_one_node_of_several_is_away(tmp_path: Path) -> None:
    root = a_starter(tmp_path, "--pool=one=4x8xA100-80GB:mig=3g.40gb+2g.20gb:2", "--pool=two=1x8xL4-24GB")

    plan = json.loads(run("show", "-o", "json", cwd=root).out)["clusters"][0]

    shown = {(pool["name"], unit["name"]): unit["capacity"] for pool in plan["pools"] for unit in pool["units"]}
    quotas = [
        quota
        for document in yaml.safe_load_all((root / "policies/tenants.yaml").read_text())
        for quota in document["spec"]["quotas"]
    ]
    assert shown == {("one", "3g.40gb"): 32, ("one", "2g.20gb"): 64, ("two", "gpu"): 8}
    assert [(quota["guaranteed"], quota["limit"]) for quota in quotas] == [(48, 64), (24, 32), (6, 8)]


def test_the_overlay_changes_no_pool_and_no_tenant(tmp_path: Path) -> None:
    documents = yaml.safe_load_all((a_starter(tmp_path) / "overlays/dev/cluster.yaml").read_text())

    assert [document["kind"] for document in documents] == ["Cluster"]


def test_the_cluster_says_what_the_operator_installs(tmp_path: Path) -> None:
    operator = yaml.safe_load((a_starter(tmp_path) / "overlays/dev/cluster.yaml").read_text())["spec"]["gpuOperator"]

    assert (operator["driver"], operator["nfd"]) == ({"enabled": True}, True)


# --- Pools of one's own -------------------------------------------------------------------------------------------


def pools_of(root: Path) -> dict[str, dict[str, Any]]:
    documents = yaml.safe_load_all((root / "policies/pools.yaml").read_text())
    return {document["metadata"]["name"]: document["spec"] for document in documents if document["kind"] == "Pool"}


def test_each_option_is_a_pool_with_a_tenant(tmp_path: Path) -> None:
    pools = ["research=2x8xA100-80GB:time-slicing=3", "training=4x4xH200-141GB"]
    root = a_starter(tmp_path, "--cluster", "prod", *(f"--pool={pool}" for pool in pools))

    assert pools_of(root) == {
        "research": {
            "gpu": "A100-80GB",
            "nodes": {"count": 2, "gpusPerNode": 8, "namePattern": "research-[0-9]+"},
            "sharing": {"timeSlicing": {"replicas": 3}},
        },
        "training": {
            "gpu": "H200-141GB",
            "nodes": {"count": 4, "gpusPerNode": 4, "namePattern": "training-[0-9]+"},
            "sharing": {"exclusive": {}},
        },
    }
    tenants = list(yaml.safe_load_all((root / "policies/tenants.yaml").read_text()))
    assert [tenant["spec"]["quotas"] for tenant in tenants] == [
        [{"pool": "research", "guaranteed": 24, "limit": 48}],
        [{"pool": "training", "guaranteed": 12, "limit": 16}],
    ]


@pytest.mark.parametrize(
    ("layout", "instances"),
    [
        ("all-1g.10gb", {"1g.10gb": 7}),
        ("all-1g.10gb.me", {"1g.10gb+me": 1}),
        ("all-balanced", {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}),
        ("3g.40gb+2g.20gb:2", {"3g.40gb": 1, "2g.20gb": 2}),
        ("1g.10gb+me+2g.20gb", {"1g.10gb+me": 1, "2g.20gb": 1}),
        ("3g.40gb+3g.40gb", {"3g.40gb": 2}),
    ],
)
def test_a_layout_is_one_of_nvidias_or_its_instances(tmp_path: Path, layout: str, instances: dict[str, int]) -> None:
    root = a_starter(tmp_path, f"--pool=a=1x8xH100-80GB:mig={layout}")

    assert pools_of(root)["a"]["sharing"] == {"mig": {"instances": instances}}


MODELS = [gpu for gpu in load().all() if gpu.id != "THOR-IGPU"]  # on which the GPU Operator does not run
WITHOUT_MIG_BY_DEFAULT = {"GB200-186GB", "GB300-278GB", "GH200-144GB", "H100-96GB"}
"""The models of Grace systems, whose drivers refuse MIG until a module parameter says otherwise (GPU614)."""


def findings_of(root: Path) -> set[str]:
    return set(re.findall(r"^[a-z]+\[(GPU[0-9]+)\]", run("validate", cwd=root).out, re.MULTILINE))


def with_pools(root: Path, gpu: Gpu, sharings: Sequence[str]) -> Path:
    return a_starter(root, *(f"--pool=p{index}=2x4x{gpu.id}:{sharing}" for index, sharing in enumerate(sharings)))


@pytest.mark.parametrize("gpu", MODELS, ids=[gpu.id for gpu in MODELS])
def test_every_sharing_of_every_model_validates_without_a_finding_and_builds(tmp_path: Path, gpu: Gpu) -> None:
    whole = with_pools(tmp_path / "whole", gpu, ["exclusive", "time-slicing=4"])
    by_mps = with_pools(tmp_path / "mps", gpu, ["exclusive", "mps=4"])

    assert (findings_of(whole), findings_of(by_mps)) == (set(), set())
    assert (run("build", cwd=whole).code, run("build", cwd=by_mps).code) == (0, 0)


@pytest.mark.parametrize("gpu", [gpu for gpu in MODELS if gpu.profiles], ids=lambda gpu: gpu.id)
def test_every_layout_of_every_model_validates_without_a_finding_and_builds(tmp_path: Path, gpu: Gpu) -> None:
    layouts = ["+".join(f"{name}:{count}" for name, count in layout.items()) for layout in maximal_layouts(gpu)]
    stock = ["all-balanced", *(f"all-{profile.resource_suffix}" for profile in gpu.profiles)]
    root = with_pools(tmp_path / "mig", gpu, [f"mig={layout}" for layout in (*stock, *layouts)])

    assert findings_of(root) == ({"GPU614"} if gpu.id in WITHOUT_MIG_BY_DEFAULT else set())
    assert run("build", cwd=root).code == 0


@pytest.mark.parametrize(
    ("pool", "message", "hint"),
    [
        ("a=2x8", "`--pool a=2x8` is not NAME=NODESxGPUSxMODEL[:SHARING]", "--pool research=2x8xA100-80GB`"),
        ("a=T4-16GBx8x2:mps=4", "is not NAME=NODESxGPUSxMODEL", "--pool a=2x8xT4-16GB:mps=4`"),
        ("a=T4-16GBx8", "is not NAME=NODESxGPUSxMODEL", "--pool a=1x8xT4-16GB`"),
        ("2x8xT4", "is not NAME", "--pool t4=2x8xT4-16GB`"),
        ("a=2,8,T4", "is not NAME", "--pool a=2x8xT4-16GB`"),
        ("a=4xA100:mig", "is not NAME", "a=4x8xA100-80GB:mig=all-1g.10gb`"),
        ("a=2x8xA100:timeslicing=4", "no GPU model `A100`", "--pool a=2x8xA100-80GB:time-slicing=4`"),
        ("a=2x8xB9", "no GPU model `B9` in the catalog", "`gpuplan catalog` lists the models"),
        ("a=2x8xA100-80GB:mig=3g.40gb,2g.20gb", "is no layout of A100-80GB", "joined by `+`: `mig=3g.40gb+2g.20gb`"),
        ("a=2x8xA100-80GB:mig=2x2g.20gb 3g.40gb=1", "is no layout", "`mig=2g.20gb:2+3g.40gb`"),
        ("a=2x8xA100-80GB:mig=3g.40gb,2g.24gb", "is no layout of A100-80GB", "there are `mig=all-1g.10gb`"),
        ("a=2x8xA100:mig=all-balanced", "no GPU model `A100`", "a=2x8xA100-80GB:mig=all-balanced`"),
        ("A=1x8xT4-16GB", "with a name in lower case", "--pool a=1x8xT4-16GB`"),
        ("a=8xT4", "is not NAME", "8 nodes with 8 GPUs each: `gpuplan init"),
        ("a=8xT4", "is not NAME", "1 node with 8 GPUs: `gpuplan init"),
        ("a=20xT4", "is not NAME", "20 nodes with 8 GPUs each: `gpuplan init"),
        ("a=8xA100", "is not NAME", "a=1x8xA100-40GB` or `gpuplan init"),
        ("a=8xA100:mig=3g.40gb", "is not NAME", "a=1x8xA100-80GB:mig=3g.40gb`"),
        ("a=8xA100:mps", "is not NAME", "`mps` does not say how many share a GPU: for four: `mps=4`"),
        ("a=1x8xA100-80G", "no GPU model `A100-80G` in the catalog", "--pool a=1x8xA100-80GB`"),
        ("a=1x8xT4-16GB:foo=4", "`foo=4` is not a way to share GPUs", "time-slicing=N"),
        ("a=1x8xT4-16GB:mps", "`mps` does not say how many share a GPU", "`mps=4`"),
        ("a=1x8xT4-16GB:mps=99", "Pool `a` would have an error: MPS cannot divide one T4-16GB into 99", "48"),
        ("a=1x8xT4-16GB:mig=all-1g", "`mig=all-1g` is no layout of T4-16GB", "write exclusive, time-slicing=N"),
        ("a=1x8xA30-24GB:mig=two-large", "`mig=two-large` is no layout of A30-24GB", "`mig=all-1g.6gb`"),
        ("a=1x8xA100-40GB:mig=20gb+5gb:4", "no layout of A100-40GB", "sizes: `mig=3g.20gb+1g.5gb:4`"),
        ("a=1x8xA100-80GB:mig=40GB+20GB:2", "no layout of A100-80GB", "sizes: `mig=3g.40gb+2g.20gb:2`"),
        ("a=1x8xA100-80GB:mig=40gb+40gb", "no layout of A100-80GB", "sizes: `mig=3g.40gb:2`"),
        ("a=1x8xA100-80GB:mig=20gb:4", "no layout of A100-80GB", "sizes: `mig=1g.20gb:4`"),
        ("a=1x8xA100-80GB:mig=20gb+30gb", "no layout of A100-80GB", "there are `mig=all-1g.10gb`"),
        ("a=1x8xA100-80GB:mig=1g.5gb", "`1g.5gb` is not a profile of A100-80GB", "`1g.10gb`"),
        ("a=1x8xA100-80GB:mig=3g.40gb+2g.20gb:3", "does not fit on A100-80GB", "`{3g.40gb: 1, 2g.20gb: 2}`"),
        ("gpu-operator=1x8xT4-16GB", "Tenant `gpu-operator` would have an error", "`team-gpu-operator`"),
    ],
)  # fmt: skip
def test_a_wrong_pool_is_refused_with_what_to_type(tmp_path: Path, pool: str, message: str, hint: str) -> None:
    done = run("init", str(tmp_path), f"--pool={pool}")

    error, _, help_ = done.err.partition("\n  = help: ")
    assert done.code == 2
    assert message in error
    assert hint in help_
    assert list(tmp_path.iterdir()) == []


def test_two_pools_of_one_name_are_refused(tmp_path: Path) -> None:
    done = run("init", str(tmp_path), "--pool=a=1x8xT4-16GB", "--pool=a=2x8xT4-16GB")

    assert (done.code, list(tmp_path.iterdir())) == (2, [])
    assert "Pool `a` is defined twice" in done.err


def test_names_that_yaml_takes_for_something_else_stay_names(tmp_path: Path) -> None:
    names = ("007", "1e3", "no")
    root = a_starter(tmp_path, "--cluster=12", *(f"--pool={name}=1x1xT4-16GB" for name in names))

    assert list(pools_of(root)) == [*names]
    assert run("validate", cwd=root).code == 0


# --- Pools of nodes that are there --------------------------------------------------------------------------------


def a_node(name: str, product: str, published: dict[str, str], **labels: str) -> dict[str, Any]:
    own = {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.product": product, "nvidia.com/gpu.count": "8"}
    shown = {f"nvidia.com/{label.replace('__', '-').replace('_', '.')}": value for label, value in labels.items()}
    status = {"nodeInfo": {"kubeletVersion": "v1.33.2"}, "allocatable": published}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": own | shown}, "status": status}


A100 = "NVIDIA-A100-SXM4-80GB"
NODES = [
    a_node("gpu-1", A100, {"nvidia.com/gpu": "8"}),
    a_node("gpu-2", A100, {"nvidia.com/gpu": "8"}),
    a_node("gpu-3", A100, {"nvidia.com/mig-1g.10gb": "56"}, mig_config="all-1g.10gb", mig_strategy="mixed"),
    a_node("t4-1", "Tesla-T4", {"nvidia.com/gpu.shared": "32"}, gpu_replicas="4", gpu_sharing__strategy="time-slicing"),
    a_node("t4-2", "Tesla-T4", {"nvidia.com/gpu": "8"}, gpu_replicas="1", gpu_sharing__strategy="none"),
    {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "cpu-1", "labels": {}}, "status": {}},
]


def a_list(folder: Path, *nodes: dict[str, Any]) -> str:
    (folder / "nodes.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": nodes}))
    return str(folder / "nodes.json")


def test_equal_nodes_are_a_pool_shared_as_their_labels_show(tmp_path: Path) -> None:
    root = a_starter(tmp_path / "platform", "--cluster=prod", "--nodes", a_list(tmp_path, *NODES))

    pools = pools_of(root)
    assert {name: (pool["gpu"], pool["nodes"]["names"]) for name, pool in pools.items()} == {
        "a100-sxm4-80gb": ("A100-80GB", ["gpu-1", "gpu-2"]),
        "a100-sxm4-80gb-all-1g-10gb": ("A100-80GB", ["gpu-3"]),
        "tesla-t4": ("T4-16GB", ["t4-1"]),
        "tesla-t4-2": ("T4-16GB", ["t4-2"]),
    }
    assert {name: pool["sharing"] for name, pool in pools.items()} == {
        "a100-sxm4-80gb": {"exclusive": {}},
        "a100-sxm4-80gb-all-1g-10gb": {"mig": {"layout": "all-1g-10gb"}},
        "tesla-t4": {"timeSlicing": {"replicas": 4}},
        "tesla-t4-2": {"exclusive": {}},
    }
    spec = yaml.safe_load((root / "overlays/prod/cluster.yaml").read_text())["spec"]
    assert (spec["kubernetes"], spec["gpuOperator"]["install"]) == ("1.33", "external")
    assert run("validate", "--warnings-as-errors", cwd=root).err == "no findings in 4 files, 1 cluster\n"
    assert run("build", cwd=root).code == 0


def test_nodes_with_mps_have_a_release_of_the_operator_with_which_it_works(tmp_path: Path) -> None:
    labels = {"gpu_replicas": "2", "gpu_sharing__strategy": "mps"}
    nodes = a_list(tmp_path, a_node("l4-1", "NVIDIA-L4", {"nvidia.com/gpu.shared": "16"}, **labels))
    root = a_starter(tmp_path / "platform", "--nodes", nodes)

    assert pools_of(root)["l4"]["sharing"] == {"mps": {"replicas": 2}}
    assert run("validate", "--warnings-as-errors", cwd=root).err == "no findings in 4 files, 1 cluster\n"


def test_nodes_of_a_cloud_are_chosen_by_their_group(tmp_path: Path) -> None:
    node = a_node("ip-10-0-0-1", A100, {"nvidia.com/gpu": "8"})
    node["metadata"]["labels"]["eks.amazonaws.com/nodegroup"] = "train"
    root = a_starter(tmp_path / "platform", "--nodes", a_list(tmp_path, node))

    assert pools_of(root)["train"]["nodes"]["selector"] == {"eks.amazonaws.com/nodegroup": "train"}
    assert run("validate", "--warnings-as-errors", cwd=root).code == 0


@pytest.mark.parametrize(
    ("nodes", "message", "hint"),
    [
        ([], "lists no node", "`kubectl get nodes -o json`"),
        (NODES[-1:], "no node shows its GPU model", "--pool research=2x8xA100-80GB"),
        ([a_node("new-1", "NVIDIA-X900", {})], "which the catalog lacks", "no node shows its GPU"),
    ],
)
def test_nodes_without_a_known_gpu_are_refused(
    tmp_path: Path, nodes: list[dict[str, Any]], message: str, hint: str
) -> None:
    done = run("init", str(tmp_path / "platform"), "--nodes", a_list(tmp_path, *nodes))

    assert done.code == 2
    assert message in done.err
    assert hint in done.err
    assert not (tmp_path / "platform").exists()


@pytest.mark.parametrize("options", [("--cluster", "dev,prod"), ("--cluster", "dev", "--cluster", "prod")])
def test_two_clusters_at_once_are_refused_with_what_to_type(options: Sequence[str], tmp_path: Path) -> None:
    done = run("init", *options, cwd=tmp_path)

    assert done.code == 2
    assert "type `--cluster dev`, then `cp -r overlays/dev overlays/prod`" in " ".join(done.err.split())
    assert list(tmp_path.iterdir()) == []


def test_a_name_in_other_letters_is_spelt_as_it_may_be(tmp_path: Path) -> None:
    assert "Type `--cluster prod-1`." in run("init", "--cluster", "Prod_1", cwd=tmp_path).err


def test_a_cluster_for_a_platform_that_is_there_is_copied(tmp_path: Path) -> None:
    root = a_starter(tmp_path, "--cluster", "prod")

    added, known = (run("init", ".", "--cluster", name, cwd=root) for name in ("staging", "prod"))

    assert added.code == known.code == 2
    way = (
        "type `mkdir -p overlays/staging && cp overlays/prod/cluster.yaml overlays/staging/`, and write `name: staging`"
    )
    assert way in " ".join(added.err.split())
    assert "change the platform that is there" in known.err
    assert "mkdir" not in known.err


def test_all_pools_that_are_wrong_are_said_at_once(tmp_path: Path) -> None:
    done = run("init", "--pool", "a=1x8xB9", "--pool", "c", "--pool", "d=1x8xA100-80GB", cwd=tmp_path)

    assert done.code == 2
    assert "no GPU model `B9` in the catalog; `--pool c` is not NAME=" in " ".join(done.err.split())
    assert list(tmp_path.iterdir()) == []
