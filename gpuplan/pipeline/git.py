"""Run git: as the user has set it up, but with nothing in it that shows other objects than those a commit names.

Objects are read as they are: no replacement and no graft stands in for one, and no attribute, filter or text conversion
is asked for. No command that is run here reads the index or writes a reference, so that neither hooks nor a file system
monitor have an occasion. In a partial clone git fetches what is missing from the remote that the user named.
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

from gpuplan.diagnostics import GpuplanError
from gpuplan.values import NamedTuple

SHORT: Final = 12
"""Characters by which people tell commits apart."""
LONGEST_READ: Final = 300
"""Seconds for one answer of git, which may have to fetch in a partial clone."""
WITH_A_FOLDER: Final = "compare with a folder instead: `--against ./DIR`"

_OF_A_HOOK: Final = frozenset(
    ("GIT_COMMON_DIR", "GIT_DIR", "GIT_IMPLICIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_WORK_TREE")
)
_SETTINGS: Final[Mapping[str, str]] = {
    "LC_ALL": "C",
    "GIT_GRAFT_FILE": f"{os.devnull}/none",  # a file that is there, even an empty one, brings a warning
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
}


def git(root: Path, *arguments: str) -> bytes | None:
    """What git prints; None when it says no (exit code 1, or no such object), trouble when it fails otherwise."""
    done = run(root, *arguments)
    if done.returncode == 0:
        return done.stdout
    if done.returncode == 1 or "--verify" in arguments:
        return None
    raise GpuplanError(f"`git {arguments[0]}` fails: it says {said(done)}", WITH_A_FOLDER)


def text(printed: bytes | None) -> str:
    return os.fsdecode(printed or b"").removesuffix("\n")


def run(root: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run git in a folder, with no question to the user and nothing written that could wait until later."""
    with _as_trouble(root, arguments[0]):
        return subprocess.run(  # noqa: S603 - nothing of the arguments is an option but ours
            ["git", *arguments],  # noqa: S607 - whichever is on the path
            cwd=root,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=LONGEST_READ,
        )


def said(done: subprocess.CompletedProcess[bytes]) -> str:
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
            self._read_on(process, name)
        header, _, rest = bytes(self._buffer).partition(b"\n")
        self._buffer = bytearray(rest)
        words = header.split(b" ")
        is_there = len(words) == 3  # otherwise `NAME missing`
        size = int(words[2]) if is_there else -1
        wanted = most if size > most else size + 1 + len(self._end)
        while len(self._buffer) < wanted and not self._buffer.endswith(self._end):
            self._read_on(process, name)
        if len(self._buffer) < wanted:
            self.close()
            raise _damaged(name)
        data = bytes(self._buffer[: min(size, most)])
        self._buffer.clear()
        if size > most:
            self.close()  # it takes less time to start again than to read to the end of what nobody wants
        return Object(words[1].decode(), size, data) if is_there else None

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
        with _as_trouble(self._root, "cat-file"):
            return subprocess.Popen(
                # What is larger than that goes through git's hands in pieces.
                ["git", "-c", "core.bigFileThreshold=1m", "cat-file", "--batch"],  # noqa: S607 - as above
                cwd=self._root,
                env=_environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
            )

    def _read_on(self, process: subprocess.Popen[bytes], name: str) -> None:
        if process.stdout is None:
            raise TypeError(process.stdout)
        waiting = poll()
        waiting.register(process.stdout, POLLIN)
        if not waiting.poll(int(LONGEST_READ * 1000)):
            raise _silence("cat-file")
        more = process.stdout.read(_CHUNK)
        if not more:
            self.close()
            git(self._root, "cat-file", "-t", name)  # says why, as long as it fails as well
            raise _damaged(name)
        self._buffer += more


_CHUNK: Final = 2**16


def _damaged(name: str) -> GpuplanError:
    return GpuplanError(f"git cannot read object `{name}` to its end", "run `git fsck`")


@contextmanager
def _as_trouble(root: Path, command: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        hint = f"install git, or {WITH_A_FOLDER}" if root.is_dir() else f"`{root}` is no folder"
        raise GpuplanError("there is no git on the path to read revisions with", hint) from error
    except subprocess.TimeoutExpired as error:
        raise _silence(command) from error


def _silence(command: str) -> GpuplanError:
    return GpuplanError(f"`git {command}` says nothing within {LONGEST_READ} seconds", WITH_A_FOLDER)


def _environment() -> Mapping[str, str]:
    """That of the user, without what a hook says of which repository it runs in: here the folder says so.

    Where objects are stays as it is: those that are being pushed are in a place of their own until a hook has agreed.
    So does configuration, by which CI trusts the folder.
    """
    return {**{name: value for name, value in os.environ.items() if name not in _OF_A_HOOK}, **_SETTINGS}
