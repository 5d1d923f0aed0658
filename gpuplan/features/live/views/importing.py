"""The result of an import, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from gpuplan.compiler.base.wording import count, count_kinds
from gpuplan.compiler.manifests.kinds.imported import COLLECTED
from gpuplan.features.live.drifting import Differs, NextSync
from gpuplan.terminal.text import cropped, literal, printable

if TYPE_CHECKING:
    from gpuplan.features.live.importing import Import


def files(imported: Import) -> str:
    """Return the files that would be written, as one stream of documents, each below its path."""
    return "---\n".join(f"# {path}\n{text}" for path, text in imported.files.items())


def summary(imported: Import, *, dry: bool) -> str:
    """Describe what was made, what is left as it is, and what comes next."""
    if not imported.drafts:
        return "nothing was made: a part of the dump cannot be read\n"
    lines = [f"{'would create' if dry else 'created'} {path}" for path in imported.files]
    lines += [f"{item.path}: {printable(item.title)} says something else than the dump" for item in imported.differing]
    if imported.told_name not in ("", imported.cluster):
        lines.append(f"the dump is of cluster `{imported.told_name}`, as gpuplan's own objects in it say")
    lines.append(_made(imported))
    lines += _first_sync(imported)
    if imported.files and not dry:
        lines.append(f"next: gpuplan validate -c {imported.cluster} && gpuplan build -c {imported.cluster}")
    return "".join(f"{line}\n" for line in lines)


_MOST: Final = 20
"""The number of fields shown that the first sync changes; `gpuplan drift` shows all."""


def _first_sync(imported: Import) -> Iterator[str]:
    """Yield lines on what the first sync of the policies changes of the dump."""
    found = imported.first_sync
    if found is None:
        yield "the policies have errors, so nothing is known of a sync"
        return
    created = [drift.title.split(" ")[0] for drift in found if drift.differs is Differs.MISSING]
    absent = [drift for drift in found if drift.differs is Differs.NODE and not drift.path]
    changed = [drift for drift in found if drift.differs is not Differs.MISSING and drift not in absent]
    yield from (printable(drift.note or f"{drift.title} is not in the dump") for drift in absent)
    if created:
        yield f"the first sync creates {count_kinds(created)}"
    if not changed:
        yield "the first sync changes nothing that the dump shows"
        return
    yield f"the first sync changes {count(len(changed), 'field')} of what the dump shows:"
    for drift in changed[:_MOST]:
        live = literal(drift.live) if drift.has_live else "nothing"
        written = literal(drift.written) if drift.is_written else "nothing"
        place = f"{drift.title} {drift.path}".strip()
        refused = ", which the API server refuses: it cannot be changed" if drift.next_sync is NextSync.FAILS else ""
        yield f"  {printable(place)}: {cropped(live, _WIDTH)} becomes {cropped(written, _WIDTH)}{refused}"
    if len(changed) > _MOST:
        yield f"  and {len(changed) - _MOST} more: `gpuplan drift -c {imported.cluster} DUMP` shows all"


_WIDTH: Final = 60


def _made(imported: Import) -> str:
    told = count_kinds(draft.kind for draft in imported.drafts)
    if not imported.files:
        return f"cluster `{imported.cluster}`: {told}; nothing to write"
    return f"cluster `{imported.cluster}`: {told}"


def commands() -> str:
    """Return the commands of kubectl that collect a dump, each with where it is of use."""
    lines = [f"{item.command}{f'  # where {item.where} is' if item.where else ''}\n" for item in COLLECTED]
    return _HEAD + "".join(lines)


_HEAD = """\
# What `gpuplan import` reads. Nothing here writes to the cluster, and nothing reads Secrets.
# Leave out what the cluster does not have: kubectl ends where it does not know a kind.
"""
