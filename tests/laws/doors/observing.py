"""Ask the program that watches commands, and read what it saw."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Self

import yaml

from tests.cli.runs import REPOSITORY
from tests.laws.doors.hostile import Form, Site


class Door(NamedTuple):
    """A row of the table: something that gpuplan does outside of itself."""

    what: str
    kind: str
    modules: tuple[str, ...]
    commands: tuple[str, ...]
    programs: tuple[str, ...] = ()
    where: tuple[str, ...] = ()


@cache
def doors() -> tuple[Door, ...]:
    rows = yaml.safe_load((REPOSITORY / "tools/doors.yaml").read_text(encoding="utf-8"))
    parts = ("modules", "commands", "programs", "where")
    return tuple(Door(row["what"], row["kind"], *(tuple(row.get(part, ())) for part in parts)) for row in rows)


class Event(NamedTuple):
    """Something that a command did outside of its process, as Python's audit hook saw it."""

    kind: str
    what: str
    module: str
    event: str
    line: tuple[str, ...] = ()
    variables: Mapping[str, str] = {}
    folder: str = ""


class Observed(NamedTuple):
    """How a command ended, and what it did."""

    code: int
    out: str
    err: str
    events: tuple[Event, ...]


class Watcher:
    """Runs commands of gpuplan, each in a process of its own."""

    def __init__(self, platform: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(REPOSITORY / "tests/laws/doors/watch.py"), str(platform)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=REPOSITORY,
            text=True,
        )

    def __enter__(self) -> Self:
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def run(self, site: Site, form: Form, arguments: Sequence[str], *, seconds: float = 0) -> Observed:
        """Run a command in a site, with the variables of a form and few others; after so long it is interrupted."""
        said = [site.base / "out.txt", site.base / "err.txt"]
        job = {
            "in": os.fspath(site.root / form.folder if form.folder == "." else site.root),
            "arguments": [*(("-C", form.folder) if form.folder != "." else ()), *arguments],
            "env": {**surroundings(site), **form.variables(site)},
            "seconds": seconds,
            "out": os.fspath(said[0]),
            "err": os.fspath(said[1]),
        }
        answer = self._ask(job)
        assert answer["code"] != -1, answer.get("trace")
        events = tuple(
            Event(
                item["kind"],
                item["what"],
                item["module"],
                item["event"],
                tuple(item.get("line", ())),
                item.get("env", {}),
                item.get("in", ""),
            )
            for item in answer["events"]
        )
        return Observed(answer["code"], _text(said[0]), _text(said[1]), events)

    def _ask(self, job: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        found: dict[str, Any] = json.loads(self._process.stdout.readline())
        return found


def surroundings(site: Site) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return {
        **kept,
        "COLUMNS": "100",
        "HOME": os.fspath(site.base / "home"),
        "TMPDIR": os.fspath(site.base / "temporary"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYDANTIC_DISABLE_PLUGINS": "__all__",
        "GIT_CEILING_DIRECTORIES": os.fspath(site.base.parent),
    }


def _text(path: Path) -> str:
    return path.read_text(errors="replace")
