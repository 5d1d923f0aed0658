"""The folder that a page is followed in: empty for pages that begin with nothing, else with the example platform."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.cli.runs import run
from tests.docs.pages import DOCS, REPOSITORY

FROM_NOTHING = (DOCS / "start.md", DOCS / "tutorial.md")


def prepare(page: Path, folder: Path) -> Path:
    """Make the folder; the example platform is in it built and as this gpuplan builds it."""
    folder.mkdir(parents=True)
    if page not in FROM_NOTHING:
        for name in ("overlays", "policies"):
            shutil.copytree(REPOSITORY / name, folder / name)
        done = run("build", "--quiet", cwd=folder)
        assert done.code == 0, done.err
    return folder
