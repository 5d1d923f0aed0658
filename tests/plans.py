"""Plans from a few lines of YAML, for tests."""

from __future__ import annotations

from textwrap import dedent

from gpuplan.compiler import catalog
from gpuplan.compiler.base.diagnostics import Diagnostic
from gpuplan.compiler.documents import merge, read_text
from gpuplan.compiler.planning import resolve
from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.policy import parse

CLUSTER = """\
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata: {name: test}
spec:
  kubernetes: "1.34"
  gpuOperator: {install: helm, version: v26.7.0}
"""


SEPARATOR = "---\n"


def a_cluster(scheduler: str) -> str:
    """The plain cluster with another scheduler, such as ``kind: kueue``."""
    return f"{CLUSTER}  scheduler: {{{scheduler}}}\n"


def with_cluster(text: str) -> str:
    """The documents, with a plain cluster before them unless they bring one."""
    text = dedent(text)
    return text if "kind: Cluster" in text else f"{CLUSTER}---\n{text.removeprefix(SEPARATOR)}"


def resolve_text(text: str) -> tuple[Plan | None, tuple[Diagnostic, ...]]:
    """The plan of a multi-document text and the findings up to it; checks are not run."""
    documents, read = read_text("overlays/test/case.yaml", with_cluster(text))
    merged, conflicts = merge((), documents)
    parsed = [parse(document) for document in merged]
    cluster = next(item for item in parsed if item.document.kind == "Cluster")
    others = [item for item in parsed if item.document.kind != "Cluster"]
    plan, unresolved = resolve(cluster, others, catalog.load())
    return plan, (*read, *conflicts, *(found for item in parsed for found in item.diagnostics), *unresolved)


def a_plan(text: str) -> Plan:
    """The plan of a multi-document text that is free of input errors."""
    plan, diagnostics = resolve_text(text)
    assert [(found.code, found.finding.message) for found in diagnostics] == []
    assert plan is not None
    return plan
