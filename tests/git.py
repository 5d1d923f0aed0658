"""Git repositories made for a test, with no configuration but their own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

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
