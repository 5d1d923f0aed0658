"""Make policies of what runs: the readers of a dump in order, with a plan between them, and what none of them reads."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from gpuplan.compiler.base.diagnostics import Diagnostic, Finding, GpuplanError, Label, Origin, SourceFile, WholeFile
from gpuplan.compiler.base.plain import mapping, value_at
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.base.wording import count, count_kinds, listing
from gpuplan.compiler.checks.formats.files import is_config
from gpuplan.compiler.checks.names import DELIVERY_FOLDERS
from gpuplan.compiler.documents import DiskTree, Document, FileTree, find_folders, has_folder, read_folder
from gpuplan.compiler.documents.filetree import Written
from gpuplan.compiler.manifests.kinds.imported import READ
from gpuplan.compiler.pipeline import Report, report_on
from gpuplan.compiler.pipeline.findings import tidy
from gpuplan.compiler.pipeline.loading import DEFAULT_BASES, OVERLAYS, Repository, load_tree
from gpuplan.compiler.pipeline.writing import create_all, merge_patch
from gpuplan.compiler.planning.gpus import resolve_gpu
from gpuplan.compiler.policy import models, parse
from gpuplan.compiler.policy.models import API_VERSION
from gpuplan.compiler.policy.names import CLUSTER
from gpuplan.features.live import clusters, pools, priorities, teams, work
from gpuplan.features.live.clusters import name_of
from gpuplan.features.live.clusters.operators import is_settings
from gpuplan.features.live.clusters.schedulers import names_chart
from gpuplan.features.live.drafts import Draft, Found, files_of, text_of_deletions
from gpuplan.features.live.dump import Dump, Item, read_dump
from gpuplan.features.live.findings import report
from gpuplan.features.live.first_sync import FirstSync, all_found, simulate
from gpuplan.features.live.owned import tell_of_owner
from gpuplan.features.live.pools.grouping import Own
from gpuplan.features.live.rules import NOT_READ
from gpuplan.features.live.teams.projects import has_orgs


def platform(dump: Dump, cluster: str, models: Sequence[Own] = ()) -> Found:
    """Return drafts of the cluster, its pools, and what these name: layouts, models and priority classes."""
    made = pools.read(dump, models)
    found = clusters.read(dump, cluster)
    keys = {key for draft in made.drafts for key in _plugin_keys(draft)}
    kept = tuple(_with_default(draft, keys) for draft in found.drafts)
    return replace(found, drafts=kept) + made + priorities.read(dump)


def _plugin_keys(draft: Draft) -> Iterator[object]:
    """Yield the keys of the device plugin's file that a draft defines."""
    if draft.kind == "Pool":
        yield value_at(draft.spec, ("names", "devicePluginConfig")) or draft.name
    yield value_at(draft.spec, ("devicePluginConfig", "key"))


def _with_default(draft: Draft, keys: Collection[object]) -> Draft:
    """Return the draft of a Cluster without a default key that nothing defines."""
    operator = mapping(draft.spec.get("gpuOperator"))
    if operator.get("defaultDevicePluginConfig") in (None, *keys):
        return draft
    kept = {field: value for field, value in operator.items() if field != "defaultDevicePluginConfig"}
    return replace(draft, spec={**draft.spec, "gpuOperator": kept})


def has_known(dump: Dump) -> bool:
    """Whether a dump has anything that a reader reads."""
    return any(map(_is_read, dump.objects)) or any(map(_is_read_file, dump.others))


def _is_read_file(document: Document) -> bool:
    """Whether a reader reads a document that is no object."""
    body = mapping(document.data)
    is_known = is_config(body) or is_settings(body) or has_orgs(document) or names_chart(document)
    return is_known or any(value_at(body, route) is not None for route in _ROUTES)


_ROUTES: Final = (
    ("nodeGroups",),
    ("serverVersion",),
    ("global", "gpuSharing"),
    ("featureGates", "DynamicMIG"),
    ("platform", "openshift"),
    ("spec", "resourceHealthChecks"),
)
"""Fields by which readers ask for a file: a table of node groups, `kubectl version`, values of charts, Argo CD's."""


def unread(dump: Dump) -> Iterator[Diagnostic]:
    """Notes of the kinds that no reader reads, with how many objects each has, of policies, and of other files."""
    others = [item for item in dump.objects if not _is_read(item)]
    policies = [item for item in others if _is_policy(item)]
    objects = [item for item in others if not _is_policy(item)]
    if objects:
        help_ = "keep what belongs to the platform as a Component in `overlays/<cluster>/kustomize/`"
        yield _unread_objects(objects, f"no policy is made of {count(len(objects), 'object')} of the dump", help_)
    if policies:
        is_one = len(policies) == 1
        what = "1 document of the dump is a policy" if is_one else f"{len(policies)} documents of the dump are policies"
        yield _unread_objects(
            policies, f"{what} already", "name what kubectl printed, without `policies/` or `overlays/`"
        )
    files = [*dump.empty, *(item.file.path for item in dump.others if not _is_read_file(item))]
    if files:
        paths = [*dict.fromkeys(files)]
        yield report("files-not-read", Origin(WholeFile(SourceFile(paths[0], ""))), files=listing(paths))


def _beside(files: Sequence[str]) -> Iterator[Diagnostic]:
    if files:
        yield report("files-passed-over", Origin(WholeFile(SourceFile(files[0], ""))), files=listing(files))


def _is_read(obj: Item) -> bool:
    return (obj.group, obj.kind) in READ


def _is_policy(obj: Item) -> bool:
    return obj.body.get("apiVersion") == API_VERSION


def _unread_objects(items: Sequence[Item], message: str, help_: str) -> Diagnostic:
    told = f"these are {count_kinds(item.kind for item in items)}"
    return NOT_READ.report(Finding(items[0].at, message, label="the first of them", notes=(told,), help=help_))


class Difference(NamedTuple):
    """A document that is there already and says something else than the dump; it is left as it is."""

    path: str
    title: str


class Import(Value):
    """The policies that were made of dumps.

    ``files`` are to be written, by path below the root; none of them exists yet. ``same`` are documents that exist and
    say the same, ``differing`` those that say something else. ``report`` has the findings on the dumps and the errors
    of the policies. ``first_sync`` is what a sync of what they build does, None if they have errors. ``told_name``
    is the cluster's name in gpuplan's own objects. If a part of the dump cannot be read, nothing is made.
    """

    report: Report
    cluster: str
    files: Mapping[str, str]
    drafts: tuple[Draft, ...]
    same: tuple[str, ...] = ()
    differing: tuple[Difference, ...] = ()
    first_sync: FirstSync | None = None
    told_name: str = ""


def adopt(
    dumps: Mapping[str, bytes],
    root: str | PathLike[str] = ".",
    cluster: str = "",
    *,
    merges: bool = False,
    passed_over: Sequence[str] = (),
) -> Import:
    """Make policies of dumps, contents by name, for a cluster of the repository at ``root``; nothing is written.

    Without a ``cluster`` the dumps must say its name. Trouble where the cluster has policies that say something else,
    unless it ``merges``: then documents that are missing are made, and none is changed. ``passed_over`` are files
    beside the dumps that have no ending of one.
    """
    root = Path(root)
    dump, found = read_dump(dumps)
    if any(item.is_error for item in found):
        return Import(Report(tidy(found, (), needed=()), (), (), len(dumps)), cluster, {}, ())
    if not dump.objects and not dump.others:
        raise GpuplanError("there is nothing in the dump", _HOW)
    if not has_known(dump):
        paths = [*dict.fromkeys(item.file.path for item in dump.others)]
        instead = f"{listing(paths)} {'holds' if len(paths) == 1 else 'hold'} no object"
        if dump.objects:
            instead = f"it has {count_kinds(item.kind for item in dump.objects)}"
        raise GpuplanError(f"there is nothing in the dump that policies are made of: {instead}", _HOW)
    name = cluster or name_of(dump)
    if not name:
        raise GpuplanError("the dump does not say what the cluster is called", "name it: `gpuplan import -c NAME`")
    if not CLUSTER.is_spelt(name) or len(name) > CLUSTER.longest:
        raise GpuplanError(f"`{name}` cannot be a cluster's name", "use lower-case letters, digits and `-`")
    if owner := DELIVERY_FOLDERS.get(name):
        what = f"`{name}` cannot be a cluster's name: `out/{name}/` has the objects of {owner}"
        raise GpuplanError(what, "name the cluster by its purpose: `gpuplan import -c management`")
    known = _Known(root, name)
    made = Found(diagnostics=found) + platform(dump, name, known.models)
    for stage in (teams.read, work.read):
        for plan in known.with_drafts(made.drafts).plans:
            made += stage(dump, plan)
    made += Found(diagnostics=(*unread(dump), *_beside(passed_over)))
    files, same, differing = known.compare(made.drafts)
    if known.has_overlay and not merges and (files or differing):
        raise GpuplanError(
            f"`{OVERLAYS}/{name}` has policies that say something else than the dump",
            "say `--merge` to add what is missing, or import as another cluster: `-c NAME`",
        )
    repository = known.with_files(files)
    judged = report_on(repository)
    sources = {} if judged.is_valid else _sources(dump, made.drafts, name)
    errors = (_beside_source(item, sources) for item in judged.diagnostics if item.is_error)
    first_sync = simulate(judged.plans[0], dump) if judged.is_valid and judged.plans else None
    harms = (*all_found(first_sync), *tell_of_owner(dump, judged.plans[0])) if first_sync else ()
    diagnostics = tidy((*made.diagnostics, *errors, *harms), (), needed=())
    report = Report(diagnostics, judged.plans, (name,), len(dumps))
    return Import(report, name, files, made.drafts, same, differing, first_sync, name_of(dump))


_HOW: Final = "`gpuplan import --commands` says how to make one"


def _sources(dump: Dump, drafts: Iterable[Draft], cluster: str) -> Mapping[str, Item]:
    """Return the first object with numbers that each file of policies is made of, by its path."""
    items = {item.source: item for item in dump.objects if item.kind != "Namespace"}
    made = ((draft, next((items[source] for source in draft.sources if source in items), None)) for draft in drafts)
    return {path: item for draft, item in made if item for path in files_of([draft], cluster, shares=True)}


def _beside_source(error: Diagnostic, sources: Mapping[str, Item]) -> Diagnostic:
    """Return an error of a policy with what the policy was made of beside it."""
    source = sources.get(error.finding.at.locate().file.path)
    if source is None:
        return error
    related = (*error.finding.related, Label(source.at, f"made of {source.title}"))
    return replace(error, finding=replace(error.finding, related=related))


def write_import(
    imported: Import, root: str | PathLike[str] = ".", beside: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Write the files of an import, and others ``beside`` them, all or none; trouble where one of them is there."""
    create_all(Path(root), {**beside, **imported.files})


# --- What is there -----------------------------------------------------------------------------------------------


class _Known:
    """The policies that the repository has already, of one cluster and of the base that it shares with others."""

    def __init__(self, root: Path, cluster: str) -> None:
        self.tree = DiskTree(root)
        self.cluster = cluster
        self.clusters = find_folders(root, OVERLAYS)
        self.has_overlay = cluster in self.clusters
        base = DEFAULT_BASES[0]
        documents: Sequence[Document] = ()
        if self.has_overlay:
            documents = load_tree(self.tree, self.clusters, (cluster,)).documents[cluster]
        elif has_folder(self.tree, base):
            documents = read_folder(self.tree, base)[0]
        self.documents = {(item.kind, item.name): item for item in documents}

    @property
    def models(self) -> tuple[Own, ...]:
        """The GPU models that the repository describes."""
        parsed = [parse(item) for (kind, _), item in self.documents.items() if kind == "Gpu"]
        found = [(item.document, item.policy) for item in parsed if isinstance(item.policy, models.Gpu)]
        return tuple(Own(resolve_gpu(item.origin / "spec", policy).gpu, _says(item)) for item, policy in found)

    def with_drafts(self, drafts: Iterable[Draft]) -> Repository:
        """Return the drafts as a repository of their own."""
        return _load({}, files_of(drafts, self.cluster, shares=True), self.cluster, None)

    def with_files(self, files: Mapping[str, str]) -> Repository:
        return _load(dict.fromkeys(self.clusters), files, self.cluster, self.tree)

    def compare(self, drafts: Sequence[Draft]) -> tuple[dict[str, str], tuple[str, ...], tuple[Difference, ...]]:
        """Return the files of what is missing, and what is there, the same or otherwise."""
        missing: list[Draft] = []
        same: list[str] = []
        differing: list[Difference] = []
        for draft in drafts:
            there = self.documents.get((draft.kind, draft.name))
            if there is None:
                missing.append(draft)
            elif _says(there) == draft.spec:
                same.append(draft.title)
            elif self.has_overlay:
                differing.append(Difference(there.file.path, draft.title))
            else:
                missing.append(replace(draft, spec=merge_patch(_says(there), draft.spec)))
        files = files_of(missing, self.cluster, shares=not set(self.clusters) - {self.cluster} and not self.documents)
        if not self.has_overlay:
            meant = {(draft.kind, draft.name) for draft in drafts}
            if gone := [key for key in self.documents if key not in meant and all(key)]:
                files[f"{OVERLAYS}/{self.cluster}/not-here.yaml"] = text_of_deletions(gone)
        return files, tuple(same), tuple(differing)


def _says(document: Document) -> Mapping[str, Any]:
    spec = document.data.get("spec") if isinstance(document.data, dict) else None
    return spec if isinstance(spec, Mapping) else {}


def _load(known: Mapping[str, None], files: Mapping[str, str], cluster: str, below: FileTree | None) -> Repository:
    tree = Written(below, {path: text.encode() for path, text in files.items()})
    return load_tree(tree, tuple(dict.fromkeys((*known, cluster))), (cluster,))
