"""From plain objects to the bytes of a tree of kustomize folders; knows Kubernetes, not GPUs."""

from __future__ import annotations

from gpuplan.compiler.manifests.admission import AdmissionPolicy, AdmissionRule, admission_binding
from gpuplan.compiler.manifests.builtin_schemas import has_schemas, kubernetes_versions
from gpuplan.compiler.manifests.model import (
    HEADER,
    File,
    Gvk,
    Hook,
    Identity,
    Manifest,
    Subject,
    gvk_of,
    identity_of,
    is_object,
)
from gpuplan.compiler.manifests.quantities import byte_quantity, exact_quantity, parse_quantity, quantity
from gpuplan.compiler.manifests.rules import RULES
from gpuplan.compiler.manifests.schemas import Problem, Releases, SchemaCheck, check_schemas, unusable_definitions
from gpuplan.compiler.manifests.tree import Tree, object_path, render_index, render_kustomizations, render_tree
from gpuplan.compiler.manifests.yamltext import to_yaml

__all__ = [
    "HEADER",
    "RULES",
    "AdmissionPolicy",
    "AdmissionRule",
    "File",
    "Gvk",
    "Hook",
    "Identity",
    "Manifest",
    "Problem",
    "Releases",
    "SchemaCheck",
    "Subject",
    "Tree",
    "admission_binding",
    "byte_quantity",
    "check_schemas",
    "exact_quantity",
    "gvk_of",
    "has_schemas",
    "identity_of",
    "is_object",
    "kubernetes_versions",
    "object_path",
    "parse_quantity",
    "quantity",
    "render_index",
    "render_kustomizations",
    "render_tree",
    "to_yaml",
    "unusable_definitions",
]
