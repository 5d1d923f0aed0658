"""Kubernetes objects that back ends hand over, and the plain files that lie beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any, Final

from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import value_of
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.manifests.kinds import get_kind
from gpuplan.compiler.manifests.provenance import Trace
from gpuplan.compiler.manifests.yamltext import to_yaml

HEADER: Final = "# Written by gpuplan; edit policies/ and overlays/, then run gpuplan build.\n"
"""The first line of every file. It names no version and no date: the same input gives the same bytes."""


class Gvk(NamedTuple):
    """Group, version and kind; the core group is empty."""

    group: str
    version: str
    kind: str

    def __str__(self) -> str:
        return f"{self.kind} in {self.group}/{self.version}" if self.group else f"{self.kind} in {self.version}"

    @property
    def is_possible(self) -> bool:
        """Whether a custom resource can have these names; what an object says of itself may be any text.

        `ValidateCustomResourceDefinition` of k8s.io/apiextensions-apiserver, by `IsDNS1123Subdomain` and
        `IsDNS1035Label`, the latter of the kind in lower case. Kubernetes' own names are of these forms, too.
        """
        is_group = not self.group or (len(self.group) <= _LONGEST_GROUP and _GROUP.fullmatch(self.group) is not None)
        is_version = len(self.version) <= _LONGEST_LABEL and _LABEL.fullmatch(self.version) is not None
        return is_group and is_version and len(self.kind) <= _LONGEST_LABEL and _KIND.fullmatch(self.kind) is not None


_LABEL: Final = regex("[a-z](?:[-a-z0-9]*[a-z0-9])?")
_KIND: Final = regex("[A-Za-z](?:[-A-Za-z0-9]*[A-Za-z0-9])?")
_GROUP: Final = regex(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_LONGEST_LABEL: Final = 63
_LONGEST_GROUP: Final = 253


class Identity(NamedTuple):
    """The names by which a cluster knows an object. Two versions of a group are the same object."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        kind = f"{self.kind}.{self.group}" if self.group else self.kind
        return f"{kind} {self.namespace}/{self.name}" if self.namespace else f"{kind} {self.name}"


def identity_of(body: object) -> Identity:
    """That of an object as people may have written it: empty where something is missing."""
    gvk, metadata = gvk_of(body), value_of(body, ("metadata",))
    found = metadata if isinstance(metadata, Mapping) else {}
    return Identity(gvk.group, gvk.kind, str(found.get("namespace", "")), str(found.get("name", "")))


def gvk_of(body: object) -> Gvk:
    """The same of its group, version and kind."""
    found = body if isinstance(body, Mapping) else {}
    group, _, version = str(found.get("apiVersion", "")).rpartition("/")
    return Gvk(group, version, str(found.get("kind", "")))


def is_object(body: object) -> bool:
    """Whether it says of which kind it is, and what it is called."""
    metadata = body.get("metadata") if isinstance(body, Mapping) else None
    if not isinstance(body, Mapping) or not isinstance(metadata, Mapping):
        return False
    return all(
        value and isinstance(value, str) for value in (body.get("apiVersion"), body.get("kind"), metadata.get("name"))
    )


class Subject(NamedTuple):
    """A document that an object is about, by kind and name. An empty name stands for all documents of the kind."""

    kind: str
    name: str


class Hook(StrEnum):
    """The step of a sync that runs an object. Such an object is no part of what a folder applies."""

    SUPPORT = "support"
    """It is there before the Jobs of a sync, and no longer than the sync takes."""
    BEFORE = "before"
    """A Job that must succeed before anything is applied."""
    AFTER = "after"
    """A Job that must succeed when everything is applied."""


class Manifest(Value):
    """A Kubernetes object and the folder that it belongs in.

    ``folder`` is relative to the cluster's own folder: ``gpu-operator``, ``namespaces/research``; empty is that folder
    itself. ``body`` is the object in the order in which it should be read, with ``apiVersion``, ``kind`` and
    ``metadata.name``; an object of the cluster has no ``metadata.namespace``. ``is_partial`` says that it is a part of
    an object that somebody else makes, for server-side apply: what its schema requires may be missing. What has a
    lower ``order`` is to be applied before others of its kind, and before kinds that are applied along with it. What
    has a ``hook`` is for Argo CD alone. One that ``is_foreign`` was made by people or programs, and may be of any kind;
    any other one of a kind that is not in ``manifests/kinds/`` is a ``ValueError``, and so is one that is
    ``about`` nothing.

    ``about`` are the documents of the policy that say what is in the object: the pool of a rule for nodes, the tenant
    and the pools of a quota. What sums up the whole cluster is about the cluster. It tells which change of the policy a
    difference belongs to. The ``trace`` tells which values of the policy each leaf comes from;
    it is None where all is gpuplan's own, or somebody else's. ``why`` is the reason of an object that no policy asks
    for, with the page that says more; its kind may have the reason instead.
    """

    folder: str
    body: Mapping[str, Any]
    is_partial: bool = False
    order: int = 0
    hook: Hook | None = None
    is_foreign: bool = False
    about: tuple[Subject, ...] = field(kw_only=True)
    trace: Trace | None = field(kw_only=True, compare=False)
    why: str = field(default="", kw_only=True, compare=False)

    def __post_init__(self) -> None:
        _check_subjects(self.about)
        if not self.is_foreign:
            get_kind(self.body["apiVersion"].rpartition("/")[0], self.body["kind"])

    def with_body(self, body: Mapping[str, Any]) -> Manifest:
        """The same for another body; a build needs thousands, and `dataclasses.replace` takes ten times as long."""
        more = self.is_partial, self.order, self.hook, self.is_foreign
        return Manifest(self.folder, body, *more, about=self.about, trace=self.trace, why=self.why)

    @property
    def text(self) -> str:
        """The text of the object's file. A comment says why gpuplan writes an object that no policy asks for."""
        why = self.why or ("" if self.is_foreign else get_kind(self.gvk.group, self.kind).why)
        return HEADER + (f"# Why: {why} of gpuplan\n" if why else "") + to_yaml(self.body)

    @property
    def kind(self) -> str:
        return str(self.body["kind"])

    @property
    def name(self) -> str:
        return str(self.body["metadata"]["name"])

    @property
    def namespace(self) -> str:
        """Empty for an object of the cluster."""
        return str(self.body["metadata"].get("namespace", ""))

    @property
    def gvk(self) -> Gvk:
        return gvk_of(self.body)

    @property
    def identity(self) -> Identity:
        body, metadata = self.body, self.body["metadata"]
        group = body["apiVersion"].rpartition("/")[0]
        return Identity(group, body["kind"], metadata.get("namespace") or "", metadata["name"])


class File(Value):
    """A file that no kustomization applies, such as Helm values; ``path`` is relative to the cluster's own folder.

    It is ``about`` documents as a `Manifest` is.
    """

    path: str
    data: bytes
    about: tuple[Subject, ...] = field(kw_only=True)
    trace: Trace | None = field(kw_only=True, compare=False)

    def __post_init__(self) -> None:
        _check_subjects(self.about)


def _check_subjects(about: tuple[Subject, ...]) -> None:
    if not about:
        raise ValueError("say what of the policy it is about: of what sums up a cluster that is the cluster")
