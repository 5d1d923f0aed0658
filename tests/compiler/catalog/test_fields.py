"""The catalog says nothing that nobody asks for: each field of its models is read."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.every import every_row

GPUPLAN = Path(__file__).parents[3] / "gpuplan"
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(GPUPLAN.rglob("*.py"))}


def fields() -> Iterator[tuple[str, str]]:
    for path, tree in TREES.items():
        if path.parent.name == "catalog":
            for model in ast.walk(tree):
                if isinstance(model, ast.ClassDef):
                    for line in model.body:
                        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                            yield model.name, line.target.id


READ = {
    node.attr
    for tree in TREES.values()
    for node in ast.walk(tree)
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
}


@every_row(fields(), lambda model, field: f"{model}.{field}")
def test_a_field_of_the_catalog_is_read(model: str, field: str) -> None:
    assert field in READ, f"nothing reads {model}.{field}: show it, check it, or leave it out of the catalog"
