"""Check objects against the schemas of the cluster that they are for.

Every object is checked: with validators that are kept that takes a microsecond, less than it would take to find out
whether an object of the same shape was checked before.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from gpuplan.diagnostics import Diagnostic, Path, field_path
from gpuplan.manifests.builtin_schemas import builtin_schemas
from gpuplan.manifests.crd_schemas import CrdSchemas, strict_schema
from gpuplan.manifests.model import Gvk, Manifest
from gpuplan.values import Value

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator, ValidationError


class Problem(Value):
    """Where an object does not fit its schema; the path is empty when its kind has none."""

    manifest: Manifest
    path: Path
    message: str

    @property
    def text(self) -> str:
        return f"`{field_path(self.path)}`: {self.message}" if self.path else self.message


class SchemaCheck:
    """Checks objects, one after the other, for a cluster of a Kubernetes version, such as ``1.32``.

    Custom resources are checked against the CRDs in the folder ``crds``, but for the rules that those state in CEL.
    Kinds that it does not define, which are all of them without a folder, are counted as ``unchecked`` instead, and so
    are those whose definition cannot be used. A kind in one of Kubernetes' own groups that this version of it does not
    have is a problem.
    """

    def __init__(self, kubernetes_minor: str, crds: FilePath | None) -> None:
        self._builtin = builtin_schemas(kubernetes_minor)
        self._crds = _crd_schemas(crds) if crds else None
        self._kubernetes_minor = kubernetes_minor
        self._validators: dict[tuple[str, str], Draft202012Validator | str | None] = {}
        self._problems: list[Problem] = []
        self.unchecked: Counter[Gvk] = Counter()

    @property
    def problems(self) -> tuple[Problem, ...]:
        """In the order of the objects."""
        return tuple(self._problems)

    @property
    def unchecked_kinds(self) -> tuple[str, ...]:
        """The custom kinds that were not checked, as people write them: ``ClusterQueue.kueue.x-k8s.io``."""
        return tuple(sorted({f"{gvk.kind}.{gvk.group}" for gvk in self.unchecked}))

    def passed_on(self, manifests: Iterable[Manifest]) -> Iterator[Manifest]:
        """The same objects, each when it was checked."""
        for manifest in manifests:
            body = manifest.body
            key = body["apiVersion"], body["kind"]
            if key not in self._validators:
                self._validators[key] = self._find_validator(manifest.gvk)
            validator = self._validators[key]
            if isinstance(validator, str):
                self._problems.append(Problem(manifest, (), validator))
            elif validator is None:
                self.unchecked[manifest.gvk] += 1
            elif not _is_valid(validator, body):
                self._problems += _problems(validator, manifest)
            yield manifest

    def _find_validator(self, gvk: Gvk) -> Draft202012Validator | str | None:
        """The validator of a kind, what is wrong with the kind, or None when no schema of it is known."""
        if self._builtin.has_group(gvk.group):
            return self._builtin.find_validator(gvk) or f"Kubernetes {self._kubernetes_minor} has no {gvk}"
        return self._find_custom(self._crds, gvk) if self._crds else None

    def _find_custom(self, crds: CrdSchemas, gvk: Gvk) -> Draft202012Validator | str | None:
        definition = crds.find(gvk.group, gvk.kind)
        if definition is None:
            return None
        if gvk.version not in definition.versions:
            return f"there is no {gvk}: its definition serves {', '.join(definition.versions)}"
        try:
            return self._builtin.compile(strict_schema(definition.versions[gvk.version]))
        except ValueError as error:  # of jsonschema_rs, for what is no schema
            crds.refuse(definition, gvk.version, error)
            return None


def check_schemas(manifests: Iterable[Manifest], kubernetes_minor: str, crds: FilePath | None) -> SchemaCheck:
    """What comes of checking all these objects."""
    check = SchemaCheck(kubernetes_minor, crds)
    for _ in check.passed_on(manifests):
        pass
    return check


def unusable_definitions(crds: FilePath | None, root: FilePath) -> tuple[Diagnostic, ...]:
    """What is wrong with the definitions that checks have asked for so far, by paths from the repository's root."""
    return tuple(refusal.report(root) for refusal in _crd_schemas(crds).refusals) if crds else ()


@cache
def _crd_schemas(folder: FilePath) -> CrdSchemas:
    """Read once for all clusters of a build."""
    return CrdSchemas(folder)


def _is_valid(validator: Draft202012Validator, body: Mapping[str, Any]) -> bool:
    try:
        return validator.is_valid(body)
    except ValueError:  # it knows the exact types of JSON alone
        return validator.is_valid(_plain(body))


def _problems(validator: Draft202012Validator, manifest: Manifest) -> list[Problem]:
    errors = validator.iter_errors(_plain(manifest.body))
    return [
        Problem(manifest, tuple(error.instance_path), _describe(error))
        for error in errors
        if not (manifest.is_partial and type(error.kind).__name__ == "Required")
    ]


def _describe(error: ValidationError) -> str:
    """What is wrong, in the words that people use for objects."""
    kind: Any = error.kind
    match type(kind).__name__:
        case "AdditionalProperties":
            return "unknown field " + ", ".join(f"`{name}`" for name in kind.unexpected)
        case "Required":
            return f"missing field `{kind.property}`"
        case _:
            return error.message[:1].lower() + error.message[1:]


def _plain(body: Mapping[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(body, default=dict))
    return plain
