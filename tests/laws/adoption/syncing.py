"""Import a drawn cluster, build what was written, and hold it against the dump."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.cli.runs import Run, run
from tests.laws.adoption.clusters import Cluster
from tests.laws.adoption.comparer import Loss, breaths, losses, untold

NAME: Final = "prod"
_NAMED: Final = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class First:
    """What an import says of a cluster, and what the first sync does."""

    imported: Run
    findings: tuple[dict[str, Any], ...]
    errors: tuple[str, ...]
    """What building the written policies fails on, and the import does not name with a way out."""
    is_built: bool
    found: tuple[Loss, ...]
    untold: tuple[Loss, ...]


def first_sync(cluster: Cluster, home: Path) -> First:
    """``home`` is a folder for the dump and the repository."""
    return sync_dump(cluster.write(home / "dump"), home / "repository")


def sync_dump(dump: Path, repository: Path) -> First:
    repository.mkdir(parents=True, exist_ok=True)
    imported, findings = _told("import", "-c", NAME, str(dump), cwd=repository)
    if imported.code not in (0, 1):
        return First(imported, findings, (imported.err,), False, (), ())
    built, judged = _told("build", "-c", NAME, cwd=repository)
    mistakes = [finding for finding in judged if finding["severity"] == "error"]
    errors = tuple(_text(found) for found in mistakes if not _is_named(found, findings))
    out = repository / "out" / NAME
    if built.code or not out.is_dir():
        return First(imported, findings, errors or (() if mistakes else (built.err,)), False, (), ())
    found = tuple(losses(dump, out))
    report = breaths(findings, imported.err)
    return First(imported, findings, errors, True, found, tuple(untold(found, report)))


def _told(*arguments: str, cwd: Path) -> tuple[Run, tuple[dict[str, Any], ...]]:
    """Run a command; the findings are those of its JSON."""
    file = cwd.parent / f"{cwd.name}-{arguments[0]}.json"
    done = run(*arguments, "-o", f"json={file}", cwd=cwd)
    listed = json.loads(file.read_text(encoding="utf-8"))["diagnostics"] if file.exists() else []
    return done, tuple(listed)


def _text(finding: dict[str, Any]) -> str:
    return f"{finding['code']} {finding['message']}"


UNKEPT: Final = frozenset(("GPU307", "GPU400", "GPU516"))
"""Rules that a cluster may break as it runs: more is promised than there is, or its scheduler counts no shares."""


def _is_named(mistake: dict[str, Any], findings: tuple[dict[str, Any], ...]) -> bool:
    """Whether an error of the import is about the same thing, with a way out, and is about the cluster.

    An import judges what it writes, too: any other error in a written file is one that the import made.
    """
    about = set(_NAMED.findall(mistake["message"]))
    return any(
        found["severity"] == "error"
        and found.get("help")
        and (found["code"] in UNKEPT or not found["location"]["file"].startswith("overlays/"))
        and about & set(_NAMED.findall(json.dumps(found)))
        for found in findings
    )
