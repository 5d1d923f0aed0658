"""Builds the Go programs that these tests run, from pinned modules, into a cache outside of the tree."""

from __future__ import annotations

import fcntl
import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

MODULES = Path(__file__).parent / "go"
HOW_TO_RUN = "`make test-cluster` runs these tests, with programs that it builds with Go"

_SETTINGS = {"CGO_ENABLED": "1", "GOFLAGS": "-mod=readonly -buildvcs=false", "GOTOOLCHAIN": "local", "GOWORK": "off"}
"""What the user's environment, a workspace or another release of Go would change; `go env -w` decides on what is empty.

NVIDIA's programs need a C compiler, and without one Go would leave out what needs it. No commit is asked of Git, which
does not answer for a folder of another user.
"""
_BUILD = ("-trimpath", "-gcflags=all=-dwarf=false")
_LINK = "-s -w"
"""Symbols and DWARF are most of the size of a program and some of the time to link it."""
_MAJOR_VERSION = re.compile(r"/v\d+$")


class BuildError(Exception):
    """What Go said when it did not build a program."""


def families() -> tuple[str, ...]:
    """The modules below go/, each with programs whose dependencies agree."""
    return tuple(sorted(path.parent.name for path in MODULES.glob("*/go.mod")))


def names(family: str) -> tuple[str, ...]:
    """The programs of a module: its own, named like the module, and the tools in its go.mod."""
    return tuple(_packages(family))


def program(family: str, name: str) -> Path:
    """A program, built if the cache lacks it; the test is skipped where the cluster's programs are not asked for."""
    need_go()
    return build(family, name)


def need_go() -> None:
    """Skip the test unless the cluster's programs are asked for; fail it if they are but cannot be built."""
    if not are_asked_for():
        pytest.skip(HOW_TO_RUN)
    if shutil.which("go") is None:
        pytest.fail("Go is not on PATH: the programs of tests/cluster are built with it", pytrace=False)


def are_asked_for() -> bool:
    return bool(os.environ.get("GPUPLAN_TEST_CLUSTER"))


def build(family: str, name: str) -> Path:
    """A program, built if the cache lacks it; one at a time, also where several processes ask."""
    found = _folder(family) / name
    if found.exists():
        return found
    found.parent.mkdir(parents=True, exist_ok=True)
    with _locked(_cache() / ".lock"):
        if not found.exists():
            # In a folder of its own: after a run that was killed, the Go that it started may still write to another.
            with tempfile.TemporaryDirectory(prefix=".", dir=found.parent) as scratch:
                unfinished = Path(scratch) / name
                _go(family, "build", *_flags(family), "-o", str(unfinished), _packages(family)[name])
                unfinished.rename(found)
    return found


def release(family: str, module: str) -> str:
    """The release of a module that a family's programs are made of."""
    text = (MODULES / family / "go.mod").read_text(encoding="utf-8")
    return next(line.split()[1] for line in text.replace("require ", "").splitlines() if line.split()[:1] == [module])


def source(family: str, module: str) -> Path:
    """The folder that a module's release is unpacked in: what it comes with besides its code."""
    return Path(json.loads(_go(family, "mod", "download", "-json", module))["Dir"])


def main() -> None:
    """Build all programs that are missing, and print how long each took."""
    if shutil.which("go") is None:
        sys.exit("error: Go is not on PATH\n  help: install Go 1.26 or newer, see https://go.dev/doc/install")
    try:
        missing = [
            (family, name) for family in families() for name in names(family) if not (_folder(family) / name).exists()
        ]
        for number, (family, name) in enumerate(missing, 1):
            print(f"building {number} of {len(missing)}: {family}/{name} ...", end=" ", flush=True)
            start = time.monotonic()
            build(family, name)
            print(f"{time.monotonic() - start:.0f} s", flush=True)
    except BuildError as error:
        sys.exit(f"\nerror: {error}")
    print(f"programs are in {_cache()}")


@functools.cache
def _packages(family: str) -> dict[str, str]:
    tools = json.loads(_go(family, "mod", "edit", "-json")).get("Tool") or ()
    packages = {_MAJOR_VERSION.sub("", tool["Path"]).rpartition("/")[2]: tool["Path"] for tool in tools}
    return {family: ".", **packages} if any((MODULES / family).glob("*.go")) else packages


@functools.cache
def _folder(family: str) -> Path:
    """Where a module's programs are kept: as soon as what they are made of changes, another folder."""
    digest = hashlib.sha256(_go(family, "env", "GOVERSION", "GOOS", "GOARCH").encode())
    digest.update(" ".join(_flags(family)).encode())
    for path in sorted((MODULES / family).iterdir()):
        digest.update(f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return _cache() / f"{family}-{digest.hexdigest()[:16]}"


def _flags(family: str) -> tuple[str, ...]:
    return (*_BUILD, f"-ldflags={_LINK}{_release(family)}")


@functools.cache
def _release(family: str) -> str:
    """Flags that tell Kubernetes its release, as its own build does; controllers ask the API server for it."""
    if not family.startswith("kubernetes-"):
        return ""
    required = json.loads(_go(family, "mod", "edit", "-json"))["Require"]
    release = next(module["Version"] for module in required if module["Path"] == "k8s.io/kubernetes")
    major, minor, _ = release.removeprefix("v").split(".", 2)
    variables = {"gitVersion": release, "gitMajor": major, "gitMinor": minor}
    return "".join(f" -X k8s.io/component-base/version.{name}={value}" for name, value in variables.items())


def _cache() -> Path:
    if own := os.environ.get("GPUPLAN_TEST_PROGRAMS"):
        return Path(own).resolve()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpuplan" / "programs"


def _go(family: str, *arguments: str) -> str:
    """What Go prints when it is run in a module."""
    result = subprocess.run(
        ["go", *arguments],
        cwd=MODULES / family,
        env=os.environ | _SETTINGS,
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        raise BuildError(f"go {' '.join(arguments)}, in {MODULES / family}\n{result.stderr.strip()}")
    return result.stdout


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    main()
