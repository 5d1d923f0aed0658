"""Find the schema by which objects of a kind are merged and applied."""

from __future__ import annotations

import json
from functools import cache
from typing import Final

from gpuplan.compiler.manifests.builtin_schemas import OBJECT_META, builtin_schemas, has_schemas, kubernetes_versions
from gpuplan.compiler.manifests.crds import served
from gpuplan.compiler.manifests.merging.shape import Shape
from gpuplan.compiler.manifests.model import Gvk
from gpuplan.compiler.manifests.validators import Schema

_TEMPLATE: Final = "io.k8s.api.core.v1.PodTemplateSpec"


@cache
def shape_of_pods(kubernetes: str) -> Shape:
    """That of a template of pods in a version of Kubernetes; of the newest one where its own is not known."""
    definitions = builtin_schemas(_known(kubernetes)).definitions
    return Shape(definitions[_TEMPLATE], definitions)


@cache
def shape_of(gvk: Gvk, kubernetes: str) -> Shape:
    """That of a kind; one that knows nothing but ``metadata`` where there is no schema of it."""
    known = builtin_schemas(_known(kubernetes))
    schema = known.find_schema(gvk)
    if schema is not None:
        return Shape(schema, known.definitions)
    found = next((item for item in served(gvk.group, gvk.kind) if gvk.version in item.versions), None)
    own: Schema = json.loads(found.schema(gvk.version)) if found else {"$ref": "", "$defs": {}}
    top = own["$defs"].get(own["$ref"].rpartition("/")[2], {})
    properties = {**top.get("properties", {}), "metadata": OBJECT_META}
    return Shape({**top, "properties": properties}, {**known.definitions, **own["$defs"]})


def _known(kubernetes: str) -> str:
    return kubernetes if has_schemas(kubernetes) else kubernetes_versions()[1]
