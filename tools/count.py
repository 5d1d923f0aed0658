"""Count the lines of code of gpuplan by package, and the lines of the data beside it.

Data are all files that are no modules, and modules below a folder `data` that hold values and no logic.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import sys
import tokenize
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

_TOTAL = "total"
_NOTHING = {
    tokenize.COMMENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
    tokenize.INDENT,
    tokenize.NEWLINE,
    tokenize.NL,
}
"""Tokens that make no line a line of code."""

_DATA = "data"
_VALUES = (
    *(ast.Module, ast.Import, ast.ImportFrom, ast.alias, ast.Expr, ast.Assign, ast.AnnAssign),
    *(ast.Constant, ast.Name, ast.Attribute, ast.Subscript, ast.expr_context),
    *(ast.Tuple, ast.List, ast.Set, ast.Dict, ast.Call, ast.keyword, ast.UnaryOp, ast.USub),
)
"""What a module of data may be made of."""


@dataclass(frozen=True, slots=True)
class Count:
    """Modules and data files of a package. ``lines`` are all lines of its modules; ``data`` leaves blank ones out."""

    modules: int = 0
    lines: int = 0
    code: int = 0
    data_files: int = 0
    data: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(
            self.modules + other.modules,
            self.lines + other.lines,
            self.code + other.code,
            self.data_files + other.data_files,
            self.data + other.data,
        )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "gpuplan", help="what to count in (gpuplan/)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--budget", type=Path, help="fail where a package has more code than this file allows")
    options = parser.parse_args(arguments)
    counts = count_packages(options.folder)
    if options.budget:
        faults = [*over_budget(counts, tomllib.loads(options.budget.read_text(encoding="utf-8"))["code"])]
        print("\n".join(faults), end="\n" if faults else "")  # noqa: T201 - a script
        return 1 if faults else 0
    print(as_json(counts) if options.json else as_table(counts))  # noqa: T201 - a script
    return 0


def over_budget(counts: Mapping[str, Count], budget: Mapping[str, int]) -> Iterator[str]:
    """Yield a sentence for each package that is larger than the budget allows, or that has no number there."""
    for package, count in counts.items():
        if package not in budget:
            yield f"{package}: {count.code} lines of code and no budget: add `'{package}' = {count.code}`"
        elif count.code > budget[package]:
            more, allowed = count.code - budget[package], budget[package]
            yield f"{package}: {more} lines over its budget of {allowed}: make that many needless, or say why not"
    yield from (f"{package}: there is no such package: remove its line" for package in budget if package not in counts)


def count_packages(folder: Path) -> dict[str, Count]:
    """The count of each package below a folder, by path; `.` is what lies in the folder itself.

    A package that has packages and nothing else is no package but those.
    """
    counts: dict[str, Count] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            package = package_of(path, folder)
            is_data = _DATA in path.relative_to(folder).parts[:-1]
            counts[package] = counts.get(package, Count()) + count_file(path, may_be_data=is_data)
    return dict(sorted(counts.items()))


def package_of(path: Path, folder: Path) -> str:
    """Return the package of a file below a folder, as `compiler/checks`; `.` for what lies in the folder itself."""
    *folders, _ = path.relative_to(folder).parts
    return "/".join(folders[: 2 if folders and _holds_packages(folder / folders[0]) else 1]) or "."


def _holds_packages(folder: Path) -> bool:
    """Whether there is nothing beside its packages but a page about them."""
    files = [path for path in folder.iterdir() if path.is_file()]
    return [path.name for path in files] == ["__init__.py"] and not code_lines(files[0].read_text(encoding="utf-8"))


def count_file(path: Path, *, may_be_data: bool) -> Count:
    """A module, or one file of data; an empty file, such as `py.typed`, is neither."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py" and not (may_be_data and holds_values_only(text)):
        return Count(modules=1, lines=len(text.splitlines()), code=len(code_lines(text)))
    written = [line for line in text.splitlines() if line.strip()]
    return Count(data_files=1, data=len(written)) if written else Count()


def code_lines(source: str) -> set[int]:
    """The numbers of the lines on which a token stands that is neither a comment nor part of a docstring."""
    docstrings = set(_docstrings(source))
    return {
        line
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type not in _NOTHING and token.start not in docstrings
        for line in range(token.start[0], token.end[0] + 1)
    }


def holds_values_only(source: str) -> bool:
    """Whether a module holds no logic: literals, names, and calls of what is named like a class."""
    nodes = list(ast.walk(ast.parse(source)))
    called = [node.func for node in nodes if isinstance(node, ast.Call)]
    return all(isinstance(node, _VALUES) for node in nodes) and all(
        isinstance(function, ast.Name) and function.id[:1].isupper() for function in called
    )


def _docstrings(source: str) -> Iterator[tuple[int, int]]:
    """Where statements begin that are nothing but a string: the pages of modules, classes, functions and constants."""
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            before = lines[node.lineno - 1].encode()[: node.col_offset]  # `ast` counts bytes, `tokenize` characters
            yield node.lineno, len(before.decode())


def as_json(counts: Mapping[str, Count]) -> str:
    whole = sum(counts.values(), Count())
    return json.dumps({"packages": {name: asdict(found) for name, found in counts.items()}, _TOTAL: asdict(whole)})


def as_table(counts: Mapping[str, Count]) -> str:
    head = ("package", "modules", "lines", "code", "data files", "data lines")
    rows = [(name, found) for name, found in (*counts.items(), (_TOTAL, sum(counts.values(), Count())))]
    width = max(len(name) for name in ("package", _TOTAL, *counts)) + 2
    return "\n".join(
        f"{cells[0]:<{width}}" + "".join(f"{cell:>12}" for cell in cells[1:])
        for cells in (head, *((name, *map(str, asdict(found).values())) for name, found in rows))
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
