"""Run git so that nothing of the platform can widen what it does, and nothing but the user's repository answers.

Git checks out nothing called `.git`, whatever a commit holds. It does check out a folder with ``HEAD``, ``objects`` and
``refs``, and takes such a folder for a repository before it looks further up, with whatever its ``config`` says. So
gpuplan looks for a whole `.git` itself, upwards from the platform, and starts git beside it: there git finds it first.

The user's configuration counts, but for the keys in `SETTINGS`, which are given on the command line and so win over
every file. Objects are read as they are: no replacement and no graft stands in for one, and no attribute, filter or
text conversion is asked for. Nothing is fetched.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from select import POLLIN, poll
from typing import Final

from gpuplan.compiler.base.diagnostics import GpuplanError, reason_of
from gpuplan.compiler.base.programs import find_program, search_path
from gpuplan.compiler.base.repository import find_repository
from gpuplan.compiler.base.values import NamedTuple

SHORT: Final = 12
"""Characters by which people tell commits apart."""
LONGEST_READ: Final = 300
"""Seconds for one answer of git."""
WITH_A_FOLDER: Final = "compare with a folder instead: `--against ./DIR`"

FETCH_ALL: Final = "git fetch --refetch --no-filter"
"""From git 2.36 on it fetches what a partial clone left out of all that the remote's branches reach."""

SETTINGS: Final[Mapping[str, str]] = {
    "core.askPass": "",
    "core.bigFileThreshold": "1m",  # what is larger goes through git's hands in pieces, unless it is stored as a delta
    "core.fsmonitor": "",  # nothing, in every version of git; `false` was a program's name before 2.36
    "core.hooksPath": os.devnull,
    "core.pager": "cat",
    "core.sshCommand": "false",
    "credential.helper": "",
    "diff.external": "",
    "protocol.allow": "never",
    "safe.bareRepository": "explicit",  # from git 2.38 on; a whole `.git` where git is started does the same before
}
"""The settings of git's configuration that would start a program, ask a person or name a repository.

From git 2.54 on hooks may also be `hook.<name>.command`, which none of these commands runs.
"""
_VARIABLES: Final[Mapping[str, str]] = {
    "LC_ALL": "C",
    "GIT_ALLOW_PROTOCOL": "none",  # there is no such protocol; it wins over each `protocol.*.allow`
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_GRAFT_FILE": f"{os.devnull}/none",  # a file that is there, even an empty one, brings a warning
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_LAZY_FETCH": "1",  # from git 2.45 on; without a protocol nothing is fetched before
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    **dict.fromkeys(("GIT_TRACE2", "GIT_TRACE2_EVENT", "GIT_TRACE2_PERF"), "0"),  # a configuration may name files
}
_KEPT: Final = (
    *("GIT_CONFIG_COUNT", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_KEY_", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_PARAMETERS"),
    *("GIT_CONFIG_SYSTEM", "GIT_CONFIG_VALUE_"),
    *("GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_OBJECT_DIRECTORY", "GIT_QUARANTINE_PATH"),
)
"""The beginnings of the names of those variables `GIT_...` that git gets: the user's configuration, by which CI trusts
the folder (git 2.38 or newer), and the places of objects that are being pushed until a hook has agreed."""


def git(root: Path, *arguments: str) -> bytes | None:
    """Return git's output, or None if git exits with 1 or has no such object. Raise `GpuplanError` if git fails."""
    done = run(root, *arguments)
    if done.returncode == 0:
        return done.stdout
    if done.returncode == 1 or "--verify" in arguments:
        return None
    raise GpuplanError(f"`git {arguments[0]}` fails: it says {complaint(done)}", WITH_A_FOLDER)


def text(printed: bytes | None) -> str:
    return os.fsdecode(printed or b"").removesuffix("\n")


def run(root: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run git beside the `.git` of a folder's repository; where there is none, as git fails outside of repositories."""
    repository = find_repository(root)
    if repository is None:
        return subprocess.CompletedProcess(arguments, _FATAL, b"", b"fatal: not a git repository")
    with _as_trouble(root, arguments[0]):
        return subprocess.run(  # noqa: S603 - nothing of the arguments is an option but ours
            _command(root, *arguments),
            cwd=repository.top,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=LONGEST_READ,
        )


_FATAL: Final = 128


def _command(root: Path, *arguments: str) -> list[str]:
    program = find_program("git")
    if program is None:
        hint = f"install git, or {WITH_A_FOLDER}" if root.is_dir() else f"`{root}` is no folder"
        raise GpuplanError("there is no git on the path to read revisions with", hint)
    settings = [part for name, value in SETTINGS.items() for part in ("-c", f"{name}={value}")]
    return [program, *settings, *arguments]


def complaint(done: subprocess.CompletedProcess[bytes]) -> str:
    return " ".join(done.stderr.decode(errors="replace").split()) or f"nothing, and ends with {done.returncode}"


class Object(NamedTuple):
    """An object, or the beginning of one: ``size`` is that of all its data."""

    kind: str
    size: int
    data: bytes


class Objects:
    """Reads objects one by one from a single `git cat-file --batch`, which runs from the first one to the end.

    After each object git is asked for a name that nobody can have foreseen. By its answer to that we see where the
    object ends: one that is damaged may be shorter than git says.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._process: subprocess.Popen[bytes] | None = None
        self._buffer = bytearray()
        self._nothing = f"?{token_hex(8)}"  # no reference may have a question mark
        self._end = f"{self._nothing} missing\n".encode()

    def find(self, name: str, most: int) -> Object | None:
        """The object of this name, with no more of its data than so many bytes; None when it is not there."""
        process = self._ask(name)
        while b"\n" not in self._buffer:
            if not self._read_on(process, name):
                return None
        header, _, rest = bytes(self._buffer).partition(b"\n")
        self._buffer = bytearray(rest)
        words = header.split(b" ")
        is_there = len(words) == 3  # otherwise `NAME missing`
        size = int(words[2]) if is_there else -1
        wanted = most if size > most else size + 1 + len(self._end)
        while len(self._buffer) < wanted and not self._buffer.endswith(self._end):
            if not self._read_on(process, name):
                return None
        if len(self._buffer) < wanted:
            self.close()
            raise _damaged(name)
        data = bytes(self._buffer[: min(size, most)])
        self._buffer.clear()
        if size > most:
            self.close()  # it takes less time to start again than to read to the end of what nobody wants
        return Object(words[1].decode(), size, data) if is_there else None

    def way_to_missing(self) -> str:
        """Return what to do about an object that is not there: a partial clone has it elsewhere."""
        hint = f"this clone is partial: run `{FETCH_ALL}`, or clone without `--filter`"
        return hint if self._is_partial() else "run `git fsck`"

    def _is_partial(self) -> bool:
        return git(self._root, "config", "--get-regexp", r"^remote\..*\.promisor$") is not None

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            with self._process:  # waits, and closes the pipes
                self._process = None
        self._buffer.clear()

    def _ask(self, name: str) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._process = self._start()
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):  # it has just ended, which whoever reads from it will see
                self._process.stdin.write(f"{name}\n{self._nothing}\n".encode())
        return self._process

    def _start(self) -> subprocess.Popen[bytes]:
        repository = find_repository(self._root)
        if repository is None:
            raise GpuplanError(f"`{self._root}` is in no Git repository any more", "run it again")
        with _as_trouble(self._root, "cat-file"):
            return subprocess.Popen(  # noqa: S603 - as above
                _command(self._root, "cat-file", "--batch"),
                cwd=repository.top,
                env=_environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
            )

    def _read_on(self, process: subprocess.Popen[bytes], name: str) -> bool:
        """Read what git says next; False if it ends because a partial clone does not have the object."""
        if process.stdout is None:
            raise TypeError(process.stdout)
        waiting = poll()
        waiting.register(process.stdout, POLLIN)
        if not waiting.poll(int(LONGEST_READ * 1000)):
            raise _silence("cat-file")
        more = process.stdout.read(_CHUNK)
        if not more:
            self.close()
            if self._is_partial():
                return False
            git(self._root, "cat-file", "-t", name)  # says why, as long as it fails as well
            raise _damaged(name)
        self._buffer += more
        return True


_CHUNK: Final = 2**16


def _damaged(name: str) -> GpuplanError:
    return GpuplanError(f"git cannot read object `{name}` to its end", "run `git fsck`")


@contextmanager
def _as_trouble(root: Path, command: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise GpuplanError(f"cannot run git in `{root}`: {reason_of(error)}", WITH_A_FOLDER) from error
    except subprocess.TimeoutExpired as error:
        raise _silence(command) from error


def _silence(command: str) -> GpuplanError:
    return GpuplanError(f"`git {command}` says nothing within {LONGEST_READ} seconds", WITH_A_FOLDER)


def _environment() -> Mapping[str, str]:
    """Return the user's variables, of git's own only those that no hook, script or branch turns against the user."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name.startswith(_KEPT)}
    return {**own, **_VARIABLES, "PATH": search_path()}
