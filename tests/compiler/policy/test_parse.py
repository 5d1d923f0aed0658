"""What a finding about a field tells to type is what makes the field right."""

from __future__ import annotations

from textwrap import indent

import pytest

from gpuplan.compiler.base.diagnostics import Finding
from gpuplan.compiler.documents import read_text
from gpuplan.compiler.policy import parse

POOL = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: a}
spec:
  gpu: A100-80GB
  nodes: {count: 1, gpusPerNode: 8}
"""
TENANT = """\
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: t}
spec:
"""


def findings(text: str) -> list[Finding]:
    documents, _ = read_text("policies/case.yaml", text)
    return [found.finding for document in documents for found in parse(document).diagnostics]


def only(kind: str, fields: str) -> Finding:
    (found,) = findings(kind + indent(fields, "  ") + "\n")
    return found


@pytest.mark.parametrize(
    ("fields", "help_"),
    [
        ("sharing: {exclusive: }", "write `exclusive: {}`"),
        ("sharing: {fraction: }", "write `fraction: {}`"),
        ("sharing: {timeSlicing: }", "write below `timeSlicing` what it is, or remove it"),
        ("sharing: {mig: }", "write below `mig` what it is, or remove it"),
        ("sharing: {timeSlicing: {replicas: 4.0}}", "write 4"),
        ("sharing: {timeSlicing: {replicas: '4'}}", "write 4 without quotes"),
        ("sharing: {timeSlicing: {replicas: 4, renameByDefault: true}}", "write `rename:`"),
        (
            "sharing: {mig: {instances: {1g.10gb: 7}, mps: {replicas: 2}}}",
            "remove `mps`, which does not work on MIG devices; `timeSlicing` does",
        ),
        ("sharing: {mig: {devices: [{gpus: All}]}}", "write `all`"),
        ("sharing: {mig: {devices: [{gpus: 0-3}]}}", "write `gpus: [0, 1, 2, 3]`"),
        ("sharing: {mig: {instances: {1g.10gb: 7}, strategy: none}}", "write `mixed`"),
        ("sharing: {exclusive: {}}\ntaints: [{key: a, value: true, effect: NoSchedule}]", 'put it in quotes: "true"'),
        ("sharing: {exclusive: {}}\nnodeLabels: {example.com/rack: 4}", 'put it in quotes: "4"'),
    ],
)
def test_help_on_pools(fields: str, help_: str) -> None:
    assert only(POOL, fields).help == help_


@pytest.mark.parametrize(
    ("limit", "help_"),
    [
        ("-2", "write a number of at least 0, or `none`"),
        ("-1", "write `none`, for no bound"),
        ("unlimited", "write `none`, for no bound"),
        ("None", "write `none`"),
        ("lots", "write `none`, or a number"),
        ("'4'", "write 4 without quotes"),
    ],
)
def test_help_on_a_number_or_a_word(limit: str, help_: str) -> None:
    assert only(TENANT, f"quotas: [{{pool: a, guaranteed: 4, limit: {limit}}}]").help == help_


def test_a_wrong_index_is_one_mistake() -> None:
    found = only(POOL, "sharing: {mig: {devices: [{gpus: [0, -1]}]}}")
    assert str(found.at) == "spec.sharing.mig.devices[0].gpus[1]"


def test_mps_beside_mig_is_refused_with_the_reason() -> None:
    found = only(POOL, "sharing: {mps: {replicas: 2}, mig: {instances: {1g.10gb: 7}}}")
    assert "MPS does not work on MIG devices; `timeSlicing` inside of `mig` does" in found.notes


def test_a_patch_directive_in_the_wrong_place_is_sent_to_the_right_one() -> None:
    (found,) = findings(f"{POOL}  sharing: {{exclusive: {{}}}}\n$patch: delete\n")
    assert found.help == (
        "to delete the document, write `metadata: {name: a, $patch: delete}`; a list is always replaced"
    )


@pytest.mark.parametrize(
    ("fields", "message", "label"),
    [
        ("sharing: []", "`spec.sharing` should be a mapping, not a list", "this is a list"),
        ("sharing: 1.5", "`spec.sharing` should be a mapping, not a number with a decimal point", None),
        ("sharing: mig", "`spec.sharing` should be a mapping, not text", "this is text"),
        (
            "sharing: {exclusive: {}}\nworkloadTypes: {a: 1}",
            "`spec.workloadTypes` should be a list, not a mapping",
            None,
        ),
        ("sharing: {timeSlicing: {replicas: true}}", "should be a whole number, not `true` or `false`", None),
    ],
)
def test_what_stands_there_is_named(fields: str, message: str, label: str | None) -> None:
    finding = only(POOL, fields)
    assert message in finding.message
    assert (label or "") in finding.label


@pytest.mark.parametrize(
    ("count", "bound"),
    [
        ("0", "a number of at least 1"),
        ("2000000", "a number of at most 1000000"),
        (str(10**30), "a number of at most 1000000"),
    ],
)
def test_a_number_out_of_bounds_is_told_the_bound(count: str, bound: str) -> None:
    finding = only(POOL.replace("count: 1", f"count: {count}"), "sharing: {exclusive: {}}")
    assert (finding.message, finding.label) == (f"`spec.nodes.count` cannot be `{count}`", bound)


WORKLOAD = """apiVersion: gpuplan.dev/v1
kind: Workload
metadata: {name: chat}
spec:
  tenant: models
  pool: shared
"""


@pytest.mark.parametrize(
    ("fraction", "message", "help_text"),
    [
        ("0", "`spec.fraction` cannot be `0`", "write a number above 0"),
        ("1", "`spec.fraction` cannot be `1`", "write a number below 1"),
        (
            "half",
            "`spec.fraction` should be a number or a mapping, not text",
            "write a number below 1 without quotes, or GPU memory as `{memory: 10Gi}`",
        ),
    ],
)
def test_of_two_forms_the_one_that_was_meant_is_explained(fraction: str, message: str, help_text: str) -> None:
    finding = only(WORKLOAD, f"image: example.com/app:1\ninference: {{}}\nfraction: {fraction}")
    assert (finding.message, finding.help) == (message, help_text)


@pytest.mark.parametrize("image", ["app", "example.com:5000/a/b-c__d:V1.2_3", f"[::1]:5000/app@sha256:{'0' * 64}"])
def test_an_image_is_what_a_runtime_can_pull(image: str) -> None:
    assert findings(f'{WORKLOAD}  image: "{image}"\n  inference: {{}}\n') == []


@pytest.mark.parametrize("image", ["", " app:1", "https://example.com/app:1", "example.com/App:1", "app:", "app@1.0"])
def test_what_no_runtime_can_pull_is_no_image(image: str) -> None:
    finding = only(WORKLOAD, f'image: "{image}"\ninference: {{}}')
    assert finding.message == f"`spec.image` cannot be `{image}`"


@pytest.mark.parametrize("metric", ["", ".", "a/b", "a b"])
def test_a_metric_that_the_api_server_refuses_is_refused(metric: str) -> None:
    scaling = f'{{maxReplicas: 2, requestsPerSecond: 1, metric: "{metric}"}}'
    finding = only(WORKLOAD, f"image: example.com/app:1\ninference: {{autoscaling: {scaling}}}")
    assert finding.message == f"`spec.inference.autoscaling.metric` cannot be `{metric}`"
