"""The small ways in which code can be broken: each changes one node of a module's tree."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import islice, takewhile
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

SOURCES = Path(__file__).resolve().parents[1] / "gpuplan"
_LONGEST = 80
"""Characters of a node that are shown."""


class Mutation(NamedTuple):
    """The change of a module's ``number``-th node in its ``variant``-th way; ``file`` is below gpuplan/."""

    file: str
    number: int
    variant: int
    line: int
    text: str
    """The line, without space around it."""
    change: str

    @property
    def key(self) -> tuple[str, str, str]:
        """What it is called when lines have moved."""
        return self.file, self.text, self.change

    def __str__(self) -> str:
        return f"gpuplan/{self.file}:{self.line}: {self.change}\n    {self.text}"


class Site(NamedTuple):
    """A node that can be changed, and the statement that it is in.

    ``names`` are those that its part of the module binds where it runs on import, and None within functions.
    """

    node: ast.AST
    statement: ast.stmt
    names: frozenset[str] | None

    @property
    def lines(self) -> range:
        first = getattr(self.node, "lineno", self.statement.lineno)
        last = first if isinstance(self.node, ast.stmt) else getattr(self.node, "end_lineno", first)
        return range(first, last + 1)


def changes_of(file: str) -> Iterator[tuple[str, int, int]]:
    """All changes of a module: file, number and variant; none of lines that no test is asked to cover."""
    lines = _lines(file)
    for number, site in enumerate(_sites(file)):
        if "pragma: no cover" not in lines[site.lines[0] - 1]:
            yield from ((file, number, variant) for variant in range(len(variants(site.node))))


def mutation(file: str, number: int, variant: int) -> Mutation:
    """What a change reads like."""
    site = _sites(file)[number]
    line = site.lines[0]
    return Mutation(file, number, variant, line, _lines(file)[line - 1].strip(), _told(site.node, variant))


def mutated(mutation: Mutation) -> CodeType:
    """The code of a module with one change."""
    path = SOURCES / mutation.file
    tree = ast.parse(path.read_bytes())
    site = next(islice(sites(tree), mutation.number, None))
    variants(site.node)[mutation.variant]()
    return compile(ast.fix_missing_locations(tree), str(path), "exec", dont_inherit=True)


def find_site(mutation: Mutation) -> Site:
    return _sites(mutation.file)[mutation.number]


@cache
def parsed(file: str) -> ast.Module:
    return ast.parse((SOURCES / file).read_bytes())


@cache
def _sites(file: str) -> tuple[Site, ...]:
    return tuple(sites(parsed(file)))


@cache
def _lines(file: str) -> list[str]:
    return (SOURCES / file).read_text(encoding="utf-8").splitlines()


def _told(node: ast.AST, variant: int) -> str:
    changed = copy.deepcopy(node)
    variants(changed)[variant]()
    before, after = _shown(node), _shown(changed)
    if len(before) < _LONGEST:
        return f"{before} -> {after}"
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))
    start = max(0, same - _LONGEST // 4)
    return f"...{before[start : start + _LONGEST]}... -> ...{after[start : start + _LONGEST]}..."


def _shown(node: ast.AST) -> str:
    part = node.test if isinstance(node, ast.If | ast.While) else node
    return " ".join(ast.unparse(part).split())


# --- Ways to change a node -----------------------------------------------------------------------------------------

Variant = Callable[[], object]
"""Changes a node in place."""

_COMPARISONS: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC: Mapping[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.Mult,
}
_CALLS = {"all": "any", "any": "all", "min": "max", "max": "min"}


def variants(node: ast.AST) -> list[Variant]:
    """The ways in which a node can be changed."""
    match node:
        case ast.Compare():
            return [_putting_at(node.ops, at, _COMPARISONS[type(op)]()) for at, op in enumerate(node.ops)]
        case ast.BoolOp():
            return [_putting(node, "op", ast.Or() if isinstance(node.op, ast.And) else ast.And())]
        case ast.UnaryOp(op=ast.Not()):
            return [_putting(node, "operand", ast.UnaryOp(ast.Not(), node.operand))]
        case ast.BinOp() if type(node.op) in _ARITHMETIC and not (_is_text(node.left) or _is_text(node.right)):
            return [_putting(node, "op", _ARITHMETIC[type(node.op)]())]
        case ast.Call(func=ast.Name(id=name)) if name in _CALLS:
            return [_putting(node.func, "id", _CALLS[name])]
        case ast.If() | ast.IfExp() | ast.While() if _is_plain(node.test):
            return [_putting(node, "test", ast.UnaryOp(ast.Not(), node.test))]
        case ast.comprehension():
            plain = [at for at, test in enumerate(node.ifs) if _is_plain(test)]
            return [_putting_at(node.ifs, at, ast.UnaryOp(ast.Not(), node.ifs[at])) for at in plain]
        case ast.Constant():
            return [_putting(node, "value", value) for value in _others(node.value)]
        case _:
            return []


def _others(value: object) -> tuple[object, ...]:
    match value:
        case bool():
            return (not value,)
        case int() | float():
            return (value + 1, value - 1) if value > 0 else (value + 1,)
        case _:
            return ()


def _is_plain(test: ast.AST) -> bool:
    """Whether it holds no operator that is changed in another way."""
    return isinstance(test, ast.Name | ast.Attribute | ast.Call | ast.NamedExpr)


def _is_text(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _putting(node: ast.AST, field: str, value: object) -> Variant:
    return lambda: setattr(node, field, value)


def _putting_at(items: list[Any], at: int, value: ast.AST) -> Variant:
    return lambda: items.__setitem__(at, value)


# --- Nodes that can be changed -------------------------------------------------------------------------------------


_KEPT = frozenset(("dataclass", "lru_cache", "TypeVar", "cast"))
"""Calls that say how fast, or of which type: no test is about that."""


def sites(tree: ast.Module) -> Iterator[Site]:
    """What can be changed in a module: no annotations, no texts, no lines that only a type checker reads."""
    for statement in tree.body:
        yield from _in_statement(statement, frozenset(bound(statement)))


def _in_statement(statement: ast.stmt, names: frozenset[str] | None) -> Iterator[Site]:
    if _says_nothing(statement) or names == frozenset(("__all__",)):
        return
    if variants(statement):
        yield Site(statement, statement, names)
    is_function = isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
    for field, child in _children(statement):
        yield from _below(child, statement, None if is_function and field == "body" else names)


def _says_nothing(statement: ast.stmt) -> bool:
    """Whether it is an import, a docstring, or for type checkers or scripts alone."""
    match statement:
        case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant()):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Compare(left=ast.Name(id="__name__"))):
            return True
        case _:
            return False


def _below(node: ast.AST, statement: ast.stmt, names: frozenset[str] | None) -> Iterator[Site]:
    if isinstance(node, ast.stmt):
        yield from _in_statement(node, names)
        return
    if isinstance(node, ast.match_case) and "assert_never" in identifiers(node):
        return
    if isinstance(node, ast.Call) and identifiers(node.func) & _KEPT:
        return
    if variants(node):
        yield Site(node, statement, names)
    for _, child in _children(node):
        yield from _below(child, statement, names)


def _children(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    for field, value in ast.iter_fields(node):
        if field not in ("annotation", "returns", "format_spec"):
            yield from (
                (field, child)
                for child in (value if isinstance(value, list) else [value])
                if isinstance(child, ast.AST)
            )


def bound(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement binds in its module."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
    else:
        names = (node for node in ast.walk(statement) if isinstance(node, ast.Name))
        yield from (node.id for node in names if isinstance(node.ctx, ast.Store))


def identifiers(node: ast.AST) -> set[str]:
    """The names that are read in it, plain or behind a dot."""
    plain = {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)}
    return plain | {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
