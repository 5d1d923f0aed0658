"""What of a dump no reader reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuplan.compiler.base.diagnostics import Diagnostic, Finding, Origin, SourceFile, WholeFile
from gpuplan.compiler.base.wording import count, count_kinds, listing
from gpuplan.compiler.manifests.kinds.imported import READ
from gpuplan.compiler.policy.models import API_VERSION
from gpuplan.features.live.dump import Dump, Item
from gpuplan.features.live.files import is_read
from gpuplan.features.live.rules import NOT_READ


def has_known(dump: Dump) -> bool:
    """Whether there is anything in a dump that a reader reads."""
    return any(map(_is_read, dump.objects)) or any(map(is_read, dump.others))


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
    files = [*dump.empty, *(item.file.path for item in dump.others if not is_read(item))]
    if files:
        yield _unread_files([*dict.fromkeys(files)])


def _is_read(item: Item) -> bool:
    return (item.group, item.kind) in READ


def _is_policy(item: Item) -> bool:
    return item.body.get("apiVersion") == API_VERSION


def _unread_objects(items: Sequence[Item], message: str, help_: str) -> Diagnostic:
    told = f"these are {count_kinds(item.kind for item in items)}"
    return NOT_READ.report(Finding(items[0].at, message, label="the first of them", notes=(told,), help=help_))


def _unread_files(paths: Sequence[str]) -> Diagnostic:
    finding = Finding(
        Origin(WholeFile(SourceFile(paths[0], ""))),
        f"nothing is read of {listing(paths)}",
        notes=("a command of kubectl that fails, as for a kind that the cluster lacks, leaves an empty file",),
        help="run the command again and read what it says; leave out what is no dump",
    )
    return NOT_READ.report(finding)
