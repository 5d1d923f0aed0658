"""From plain objects to the bytes of a tree of kustomize folders; knows Kubernetes, not GPUs."""

from __future__ import annotations

from gpuplan.compiler.manifests.admission import admission_binding as admission_binding
from gpuplan.compiler.manifests.builtin_schemas import (
    has_schemas as has_schemas,
    kubernetes_versions as kubernetes_versions,
)
from gpuplan.compiler.manifests.model import (
    HEADER as HEADER,
    File as File,
    Gvk as Gvk,
    Hook as Hook,
    Identity as Identity,
    Manifest as Manifest,
    Subject as Subject,
    gvk_of as gvk_of,
    identity_of as identity_of,
    is_object as is_object,
)
from gpuplan.compiler.manifests.quantities import (
    byte_quantity as byte_quantity,
    exact_quantity as exact_quantity,
    parse_quantity as parse_quantity,
    quantity as quantity,
)
from gpuplan.compiler.manifests.rules import RULES as RULES
from gpuplan.compiler.manifests.schemas import (
    Problem as Problem,
    Releases as Releases,
    SchemaCheck as SchemaCheck,
    check_schemas as check_schemas,
    unusable_definitions as unusable_definitions,
)
from gpuplan.compiler.manifests.tree import (
    object_path as object_path,
    render_index as render_index,
    render_kustomizations as render_kustomizations,
    render_tree as render_tree,
)
from gpuplan.compiler.manifests.yamltext import to_yaml as to_yaml
