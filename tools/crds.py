"""Write the definitions of custom kinds that come with gpuplan, or check that they are what their projects have.

The projects are in `crds.yaml`. Their repositories are read from the folder that GPUPLAN_MIRRORS names, which has a
clone of each as `OWNER/NAME.git` or `OWNER+NAME/repo`; modules from Go's module cache, where `go mod download
MODULE@VERSION` puts them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import click
import yaml
from crd_parts import Defined, Verdict, written

from gpuplan.compiler.manifests.crd_schemas import parse_definitions
from gpuplan.compiler.manifests.validators import Schema

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "tools/crds.yaml"
KEPT = ROOT / "gpuplan/compiler/manifests/crds"

_HEAD = """\
The files in data/ hold what the definitions of custom kinds in these projects say of fields: their names, types and
bounds, without descriptions. They were derived from the releases named below, whose licences are given with them.
"""


class UnreachableError(Exception):
    """Why a source cannot be read here."""


class Project(NamedTuple):
    """An entry of `crds.yaml`; a release has the revision that it is read at."""

    name: str
    title: str
    repository: str
    definitions: Sequence[str]
    releases: Mapping[str, str]
    modules: Mapping[str, str]
    notice_until: str


def projects() -> tuple[Project, ...]:
    """All there are, in the order of the file."""
    rows = yaml.safe_load(SOURCES.read_text(encoding="utf-8"))
    return tuple(
        Project(
            row["name"],
            row["title"],
            row["repository"],
            row["definitions"],
            _releases(row),
            row.get("modules", {}),
            row.get("notice_until", ""),
        )
        for row in rows
    )


def _releases(row: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for item in row["releases"]:
        found |= item if isinstance(item, dict) else {item: item}
    return found


# --- Reading ----------------------------------------------------------------------------------------------------------


def read(project: Project, release: str, *patterns: str) -> Iterator[tuple[str, bytes]]:
    """The files of a release whose paths match a pattern, by path."""
    module = project.modules.get(release)
    if module:
        yield from _in_module(module, release, patterns)
    else:
        yield from _in_clone(project.repository, project.releases[release], patterns)


def _in_clone(repository: str, revision: str, patterns: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    clone = _clone(repository)
    listed = _git(clone, "ls-tree", "-r", revision).decode()
    for line in listed.splitlines():
        about, _, path = line.partition("\t")
        if _matches(path, patterns):
            yield path, _blob(clone, about.split()[2])


def _clone(repository: str) -> Path:
    folder = os.environ.get("GPUPLAN_MIRRORS")
    if not folder:
        raise UnreachableError("GPUPLAN_MIRRORS names no folder of clones")
    places = (Path(folder, f"{repository}.git"), Path(folder, repository.replace("/", "+"), "repo"))
    found = next((place for place in places if place.is_dir()), None)
    if found is None:
        raise UnreachableError(f"there is no clone of {repository} in GPUPLAN_MIRRORS")
    return found


@cache
def _blob(clone: Path, name: str) -> bytes:
    return _git(clone, "cat-file", "blob", name)


def _git(clone: Path, *arguments: str) -> bytes:
    done = subprocess.run(["git", "--git-dir", str(clone), *arguments], capture_output=True, check=False)  # noqa: S603, S607
    if done.returncode:
        raise UnreachableError(f"{clone.name}: {done.stderr.decode().strip()}")
    return done.stdout


def _in_module(module: str, version: str, patterns: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    escaped = "".join(f"!{letter.lower()}" if letter.isupper() else letter for letter in module)
    archive = _module_cache() / "cache/download" / escaped / "@v" / f"{version}.zip"
    if not archive.is_file():
        raise UnreachableError(f"Go's module cache has no {module}@{version}: `go mod download` fetches it")
    with zipfile.ZipFile(archive) as opened:
        for name in opened.namelist():
            path = name.removeprefix(f"{module}@{version}/")
            if _matches(path, patterns):
                yield path, opened.read(name)


@cache
def _module_cache() -> Path:
    try:
        done = subprocess.run(["go", "env", "GOMODCACHE"], capture_output=True, check=True)  # noqa: S607
    except (OSError, subprocess.CalledProcessError) as error:
        raise UnreachableError("there is no Go") from error
    return Path(done.stdout.decode().strip())


def _matches(path: str, patterns: Sequence[str]) -> bool:
    return any(
        len(PurePosixPath(path).parts) == len(PurePosixPath(pattern).parts) and PurePosixPath(path).match(pattern)
        for pattern in patterns
    )


# --- Definitions ------------------------------------------------------------------------------------------------------


def defined(project: Project) -> Iterator[Defined]:
    """What each release serves, from the newest on."""
    for release in project.releases:
        found = [body for _, text in read(project, release, *project.definitions) for body in definitions(text)]
        if not found:
            raise UnreachableError(f"{project.name} {release} has no definitions in {', '.join(project.definitions)}")
        for group, kind, versions in found:
            yield Defined(project.name, project.title, release, group, kind, versions)


@cache
def definitions(text: bytes) -> tuple[tuple[str, str, Mapping[str, Any]], ...]:
    return tuple(
        (
            body["spec"]["group"],
            body["spec"]["names"]["kind"],
            {version["name"]: schema_of(version) for version in body["spec"]["versions"] if version["served"]},
        )
        for body in parse_definitions(text.decode())
        if body["spec"].get("versions")  # what has none is a patch of one
    )


def schema_of(version: Mapping[str, Any]) -> Schema:
    """The schema of a version, without that of a status which the API server takes from nobody but controllers."""
    schema: Schema = version["schema"]["openAPIV3Schema"]
    if "status" not in version.get("subresources", {}) or "status" not in schema.get("properties", {}):
        return schema
    properties = {**schema["properties"], "status": {"x-kubernetes-preserve-unknown-fields": True}}
    return {
        **schema,
        "properties": properties,
        "required": [name for name in schema.get("required", ()) if name != "status"],
    }


def files(found: Sequence[Defined]) -> dict[str, str]:
    """What is written of definitions, by path below `gpuplan/compiler/manifests/crds`."""
    made = written(found)
    return {**{f"data/{name}": text for name, text in made.files.items()}, "RULES": counted(made.rules)}


def counted(rules: Mapping[str, Verdict]) -> str:
    """How many rules in CEL there are, and those that are not judged."""
    counts = Counter(rules.values())
    left = sorted(" ".join(rule.split()) for rule, found in rules.items() if found is not Verdict.JUDGED)
    total = "\n".join(f"{counts[verdict]} rules are {verdict}" for verdict in Verdict)
    return "\n".join([total, "", *left]) + "\n"


# --- Licences ---------------------------------------------------------------------------------------------------------

_LICENCES = (("Apache-2.0", "apache license version 2.0"), ("MIT", "mit license"))


def notice() -> str:
    """Who made the definitions, and under which licences."""
    return "\n".join([_HEAD, *(_attribution(project) for project in projects())])


def _attribution(project: Project) -> str:
    newest = next(iter(project.releases))
    at = [
        f"{release} (Go module {project.modules[release]})"
        if release in project.modules
        else release
        if release == revision
        else f"{release} ({revision[:12]})"
        for release, revision in project.releases.items()
    ]
    said = [text.decode().strip() for _, text in read(project, newest, "NOTICE")]
    lines = [
        project.title,
        f"  from https://github.com/{project.repository}",
        f"  releases {', '.join(at)}",
        f"  licence {licence(project, newest)}",
        *(["  its NOTICE:", *(f"    {line}".rstrip() for line in _about_itself(project, said[0]))] if said else []),
    ]
    return "\n".join(lines) + "\n"


def _about_itself(project: Project, notice: str) -> Sequence[str]:
    before = notice.partition(project.notice_until)[0] if project.notice_until else notice
    return before.strip().splitlines()


def licence(project: Project, release: str) -> str:
    """The name of a release's licence; one that we cannot pass on is refused."""
    texts = [" ".join(text.decode().lower().split()).replace(",", "") for _, text in read(project, release, "LICENSE")]
    for name, words in _LICENCES:
        if any(words in text for text in texts):
            return name
    raise UnreachableError(f"{project.name} {release} has no licence that is known here")


# --- Command ----------------------------------------------------------------------------------------------------------


def everything() -> dict[str, str]:
    """All files, by path below `gpuplan/compiler/manifests/crds`."""
    return {**files([item for project in projects() for item in defined(project)]), "NOTICE": notice()}


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; say which files are not what they should be.")
def main(check: bool) -> None:  # noqa: FBT001 - an option
    """Write the definitions below gpuplan/compiler/manifests/crds."""
    try:
        wanted = everything()
    except UnreachableError as error:
        sys.exit(str(error))
    kept = [path for path in (*KEPT.glob("data/*.txt"), KEPT / "NOTICE", KEPT / "RULES") if path.exists()]
    there = {path.relative_to(KEPT).as_posix() for path in kept}
    stale = [path for path, text in wanted.items() if path not in there or (KEPT / path).read_text() != text]
    if check:
        sys.exit("\n".join(sorted({*stale, *(there - wanted.keys())})))
    for path in there - wanted.keys():
        (KEPT / path).unlink()
    for path in stale:
        (KEPT / path).parent.mkdir(exist_ok=True)
        (KEPT / path).write_text(wanted[path], encoding="utf-8")


if __name__ == "__main__":
    main()
