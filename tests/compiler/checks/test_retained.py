"""What a document retains may have any shape: it is a finding, or it can be built."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given, strategies as st

from gpuplan.compiler.pipeline.judging import judge_plan
from gpuplan.compiler.pipeline.rendering import render
from gpuplan.features.changes.retaining import judge_retained
from tests.compiler.documents.writing import DATA
from tests.plans import resolve_text

TEXTS = st.sampled_from(
    [
        "",
        ".",
        "..",
        "../a",
        "a/b",
        "a:b",
        "A",
        "a\n",
        "v1",
        "apps/v1",
        "/v1",
        "ConfigMap",
        "configmap",
        "List",
        "a" * 300,
    ]
)


def mostly(text: str) -> st.SearchStrategy[Any]:
    """This text, and now and then anything."""
    return st.integers(0, 5).flatmap(lambda number: TEXTS | DATA if number == 0 else st.just(text))


METADATA = st.fixed_dictionaries({"name": mostly("a")}, optional={"namespace": mostly("b"), "labels": DATA})
MANIFESTS = st.fixed_dictionaries(
    {"apiVersion": mostly("v1"), "kind": mostly("ConfigMap"), "metadata": METADATA},
    optional={"data": st.dictionaries(st.sampled_from("ab"), TEXTS), "spec": DATA},
)


@given(MANIFESTS, st.sampled_from([None, "gpu-operator", "scheduling", "queues", "../a", ""]))
def test_an_object_is_a_finding_or_is_built_where_it_belongs(manifest: Any, folder: str | None) -> None:
    body = {"object": {"manifest": manifest, **({} if folder is None else {"folder": folder})}, "until": "never"}

    paths = built(body)

    assert all(path.startswith("test/") and ".." not in path for path in paths)


@given(st.text(max_size=5) | TEXTS, TEXTS, st.integers(-1, 50), st.sampled_from(["timeSlicing", "mps"]))
def test_a_configuration_is_a_finding_or_is_built(key: str, resource: str, replicas: int, method: str) -> None:
    more = {"failRequestsGreaterThanOne": True} if method == "timeSlicing" else {}
    sharing = {"renameByDefault": True, **more, "resources": [{"name": resource, "replicas": replicas}]}
    config = {"version": "v1", "sharing": {method: sharing}}

    built({"devicePluginConfig": {"key": key, "config": config}, "until": "never"})


def built(spec: Any) -> list[str]:
    """The paths of what is built with the document; none where something is wrong with it."""
    document = {"apiVersion": "gpuplan.dev/v1", "kind": "Retained", "metadata": {"name": "old"}, "spec": spec}
    plan, found = resolve_text(json.dumps(document))
    assert plan is not None
    if any(item.is_error for item in (*found, *judge_plan(plan))):
        return []
    if any(item.is_error for item in judge_retained(plan)):
        return []
    return list(render((plan,), Path("/"), "out", None, is_whole=True).tree)
