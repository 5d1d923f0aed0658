"""Other values that a scalar of a policy could have, and what has to change along with it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from functools import cached_property
from itertools import chain
from typing import Any, Final, Literal, NamedTuple, get_args, get_origin

from pydantic.fields import FieldInfo

from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.catalog import load as load_catalog
from gpuplan.compiler.catalog.operators import driver_defects, lines
from gpuplan.compiler.manifests import kubernetes_versions
from gpuplan.compiler.policy.fields import fields_along
from gpuplan.compiler.policy.marks import find_mark, types_in
from gpuplan.compiler.policy.models import KINDS
from gpuplan.compiler.policy.names import NAMESPACE, Naming, Reference
from gpuplan.compiler.policy.walking import naming_of
from tests.laws.tracing.policies import OVERLAYS, Edit, Place, Policies


class Mutation(NamedTuple):
    """Edits that make one change: ``place`` is the value that is meant, ``edits`` say it and what refers to it.

    ``folder`` is the cluster whose folder is renamed along, and its new name.
    """

    place: Place
    edits: tuple[Edit, ...]
    folder: tuple[str, str] | None = None

    @property
    def before(self) -> frozenset[Place]:
        return frozenset(edit.place for edit in self.edits)

    @property
    def after(self) -> frozenset[Place]:
        return frozenset(self._moved(edit.becomes) for edit in self.edits)

    def apply(self, policies: Policies) -> Policies:
        edited = policies.edited(self.edits)
        return edited.with_cluster(*self.folder) if self.folder else edited

    @property
    def clusters(self) -> frozenset[str]:
        """Those whose own files it changes; empty where it changes what several share."""
        found = {edit.place.file.split("/")[1] if _is_overlay(edit.place.file) else "" for edit in self.edits}
        return frozenset() if "" in found else frozenset(found)

    def __str__(self) -> str:
        value = self.edits[0].value
        others = f" and {len(self.edits) - 1} more" if len(self.edits) > 1 else ""
        return f"{str(value)!r}{others}"

    def _moved(self, place: Place) -> Place:
        if self.folder is None:
            return place
        old, new = (f"{OVERLAYS}/{name}/" for name in self.folder)
        return place._replace(file=place.file.replace(old, new, 1))


class Scalar(NamedTuple):
    """A value, or a key that the policy's author chose, by its place."""

    place: Place
    value: Any
    is_key: bool = False


class Mutations:
    """The other values that scalars of some policies could have; whether they are valid is for others to judge."""

    def __init__(self, policies: Policies) -> None:
        self._policies = policies

    @cached_property
    def scalars(self) -> tuple[Scalar, ...]:
        """All values, and the keys of mappings whose keys are anybody's choice."""
        keys = {
            place._replace(path=place.path[:end]): None
            for place, _ in self._policies.scalars()
            for end in range(2, len(place.path) + 1)
            if self._is_free(place._replace(path=place.path[:end]))
        }
        values = (Scalar(place, value) for place, value in self._policies.scalars())
        return (*values, *(Scalar(place, place.path[-1], is_key=True) for place in keys))

    def of(self, scalar: Scalar) -> Iterator[Mutation]:
        """Each other value once, the likely ones first."""
        seen: set[object] = set()
        for mutation in self._of(scalar):
            key = tuple((edit.place, repr(edit.value)) for edit in mutation.edits)
            if key not in seen:
                seen.add(key)
                yield mutation

    def _of(self, scalar: Scalar) -> Iterator[Mutation]:
        place, value, is_key = scalar
        if is_key:
            yield from self._other_keys(place)
        elif place.path == ("metadata", "name"):
            yield from self._renamed(place)
        elif value is None:
            yield from self._instead_of_null(place)
        else:
            for other in self._values(place, value):
                yield Mutation(place, (Edit(place, other),))
            yield from self._together(place, value)

    # --- One value -----------------------------------------------------------------------------------------------

    def _values(self, place: Place, value: Any) -> Iterator[Any]:
        found: Iterable[Any]
        match value:
            case bool():
                found = (not value,)
            case int():
                found = (value + 1, 0, value - 1, value * 2, value // 2, value + 8, value - 2, 1, *_rest(place))
            case float():
                found = (value / 2, value * 1.5, value + 1)
            case _:
                found = chain(self._known(place), texts(str(value)))
        yield from (other for other in found if other != value)

    def _known(self, place: Place) -> Iterator[str]:
        """Words that the field knows: an enum's members, versions, models, names of documents."""
        *_, key = (part for part in place.path if isinstance(part, str))
        field = self._field(place)
        if field is None:
            return
        yield from _members(field)
        if reference := find_mark(field, Reference):
            yield from self._names(reference.naming)
        match self._kind(place), place.path:
            case _, (*_, "gpu"):
                yield from load_catalog().ids()
            case _, (*_, "unit"):
                yield from self._units()
            case _, (*_, "currency"):
                yield from ("EUR", "CHF")
            case _, (*_, "timeZone"):
                yield from ("Europe/Berlin", "America/New_York")
            case _, (*_, "kubernetes"):
                oldest, newest = (int(text.split(".")[1]) for text in kubernetes_versions())
                yield from (f"1.{minor}" for minor in (newest, oldest, *range(newest - 1, oldest, -1)))
            case _, (*_, "gpuOperator", "version"):
                known = [f"{line.name}.{patch}" for patch in (0, 1) for line in lines()]
                yield from (*known[-1:], *known[:1], *(release for line in lines() for release in line.drivers), *known)
            case _, (*_, "driver", "version"):
                yield from (driver for line in lines() for driver in line.drivers.values())
                yield from (driver for defect in driver_defects() for driver in defect.versions)
            case "Cluster", (*_, "scheduler", "version"):
                yield from ("v0.19.2", "v0.18.0", "v0.17.0", "v0.15.0", "v0.12.0", "v0.11.0", "v0.10.0", "v0.9.0")
            case _:
                pass
        if key in ("cpu", "memory", "size"):
            yield from ("1", "500m", "1Ti", "1.5Gi")

    def _instead_of_null(self, place: Place) -> Iterator[Mutation]:
        """What an overlay takes away is there, as the base has it or with other values."""
        for file, documents in self._policies.documents.items():
            for document in documents:
                found = _get(document, place.path) if not _is_overlay(file) else None
                if found is not None and _title(document) == self._title(place):
                    yield Mutation(place, (Edit(place, found),))
                    if isinstance(found, Mapping):
                        changed = {
                            key: next(texts(value)) if isinstance(value, str) else value for key, value in found.items()
                        }
                        yield Mutation(place, (Edit(place, changed),))

    # --- Several values ------------------------------------------------------------------------------------------

    def _renamed(self, place: Place) -> Iterator[Mutation]:
        """The document, as every layer calls it, and all that refers to it."""
        kind, name = self._title(place)
        for new in (f"{name}-x", f"0-{name}", f"zz-{name}"):
            edits = [Edit(place, new)]
            for other, value in self._policies.scalars():
                is_it = other.path == ("metadata", "name") and self._title(other) == (kind, name)
                if is_it or (value == name and self._refers(other, naming_of(kind))):
                    edits.append(Edit(other, new))
            folder = (name, new) if kind == "Cluster" else None
            yield Mutation(place, tuple(dict.fromkeys(edits)), folder)

    def _together(self, place: Place, value: Any) -> Iterator[Mutation]:
        """The same value wherever it means the same."""
        match self._kind(place), place.path:
            case "Tenant", ("spec", "namespaces", _):
                yield from self._namespace(place, value)
            case _, (*_, "workloadTypes", int()):
                yield from self._wherever(place, value, "workloadTypes")
            case "Pool" | "MigLayout", ("spec", "gpu"):
                for model in load_catalog().ids():
                    if model == value:
                        continue
                    edits = [Edit(other, model) for other in self._same_gpu(place)]
                    yield Mutation(place, (Edit(place, model), *edits))
            case _:
                pass

    def _namespace(self, place: Place, name: str) -> Iterator[Mutation]:
        tenant = self._title(place)[1]
        for new in (f"{name}-x", f"0-{name}", f"zz-{name}"):
            edits = [Edit(place, new)]
            for other, value in self._policies.scalars():
                split = len(other.path) > 2 and other.path[-2:] == ("split", name)
                if split and self._title(other) == ("Tenant", tenant):
                    edits.append(Edit(other, new, is_key=True))
                    continue
                is_used = self._refers(other, NAMESPACE) and self._tenant_of(other) == tenant
                if value == name and (is_used or (other != place and other.path[:2] == ("spec", "namespaces"))):
                    edits.append(Edit(other, new))
            yield Mutation(place, tuple(edits))

    def _wherever(self, place: Place, value: str, key: str) -> Iterator[Mutation]:
        others = [at for at, text in self._policies.scalars() if text == value and key in at.path and at != place]
        for new in (f"{value}-x", f"a{value}"):
            yield Mutation(place, tuple(Edit(at, new) for at in (place, *others)))

    def _same_gpu(self, place: Place) -> Iterator[Place]:
        """The models of the layouts of pools and of the pools of layouts, as far as these lead."""
        _, name = self._title(place)
        layouts = {name} if self._kind(place) == "MigLayout" else set()
        pools = {name} if self._kind(place) == "Pool" else set()
        uses = {(self._title(at)[1], value) for at, value in self._policies.scalars() if at.path[-1] == "layout"}
        for _ in uses:
            pools |= {pool for pool, layout in uses if layout in layouts}
            layouts |= {layout for pool, layout in uses if pool in pools}
        for other, _ in self._policies.scalars():
            kind, title = self._title(other)
            if (
                other.path == ("spec", "gpu")
                and other != place
                and title in {"MigLayout": layouts, "Pool": pools}[kind]
            ):
                yield other

    def _other_keys(self, place: Place) -> Iterator[Mutation]:
        key = str(place.path[-1])
        match place.path:
            case (*_, "instances", _):
                for profile in sorted(self._profiles() - {key}):
                    yield Mutation(place, (Edit(place, profile, is_key=True),))
                    yield Mutation(place, (Edit(place, profile, is_key=True), *self._units_named(place, key, profile)))
            case (*_, "split", _):
                return
            case _:
                for new in (f"{key}x", f"a{key}", f"{key}_x", f"z{key}"):
                    yield Mutation(place, (Edit(place, new, is_key=True),))

    def _units_named(self, place: Place, old: str, new: str) -> Iterator[Edit]:
        """What the pools of a layout hand out, as quotas and workloads call it."""
        name = self._title(place)[1]
        pools = {
            self._title(at)[1] for at, value in self._policies.scalars() if at.path[-1] == "layout" and value == name
        }
        pools |= {name} if self._kind(place) == "Pool" else set()
        for other, value in self._policies.scalars():
            if other.path[-1] == "unit" and value == old:
                around = self._policies.get(other._replace(path=other.path[:-1]))
                if self._pool_of(other, around) in pools:
                    yield Edit(other, new)

    # --- What policies say ---------------------------------------------------------------------------------------

    def _pool_of(self, place: Place, around: Mapping[str, Any]) -> str:
        if "pool" in around:
            return str(around["pool"])
        return next(
            (
                str(v)
                for at, v in self._policies.scalars()
                if self._title(at) == self._title(place) and at.path == ("spec", "pool")
            ),
            "",
        )

    def _tenant_of(self, place: Place) -> str:
        title = self._title(place)
        found = (
            value
            for at, value in self._policies.scalars()
            if at.path == ("spec", "tenant") and self._title(at) == title
        )
        return str(next(found, ""))

    def _refers(self, place: Place, naming: Naming) -> bool:
        field = self._field(place)
        reference = find_mark(field, Reference) if field else None
        return reference is not None and reference.naming == naming

    def _names(self, naming: Naming) -> Iterator[str]:
        for document in chain.from_iterable(self._policies.documents.values()):
            kind, name = _title(document)
            if kind in KINDS and naming_of(kind) == naming:
                yield name
            elif naming == NAMESPACE and kind == "Tenant":
                yield from _get(document, ("spec", "namespaces")) or ()

    def _units(self) -> Iterator[str]:
        yield from sorted({str(value) for at, value in self._policies.scalars() if at.path[-1] == "unit"})
        yield from ("shared", "gpu")
        yield from sorted(self._profiles())

    def _profiles(self) -> set[str]:
        models = {value for at, value in self._policies.scalars() if at.path[-1] == "gpu"}
        catalog = load_catalog()
        return {profile.name for model in models if (gpu := catalog.find(str(model))) for profile in gpu.profiles}

    def _is_free(self, place: Place) -> bool:
        """Whether the last part of the route is a key that no model declares."""
        if not isinstance(place.path[-1], str) or place.path[:1] != ("spec",):
            return False
        words = sum(isinstance(part, str) for part in place.path)
        fields = [*fields_along(KINDS[self._kind(place)], place.path)]
        is_key_of_mapping = fields[-2:-1] == fields[-1:] and any(
            get_origin(part) is dict for part in types_in(fields[-1].annotation)
        )
        return is_key_of_mapping or len(fields) < words

    def _field(self, place: Place) -> FieldInfo | None:
        model = KINDS.get(self._kind(place))
        fields = [*fields_along(model, place.path)] if model else []
        return fields[-1] if fields else None

    def _kind(self, place: Place) -> str:
        return self._title(place)[0]

    def _title(self, place: Place) -> tuple[str, str]:
        return _title(self._policies.documents[place.file][place.document])


def _title(document: Any) -> tuple[str, str]:
    return document.get("kind", ""), document.get("metadata", {}).get("name", "")


def _get(value: Any, path: Path) -> Any:
    for part in path:
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    return value


def _is_overlay(file: str) -> bool:
    return file.startswith(f"{OVERLAYS}/")


def _members(field: FieldInfo) -> Iterator[str]:
    for part in types_in(field.annotation):
        if isinstance(part, type) and issubclass(part, Enum):
            yield from (member.value for member in part)
        elif get_origin(part) is Literal:
            yield from map(str, get_args(part))


def _rest(place: Place) -> tuple[int, ...]:
    return (2, 3, 4, 16) if place.path[-1] in ("replicas", "count", "gpusPerNode") else ()


_NUMBER: Final = re.compile(r"\d+")


def texts(text: str) -> Iterator[str]:
    """Texts that are a little different."""
    numbers = [*_NUMBER.finditer(text)]
    if "\n" in text:
        yield _NUMBER.sub(lambda number: str(int(number[0]) + 1), text)
        yield text + "more: 1\n"
        return
    yield f"{text}-x"
    for number in (*numbers[:1], *numbers[-1:]):
        yield text[: number.start()] + str(int(number[0]) + 1) + text[number.end() :]
    yield f"{text}x"
    yield f"x{text}"
    yield f"z-{text}"
