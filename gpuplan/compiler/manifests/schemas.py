"""Check objects against the schemas of the cluster that they are for.

Every object is checked: with validators that are kept that takes a microsecond, less than it would take to find out
whether an object of the same shape was checked before.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, cached_property
from math import isfinite
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Final

from gpuplan.compiler.base.diagnostics import Diagnostic, Path, field_path
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.manifests.builtin_schemas import builtin_schemas
from gpuplan.compiler.manifests.crd_schemas import CrdSchemas, strict_schema
from gpuplan.compiler.manifests.crds import Served, serving
from gpuplan.compiler.manifests.model import Gvk, Manifest
from gpuplan.compiler.manifests.schema_rules import Broken, SchemaRules, kept_rules

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator, ValidationError


class Problem(Value):
    """Where an object does not fit its schema; the path is empty when its kind has none.

    ``source`` is what it was judged by: ``Kueue v0.18.6``, a file, or a version of Kubernetes.
    """

    manifest: Manifest
    path: Path
    message: str
    source: str

    @property
    def text(self) -> str:
        return f"`{field_path(self.path)}`: {self.message}" if self.path else self.message


Releases = Mapping[str, str | None]
"""The releases that run, by project, where they are known; None where what runs is another product."""


class SchemaCheck:
    """Checks objects, one after the other, for a cluster of a Kubernetes version, such as ``1.32``.

    Custom resources are checked against the CRDs in the folder ``crds``, and those of kinds that it does not define, or
    not in a form that can be used, against the definitions that come with gpuplan. Where the ``releases`` do not say
    which one runs, an object is right when any release takes it. Nothing is said of kinds that nobody defines. A kind
    in one of Kubernetes' own groups that this version of it does not have is a problem.
    """

    def __init__(self, kubernetes_minor: str, crds: FilePath | None = None, releases: Releases | None = None) -> None:
        self._builtin = builtin_schemas(kubernetes_minor)
        self._crds = _crd_schemas(crds) if crds else None
        self._releases = releases or {}
        self._kubernetes = f"Kubernetes {kubernetes_minor}"
        self._known: dict[tuple[str, str], _Known] = {}
        self._problems: list[Problem] = []

    @property
    def problems(self) -> tuple[Problem, ...]:
        """In the order of the objects."""
        return tuple(self._problems)

    def passed_on(self, manifests: Iterable[Manifest]) -> Iterator[Manifest]:
        """The same objects, each when it was checked."""
        for manifest in manifests:
            body = manifest.body
            key = body["apiVersion"], body["kind"]
            if key not in self._known:
                self._known[key] = self._find(manifest.gvk)
            known = self._known[key]
            if known.missing:
                self._problems.append(Problem(manifest, (), known.missing, self._kubernetes))
            elif known.judges and not any(judge.takes(manifest) for judge in known.judges):
                found = [judge.problems(manifest) for judge in known.judges]
                fewest = min(found, key=len)
                self._problems += fewest
            yield manifest

    def knows(self, manifest: Manifest) -> bool:
        """Whether something is said of an object that was checked: its kind is defined somewhere."""
        known = self._known[manifest.body["apiVersion"], manifest.body["kind"]]
        return bool(known.judges or known.missing)

    def _find(self, gvk: Gvk) -> _Known:
        if not gvk.is_possible:
            return _Known((), "no API has such a kind, or such a version: both are letters, digits and `-`")
        if self._builtin.has_group(gvk.group):
            validator = self._builtin.find_validator(gvk)
            missing = "" if validator else f"{self._kubernetes} has no {gvk}"
            judges = (_Judge(self._kubernetes, lambda: validator, is_builtin=True),) if validator else ()
            return _Known(judges, missing)
        given = self._given(self._crds, gvk) if self._crds else None
        return given or self._kept(gvk)

    def _given(self, crds: CrdSchemas, gvk: Gvk) -> _Known | None:
        definition = crds.find(gvk.group, gvk.kind)
        if definition is None:
            return None
        if gvk.version not in definition.versions:
            return _Known((), _unserved(gvk, definition.versions))
        schema = strict_schema(definition.versions[gvk.version])
        try:
            validator = self._builtin.compile(schema)
        except ValueError as error:  # of jsonschema_rs, for what is no schema
            crds.refuse(definition, gvk.version, error)
            return None
        return _Known((_Judge(f"`{definition.file.name}`", lambda: validator, lambda: SchemaRules(schema)),))

    def _kept(self, gvk: Gvk) -> _Known:
        """Return the judges by the definitions that come with gpuplan, from the newest release on."""
        served = serving(gvk.group, gvk.kind, self._releases)
        judges = tuple(self._judge(item, gvk.version) for item in served if gvk.version in item.versions)
        versions = dict.fromkeys(version for item in served for version in item.versions)
        missing = "" if judges or not served else _unserved(gvk, versions)
        return _Known(judges, missing)

    def _judge(self, served: Served, version: str) -> _Judge:
        source = f"{served.title} {served.releases[0]}"
        return _Judge(source, lambda: self._builtin.compile_kept(served, version), lambda: kept_rules(served, version))


_TOO_DEEP: Final = (ValueError, RecursionError)
"""The errors for an object that nests deeper than the library follows, which is 255 levels, or than Python does."""


class _Judge:
    """Judges objects by one definition, which is compiled when it is needed: of several the first is mostly enough."""

    def __init__(
        self,
        source: str,
        validator: Callable[[], Draft202012Validator],
        rules: Callable[[], SchemaRules | None] = lambda: None,
        *,
        is_builtin: bool = False,
    ) -> None:
        self._source = source
        self._is_builtin = is_builtin
        self._find_validator = validator
        self._find_rules = rules

    def takes(self, manifest: Manifest) -> bool:
        try:
            return self._takes(manifest)
        except _TOO_DEEP:
            return False

    def _takes(self, manifest: Manifest) -> bool:
        may_have_nulls = self._is_builtin and manifest.is_foreign and _has_null(manifest.body)
        if not may_have_nulls and _is_valid(self._validator, manifest.body):
            return not self._broken(manifest.body, manifest)
        body, errors = self._without_nulls(manifest.body)
        return not errors and not self._broken(body, manifest)

    def problems(self, manifest: Manifest) -> list[Problem]:
        try:
            return self._problems(manifest)
        except _TOO_DEEP:
            return [Problem(manifest, (), "it nests too deep to be judged", self._source)]

    def _problems(self, manifest: Manifest) -> list[Problem]:
        if not _is_json(manifest.body):
            unbounded = _unbounded(manifest.body)
            return [Problem(manifest, path, "the number is too large or none", self._source) for path in unbounded]
        body, errors = self._without_nulls(manifest.body)
        misfits = [
            (tuple(error.instance_path), _describe(error))
            for error in errors
            if not (manifest.is_partial and type(error.kind).__name__ == "Required")
        ]
        broken = misfits or [(found.path, found.message) for found in self._broken(body, manifest)]
        return [Problem(manifest, path, message, self._source) for path, message in broken]

    def _without_nulls(self, body: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[ValidationError]]:
        """An object as the API server judges it, which drops a field whose null its schema does not take; its errors.

        It is `PruneNonNullableNullsWithoutDefaults` of k8s.io/apiextensions-apiserver. A null in a list stays. Of
        Kubernetes' own kinds every field may be null, and is then none; their schemas take that for a required one too.
        """
        plain = _plain(body)
        errors = [*self._validator.iter_errors(plain)]
        has_dropped = False
        for error in errors:
            *above, name = error.instance_path or (0,)
            if error.instance is None and isinstance(name, str):
                place: Any = plain
                for step in above:
                    place = place[step]
                place.pop(name, None)
                has_dropped = True
        if has_dropped:
            errors = [*self._validator.iter_errors(plain)]
        if self._is_builtin and not errors and _has_null(plain):
            plain = _without_null_fields(plain)
            errors = [*self._validator.iter_errors(plain)]
        return plain, errors

    def _broken(self, body: Mapping[str, Any], manifest: Manifest) -> list[Broken]:
        """The rules that an object breaks; of a part of one only what no other part can mend."""
        found = self._rules.broken(body) if self._rules else ()
        return [item for item in found if item.is_about_keys or not manifest.is_partial]

    @cached_property
    def _validator(self) -> Draft202012Validator:
        return self._find_validator()

    @cached_property
    def _rules(self) -> SchemaRules | None:
        return self._find_rules()


class _Known(NamedTuple):
    """The judges of a kind, or a fault of the kind itself. An object is valid if one judge accepts it."""

    judges: tuple[_Judge, ...]
    missing: str = ""


def _unserved(gvk: Gvk, versions: Iterable[str]) -> str:
    return f"there is no {gvk}: its definition serves {', '.join(versions)}"


def check_schemas(
    manifests: Iterable[Manifest], kubernetes_minor: str, crds: FilePath | None = None, releases: Releases | None = None
) -> tuple[Problem, ...]:
    """Return the problems of all these objects."""
    check = SchemaCheck(kubernetes_minor, crds, releases)
    for _ in check.passed_on(manifests):
        pass
    return check.problems


def unusable_definitions(crds: FilePath | None, root: FilePath) -> tuple[Diagnostic, ...]:
    """Return the faults of definitions that checks have asked for so far, by paths from the repository's root."""
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


def _describe(error: ValidationError) -> str:
    """Return a message about an error, in the words that people use for objects."""
    kind: Any = error.kind
    match type(kind).__name__:
        case "AdditionalProperties":
            return "unknown field " + ", ".join(f"`{name}`" for name in kind.unexpected)
        case "Required":
            return f"missing field `{kind.property}`"
        case _:
            return error.message[:1].lower() + error.message[1:]


def _is_json(body: Mapping[str, Any]) -> bool:
    """Whether all numbers are such that JSON has a form for them."""
    try:
        json.dumps(body, default=dict, allow_nan=False)
    except ValueError:
        return False
    return True


def _unbounded(value: object, path: Path = ()) -> Iterator[Path]:
    """Where numbers are that JSON has no form for: a validator would take them for null."""
    if isinstance(value, float) and not isfinite(value):
        yield path
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from _unbounded(part, (*path, key))
    elif isinstance(value, list | tuple):
        for index, part in enumerate(value):
            yield from _unbounded(part, (*path, index))


def _has_null(part: object) -> bool:
    if isinstance(part, Mapping):
        return any(value is None or _has_null(value) for value in part.values())
    return isinstance(part, list | tuple) and any(map(_has_null, part))


def _without_null_fields(part: Any) -> Any:  # noqa: ANN401 - any part of an object
    if isinstance(part, dict):
        return {key: _without_null_fields(value) for key, value in part.items() if value is not None}
    return [*map(_without_null_fields, part)] if isinstance(part, list) else part


def _plain(body: Mapping[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(body, default=dict))
    return plain
