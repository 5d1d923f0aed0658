"""The pages of the documentation that tell what no line of a policy does: rules of gpuplan's own, and defaults."""

from __future__ import annotations

from typing import Final

from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.manifests.kustomization import FILE_NAME
from gpuplan.compiler.manifests.provenance import How, Link
from gpuplan.compiler.policy.parse import document_of
from gpuplan.features.tracing.model import Source

DOCS: Final = "docs"
"""Where the pages are in gpuplan's own repository; the site has them without it."""
RULES: Final = f"{DOCS}/explanation/what-is-written.md"

SECTIONS: Final = {
    "gpu-operator": "the-gpu-operator",
    "scheduler": "the-scheduler",
    "partitions": "partitions",
    "scheduling": "scheduling",
    "queues": "queues",
    "namespaces": "namespaces",
    "workloads": "workloads",
    "monitoring": "monitoring",
    "runai": "runai",
    "argocd": "argo-cd",
    "flux": "flux",
    FILE_NAME: "kustomizationyaml",
}
"""The part of the page on rules for each folder of a cluster, for each tool that syncs it, and for lists of files."""


def rule_source(path: str) -> Source:
    """The rule that an artifact's values follow where nothing else says them; ``path`` is below the output folder."""
    first, _, rest = path.partition("/")
    stage = rest.partition("/")[0]
    name = path.rpartition("/")[2]
    key = next((key for key in (name, first, stage) if key in SECTIONS), "")
    section = SECTIONS.get(key, "")
    return Source(How.RULE, RULES, 1, section, page=f"{RULES}#{section}" if section else RULES)


def default_source(link: Link) -> Source | None:
    """The default of a field that the policy leaves out."""
    document = document_of(link.at)
    if document is None or not document.kind:
        return None
    route = _fields(link.at.path)
    path = ".".join((document.kind, *route))
    section = "".join((document.kind, *route[:-1])).lower()
    file = f"{DOCS}/fields/{document.kind}.md"
    return Source(How.RULE, file, 1, path, title=document.title, page=f"{file}#{section}")


def _fields(route: Path) -> tuple[str, ...]:
    return tuple(part for part in route if isinstance(part, str))
