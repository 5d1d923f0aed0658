"""Read the code of modules for what reaches outside of the process, whether it is ever run or not."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final, NamedTuple

from tests.cli.runs import REPOSITORY

PACKAGE: Final = REPOSITORY / "gpuplan"

_IMPORTS: Final = {
    "program": ("subprocess", "multiprocessing", "pty", "concurrent.futures.process", "webbrowser", "runpy", "asyncio"),
    "network": (
        *(
            "socket",
            "ssl",
            "http",
            "urllib.request",
            "ftplib",
            "smtplib",
            "imaplib",
            "poplib",
            "xmlrpc",
            "socketserver",
        ),
        *("requests", "httpx", "urllib3", "aiohttp", "websockets"),
    ),
    "write": ("tempfile", "shelve", "dbm", "sqlite3", "zipfile", "tarfile", "logging.handlers"),
    "schema": ("jsonschema_rs", "jsonschema", "kubernetes_validate", "fastjsonschema"),
    "code": ("pickle", "marshal", "shelve", "dill", "code", "codeop"),
}
_OF_OS: Final = {
    "program": (
        *("system", "popen", "startfile", "fork", "forkpty", "posix_spawn", "posix_spawnp"),
        *("execl", "execle", "execlp", "execlpe", "execv", "execve", "execvp", "execvpe"),
        *("spawnl", "spawnle", "spawnlp", "spawnlpe", "spawnv", "spawnve", "spawnvp", "spawnvpe"),
    ),
    "write": (
        *("mkdir", "makedirs", "remove", "unlink", "rmdir", "removedirs", "rename", "renames", "replace", "link"),
        *("symlink", "truncate", "chmod", "chown", "lchown", "utime", "mkfifo", "mknod", "setxattr", "copy_file_range"),
        *("O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND", "sendfile"),
    ),
}
_OF_SHUTIL: Final = (
    "copy",
    "copy2",
    "copyfile",
    "copytree",
    "copymode",
    "copystat",
    "move",
    "rmtree",
    "make_archive",
    "chown",
)
_METHODS: Final = (
    *("write_text", "write_bytes", "touch", "mkdir", "unlink", "rmdir", "rename", "symlink_to", "hardlink_to", "chmod"),
)
"""Of a `Path`. That one which shares its name with texts' own, `replace`, is known by `os.replace` alone."""


class Use(NamedTuple):
    """A place in the code that reaches outside of the process."""

    kind: str
    module: str
    line: int
    what: str


def modules() -> Iterator[tuple[str, str]]:
    """The modules of gpuplan by name, with their text."""
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(REPOSITORY).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path.read_text(encoding="utf-8")


def uses(module: str, text: str) -> Iterator[Use]:
    """What a module uses, but for types that only a checker reads."""
    tree = ast.parse(text)
    passed_over = {id(part) for node in ast.walk(tree) if _is_for_types(node) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) not in passed_over:
            yield from (Use(kind, module, getattr(node, "lineno", 0), what) for kind, what in _found(node))


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _found(node: ast.AST) -> Iterator[tuple[str, str]]:
    match node:
        case ast.Import(names=names):
            for name in names:
                yield from _imported(name.name)
        case ast.ImportFrom(module=str(name), names=names, level=0):
            yield from dict.fromkeys(
                (*_imported(name), *(found for one in names for found in _imported(f"{name}.{one.name}")))
            )
            if name == "os":
                yield from ((kind, one.name) for one in names for kind, known in _OF_OS.items() if one.name in known)
            if name == "shutil":
                yield from (("write", one.name) for one in names if one.name in _OF_SHUTIL)
        case ast.Attribute(value=ast.Name(id="os" | "posix" | "nt"), attr=name):
            yield from ((kind, f"os.{name}") for kind, known in _OF_OS.items() if name in known)
        case ast.Attribute(value=ast.Name(id="shutil"), attr=name) if name in _OF_SHUTIL:
            yield "write", f"shutil.{name}"
        case ast.Call(func=ast.Name(id="open") | ast.Attribute(attr="open")) if _opens_to_write(node):
            yield "write", "open"
        case ast.Call(func=ast.Attribute(attr=name)) if name in _METHODS:
            yield "write", name
        case ast.Call(func=ast.Name(id="exec" | "eval" | "__import__" as name)):
            yield "code", name
        case _:
            pass


def _imported(name: str) -> Iterator[tuple[str, str]]:
    for kind, known in _IMPORTS.items():
        if any(name == one or name.startswith(f"{one}.") for one in known):
            yield kind, name


def _opens_to_write(call: ast.Call) -> bool:
    """Whether a file is opened in a mode that writes, or in one that is not written there."""
    is_method = isinstance(call.func, ast.Attribute)
    if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name) and call.func.value.id == "os":
        return False  # told by its flags
    if call.args and ast.unparse(call.args[0]) == "os.devnull":
        return False  # where a stream is closed, what is said goes nowhere
    place = 0 if is_method else 1
    given = [keyword.value for keyword in call.keywords if keyword.arg == "mode"] + call.args[place : place + 1]
    if not given:
        return False
    mode = given[0]
    return not isinstance(mode, ast.Constant) or any(letter in str(mode.value) for letter in "wax+")
