"""Texts have types; what a wrong one should be is said in words, never as a pattern."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from gpuplan.compiler.base.diagnostics import Finding
from gpuplan.compiler.documents import read_text
from gpuplan.compiler.policy import parse, texts
from gpuplan.compiler.policy.schema import schema_of
from gpuplan.compiler.policy.texts import FORMS

CLUSTER = """\
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata: {name: a}
spec:
"""
FIELDS: dict[str, Any] = {"kubernetes": "1.34", "gpuOperator": {"install": "helm", "version": "v26.7.0"}}
REPOSITORY = "https://git.example.com/gpu.git"


def findings(**fields: Any) -> list[Finding]:
    text = CLUSTER + "".join(f"  {name}: {json.dumps(value)}\n" for name, value in {**FIELDS, **fields}.items())
    (document,), found = read_text("overlays/a/cluster.yaml", text)
    assert found == ()
    return [item.finding for item in parse(document).diagnostics]


@pytest.mark.parametrize(
    "revision",
    [
        *(
            "main",
            "HEAD",
            "refs/heads/main",
            "v1.2.3",
            "feature/x",
            "0" * 40,
            "a@b",
            "release-1.2",
            "@a",
            "a{b",
            "größe",
        ),
        *("v1.*", ">=1.2.0 <2", "^1.2", "~1.2.0", "1.x || 2.x"),
    ],
)
def test_what_git_and_argo_cd_call_a_revision_is_one(revision: str) -> None:
    assert findings(argocd={"repoURL": REPOSITORY, "revision": revision}) == []


@pytest.mark.parametrize(
    "revision",
    [
        *("{{ .values.x }}", 'a{{ env "HOME" }}', "a\nb", "a\x1b[1m", "a..b", "a.lock", "a.lock/b", "/a", "a/", "a//b"),
        *("a/.b", ".a", "a.", "@", "a@{1}", "a b:c", "a[b", "a\\b", "-a/b:", " a/b", "\u202ea", ""),
    ],
)
def test_what_git_refuses_is_no_revision(revision: str) -> None:
    [found] = findings(argocd={"repoURL": REPOSITORY, "revision": revision})
    assert found.message.startswith("`spec.argocd.revision` cannot be")
    assert found.help.startswith(
        ("write a branch or tag as Git names them", "write one line of text", "write some text", "policies have")
    )


@pytest.mark.parametrize(
    ("fields", "help_"),
    [
        ({"kubernetes": "1.33.4"}, 'write "1.33"'),
        ({"kubernetes": "v1.33"}, 'write "1.33"'),
        ({"kubernetes": "1.thirty"}, 'write a Kubernetes minor version in quotes, such as "1.34"'),
        (
            {"gpuOperator": {"install": "helm", "version": "latest"}},
            "write a release of three numbers, such as v26.7.0",
        ),
        (
            {"gpuOperator": {"install": "helm", "version": "v26.7.0", "driver": {"version": "580\x00"}}},
            "write a driver version, such as 580.95.05, or another tag or `sha256` digest of the driver's image",
        ),
        ({"scheduler": {"kind": "kueue", "version": "latest"}}, "write a release of three numbers, such as v0.19.2"),
        ({"flux": {"interval": "1d"}}, "write 24h"),
        ({"flux": {"interval": "soon"}}, "write a duration, such as 30s, 10m or 4h"),
    ],
)
def test_a_wrong_text_is_answered_in_words(fields: dict[str, Any], help_: str) -> None:
    [found] = findings(**fields)
    assert found.help == help_


@pytest.mark.parametrize(
    "fields",
    [
        {"flux": {"path": "out\x1b[1m"}},
        {"argocd": {"repoURL": REPOSITORY, "path": "out\nmore"}},
        {"argocd": {"repoURL": f"{REPOSITORY}\u202e"}},
        {"monitoring": {"alertLabels": {"team": "a\x07"}}},
        {"monitoring": {"dashboards": {"folder": "GPU\u2066s"}}},
    ],
)
def test_no_text_steers_a_terminal(fields: dict[str, Any]) -> None:
    [found] = findings(**fields)
    assert found.help.startswith("write one line of text without control characters")


def test_texts_in_any_script_are_taken() -> None:
    assert findings(monitoring={"alertLabels": {"team": "größe 研究 צוות\u200f"}}) == []


def patterns(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(pattern := schema.get("pattern"), str):
            yield pattern
        for part in schema.values():
            yield from patterns(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from patterns(part)


def test_every_pattern_that_texts_are_judged_by_has_words_and_is_in_the_schema() -> None:
    assert set(FORMS) <= {*patterns(schema_of()), *patterns(schema_of("Demand"))}


def test_no_words_are_a_pattern() -> None:
    assert [form.words for form in FORMS.values() if re.search(r"\[.*\]|\^|\$|\\|\+", form.words)] == []


TENANT = """\
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: a}
spec:
  quotas: [{pool: p, guaranteed: 1, memory: VALUE}]
"""


def helps_of_quantity(written: str) -> list[str]:
    (document,), found = read_text("policies/a.yaml", TENANT.replace("VALUE", written))
    assert found == ()
    return [item.finding.help for item in parse(document).diagnostics]


@pytest.mark.parametrize("written", ["64", "0", "1500m", '"1.5"', "1.5Gi", "512Gi", "{guaranteed: 1Gi, limit: none}"])
def test_a_quantity_is_what_kubernetes_takes_for_one(written: str) -> None:
    assert helps_of_quantity(written) == []


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("64 cores", "write `64`"),
        ("32GB", "write `32Gi`, or `32G` for powers of 1000"),
        ("32 GiB", "write `32Gi`"),
        ("32gi", "write `32Gi`"),
        ("4kb", "write `4Ki`, or `4k` for powers of 1000"),
        ("1.5", "write `1500m`"),
        ("0.0001", "write a quantity as Kubernetes writes it: `64` or `1500m` CPUs, `512Gi` of memory"),
        ("-1", "write a quantity as Kubernetes writes it: `64` or `1500m` CPUs, `512Gi` of memory"),
        ("much", "write a quantity as Kubernetes writes it: `64` or `1500m` CPUs, `512Gi` of memory"),
        ("{guaranteed: 32GB}", "write `32Gi`, or `32G` for powers of 1000"),
        (
            "{guaranteed: 1, limit: lots}",
            "write `none`, or a quantity as Kubernetes writes it: `64` or `1500m` CPUs, `512Gi` of memory",
        ),
    ],
)
def test_another_amount_is_told_what_it_was_meant_to_be(written: str, meant: str) -> None:
    assert helps_of_quantity(written) == [meant]


RUNBOOK = "https://docs.example.com/"


@pytest.mark.parametrize("address", [RUNBOOK, RUNBOOK + "a" * 1731, "https://docs.example.com:8443/gpu?page=alerts"])
def test_an_address_of_a_runbook_is_one(address: str) -> None:
    assert findings(monitoring={"runbookUrl": address}) == []


@pytest.mark.parametrize("address", [RUNBOOK + "it's", RUNBOOK + '"', RUNBOOK + "a b", RUNBOOK + "a" * 2000])
def test_what_no_browser_is_given_is_no_address_of_a_runbook(address: str) -> None:
    (found,) = findings(monitoring={"runbookUrl": address})
    assert (found.at.path, "2,000 characters" in f"{found.label} {found.help}") == (
        ("spec", "monitoring", "runbookUrl"),
        True,
    )


REGISTRIES = (
    "registry.example.com/nvcr",
    "registry.example.com",
    "registry.example.com:5000/team/nvcr",
    "registry:5000/nvcr",
    "localhost/nvcr",
    "10.0.0.1/nvcr",
    "[2001:db8::1]:5000/nvcr",
)
NO_REGISTRIES = (
    "",
    "-x",
    "nvcr",  # a path in Docker Hub
    "registry/nvcr",
    "https://registry.example.com/nvcr",
    "registry.example.com/nvcr/",
    "registry.example.com/NVCR",
    "registry.example.com/nvcr:1.0",
    "bot:secret@registry.example.com/nvcr",
    "registry.example.com/$(id)",
    "registry.example.com/a b",
    "registry.example.com/nvcr\n",
)


@pytest.mark.parametrize("registry", REGISTRIES)
def test_what_container_runtimes_call_a_registry_is_one(registry: str) -> None:
    assert findings(gpuOperator={**FIELDS["gpuOperator"], "registry": registry}) == []


@pytest.mark.parametrize("registry", NO_REGISTRIES)
def test_what_is_no_registry_is_none(registry: str) -> None:
    assert len(findings(gpuOperator={**FIELDS["gpuOperator"], "registry": registry})) == 1


CHARTS = (
    "https://helm.ngc.nvidia.com/nvidia",
    "https://charts.example.com:8443/api/v4/projects/42/packages/helm/stable/",
    "http://charts/nvidia",
    "oci://registry.example.com/charts",
    "registry.example.com/charts",
    "registry:65535/charts",
    "https://charts.example.com/.well-known/..a/charts",
    "https://[2001:db8::1]/charts",
)
NO_CHARTS = (
    "",
    "-x",
    "--post-renderer=/bin/sh",
    "/charts",
    "./charts",
    "file:///charts",
    "s3://charts/nvidia",
    "https://",
    "https://bot:secret@charts.example.com",
    "https://charts.example.com/?token=secret",
    "https://charts.example.com/a b",
    "https://charts.example.com/a/../b",
    "https://charts.example.com/.",
    "https://charts.example.com:0/a",
    "https://charts.example.com:65536/a",
    "x",
    "https://charts.example.com/$(id)",
    "https://charts.example.com/`id`",
    "https://charts.example.com/;id",
    "https://charts.example.com/'",
    "https://charts.example.com/\nid",
    "https://charts.example.com\u202e",
)


@pytest.mark.parametrize("address", CHARTS)
def test_where_charts_are_is_an_address(address: str) -> None:
    assert findings(gpuOperator={**FIELDS["gpuOperator"], "chartRepoURL": address}) == []


@pytest.mark.parametrize("address", NO_CHARTS)
def test_what_is_no_address_of_charts_is_none(address: str) -> None:
    assert len(findings(gpuOperator={**FIELDS["gpuOperator"], "chartRepoURL": address})) == 1


def test_credentials_are_not_repeated_in_what_to_write() -> None:
    operator = {**FIELDS["gpuOperator"], "chartRepoURL": "https://bot:secret@charts.example.com/nvidia?a=b"}
    [finding] = findings(gpuOperator=operator)
    assert finding.help == "write `https://charts.example.com/nvidia`"


@pytest.mark.parametrize("text", ["1s", "0h1m", "0m0s1h", "999999s", "99999h", "1h30m", "1m0s"])
def test_a_time_in_which_something_is_done_is_above_zero(text: str) -> None:
    assert TypeAdapter(texts.PositiveDuration).validate_python(text) == text


@pytest.mark.parametrize("text", ["0s", "0h0m", "000000s", "1d", "", "1", "-1s", "1234567s"])
def test_no_time_at_all_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(texts.PositiveDuration).validate_python(text)
