"""Load a repository: every cluster's overlay on its bases, parsed and resolved."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from posixpath import basename, dirname, normpath
from typing import Final

from gpuplan.compiler.base.diagnostics import Diagnostic, Finding, GpuplanError, Origin, Severity, SourceFile, WholeFile
from gpuplan.compiler.base.plain import section, value_at
from gpuplan.compiler.base.repository import OVERLAYS as OVERLAYS  # noqa: PLC0414 - others take it from here
from gpuplan.compiler.base.trees import leaves
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.base.wording import listing, renaming
from gpuplan.compiler.catalog import Gpu, load as load_catalog
from gpuplan.compiler.documents import (
    DUPLICATE_KEY,
    MAX_BYTES,
    NOTHING_TO_DELETE,
    NOTHING_TO_UNSET,
    UNREAD,
    DiskTree,
    Document,
    FileTree,
    Ignore,
    Kind,
    Reading,
    find_embedded,
    find_folders,
    find_ignores,
    has_folder,
    is_policy_file,
    merge,
    read_bytes,
    read_folder,
    read_manifests,
    removals,
)
from gpuplan.compiler.pipeline.completing import with_node_names, with_pools
from gpuplan.compiler.pipeline.rules import CLUSTER_DOCUMENT, MISSING_BASE, UNMATCHED_OVERLAY
from gpuplan.compiler.pipeline.unread import UnreadFiles, way_to_overlay
from gpuplan.compiler.planning import HandWork, resolve
from gpuplan.compiler.planning.plan import Component, HandWritten, Plan, Stage
from gpuplan.compiler.policy import KINDS, MISSING_FIELD, NOT_EXACTLY_ONE, UNKNOWN_FIELD, Parsed, models, parse
from gpuplan.compiler.policy.models import API_VERSION

KUSTOMIZE = "kustomize"
OUT = "out"
"""The output folder, from the root, unless the user names another one."""
DEFAULT_BASES = ("policies",)
COMPONENT_KIND = "Component"
_STAGES_WITH_PARTS = tuple(stage.value for stage in Stage if stage.has_parts)


class Repository(Value):
    """The documents that were read, and the folders that they were read from.

    ``is_whole`` says that nothing was left out or unread, so that an unused comment is really unused. ``ignores`` are
    the comments in policies, ``hand_ignores`` those in hand-written kustomize files.
    """

    clusters: tuple[str, ...]
    folders: tuple[str, ...]
    plans: tuple[Plan, ...]
    diagnostics: tuple[Diagnostic, ...]
    ignores: tuple[Ignore, ...]
    hand_ignores: tuple[Ignore, ...]
    file_count: int
    is_whole: bool
    documents: Mapping[str, tuple[Document, ...]] = field(default_factory=dict)
    """The documents that each cluster's overlay makes of its bases."""


def load(root: Path, clusters: Sequence[str] = ()) -> Repository:
    """Read the clusters named, or all; raise an error if one does not exist."""
    known = find_folders(root, OVERLAYS)
    if not known:
        raise GpuplanError("no cluster found: there is no folder below overlays/", _way_to_platform(root))
    for name in clusters:
        if name not in known:
            near = renaming(name, known, shortest=3)  # `development` is called `dev`
            hint = f"did you mean `{near}`?" if near else f"the clusters are {listing(known)}"
            raise GpuplanError(f"no cluster `{name}`: overlays/{name}/ does not exist", hint)
    tree = DiskTree(root)
    found = load_tree(tree, known, clusters)
    embedded = tuple(find_embedded(tree, dict.fromkeys((*found.folders, OUT))))
    idle = tuple(_in_no_base(tree, found)) if found.is_whole else ()
    return replace(found, diagnostics=(*embedded, *found.diagnostics, *idle)) if embedded or idle else found


def load_tree(tree: FileTree, known: Sequence[str], clusters: Sequence[str] = ()) -> Repository:
    """Read the clusters named that a tree is known to have, or all of those, wherever its files are."""
    chosen = tuple(name for name in known if not clusters or name in clusters)
    loader = _Loader(tree)
    loader.diagnostics += _in_no_overlay(tree)
    plans = [plan for name in chosen if (plan := loader.load_cluster(name))]
    return Repository(
        chosen,
        (OVERLAYS, *DEFAULT_BASES, *loader.bases),
        tuple(plans),
        tuple(loader.diagnostics),
        _ignores(loader.files),
        _ignores(loader.hand_files),
        len(loader.files),
        is_whole=len(chosen) == len(known) and not loader.unread,
        documents=loader.documents,
    )


def way_to_cluster(tree: FileTree, name: str) -> str:
    """Return how a folder of overlays/ becomes a cluster: like another one, or like that of a starter."""
    others = (f"{OVERLAYS}/{other}/cluster.yaml" for other in find_folders(tree, OVERLAYS))
    like = next((path for path in others if tree.target(path).kind is Kind.FILE), None)
    starter = f"gpuplan init ../starter --cluster {name}` and `"
    copy = f"mkdir -p {OVERLAYS}/{name} && cp {like or f'../starter/{OVERLAYS}/{name}/cluster.yaml'} {OVERLAYS}/{name}/"
    return f"type `{'' if like else starter}{copy}`, and write `name: {name}` and its own destination there"


def own_gpus(root: Path) -> Mapping[str, Gpu]:
    """Return the GPU models that the platform's documents describe, by name; there are none without a platform."""
    if not find_folders(root, OVERLAYS):
        return {}
    return {own.name: own.gpu for plan in load(root).plans for own in plan.gpus}


def _way_to_platform(root: Path) -> str:
    """Return a hint for a folder without a platform: from within one it shows the way up."""
    for depth in range(1, len(root.resolve().parts)):
        above = Path(*[".."] * depth)
        if find_folders(root / above, OVERLAYS):
            way = os.path.normpath(root / above)
            return f"a platform is in `{way}`: say `-C {way}`"
    if has_folder(root, DEFAULT_BASES[0]):
        way = f"restore {OVERLAYS}/ by `git checkout HEAD -- {OVERLAYS}`"
        return f"{DEFAULT_BASES[0]}/ is here: {way}, or write a `kind: Cluster` to {OVERLAYS}/<cluster>/cluster.yaml"
    return "name the folder that holds overlays/ with `-C DIR`; `gpuplan init .` writes a starter"


@dataclass(slots=True)
class _Loader:
    """Reads each folder and parses each document once, however many clusters share it.

    ``unread`` are the folders of which documents are missing, ``opaque`` those of which nobody knows which ones.
    """

    tree: FileTree
    diagnostics: list[Diagnostic] = field(default_factory=list)
    files: dict[str, SourceFile] = field(default_factory=dict)
    hand_files: dict[str, SourceFile] = field(default_factory=dict)
    bases: dict[str, tuple[Document, ...]] = field(default_factory=dict)
    parsed: dict[int, Parsed] = field(default_factory=dict)
    unread: set[str] = field(default_factory=set)
    documents: dict[str, tuple[Document, ...]] = field(default_factory=dict)
    opaque: set[str] = field(default_factory=set)
    unread_files: UnreadFiles = field(init=False)

    def __post_init__(self) -> None:
        self.unread_files = UnreadFiles(self.tree, DEFAULT_BASES[0])

    def load_cluster(self, name: str) -> Plan | None:
        folder = f"{OVERLAYS}/{name}"
        overlay = self._read(folder, skip=frozenset((KUSTOMIZE,)))
        cluster = self._find_cluster(name, folder, overlay)
        bases = self._read_bases(cluster, overlay)
        documents, found = merge(bases, overlay)
        self.documents[name] = documents
        folders = [base for _, base in _bases_of(cluster)]
        read = frozenset({OVERLAYS, OUT, *(base.split("/")[0] for base in folders)})
        is_partial = self._lacks_some(documents, (folder, *folders))
        patches = {id(document) for document in overlay if document is not cluster} if is_partial else ()
        parsed = [
            self._parse(document, bases, documents, read, is_whole=id(document) not in patches)
            for document in documents
        ]
        misread = {
            item.document.name for item in parsed if any(each.rule is UNKNOWN_FIELD for each in item.diagnostics)
        }
        places = ((item, item.finding.at.source) for item in found)
        idle = (
            item
            for item, source in places
            if item.rule is not NOTHING_TO_UNSET or not isinstance(source, Document) or source.name not in misread
        )
        kept = (item for item in idle if not (is_partial and item.rule is NOTHING_TO_DELETE))
        self._add((self.unread_files.locate(item, read) for item in kept), name)
        chosen = next((item for item in parsed if item.document is cluster), None)
        if chosen is None:
            return None
        if folder in self.opaque or not all(document.is_named for document in overlay):
            return None  # any document may be another one than the bases say
        meant = {document.name for document in documents if document.kind not in KINDS}
        unsure = {id(document) for document in overlay} if not self.unread.isdisjoint(folders) else set()
        others = [
            replace(item, policy=None) if item.document.name in meant or id(item.document) in unsure else item
            for item in parsed
            if item.document.kind != "Cluster"
        ]
        hand_work, removed = self._read_hand_work(folder), removals(overlay)
        plan, found = resolve(chosen, others, load_catalog(), hand_work, removed, is_partial=is_partial)
        self._add((self.unread_files.locate(item, read) for item in found), name)
        return plan

    def _add(self, diagnostics: Iterable[Diagnostic], cluster: str) -> None:
        self.diagnostics += (Diagnostic(each.rule, each.finding, (cluster,)) for each in diagnostics)

    def _read(self, folder: str, skip: frozenset[str] = frozenset()) -> tuple[Document, ...]:
        documents, found = read_folder(self.tree, folder, skip=skip)
        self.diagnostics += found
        unread = [item for item in found if item.rule in UNREAD]
        if unread:
            self.unread.add(folder)
        # Nobody knows which documents of the folder could not be read, or what a document is about.
        lost = [document for document in documents if document.reading is Reading.LOST]
        missing = [item for item in unread if item.rule is not DUPLICATE_KEY]
        if len(missing) > len(lost) or any(not document.is_whole and not document.name for document in documents):
            self.opaque.add(folder)
        for document in documents:
            self.files.setdefault(document.file.path, document.file)
        return documents

    def _lacks_some(self, documents: Iterable[Document], folders: Iterable[str]) -> bool:
        """Whether a cluster should have more documents than these; an error says why they could not be read."""
        return not self.unread.isdisjoint(folders) or any(
            document.kind not in KINDS or not document.name for document in documents
        )

    def _parse(
        self,
        document: Document,
        bases: Sequence[Document],
        documents: Sequence[Document],
        read: frozenset[str],
        *,
        is_whole: bool,
    ) -> Parsed:
        """Parse a document once: one that no overlay changes is the same object for every cluster.

        What one that may not be whole lacks is most likely in the document of the bases that could not be read, or that
        it was meant to change.
        """
        known = self.parsed.get(id(document))
        if known is None:
            known = self.parsed[id(document)] = parse(document)
            lacking = [item.finding.label.split("`")[1] for item in known.diagnostics if item.rule is MISSING_FIELD]
            lacking = lacking or _lacking_for_work(known, documents)
            unmatched = _unmatched(document, bases, documents, lacking) if is_whole and lacking else None
            if unmatched:
                known = self.parsed[id(document)] = replace(known, policy=None)
            is_explained = unmatched is not None or not is_whole
            self.diagnostics += (
                with_node_names(with_pools(self.unread_files.sent(item, documents), (*bases, *documents)))
                for item in known.diagnostics
                if not (is_explained and item.rule in (MISSING_FIELD, NOT_EXACTLY_ONE))
            )
            if unmatched:
                self.diagnostics.append(self.unread_files.locate(unmatched, read))
        return known

    def _find_cluster(self, name: str, folder: str, overlay: Sequence[Document]) -> Document | None:
        found = [document for document in overlay if document.kind == "Cluster"]
        if not found and self._lacks_some(overlay, (folder,)):
            return None
        if found and not all(document.is_whole for document in found):
            return found[0]
        if not found:
            at = Origin(WholeFile(SourceFile(folder, "")))
            message = f"overlay `{name}` has no `Cluster` document"
            help_ = f"{way_to_cluster(self.tree, name)}; if this is no cluster, move the folder out of {OVERLAYS}/"
            if has_folder(self.tree, f"{OUT}/{name}"):  # it was built
                help_ = f"bring it back: `git checkout HEAD -- {folder}/cluster.yaml`"
            self._report_cluster(Finding(at, message, help=help_))
            return None
        for extra in (document for document in found[1:] if document.name != found[0].name):
            at = extra.origin / "kind"
            self._report_cluster(Finding(at, f"overlay `{name}` has a second `Cluster` document", help="remove it"))
        if found[0].name not in (name, ""):
            at = found[0].origin / "metadata" / "name"
            message = f"`Cluster` document `{found[0].name}` stands in overlay `{name}`"
            old, new = (name, found[0].name) if has_folder(self.tree, f"{OUT}/{name}") else (found[0].name, name)
            pruned = ", then `gpuplan build --prune-clusters`" if has_folder(self.tree, f"{OUT}/{old}") else ""
            moved = f"`git mv {OVERLAYS}/{name} {OVERLAYS}/{found[0].name}`"
            keep, rename = (f"write `name: {name}`", moved) if old == name else (moved, f"write `name: {name}`")
            help_ = f"to rename cluster `{old}` to `{new}`, {rename}{pruned}; to keep `{old}`, {keep}"
            if (home := dirname(found[0].file.path)) == f"{folder}/{found[0].name}":
                help_ = f"type `mv {home} {OVERLAYS}/`"
            elif has_folder(self.tree, f"{OVERLAYS}/{found[0].name}"):
                help_ = f"write `name: {name}`"
                help_ += f", and give a copy of `{found[0].name}` its own destination, or delete {folder}/"
            self._report_cluster(Finding(at, message, label="not the folder's name", help=help_))
        return found[0]

    def _report_cluster(self, finding: Finding) -> None:
        self.diagnostics.append(CLUSTER_DOCUMENT.report(finding))

    def _read_bases(self, cluster: Document | None, overlay: Sequence[Document]) -> tuple[Document, ...]:
        """Read the bases' documents; the default base may be missing, a named one may not."""
        documents: list[Document] = []
        named = _bases_of(cluster)
        for index, folder in named:
            if has_folder(self.tree, folder):
                if folder not in self.bases:
                    self.bases[folder] = self._read_base(folder)
                documents += self.bases[folder]
            elif cluster is not None:
                others = [name for name in find_folders(self.tree, ".") if name not in (OVERLAYS, OUT)]
                close = renaming(folder, others)
                if close is None and len(named) == 1 and not self._lacks_some(overlay, (f"{OVERLAYS}/{cluster.name}",)):
                    close = self.unread_files.find_base(frozenset({OVERLAYS, OUT, *self.bases}), overlay)
                if index is None and close is None:
                    continue
                at = cluster.origin / "spec" / "bases" / index if index is not None else cluster.origin / "kind"
                rename = f"type `git mv {close} {folder}`, or write `bases: [{close}]` below `spec`"
                finding = Finding(
                    at,
                    f"base `{folder}` does not exist",
                    label=f"did you mean `{close}`" if close else "no such folder",
                    help=(f"write `{close}`" if index is not None else rename)
                    if close
                    else "name a folder of the repository",
                )
                self.diagnostics.append(MISSING_BASE.report(finding))
                self.unread.add(folder)
        return tuple(documents)

    def _read_base(self, folder: str) -> tuple[Document, ...]:
        documents = self._read(folder)
        for document in documents:
            if document.kind == "Cluster" and document.is_whole:
                at, message = document.origin / "kind", f"`Cluster` document `{document.name}` stands in a base"
                help_ = f"move it to {OVERLAYS}/{document.name}/cluster.yaml"
                self._report_cluster(Finding(at, message, label="belongs in an overlay", help=help_))
        return tuple(document for document in documents if document.kind != "Cluster")

    def _read_hand_work(self, folder: str) -> HandWork | None:
        """Read what lies below `kustomize/`, without Components that cannot be read: their files would be nobody's."""
        kustomize = f"{folder}/{KUSTOMIZE}"
        if not has_folder(self.tree, kustomize):
            return None
        documents, found = read_manifests(self.tree, kustomize)
        self.diagnostics += found
        for document in documents:
            self.hand_files.setdefault(document.file.path, document.file)
        paths = [item.finding.at.locate().file.path for item in found if item.rule in UNREAD]
        unread = tuple(f"{dirname(path)}/" for path in paths if _is_kustomization(path))
        hand_written = tuple(
            HandWritten(document.file.path[len(kustomize) + 1 :].split("/")[0], document.origin, document.data)
            for document in documents
            if not document.file.path.startswith(unread)
        )
        components = self._components(kustomize, documents)
        return HandWork(
            tuple(component for component in components if not f"{component.folder}/".startswith(unread)), hand_written
        )

    def _components(self, kustomize: str, documents: Sequence[Document]) -> tuple[Component, ...]:
        """Return the folders of `kustomize/`, and those of single pools and namespaces below their stage's."""
        kinds = {
            dirname(document.file.path): document for document in documents if _is_kustomization(document.file.path)
        }
        found: list[Component] = []
        for stage in find_folders(self.tree, kustomize):
            folder = f"{kustomize}/{stage}"
            inner = find_folders(self.tree, folder) if stage in _STAGES_WITH_PARTS else ()
            if folder in kinds or not inner:
                found.append(_component(stage, None, folder, kinds))
            parts = (_component(stage, name, f"{folder}/{name}", kinds) for name in inner)
            # Beside a Component of the whole stage, other folders are what that one is made of.
            found += (part for part in parts if folder not in kinds or part.kind == COMPONENT_KIND)
        return tuple(found)


def _ignores(files: Mapping[str, SourceFile]) -> tuple[Ignore, ...]:
    return tuple(ignore for file in files.values() for ignore in find_ignores(file))


def _in_no_overlay(tree: FileTree) -> Iterator[Diagnostic]:
    """Yield a finding for each file of policies beside the folders of the clusters, where nothing reads it."""
    for entry in tree.entries(OVERLAYS) if tree.target(OVERLAYS).kind is Kind.FOLDER else ():
        path = f"{OVERLAYS}/{entry.name}"
        documents = (
            read_bytes(path, tree.read(path, MAX_BYTES))[0]
            if is_policy_file(entry.name) and entry.kind is Kind.FILE
            else ()
        )
        if documents:
            help_ = way_to_overlay(tree, DEFAULT_BASES[0], path, documents)
            yield CLUSTER_DOCUMENT.report(
                Finding(documents[0].origin, f"{path} is in no cluster's folder, and not read", help=help_)
            )


_FOLDERS: Final = frozenset(
    ("clusters", "gpuplan", "layouts", "policies", "policy", "pools", "priority-classes", "tenants", "workloads")
)
"""The names of folders that are for policies; others, such as tests and examples, may hold some for another use."""


def _in_no_base(tree: FileTree, repository: Repository) -> Iterator[Diagnostic]:
    """Yield a note for each folder of policies at the root that no cluster reads, if nothing else speaks of it.

    So it does for files of policies beside the folders.
    """
    read = {folder.split("/")[0] for folder in repository.folders}
    for folder in (".", *(name for name in find_folders(tree, ".") if name in _FOLDERS - read)):
        paths = (normpath(f"{folder}/{entry.name}") for entry in tree.entries(folder) if entry.kind is Kind.FILE)
        documents = (
            document
            for path in sorted(filter(is_policy_file, paths))
            if API_VERSION.encode() in (content := tree.read(path, MAX_BYTES))  # others may take long to read
            for document in read_bytes(path, content)[0]
            if section(document.data).get("apiVersion") == API_VERSION and document.kind in KINDS
        )
        first = next(documents, None)
        told = (f"{folder}/", f" {folder} ", f"`{folder}`") if folder != "." else (first.file.path,) if first else ()
        if first and not any(name in item.finding.help for item in repository.diagnostics for name in told):
            help_ = f"move it into {DEFAULT_BASES[0]}/, or add `{folder}` to `bases` of each Cluster"
            if folder == ".":
                help_ = way_to_overlay(tree, DEFAULT_BASES[0], first.file.path, (first,))
            message = f"{first.file.path} is in no base of a cluster, and not read"
            yield CLUSTER_DOCUMENT.report(Finding(first.origin, message, help=help_, severity=Severity.NOTE))


def _lacking_for_work(parsed: Parsed, documents: Iterable[Document]) -> list[str]:
    """Return the field without which a tenant that is nobody's parent is of no use to anybody."""
    policy = parsed.policy
    if not isinstance(policy, models.Tenant) or policy.spec.model_fields_set & {"namespaces", "labelled_namespaces"}:
        return []
    parents = (value_at(document.data, ("spec", "parent")) for document in documents)
    return [] if parsed.document.name in parents else ["namespaces"]


def _renamed(document: Document, documents: Iterable[Document]) -> str:
    """Return the one document of the bases that a change of none may be for, or nothing.

    The overlay does not change it, or nothing refers to it either.
    """
    others = [other for other in documents if other.kind == document.kind and len(other.layers) == 1]
    names = [other.name for other in others if not other.file.path.startswith(f"{OVERLAYS}/")]
    if names[1:]:
        said = {
            str(part) for other in documents for each in leaves(other.data.get("spec")) for part in (*each[0], each[1])
        }
        names = [name for name in names if name not in said]
    return names[0] if len(names) == 1 else ""


def _unmatched(
    document: Document, bases: Sequence[Document], documents: Sequence[Document], lacking: Sequence[str]
) -> Diagnostic | None:
    """Return a finding if the document looks like a change of one in the bases: misspelt, or gone from there.

    One that lacks a single field, and has no name like another, is rather a new one.
    """
    names = sorted({base.name for base in bases if base.kind == document.kind})
    close = None if document.name in names else renaming(document.name, names)
    is_alone = document.file.path.startswith(f"{OVERLAYS}/") and len(document.layers) == 1
    is_change = is_alone and (len(lacking) > 1 or (document.kind == "Tenant" and bool(names)))
    if document.kind not in KINDS or document.name in names or not (close or is_change):
        return None
    fields, renamed = listing(lacking), _renamed(document, documents)
    log = f"git log -S 'name: {document.name}' -- {DEFAULT_BASES[0]}"
    finding = Finding(
        document.origin / "metadata" / "name",
        f"the bases have no {document.kind} `{document.name}` to change",
        label=f"did you mean `{close}`" if close else "changes nothing",
        notes=(f"for a new document it lacks {fields}",),
        help=f"write `name: {close}`, or add what a {document.kind} needs"
        if close
        else (f"write `name: {renamed}`, if the {document.kind} was renamed; or " if renamed else "")
        + f"delete this document, or bring back the other one, which `{log}` finds; for a new one, add {fields}",
    )
    return UNMATCHED_OVERLAY.report(finding)


def _component(stage: str, part: str | None, folder: str, kinds: Mapping[str, Document]) -> Component:
    document = kinds.get(folder)
    return Component(stage, part, folder, document.kind if document else "", document.origin if document else None)


def _is_kustomization(path: str) -> bool:
    return basename(path) in ("kustomization.yaml", "kustomization.yml")


def _bases_of(cluster: Document | None) -> list[tuple[int | None, str]]:
    """Return the bases as the Cluster document names them, by their index; odd shapes are for `policy` to report."""
    spec = cluster.data.get("spec") if cluster else None
    bases = spec.get("bases") if isinstance(spec, dict) else None
    if not isinstance(bases, list):
        return [(None, folder) for folder in DEFAULT_BASES]
    return [(index, normpath(base)) for index, base in enumerate(bases) if isinstance(base, str)]
