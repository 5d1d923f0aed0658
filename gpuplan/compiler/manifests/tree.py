"""The files of one cluster: one for each object, plain files as they are, and a kustomization in every folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set as AbstractSet
from hashlib import sha256
from typing import Final

from gpuplan.compiler.base.diagnostics import Diagnostic, Finding, Label, Origin, Rule, SourceFile, WholeFile
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.manifests.kustomization import FILE_NAME, Apart, component_paths, kustomization_text, list_folders
from gpuplan.compiler.manifests.model import HEADER, File, Identity, Manifest
from gpuplan.compiler.manifests.rules import FILE_WRITTEN_TWICE, OBJECT_WRITTEN_TWICE

_PORTABLE: Final = regex(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?")
_BETWEEN_WORDS: Final = regex(r"[^a-z0-9]+")
_LONGEST_STEM: Final = 132
"""With a suffix this stays below the 143 bytes that encrypted home folders (eCryptfs) leave to a file name."""


class Tree(Value):
    """The files of a cluster by path below the output folder.

    ``objects`` are the paths of the files that a kustomization applies, namespaces before what lies in them.
    """

    files: Mapping[str, bytes]
    objects: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...]


def render_tree(
    cluster: str,
    manifests: Iterable[Manifest],
    files: Iterable[File],
    components: Mapping[str, tuple[str, ...]],
    out: str = "out",
    root: str = "/",
    apart: Apart | None = None,
) -> Tree:
    """All files of a cluster by path below ``out``, such as ``dev/gpu-operator/configmap-x.yaml``.

    Objects are taken one by one, and none is needed once its text is made.
    ``components`` are the hand-written kustomize components by the folder that includes them. They are relative to the
    repository's ``root``, and so is ``out``. Where two things claim one name the first keeps it, and a finding names
    both.
    """
    tree = _Files(cluster, out)
    for manifest in manifests:
        tree.add_manifest(manifest)
    for file in files:
        tree.add_file(file)
    for path, data in render_kustomizations(cluster, tree.applied, tree.folders, components, out, root, apart):
        tree.add(path, data, FILE_NAME)
    namespaces_first = sorted(tree.applied, key=lambda path: tree.applied[path].kind != "Namespace")
    objects = tuple(f"{cluster}/{path}" for path in namespaces_first)
    return Tree(tree.files, objects, tuple(tree.diagnostics))


def render_kustomizations(
    cluster: str,
    applied: Iterable[str],
    folders: AbstractSet[str],
    components: Mapping[str, tuple[str, ...]],
    out: str = "out",
    root: str = "/",
    apart: Apart | None = None,
) -> Iterator[tuple[str, bytes]]:
    """The kustomization of each folder, by its path in the cluster's own.

    ``applied`` are the paths of its objects; ``folders`` are those that hold other files.
    """
    for folder, resources in list_folders(applied, folders | components.keys(), apart).items():
        paths = component_paths(_join(out, cluster, folder), components.get(folder, ()), root) if components else ()
        copied = apart.replacements if apart and apart.folder == folder else ()
        yield _join(folder, FILE_NAME), (HEADER + kustomization_text(resources, paths, copied)).encode()


def render_index(folders: Iterable[str], comment: str = "") -> dict[str, bytes]:
    """A kustomization over folders that were rendered one by one, by its file name."""
    return {FILE_NAME: (HEADER + comment + kustomization_text(sorted(folders))).encode()}


def object_path(manifest: Manifest) -> str:
    """The path of an object's file, relative to the cluster's own folder."""
    return _join(manifest.folder, file_name(manifest.kind, manifest.name))


def file_name(kind: str, name: str) -> str:
    """The file name of an object. It is its kind and name in lower case, where any file system can hold that.

    Otherwise it is as much of them as possible, and a digest of the name, which tells ``a:b`` from ``a-b``.
    """
    stem = f"{kind.lower()}-{name}"
    if len(stem) > _LONGEST_STEM or not _PORTABLE.fullmatch(name):
        readable = _BETWEEN_WORDS.sub("-", stem.lower())[: _LONGEST_STEM - 9].strip("-")
        stem = f"{readable}-{sha256(name.encode()).hexdigest()[:8]}"
    return stem + ".yaml"


class _Files:
    """The files so far; a path is written once."""

    def __init__(self, cluster: str, out: str) -> None:
        self.files: dict[str, bytes] = {}
        self.applied: dict[str, Identity] = {}
        self.folders: set[str] = set()
        self.diagnostics: list[Diagnostic] = []
        self._cluster = cluster
        self._out = out
        self._paths: dict[Identity, str] = {}

    def add_manifest(self, manifest: Manifest) -> None:
        identity = manifest.identity
        path = object_path(manifest)
        if identity in self._paths:
            self._report(OBJECT_WRITTEN_TWICE, f"{identity} is written twice", self._paths[identity], path)
            return
        self._paths[identity] = path
        if self.add(path, manifest.text.encode(), identity):
            self.applied[path] = identity

    def add_file(self, file: File) -> None:
        if self.add(file.path, file.data, file.path):
            self.folders.add(file.path.rpartition("/")[0])

    def add(self, path: str, data: bytes, writer: Identity | str) -> bool:
        """Keep a file, unless another writer had its path before: an object, or a file of that name."""
        whole = f"{self._cluster}/{path}"
        if whole in self.files:
            self._report(FILE_WRITTEN_TWICE, f"{self.applied.get(path, path)} and {writer} claim one file", path)
            return False
        self.files[whole] = data
        return True

    def _report(self, rule: Rule, message: str, path: str, other: str = "") -> None:
        related = (Label(self._origin(other), "and here"),) if other not in ("", path) else ()
        finding = Finding(self._origin(path), message, related=related)
        self.diagnostics.append(Diagnostic(rule, finding, clusters=(self._cluster,)))

    def _origin(self, path: str) -> Origin:
        text = self.files.get(f"{self._cluster}/{path}", b"").decode(errors="replace")
        return Origin(WholeFile(SourceFile(_join(self._out, self._cluster, path), text)))


def _join(*parts: str) -> str:
    return "/".join([part for part in parts if part])
