"""Find documents in files that nothing reads, so that a finding on an unknown name says where its document lies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from posixpath import basename, commonpath, dirname

from gpuplan.compiler.base.diagnostics import Diagnostic, GpuplanError
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import value_of
from gpuplan.compiler.base.repository import OVERLAYS
from gpuplan.compiler.base.wording import listing
from gpuplan.compiler.documents import (
    MAX_BYTES,
    NOTHING_TO_DELETE,
    Document,
    FileTree,
    Kind,
    find_folders,
    read_bytes,
    read_manifests,
)
from gpuplan.compiler.pipeline.rules import UNMATCHED_OVERLAY
from gpuplan.compiler.planning.plan import Stage
from gpuplan.compiler.planning.rules import UNKNOWN_REFERENCE, unknown_document
from gpuplan.compiler.policy import KINDS
from gpuplan.compiler.policy.models import API_VERSION
from gpuplan.compiler.policy.rules import PLAIN_OBJECTS


@dataclass(slots=True)
class UnreadFiles:
    """The files of a repository that are no part of the platform; they are read once, when asked."""

    tree: FileTree
    base: str
    """The folder that policies belong into."""
    held: dict[str, list[Document]] = field(default_factory=dict)
    """The policies in folders of the root that were searched for a base."""
    helps: dict[frozenset[str], dict[str, str]] = field(default_factory=dict)
    """The help by the message that calls a document unknown, for each set of folders that are read."""

    def locate(self, diagnostic: Diagnostic, read: frozenset[str]) -> Diagnostic:
        """Return a finding on an unknown document with its file, if the file exists and nothing reads it."""
        source, message = diagnostic.finding.at.source, diagnostic.finding.message
        if diagnostic.rule in (NOTHING_TO_DELETE, UNMATCHED_OVERLAY) and isinstance(source, Document):
            message = unknown_document(source.kind, source.name)
        elif diagnostic.rule is not UNKNOWN_REFERENCE:
            return diagnostic
        if read not in self.helps:
            self.helps[read] = {**dict(self._in_folders(read)), **dict(self._in_misnamed(read))}
        help_ = self.helps[read].get(message)
        return diagnostic.rule.report(replace(diagnostic.finding, help=help_)) if help_ else diagnostic

    def find_base(self, read: frozenset[str], overlay: Iterable[Document]) -> str | None:
        """Return the folder of most policies that nothing reads, and that an overlay may have been written for.

        An overlay with a whole pool stands alone. One that has more than its Cluster changes some of those policies.
        """
        specs = [item.data.get("spec") for item in overlay if item.kind == "Pool"]
        if any(isinstance(spec, dict) and "gpu" in spec for spec in specs):
            return None
        changed = {(item.kind, item.name): item.data for item in overlay if item.kind != "Cluster"}
        found: dict[str, int] = {}
        for folder in find_folders(self.tree, "."):
            if folder not in read and folder not in self.held:
                with suppress(GpuplanError):  # such a folder may hold anything
                    documents = read_manifests(self.tree, folder)[0]
                    self.held[folder] = [item for item in documents if item.data.get("apiVersion") == API_VERSION]
            policies = [] if folder in read else self.held.get(folder, [])
            names = {(item.kind, item.name): item.data for item in policies if item.kind in KINDS}
            both = names.keys() & changed.keys()  # what is equal is a link, or a copy
            if names and (not changed or any(names[key] != changed[key] for key in both)):
                found[commonpath([dirname(item.file.path) for item in policies])] = len(names)
        return max(found, key=lambda folder: (found[folder], folder), default=None)

    def sent(self, diagnostic: Diagnostic, documents: Iterable[Document]) -> Diagnostic:
        """Return a finding on a Kubernetes object among the policies with the place of such objects."""
        finding, source = diagnostic.finding, diagnostic.finding.at.source
        before, plain, _ = finding.help.partition(PLAIN_OBJECTS)
        if not (plain and isinstance(source, Document)):
            return diagnostic
        path = source.file.path
        clusters = find_folders(self.tree, OVERLAYS)
        here = next((name for name in clusters if path.startswith(f"{OVERLAYS}/{name}/")), None)
        cluster = here or (clusters[0] if len(clusters) == 1 else "<cluster>")
        each = f" of {listing(clusters, None, 'or')}" if cluster not in clusters else ""
        metadata = source.data.get("metadata")
        namespace = metadata.get("namespace") if isinstance(metadata, dict) else None
        listed = (value_of(item.data, ("spec", "namespaces")) for item in documents if item.kind == "Tenant")
        is_of_tenant = any(isinstance(names, list) and namespace in names for names in listed)
        stage = f"namespaces/{namespace}" if is_of_tenant else Stage.SCHEDULING
        help_ = f"{before.replace('<cluster>', cluster)}{way_to_component(cluster, stage, basename(path), each)}"
        if source.kind == "Secret":
            way = f"type `kubectl apply -f {path}`, and delete the file"
            help_ = f"keep it out of Git: {way}; or encrypt it, such as with SealedSecrets, and {help_}"
        return diagnostic.rule.report(replace(finding, help=help_))

    def _in_folders(self, read: frozenset[str]) -> Iterator[tuple[str, str]]:
        """Yield messages and help for the documents of folders at the root, the nearest folder last."""
        for folder in reversed([name for name in find_folders(self.tree, ".") if name not in read]):
            with suppress(GpuplanError):  # such a folder may hold anything
                documents = () if folder.startswith(".") else read_manifests(self.tree, folder)[0]
                for item in documents:
                    way = f"into {self.base}/, or add `{folder}` to `bases` of the Cluster"
                    help_ = f"move {item.file.path}, which nothing reads, {way}"
                    yield unknown_document(item.kind, item.name), help_

    def _in_misnamed(self, read: frozenset[str]) -> Iterator[tuple[str, str]]:
        """Yield messages and help for the files whose names go on behind `.yaml`, such as `pools.yaml.bak`."""
        paths: list[str] = []
        pending = sorted(read)
        while pending:
            folder = pending.pop()
            for entry in self.tree.entries(folder) if self.tree.target(folder).kind is Kind.FOLDER else ():
                path = f"{folder}/{entry.name}"
                if entry.kind is Kind.FOLDER:
                    pending.append(path)
                elif entry.kind is Kind.FILE and _GOES_ON.search(entry.name):
                    paths.append(path)
        for path in sorted(paths)[:_MOST][::-1]:
            right = f"{path[: path.lower().index('.y')]}.yaml"
            for item in read_bytes(path, self.tree.read(path, MAX_BYTES))[0]:
                help_ = f"rename {path} to {right}: gpuplan reads `*.yaml` and `*.yml` alone"
                yield unknown_document(item.kind, item.name), help_


def way_to_overlay(tree: FileTree, base: str, path: str, documents: Sequence[Document]) -> str:
    """Return where to move a file beside the clusters' folders: to that of its Cluster, or to that of its name."""
    stem = basename(path).rpartition(".")[0]
    if cluster := next((document.name for document in documents if document.kind == "Cluster"), ""):
        folder = f"{OVERLAYS}/{cluster}"
        if tree.target(f"{folder}/cluster.yaml").kind is Kind.FILE:
            return f"delete it: {folder}/cluster.yaml is the Cluster `{cluster}`"
        return f"type `mkdir -p {folder} && mv {path} {folder}/cluster.yaml`"
    clusters = find_folders(tree, OVERLAYS)
    folders = [f"{OVERLAYS}/{name}/" for name in ([stem] if stem in clusters else clusters)]
    return f"move it to {listing(folders, _FEW, 'or')} for one cluster, or to `{base}/` for all"


_FEW = 8


def way_to_component(cluster: str, stage: str, file: str, each: str = "") -> str:
    """Return how a file of Kubernetes objects becomes a part of a cluster's output."""
    listed = f"{{apiVersion: kustomize.config.k8s.io/v1alpha1, kind: Component, resources: [{file}]}}"
    return f"move it to {OVERLAYS}/{cluster}/kustomize/{stage}/{each}, and write `{listed}` to kustomization.yaml there"


_GOES_ON = regex(r"^[^.].*\.ya?ml[.~_-]", re.IGNORECASE)
_MOST = 20
"""The files that are looked into; there are few, most often one."""
