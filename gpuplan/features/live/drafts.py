"""Drafts of policies: documents that are to be written, with what each comes from, and their text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any, Final

from gpuplan.compiler.base.diagnostics import Diagnostic
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.base.wording import joined
from gpuplan.compiler.manifests import to_yaml
from gpuplan.compiler.pipeline.loading import DEFAULT_BASES, OVERLAYS
from gpuplan.compiler.pipeline.writing import document
from gpuplan.compiler.policy.models import API_VERSION


class Draft(Value):
    """A policy document: ``spec`` is plain data in the order in which it is to be written.

    ``sources`` are the objects that it came from (`Item.source`). ``remarks`` are sentences about what of them it does
    not say, one for each finding, so that whoever reads the policy sees what is not in it.
    """

    kind: str
    name: str
    spec: Mapping[str, Any]
    sources: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return f"{self.kind} {self.name}"


class Found(Value):
    """The drafts that a reader made of a dump, and its findings."""

    drafts: tuple[Draft, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()

    def __add__(self, other: Found) -> Found:
        return Found((*self.drafts, *other.drafts), (*self.diagnostics, *other.diagnostics))


_SHARED: Final = {"Gpu": "gpus", "MigLayout": "layouts"}
"""The kinds that clusters may share, with the folder of each: facts about boards, which hold on any cluster."""
_OWN: Final = {
    "Pool": "pools",
    "PriorityClass": "priority-classes",
    "Tenant": "tenants",
    "Workload": "workloads",
    "Retained": "retained",
}
_WIDTH: Final = 118


def files_of(drafts: Iterable[Draft], cluster: str, *, shares: bool) -> dict[str, str]:
    """Return the text of each draft by the path of its file; with ``shares`` what clusters may share is in
    `policies/`."""
    found: dict[str, str] = {}
    for draft in drafts:
        is_shared = shares and draft.kind in _SHARED
        top = DEFAULT_BASES[0] if is_shared else f"{OVERLAYS}/{cluster}"
        folder = {**_SHARED, **_OWN}.get(draft.kind)
        name = _UNFIT.sub("-", draft.name).strip(".") or "unnamed"
        path = f"{top}/{folder}/{name}.yaml" if folder else f"{top}/cluster.yaml"
        found[path] = f"{found[path]}---\n{text_of(draft)}" if path in found else text_of(draft)
    return found


_UNFIT: Final = regex(r"[^-_.A-Za-z0-9]")
"""Characters that no file's name has: the names of a dump may be any text."""


def text_of(draft: Draft) -> str:
    """Return a document below comments on its sources and on what it does not say, as far as they are shorter."""
    by_file: dict[str, list[str]] = {}
    for source in dict.fromkeys(draft.sources):
        title, _, file = source.rpartition(" (")
        file = file.removesuffix(")")
        # Policies are committed: of a file that the user named from the root of the disk only the name is told.
        by_file.setdefault(file.rpartition("/")[2] if file.startswith("/") else file, []).append(title)
    comments: list[str] = []
    for file, titles in by_file.items():
        more = [f"{len(titles) - _MOST_SOURCES} more"] if len(titles) > _MOST_SOURCES else []
        told = joined([*filter(None, titles[:_MOST_SOURCES]), *more])
        comments.append(f"From {file}: {told}." if told else f"From {file}.")
    body = to_yaml(document(draft.kind, draft.name, draft.spec))
    lines = [line for comment in comments for line in _comment(comment)]
    remarks = [[*_comment(f"- {remark}")] for remark in dict.fromkeys(draft.remarks)]
    for number, remark in enumerate(remarks):
        if number and len(lines) + len(remark) + 1 >= body.count("\n"):
            lines += _comment(f"- The import says {len(remarks) - number} more.")
            break
        lines += remark
    return "".join(lines) + body


_MOST_SOURCES: Final = 4


_INSTRUCTIONS: Final = ("gpuplan:", "$schema=")
"""Beginnings of comments that are instructions to gpuplan or to an editor: a dump gives none."""


def _comment(text: str) -> Iterator[str]:
    printable = "".join(char if char.isprintable() else " " for char in text)
    for mark in _INSTRUCTIONS:
        printable = printable.replace(mark, f"{mark[:-1]} {mark[-1]}")
    for line in wrap(printable, _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False):
        yield f"# {line}\n"


def text_of_deletions(documents: Sequence[tuple[str, str]]) -> str:
    """Return patches that delete documents of the bases from a cluster that has none of them."""
    head = "# What the bases have and this cluster has not.\n"
    texts = [
        to_yaml({"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name, "$patch": "delete"}})
        for kind, name in documents
    ]
    return head + "---\n".join(texts)


def policy_name(name: str) -> str:
    """Return a name that a document may have, as near as can be to a name in the cluster."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:50].strip("-") or "layout"


def spelt(seconds: int) -> str:
    """Return a duration as policies have it."""
    for length, unit in ((3600, "h"), (60, "m")):
        if seconds and seconds % length == 0:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"
