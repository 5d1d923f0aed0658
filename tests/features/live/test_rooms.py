"""The rooms of the feature import each other one way."""

from __future__ import annotations

import ast
from pathlib import Path

from gpuplan.features import live

FOLDER = Path(str(live.__file__)).parent
ROOMS = {path.name for path in FOLDER.iterdir() if path.is_dir() and path.name not in ("__pycache__", "rules")}


def imports() -> set[tuple[str, str]]:
    """Return each pair of rooms of which the first imports the second."""
    pairs = set()
    for module in FOLDER.rglob("*.py"):
        home = module.relative_to(FOLDER).parts[0]
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("gpuplan.features.live"):
                named = str(node.module).removeprefix("gpuplan.features.live").strip(".").split(".")[0]
                rooms = {named} if named else {alias.name for alias in node.names}
                pairs |= {(home, room) for room in rooms & ROOMS if home in ROOMS and room != home}
    return pairs


def test_no_two_rooms_import_each_other() -> None:
    pairs = imports()

    assert ("pools", "clusters") in pairs
    assert {pair for pair in pairs if pair[::-1] in pairs} == set()
