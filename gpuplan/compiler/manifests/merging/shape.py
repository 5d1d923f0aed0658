"""The part of a schema that says how lists and mappings are merged, and which texts are amounts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gpuplan.compiler.base.trees import ABSENT
from gpuplan.compiler.manifests.validators import Schema

_MERGE_KEY: Final = "x-kubernetes-patch-merge-key"
_LIST_KEYS: Final = "x-kubernetes-list-map-keys"
_LIST_TYPE: Final = "x-kubernetes-list-type"
_MAP_TYPE: Final = "x-kubernetes-map-type"
_AMOUNTS: Final = ("io.k8s.apimachinery.pkg.api.resource.Quantity", "io.k8s.apimachinery.pkg.util.intstr.IntOrString")
_SELECTOR: Final = frozenset(("matchExpressions", "matchLabels"))

_DEFAULTS: Final[Mapping[tuple[str, str], object]] = {
    ("ContainerPort", "protocol"): "TCP",
    ("HTTPGetAction", "scheme"): "HTTP",
    ("MatchResources", "matchPolicy"): "Equivalent",
    ("NamedRuleWithOperations", "scope"): "*",
    ("ObjectFieldSelector", "apiVersion"): "v1",
    ("ResourceFieldSelector", "divisor"): "0",
    ("ServiceAccountTokenProjection", "expirationSeconds"): 3600,
    ("ServicePort", "protocol"): "TCP",
    ("Subject", "apiGroup"): "rbac.authorization.k8s.io",
}
"""What the API server makes of absent fields, which the schemas of its own kinds do not say.

Those by which items of lists are told apart, and those in what is applied as a whole: others make no difference here.
(`pkg/apis/{core,rbac,admissionregistration}/v1/defaults.go` of kubernetes/kubernetes.)
"""


class Shape:
    """A part of a schema, and what it says of what is applied there."""

    def __init__(self, schema: Schema, definitions: Mapping[str, Schema], default: object = ABSENT) -> None:
        reference = schema.get("$ref")
        self._name = reference.rpartition("/")[2] if isinstance(reference, str) else ""
        self._schema = definitions.get(self._name, {}) if self._name else schema
        self._around = schema
        self._definitions = definitions
        self.default = self._around.get("default", self._schema.get("default", default))
        """What the API server makes of an absent value; `ABSENT` where nothing is known of it."""

    def field(self, name: str) -> Shape:
        known = self._schema.get("properties", {})
        default = _DEFAULTS.get((self._name.rpartition(".")[2], name), ABSENT)
        return self._part(known[name] if name in known else self._schema.get("additionalProperties"), default)

    @property
    def items(self) -> Shape:
        return self._part(self._schema.get("items"))

    def _part(self, schema: object, default: object = ABSENT) -> Shape:
        return Shape(schema if isinstance(schema, Mapping) else {}, self._definitions, default)

    def _says(self, keyword: str) -> Any:  # noqa: ANN401 - JSON
        return self._around.get(keyword, self._schema.get(keyword))

    @property
    def merge_key(self) -> str:
        """The field by which a strategic merge patch tells the items of a list apart; empty where it replaces it."""
        return str(self._around.get(_MERGE_KEY, ""))

    @property
    def list_keys(self) -> Sequence[str]:
        """The fields by which server-side apply tells the items of a list apart; none where it knows none."""
        found = self._says(_LIST_KEYS)
        return [key for key in found if isinstance(key, str)] if isinstance(found, list) else ()

    @property
    def is_set(self) -> bool:
        """Whether the items of a list are applied one by one, each being what tells it apart."""
        return bool(self._says(_LIST_TYPE) == "set" or self._says("uniqueItems"))

    @property
    def is_atomic_map(self) -> bool:
        """Whether a mapping is applied as a whole; a selector of labels is one in every definition (`+structType`)."""
        is_selector = frozenset(self._schema.get("properties", ())) == _SELECTOR
        return self._says(_MAP_TYPE) == "atomic" or is_selector

    @property
    def is_amount(self) -> bool:
        """Whether a text stands for a number: a quantity, or what may be a number or a text."""
        kinds = self._schema.get("type")
        return self._name in _AMOUNTS or (isinstance(kinds, list) and {"integer", "string"} <= {*kinds})

    @property
    def is_text(self) -> bool:
        """Whether it is a text in a field of its own, not in a mapping from any key to a text."""
        return self._schema.get("type") == "string"
