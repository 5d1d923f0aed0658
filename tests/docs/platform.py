"""The folder that a page is followed in: empty for the tutorial, this repository's example platform for the others."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.cli.runs import run
from tests.docs.pages import DOCS, REPOSITORY

TUTORIAL = DOCS / "tutorial.md"


def prepare(page: Path, folder: Path) -> Path:
    """Make the folder; the example platform is in it built and as this gpuplan builds it."""
    folder.mkdir(parents=True)
    if page != TUTORIAL:
        for name in ("overlays", "policies"):
            shutil.copytree(REPOSITORY / name, folder / name)
        done = run("build", "--quiet", cwd=folder)
        assert done.code == 0, done.err
    return folder
