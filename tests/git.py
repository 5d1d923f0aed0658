"""Git repositories made for a test, with no configuration but their own."""

from __future__ import annotations

import os
import subprocess
import zlib
from collections.abc import Iterable, Sequence
from hashlib import sha1
from pathlib import Path
from typing import NamedTuple

_ALONE = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
_PERSON = {"user.name": "A person", "user.email": "person@example.com", "commit.gpgsign": "false"}


def git(root: Path, *arguments: str) -> str:
    """Run git in a folder; what it prints."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(
        ["git", *arguments], cwd=root, env={**variables, **_ALONE}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def a_repository(root: Path) -> Path:
    """An empty repository with the branch `main`, and somebody to commit."""
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "--quiet", "--initial-branch=main")
    for name, value in _PERSON.items():
        git(root, "config", name, value)
    return root


def commit(root: Path, message: str = "change") -> str:
    """Commit all that is there; the commit."""
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--allow-empty", "--message", message)
    return git(root, "rev-parse", "HEAD")


# --- Objects as nobody commits them ------------------------------------------------------------------------------


class TreeEntry(NamedTuple):
    """An entry of a raw tree; nothing asks whether git would make one like it."""

    mode: bytes
    name: bytes
    digest: str


def an_object(root: Path, kind: str, data: bytes) -> str:
    """Write a loose object as it is, without asking git what it thinks of it; its digest."""
    whole = b"%s %d\0%s" % (kind.encode(), len(data), data)
    digest = sha1(whole, usedforsecurity=False).hexdigest()
    path = root / ".git/objects" / digest[:2] / digest[2:]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(zlib.compress(whole, 1))
    return digest


def a_tree(root: Path, entries: Iterable[TreeEntry]) -> str:
    data = b"".join(b"%s %s\0%s" % (mode, name, bytes.fromhex(digest)) for mode, name, digest in entries)
    return an_object(root, "tree", data)


def a_commit(root: Path, tree: str, branch: str, *parents: str) -> str:
    """A commit of this tree, to which a branch is set; the commit."""
    person = "A person <person@example.com> 1700000000 +0000"
    lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents), f"author {person}", f"committer {person}"]
    digest = an_object(root, "commit", "".join(f"{line}\n" for line in (*lines, "", "change")).encode())
    git(root, "update-ref", f"refs/heads/{branch}", digest)
    return digest


def entries_of(root: Path, tree: str = "HEAD") -> list[TreeEntry]:
    """The entries of a tree that git made."""
    found = git(root, "ls-tree", "-z", tree).split("\0")
    lines = [line.partition("\t") for line in found if line]
    return [_entry(about.split(" "), name) for about, _, name in lines]


def _entry(about: Sequence[str], name: str) -> TreeEntry:
    mode, _, digest = about
    return TreeEntry(mode.lstrip("0").encode(), name.encode(), digest)
