"""The folder that a page is followed in: empty for the tutorial, this repository's example platform for the others."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.docs.pages import DOCS, REPOSITORY

TUTORIAL = DOCS / "tutorial.md"


def prepare(page: Path, folder: Path) -> Path:
    """Make the folder, with the example platform as it is committed."""
    folder.mkdir(parents=True)
    if page != TUTORIAL:
        for name in ("overlays", "policies", "out"):
            shutil.copytree(REPOSITORY / name, folder / name)
    return folder
