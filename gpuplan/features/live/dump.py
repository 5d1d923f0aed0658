"""The objects in what `kubectl get -o yaml|json` printed and in files from Git, each with its place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Final

from gpuplan.compiler.base.diagnostics import Diagnostic, Label, Origin, SourceFile, WholeFile
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import grouped, inside, mapping, text
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.documents import Document, file_of
from gpuplan.compiler.documents.printed import is_cut_off, is_list, objects_in, read_printed
from gpuplan.compiler.manifests import Identity, identity_of, parse_quantity
from gpuplan.features.live.findings import report


class Item(Value):
    """An object of a dump. Its ``body`` may have any shape."""

    at: Origin
    body: Mapping[str, Any]

    @property
    def identity(self) -> Identity:
        return identity_of(self.body)

    @property
    def kind(self) -> str:
        return self.identity.kind

    @property
    def group(self) -> str:
        return self.identity.group

    @property
    def name(self) -> str:
        return self.identity.name

    @property
    def namespace(self) -> str:
        return self.identity.namespace

    @property
    def labels(self) -> Mapping[str, str]:
        return texts_of(inside(self.body, "metadata", "labels"))

    @property
    def annotations(self) -> Mapping[str, str]:
        return texts_of(inside(self.body, "metadata", "annotations"))

    @property
    def title(self) -> str:
        """The object as people call it: `` ConfigMap `x` in namespace `y` ``."""
        where = f" in namespace `{self.namespace}`" if self.namespace else ""
        return f"{self.kind or 'object'} `{self.name}`{where}" if self.name else self.kind or "object"

    @property
    def file(self) -> str:
        """The file that it is in, as the user named it."""
        return file_of(self.at).path

    @property
    def source(self) -> str:
        """The object and its file, for a comment: ``ConfigMap `x` in namespace `y` (cluster.yaml)``."""
        return f"{self.title} ({self.file})"


def texts_of(value: object) -> dict[str, str]:
    """Return the values of a mapping that are texts, by their keys."""
    return {key: item for key, item in mapping(value).items() if isinstance(item, str)}


_DIGITS: Final = frozenset("0123456789abcdef")
_LENGTH: Final = 8


def is_named(name: str, start: str) -> bool:
    """Whether it is this name, or this name with a digest."""
    digest = name.removeprefix(f"{start}-")
    return name == start or (digest != name and len(digest) == _LENGTH and set(digest) <= _DIGITS)


def units_in(value: object) -> int:
    """Return the whole units of a quantity, 0 where it is none."""
    found = parse_quantity(str(value)) if isinstance(value, str | int) else None
    return int(found or 0)


def publishes(node: Item, resource: str) -> bool:
    """Whether a node has units of a resource."""
    status = inside(node.body, "status")
    return any(units_in(inside(status, field).get(resource)) for field in ("allocatable", "capacity"))


class Dump(Value):
    """The objects of all files, and ``others``: documents that are no Kubernetes objects, such as a mig-parted file.

    Secrets are none of them: they are dropped as they are read. ``empty`` are the files that hold no values, or a text
    alone, such as what kubectl tells a person. ``lists`` are the files with a List, which may hold nothing.
    """

    objects: tuple[Item, ...] = ()
    others: tuple[Document, ...] = ()
    empty: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()

    def of_kind(self, group: str, *kinds: str) -> tuple[Item, ...]:
        return tuple(item for kind in kinds for item in self._by_kind.get((group, kind), ()))

    def find(self, group: str, kind: str, name: str, namespace: str = "") -> Item | None:
        return self._by_identity.get(Identity(group, kind, namespace, name))

    @cached_property
    def _by_kind(self) -> Mapping[tuple[str, str], tuple[Item, ...]]:
        return grouped(((item.group, item.kind), item) for item in self.objects)

    @cached_property
    def _by_identity(self) -> Mapping[Identity, Item]:
        return {item.identity: item for item in reversed(self.objects)}


def read_dump(files: Mapping[str, bytes]) -> tuple[Dump, tuple[Diagnostic, ...]]:
    """Return the objects in files by name, those of Lists one by one; what cannot be read is a finding."""
    objects: list[Item] = []
    others: list[Document] = []
    empty: list[str] = []
    lists: dict[str, None] = {}
    found: list[Diagnostic] = []
    for name, content in files.items():
        documents, unread = read_printed(name, content)
        if unread and (line := _line_of_stderr(content)):
            number, shown = line
            place = Origin(WholeFile(SourceFile(name, "")))
            unread = (report("stderr-in-file", place, file=name, line=shown, number=number),)
        found += unread
        if not unread and not any(mapping(printed.data) for printed in documents):
            empty.append(name)
        for printed in documents:
            if printed.document is not None and not printed.document.is_whole:
                continue
            body = mapping(printed.data)
            if text(body.get("apiVersion")).startswith("kustomize.config.k8s.io/"):
                continue
            if is_cut_off(body):
                found.append(report("list-cut-off", printed.at))
                continue
            if "kind" in body and "apiVersion" in body:
                lists |= dict.fromkeys([name] if is_list(body) else ())
                bodies = ((one.at, mapping(one.data)) for one in objects_in(printed))
                objects += [
                    Item(at, inner) for at, inner in bodies if (inner.get("apiVersion"), inner.get("kind")) != _SECRET
                ]
            elif printed.document is not None and body:
                others.append(printed.document)
    chosen, twice = _once(objects)
    return Dump(chosen, tuple(others), tuple(empty), tuple(lists)), (*found, *twice)


_STDERR: Final = regex(r"(?:Warning: |Error from server|error: |Flag --|[IWE]\d{4} \d\d:\d\d:\d\d\.).*")
"""Lines that kubectl, or the library for logs within it, writes beside its output."""
_AT_ENDS: Final = 2**16


def _line_of_stderr(content: bytes) -> tuple[int, str] | None:
    """Return the number and the text of the first line that is none of kubectl's output, near the beginning."""
    lines = content[:_AT_ENDS].decode(errors="replace").splitlines()
    return next(((number, line[:80]) for number, line in enumerate(lines, 1) if _STDERR.fullmatch(line)), None)


def _once(objects: Iterable[Item]) -> tuple[tuple[Item, ...], list[Diagnostic]]:
    """Return each object once: the fuller one if the other says nothing else, as a file from Git; else the first."""
    chosen: dict[tuple[Identity, bool], Item] = {}
    found: list[Diagnostic] = []
    for item in objects:
        # What somebody has a node get is no node: the kubelet makes those, with a status.
        is_for_node = item.kind == "Node" and not item.group and "status" not in item.body
        key = item.identity, is_for_node
        there = chosen.setdefault(key, item)
        is_system = (item.group, item.kind, item.name) == ("", "Namespace", "kube-system")
        if is_system and len({_uid(item), _uid(there)} - {""}) > 1:
            found.append(report("two-clusters", item.at, related=(Label(there.at, "the one before"),)))
        if there is item or is_part(_meaning(item), _meaning(there)):
            continue
        if is_part(_meaning(there), _meaning(item)):
            chosen[key] = item
            continue
        is_other = len({_uid(item), _uid(there)} - {""}) > 1
        how = "their `uid` differs: another cluster has the name, too, or the object was made again" if is_other else ""
        related = (Label(there.at, "this one was read"),)
        found.append(report("twice-in-dump", item.at, related=related, item=item, how=how))
    return tuple(chosen.values()), found


def _uid(obj: Item) -> str:
    return text(inside(obj.body, "metadata").get("uid"))


def _meaning(obj: Item) -> Mapping[str, object]:
    """Return an object without what the API server and those who apply it add."""
    spoken = {key: value for key, value in obj.body.items() if key not in ("metadata", "status")}
    return spoken | ({"labels": obj.labels} if obj.labels else {})


def is_part(some: object, whole: object) -> bool:
    """Whether a value is another one, or a mapping within it."""
    if isinstance(some, Mapping) and isinstance(whole, Mapping):
        return all(key in whole and is_part(value, whole[key]) for key, value in some.items())
    return some == whole


_SECRET: Final = ("v1", "Secret")
