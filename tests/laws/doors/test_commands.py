"""On platforms of strangers, commands start, write and ask what the table of doors says, and nothing else."""

from __future__ import annotations

import os
import shutil
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import pytest

from gpuplan.features.changes.git import SETTINGS
from tests.git import commit, git
from tests.laws.doors.hostile import FORMS, REPORTS, SECRET, Form, Site, a_site, lay_out, spoof
from tests.laws.doors.observing import Door, Event, Observed, Watcher, doors
from tests.listener import Listener

GIT_COMMANDS: Sequence[Sequence[str]] = (
    ("validate", "--against", "HEAD~1"),
    ("build",),
    ("diff", "HEAD~1..HEAD"),
    ("diff", "--fail-on", "metadata", "HEAD~1...HEAD"),
    ("report", "--against", "HEAD~1"),
    ("retain", "--against", "HEAD~1"),
    ("rollout", "research", "--to", "large"),
    ("pack", "demand.yaml", "-c", "dev"),
)
COMMANDS: Sequence[Sequence[str]] = (
    ("validate",),
    ("validate", "-o", "sarif=findings.sarif", "-o", "markdown=findings.md"),
    ("validate", "--crds", "crds"),
    ("show", "-o", "json"),
    ("show", "-o", "svg"),
    ("report",),
    ("report", "--output", "report.html"),
    ("trace", "policies/pool.yaml:8"),
    ("trace", "out/dev/partitions/research/nodefeaturerule-gpuplan-pool-research.yaml"),
    ("diff",),
    ("diff", "HEAD~1..HEAD", "-o", "json=difference.json"),
    ("diff", "--against", "HEAD~1", "--nodes", "nodes.yaml", "--pods", "nodes.yaml", "-c", "dev"),
    ("drift", "nodes.yaml", "-c", "dev", "-o", "json=drift.json"),
    ("check", "objects"),
    ("check", "objects/quota.yaml", "nodes.yaml", "demand.yaml"),
    ("check", "objects", "--crds", "crds"),
    ("import", "nodes.yaml", "-c", "new", "--dry-run"),
    ("explain", "Pool.spec.sharing"),
    ("catalog", "A100-80GB"),
    ("rules",),
    ("schema", "Pool"),
    ("version",),
    ("completion", "bash"),
    *GIT_COMMANDS,
    ("build", "--check"),
    ("build", "--diff"),
    ("build", "--stdout", "-c", "dev"),
    ("build", "--out", "rendered"),
    ("build", "--retain"),
    ("build", "--force", "--prune-clusters"),
    ("retain", "--against", "HEAD~1", "--write"),
    ("rollout", "research", "--to", "large", "--write"),
    ("pack", "demand.yaml", "-c", "dev", "--write"),
    ("import", "nodes.yaml", "-c", "new"),
    ("init", "started"),
)


# --- What was done ---------------------------------------------------------------------------------------------------


def areas(site: Site, form: Form) -> Mapping[str, Sequence[Path]]:
    """Where each kind of door may be, as the table calls it."""
    root = site.root / form.folder
    beginning = (".gitattributes", ".vscode", "README.md", "started")
    return {
        "output": (root / "out", root / "rendered"),
        "policies": (root / "policies", root / "overlays", root / ".gpuplan", *(root / name for name in beginning)),
        "named": tuple(site.root / name for name in REPORTS),
        "temporary": (site.base / "temporary",),
    }


def door_of(event: Event, command: str, places: Mapping[str, Sequence[Path]]) -> Door | None:
    """The row of the table that allows an event, if there is one."""
    for door in doors():
        if event.kind == door.kind and event.module in door.modules and command in door.commands:
            if event.kind == "program" and Path(event.what).name not in door.programs:
                continue
            if event.kind == "write" and not any(
                Path(event.what).is_relative_to(place) for name in door.where for place in places[name]
            ):
                continue
            return door
    return None


def contents(site: Site) -> Mapping[str, bytes]:
    """All that lies around the platform, and git's own files, with what they hold."""
    tops = (site.victim.parent, site.base / "home", site.base / "bin", site.base / "temporary", site.root / ".git")
    paths = (Path(folder, name) for top in tops for folder, _, names in os.walk(top) for name in names)
    return {os.fspath(path): path.read_bytes() for path in paths if path.is_file() and not path.is_symlink()}


def assert_started_safely(event: Event) -> None:
    """Of git that its settings are given, and that it starts beside a `.git`; of all that they are whole paths."""
    assert Path(event.what).is_absolute()
    assert all(os.path.isabs(part) for part in event.variables["PATH"].split(os.pathsep))
    assert event.variables["GIT_ALLOW_PROTOCOL"] == "none"
    if Path(event.what).name == "git":
        assert (event.variables["GIT_NO_LAZY_FETCH"], event.variables["GIT_TERMINAL_PROMPT"]) == ("1", "0")
        given = {event.line[index + 1] for index, word in enumerate(event.line) if word == "-c"}
        assert given == {f"{name}={value}" for name, value in SETTINGS.items()}
        assert os.path.lexists(Path(event.folder) / ".git")
        dangerous = (
            "GIT_TRACE",
            "GIT_SSH",
            "GIT_EXEC",
            "GIT_EXTERNAL",
            "GIT_PAGER",
            "GIT_ASKPASS",
            "GIT_DIR",
            "GIT_PROXY",
        )
        told = {name: value for name, value in event.variables.items() if name.startswith(dangerous)}
        assert set(told.values()) <= {"0"}  # traces are off


def run_all(
    watcher: Watcher, listener: Listener, site: Site, form: Form, commands: Sequence[Sequence[str]]
) -> list[tuple[Sequence[str], Observed]]:
    """Run commands one after the other on a platform; each does what the table says, and nothing around it changes."""
    before, places, connections = contents(site), areas(site, form), listener.connections
    found = []
    for command in commands:
        done = watcher.run(site, form, command)
        found.append((command, done))
        shown = f"{' '.join(command)}: {done.code}\n{done.out[:2000]}{done.err[:2000]}"
        for event in done.events:
            door = door_of(event, command[0], places)
            assert door is not None, f"{event}\n{shown}"
            if event.kind == "program":
                assert_started_safely(event)
        assert "bug in gpuplan" not in done.err, shown
        assert SECRET not in done.out + done.err, shown
        assert not site.trace.exists(), shown
        assert listener.connections == connections, shown
        assert contents(site) == before, shown
    return found


BUILD = ("build",)


def chosen(form: Form) -> Sequence[Sequence[str]]:
    """Every command that the form is about; otherwise some of these, each of them on one form in a few."""
    among = GIT_COMMANDS if form.is_about_git else COMMANDS
    if os.environ.get("GPUPLAN_TEST_PROOF"):
        return among
    share, index = (4 if form.is_about_git else 8), FORMS.index(form)
    return [command for place, command in enumerate(among) if command == BUILD or (place + index) % share == 0]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_nothing_but_the_doors_is_used(tmp_path: Path, watcher: Watcher, listener: Listener, form: Form) -> None:
    site = a_site(tmp_path, listener.address)
    lay_out(site, form)

    done = run_all(watcher, listener, site, form, chosen(form))

    if form.finding:
        assert form.finding in "".join(found.out for command, found in done if command == BUILD)


def test_each_row_of_the_table_is_used_by_its_commands(tmp_path: Path, watcher: Watcher, listener: Listener) -> None:
    used: dict[str, set[str]] = defaultdict(set)
    for index, command in enumerate(COMMANDS):
        site, form = a_site(tmp_path / str(index), listener.address), Form("harmless", lambda _: None)
        lay_out(site, form, is_committed="--retain" not in command)
        [(_, done)] = run_all(watcher, listener, site, form, [command])
        for event in done.events:
            door = door_of(event, command[0], areas(site, form))
            assert door is not None
            used[door.what].add(command[0])

    assert used == {door.what: set(door.commands) for door in doors() if door.kind in ("program", "write")}


def test_a_repository_of_the_branch_does_not_answer(tmp_path: Path, watcher: Watcher, listener: Listener) -> None:
    """The platform's own folder borrows the real objects and says that HEAD is what it is compared with."""
    site = a_site(tmp_path, listener.address)
    honest, spoofed = (Form(name, _copied, folder="gpu") for name in ("honest", "spoofed"))
    lay_out(site, honest)
    command = ("diff", f"{git(site.root, 'rev-parse', 'HEAD~1')}...HEAD", "--fail-on", "metadata", "-o", "markdown")
    truth = watcher.run(site, honest, command)

    spoof(site, "gpu", "HEAD~1")
    told = watcher.run(site, spoofed, command)

    assert truth.code == 1
    assert "layout" in truth.out
    assert (told.code, told.out) == (truth.code, truth.out)


def test_the_report_is_served_to_this_machine_alone(tmp_path: Path, watcher: Watcher, listener: Listener) -> None:
    site, form = a_site(tmp_path, listener.address), Form("harmless", lambda _: None)
    lay_out(site, form)

    done = watcher.run(site, form, ("report", "--serve"), seconds=1)

    [door] = [door for door in doors() if door.kind == "network" and door.commands]
    asked = [event for event in done.events if event.kind == "network"]
    assert asked
    assert {event.module for event in asked} <= {*door.modules, "gpuplan.features.report.commands.report"}
    assert {event.event for event in asked} == {"socket.__new__", "socket.bind"}
    assert all("127.0.0.1" in event.what for event in asked if event.event == "socket.bind")


def test_what_is_planted_is_seen(tmp_path: Path, watcher: Watcher, listener: Listener) -> None:
    """The hook sees a program, a file and an address wherever they come from; here from a module of the tests."""
    site = a_site(tmp_path, listener.address)
    for plant in ("program", "write", "network"):
        form = Form("planted", lambda _: None, partial(told, plant=plant))
        done = watcher.run(site, form, ("version",))
        [event] = [event for event in done.events if event.event != "socket.__new__"]
        assert event.kind == plant
        assert door_of(event, "version", areas(site, form)) is None


def _copied(site: Site) -> None:
    """The same platform in a folder of its own, which is committed before its layout changes."""
    for name in ("policies", "overlays"):
        shutil.copytree(site.root / name, site.root / "gpu" / name)
    commit(site.root, "in a folder")


def told(_: Site, plant: str) -> Mapping[str, str]:
    return {"GPUPLAN_PLANT": plant}
