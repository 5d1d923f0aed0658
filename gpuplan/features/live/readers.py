"""The readers of a platform, and the objects and files of a dump that no reader reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from gpuplan.compiler.base.diagnostics import Diagnostic, Finding, Origin, SourceFile, WholeFile
from gpuplan.compiler.base.plain import mapping, value_at
from gpuplan.compiler.base.wording import count, count_kinds, listing
from gpuplan.compiler.checks.formats.files import is_config
from gpuplan.compiler.documents import Document
from gpuplan.compiler.manifests.kinds.imported import READ
from gpuplan.compiler.policy.models import API_VERSION
from gpuplan.features.live import clusters, pools, priorities
from gpuplan.features.live.clusters.schedulers import names_chart
from gpuplan.features.live.drafts import Found
from gpuplan.features.live.dump import Dump, Item
from gpuplan.features.live.findings import report
from gpuplan.features.live.operator import is_settings
from gpuplan.features.live.rules import NOT_READ
from gpuplan.features.live.teams.projects import has_orgs


def platform(dump: Dump, cluster: str) -> Found:
    """Return drafts of the cluster, its pools, and what these name: layouts, models and priority classes."""
    return clusters.read(dump, cluster) + pools.read(dump) + priorities.read(dump)


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
        yield _unread_files([*dict.fromkeys(files)])


def _is_read(obj: Item) -> bool:
    return (obj.group, obj.kind) in READ


def _is_policy(obj: Item) -> bool:
    return obj.body.get("apiVersion") == API_VERSION


def _unread_objects(items: Sequence[Item], message: str, help_: str) -> Diagnostic:
    told = f"these are {count_kinds(item.kind for item in items)}"
    return NOT_READ.report(Finding(items[0].at, message, label="the first of them", notes=(told,), help=help_))


def _unread_files(paths: Sequence[str]) -> Diagnostic:
    return report("files-not-read", Origin(WholeFile(SourceFile(paths[0], ""))), files=listing(paths))
