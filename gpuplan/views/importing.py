"""What an import made of a dump, in words."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from gpuplan.views.text import printable
from gpuplan.wording import count, joined

if TYPE_CHECKING:
    from gpuplan.pipeline.importing import Import


def files(imported: Import) -> str:
    """The files that would be written, as one stream of documents, each below its path."""
    return "---\n".join(f"# {path}\n{text}" for path, text in imported.files.items())


def summary(imported: Import, *, dry: bool) -> str:
    """What was made, what is left as it is, and what comes next."""
    lines = [f"{'would create' if dry else 'created'} {path}" for path in imported.files]
    lines += [f"{item.path}: {printable(item.title)} says something else than the dump" for item in imported.differing]
    lines.append(_made(imported))
    if imported.files and not dry:
        lines.append(f"next: gpuplan validate -c {imported.cluster} && gpuplan build -c {imported.cluster}")
    return "".join(f"{line}\n" for line in lines)


def _made(imported: Import) -> str:
    kinds = Counter(draft.kind for draft in imported.drafts)
    told = joined([count(number, kind) for kind, number in sorted(kinds.items())])
    if not imported.drafts:
        return f"cluster `{imported.cluster}`: nothing could be made of the dump"
    if not imported.files:
        return f"cluster `{imported.cluster}`: {told}; nothing to write"
    return f"cluster `{imported.cluster}`: {told}"


def commands() -> str:
    """The commands of kubectl that collect a dump, each with where it is of use."""
    from gpuplan.manifests.kinds.imported import COLLECTED

    lines = [f"{item.command}{f'  # where {item.where} is' if item.where else ''}\n" for item in COLLECTED]
    return _HEAD + "".join(lines)


_HEAD = """\
# What `gpuplan import` reads. Nothing here writes to the cluster, and nothing reads Secrets.
# Leave out what the cluster does not have: kubectl ends where it does not know a kind.
"""
