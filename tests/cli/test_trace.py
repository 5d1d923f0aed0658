"""`gpuplan trace`."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from gpuplan.terminal.schemas import schema
from tests.cli.platforms import a_broken_platform, a_platform
from tests.cli.runs import run

QUOTA = "out/dev/namespaces/research/resourcequota-gpuplan.yaml"


def test_a_line_of_what_is_written_is_traced_to_the_policy(tmp_path: Path) -> None:
    root = a_platform(tmp_path)
    run("build", cwd=root)

    done = run("trace", f"{QUOTA}:13", cwd=root)

    assert (done.code, done.err) == (0, "")
    assert '  13  spec.hard["requests.nvidia.com/gpu.shared"] = 16\n' in done.out
    assert "copied      policies/tenant.yaml:10  Tenant research spec.quotas[0].guaranteed\n" in done.out


def test_an_object_is_told_by_its_names(tmp_path: Path) -> None:
    root = a_platform(tmp_path, "dev", "prod")

    both = run("trace", "ResourceQuota/research/gpuplan", "spec.hard", "-o", "json", cwd=root)
    one = run("trace", "-c", "prod", "resourcequota/research/gpuplan", "-o", "json", cwd=root)

    assert {line["cluster"] for line in json.loads(both.out)["lines"]} == {"dev", "prod"}
    assert {line["cluster"] for line in json.loads(one.out)["lines"]} == {"prod"}


@pytest.mark.parametrize("target", [QUOTA, "policies/tenant.yaml", "policies/tenant.yaml:10", "Tenant/research"])
def test_json_keeps_its_contract_and_yaml_says_the_same(tmp_path: Path, target: str) -> None:
    root = a_platform(tmp_path)

    done = run("trace", target, "-o", "json", cwd=root)

    body = json.loads(done.out)
    jsonschema.validate(body, schema("trace"))
    assert body["lines"]
    assert yaml.safe_load(run("trace", target, "-o", "yaml", cwd=root).out) == body


def test_a_line_of_a_policy_leads_to_what_depends_on_it(tmp_path: Path) -> None:
    done = run("trace", "policies/tenant.yaml:10", "-o", "json", cwd=a_platform(tmp_path))

    guaranteed = next(line for line in json.loads(done.out)["lines"] if line["path"].endswith("guaranteed"))
    assert (QUOTA, 13, "copied") in [(use["file"], use["line"], use["how"]) for use in guaranteed["to"]]


def test_a_file_that_is_not_what_would_be_written_is_told(tmp_path: Path) -> None:
    root = a_platform(tmp_path)

    assert run("trace", QUOTA, cwd=root).err == f"`{QUOTA}` is not there yet: run `gpuplan build`\n"


def test_what_has_errors_is_traced_as_far_as_it_was_planned(tmp_path: Path) -> None:
    done = run("trace", "Pool/research", "metadata.name", cwd=a_broken_platform(tmp_path))

    assert done.code == 1
    assert "policies/pool.yaml:4  Pool research metadata.name = research" in done.out
    assert "error[GPU101]: unknown Pool `reserch`" in done.err


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("out/dev/namespaces/research/resourcequota-gpuplam.yaml", f"did you mean `{QUOTA}`?"),
        ("out/dev/namespaces", "`out/dev/namespaces` is not written"),
        ("policies", "`policies` is a folder"),
        (f"{QUOTA}:99", "and no line 99"),
        (f"{QUOTA}:0", "there is no line 0"),
        ("policies/tenant.yaml:x", "`policies/tenant.yaml:x` names no line"),
        ("policies/tenant.yaml:99", "and no line 99"),
        ("policies/tenants.yaml:1", "did you mean `policies/tenant.yaml`?"),
        ("Tenant/reserch", "did you mean `research`?"),
        ("ResourceQuota/reserch/gpuplan", "did you mean `ResourceQuota/research/gpuplan`?"),
        ("Secret/x", "the kinds that are written are"),
        ("whatever", "`whatever` names nothing"),
        ("a/b/c/d", "`a/b/c/d` names nothing"),
        ("", "`` names nothing"),
        ("/etc/hosts", "`/etc/hosts` is not in this repository"),
    ],
)
def test_what_is_not_there_is_trouble_that_says_what_is(tmp_path: Path, target: str, said: str) -> None:
    done = run("trace", target, cwd=a_platform(tmp_path))

    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_a_path_that_is_not_there_is_trouble(tmp_path: Path) -> None:
    root = a_platform(tmp_path)

    assert "did you mean `spec.hard`?" in run("trace", QUOTA, "spec.hart", cwd=root).err
    assert run("trace", "Tenant/research", "spec.quotaz", cwd=root).code == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is no object on stdin"),
        ("\x01\x02", "cannot read stdin"),
        ("a: [", "cannot read stdin"),
        ("{", "cannot read stdin"),
        ("words", "stdin has no Kubernetes object"),
        ("- 1", "a list is no object"),
        ('{"kind": "List", "items": [{"kind": "Pod"}]}', "what has `kind` is no object"),
        ('{"kind": "List", "items": [null]}', "an item that is no mapping is no object"),
        ("data: {password: aHVudGVyMg==}", "what has `data` is no object"),
    ],
)
def test_what_is_no_object_on_stdin_is_trouble(tmp_path: Path, text: str, said: str) -> None:
    done = run("trace", "-", cwd=a_platform(tmp_path), stdin=text)

    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_objects_come_by_a_pipe(tmp_path: Path) -> None:
    root = a_platform(tmp_path)
    run("build", cwd=root)
    text = (root / QUOTA).read_text().replace('"16"', '"17"')

    done = run("trace", "-", cwd=root, stdin=text)

    assert (done.code, done.err) == (0, "")
    assert '  13  spec.hard["requests.nvidia.com/gpu.shared"] = 16\n      the cluster has 17\n' in done.out


def test_what_has_two_meanings_says_how_to_name_the_other(tmp_path: Path) -> None:
    root = a_platform(tmp_path)

    done = run("trace", "PriorityClass/research", "spec.value", cwd=root)
    named = run("trace", "PriorityClass.scheduling.k8s.io/research", "value", cwd=root)

    assert "the object of that name is `PriorityClass.scheduling.k8s.io/research`" in done.err
    assert named.out.startswith("out/dev/scheduling/priorityclass-research.yaml  PriorityClass research\n")


def test_its_own_record_is_not_traced(tmp_path: Path) -> None:
    done = run("trace", "out/.gpuplan/inventory", cwd=a_platform(tmp_path))

    assert done.code == 2
    assert "is gpuplan's own record of what it wrote" in done.err


@pytest.mark.parametrize("target", [QUOTA, "policies/pool.yaml:7", "policies/tenant.yaml", "Pool/research"])
def test_a_page_fits_a_narrow_terminal(tmp_path: Path, target: str) -> None:
    done = run("trace", target, cwd=a_platform(tmp_path), env={"COLUMNS": "80"})

    assert [line for line in done.out.splitlines() if len(line) > 80] == []


def test_what_is_strange_in_an_object_is_text_in_json_and_in_yaml(tmp_path: Path) -> None:
    root = a_platform(tmp_path)
    run("build", cwd=root)
    body = yaml.safe_load((root / QUOTA).read_text())
    body["spec"] = {"hard": {"requests.nvidia.com/gpu.shared": [float("nan"), float("inf"), "\ud800"]}}
    text = json.dumps(body)

    found = run("trace", "-", "-o", "json", cwd=root, stdin=text)

    told = json.loads(found.out, parse_constant=pytest.fail)
    assert ["nan", "inf", "\ufffd"] in [line.get("live") for line in told["lines"]]
    assert yaml.safe_load(run("trace", "-", "-o", "yaml", cwd=root, stdin=text).out) == told


def test_the_name_of_a_file_does_not_steer_the_terminal(tmp_path: Path) -> None:
    root = a_platform(tmp_path)
    (root / "policies/\x1b[31m.yaml").write_text("# nothing\n" + (root / "policies/tenant.yaml").read_text())

    assert "\x1b" not in run("trace", "policies/\x1b[31m.yaml:1", cwd=root).err


def test_a_file_of_a_cluster_that_was_not_asked_about_is_told(tmp_path: Path) -> None:
    done = run("trace", "-c", "prod", QUOTA, cwd=a_platform(tmp_path, "dev", "prod"))

    assert done.code == 2
    assert f"`{QUOTA}` is of cluster `dev`" in done.err


def test_a_path_that_one_of_several_clusters_has_is_traced(tmp_path: Path) -> None:
    root = a_platform(tmp_path, "dev", "prod")
    with (root / "overlays/dev/cluster.yaml").open("a") as file:
        file.write("  flux: {source: {name: platform}}\n")

    done = run("trace", "ResourceQuota/research/gpuplan", "metadata.annotations", "-o", "json", cwd=root)

    assert {line["cluster"] for line in json.loads(done.out)["lines"]} == {"prod"}


def test_what_a_secret_holds_is_not_told(tmp_path: Path) -> None:
    root = a_platform(tmp_path)
    folder = root / "overlays/dev/kustomize/namespaces/research"
    folder.mkdir(parents=True)
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: token, namespace: research}\ndata: {key: %s}\n"
    (folder / "secret.yaml").write_text(secret % "cGxhY2Vob2xkZXI=")
    (folder / "kustomization.yaml").write_text(
        "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [secret.yaml]\n"
    )

    done = run("trace", "-", cwd=root, stdin=secret % "aHVudGVyMg==")

    assert f"data.key = {'*' * 16}\n     the cluster has {'*' * 12}\n" in done.out
    assert "cGxhY2Vob2xkZXI=" not in done.out
    assert "aHVudGVyMg==" not in done.out


@pytest.mark.parametrize("target", ["policies/broken.yaml", "policies/broken.yaml:2", "Pool/broken"])
def test_a_policy_that_is_no_yaml_is_trouble(tmp_path: Path, target: str) -> None:
    root = a_platform(tmp_path)
    (root / "policies/broken.yaml").write_text(
        "apiVersion: gpuplan.dev/v1\nkind: Pool\nmetadata: {name: broken}\nspec: [\n"
    )

    done = run("trace", target, cwd=root)

    assert (done.code, done.out) == (2, "")
    assert "`policies/broken.yaml` cannot be read as YAML" in done.err
