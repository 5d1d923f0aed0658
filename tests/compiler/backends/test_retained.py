"""Objects that are retained are as their document has them, leaf by leaf."""

from __future__ import annotations

from gpuplan.compiler.backends import retained
from tests.laws.tracing.told import told, told_of_all
from tests.plans import a_plan

PLAN = a_plan("""
apiVersion: gpuplan.dev/v1
kind: Retained
metadata: {name: old}
spec:
  object:
    folder: monitoring
    manifest: {apiVersion: example.com/v1, kind: Thing, metadata: {name: old}, spec: {items: [{x: 1}, 2], none: {}}}
  until: nobody asks for it
""")


def test_each_leaf_is_copied() -> None:
    (found,) = retained.render(PLAN)

    at = "copied Retained/old spec.object.manifest"
    leaves = told(PLAN, found)
    assert leaves["spec.items[0].x"] == [f"{at}.spec.items[0].x"]
    assert leaves["spec.none"] == [f"{at}.spec.none"]
    assert leaves["apiVersion"] == [f"{at}.apiVersion"]


def test_which_object_it_is_and_where_it_lies_is_written_too() -> None:
    (found,) = retained.render(PLAN)

    assert told_of_all(PLAN, found) == [
        "chosen by Cluster/test metadata.name",
        "chosen by Retained/old spec.object.folder",
        "chosen by Retained/old spec.object.manifest.apiVersion",
        "chosen by Retained/old spec.object.manifest.kind",
        "chosen by Retained/old spec.object.manifest.metadata.name",
    ]


def test_an_object_without_a_folder_is_where_its_namespace_is() -> None:
    plan = a_plan("""
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: lab}
spec: {namespaces: [other, lab]}
---
apiVersion: gpuplan.dev/v1
kind: Retained
metadata: {name: old}
spec:
  object: {manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: old, namespace: lab}}}
  until: nobody asks for it
""")
    (found,) = retained.render(plan)

    assert "chosen by Tenant/lab spec.namespaces[1]" in told_of_all(plan, found)
    assert "chosen by Tenant/lab spec.namespaces[0]" not in told_of_all(plan, found)
