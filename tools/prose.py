"""Check the sentences of the documentation: ``make check`` fails when a page is harder to read than ``LIMITS`` allows.

python tools/prose.py               # a table of the pages with the most offences
python tools/prose.py --list docs/  # each offence in a page or a folder
python tools/prose.py --check       # fail if a limit is passed

A sentence has at most 30 words and fewer than four of ``PRONOUNS``. It begins with none of ``OPENINGS``, unless it is a
question or begins with the title of a page. Pages of `docs/rules` and `docs/fields` are made of the docstrings of rules
and fields. Help, findings and errors are read in the code: each text there that is no docstring and has six words.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[1]
SOURCES: Final = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "ARCHITECTURE.md", "docs", "gpuplan")
UNREAD: Final = ("docs/adr/", "docs/proof/", "docs/catalog.md", "docs/schema/")
"""Decisions are records of their day; the others hold tables that programs write."""
WORDS: Final = 30
"""The most words of a sentence."""
SHORTEST: Final = 6
"""The fewest words of a text in the code that is read as a sentence."""
OPENINGS: Final = frozenset({"what", "who", "whoever", "whatever", "that", "of"})
PRONOUNS: Final = frozenset({"it", "one", "that", "those", "they", "this", "other"})
LIMITS: Final = {"long": 0.0, "opening": 0.0, "pronouns": 1.0}
"""The most offences of each kind, in per cent of all sentences."""

_FENCE: Final = re.compile(r"^( *)(```|~~~).*?^\1\2 *$", re.MULTILINE | re.DOTALL)
_INDENTED: Final = re.compile(r"(?<=\n\n)(?:    .*\n|\n)+")
_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)
_CODE: Final = re.compile(r"``.+?``|`[^`]+`", re.DOTALL)
_LINK: Final = re.compile(r"!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])")
_BLOCK: Final = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*+]|\d+\.)\s)|\n(?=#)|(?<=\|)\n(?=\|)|(?<=\s)\|(?=\s)")
_PROGRAMS: Final = r"(?:gpuplan|kube-\w+|kubectl|kustomize|mig-\w+|config-manager|cert-manager|torchrun)\b"
"""The names with a small letter that begin sentences."""
_END: Final = re.compile(
    rf"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)(?<!etc\.)(?<!vs\.)[\"')*_]*\s+(?=[\"'(*_[]*(?:[A-Z`0-9]|{_PROGRAMS}))"
)
_GLUE: Final = re.compile(r"\b(?:the|a|an|is|are|of|to|and|or|no|not|for|in|by)\b", re.IGNORECASE)
"""The words that sentences have, and lists of names, patterns and stylesheets have not."""
_WORD: Final = re.compile(r"[A-Za-z0-9].*")


class Sentence(NamedTuple):
    """A sentence and the place where it begins; inline code counts as a word."""

    page: Path
    line: int
    text: str

    @property
    def words(self) -> list[str]:
        return [match[0] for token in self.text.split() if (match := _WORD.search(token))]

    @property
    def offences(self) -> list[str]:
        words = [word.lower().rstrip(".:") for word in self.words]
        may_begin = self.text.rstrip("\"')*_ ").endswith("?") or self.text.lstrip("-*+0123456789. ").startswith("[")
        found = ["long"] if len(words) > WORDS and _GLUE.search(self.text) else []
        found += ["opening"] if words and words[0] in OPENINGS and not may_begin else []
        return found + (["pronouns"] if sum(word in PRONOUNS for word in words) > 3 else [])


def sentences_of(page: Path) -> Iterator[Sentence]:
    """Yield the sentences of a page of Markdown, without those of headings and code."""
    yield from _sentences(page, 1, page.read_text(encoding="utf-8"))


def _sentences(page: Path, first: int, text: str) -> Iterator[Sentence]:
    for hidden in (_COMMENT, _FENCE, _INDENTED):
        text = hidden.sub(lambda match: "\n" * match[0].count("\n"), text)
    text = _LINK.sub(r"[\1]", _CODE.sub(lambda match: "CODE" + "\n" * match[0].count("\n"), text))
    start = 0
    for end in [*(match.span() for match in _BLOCK.finditer(text)), (len(text), len(text))]:
        block, line = text[start : end[0]], text.count("\n", 0, start) + first
        start = end[1]
        if not block.lstrip().startswith(("#", "---")) and re.search("[A-Za-z]", block):
            yield from _split(page, line, block)


def _split(page: Path, line: int, block: str) -> Iterator[Sentence]:
    start = 0
    for end in [*(match.span() for match in _END.finditer(block)), (len(block), len(block))]:
        text = block[start : end[0]]
        first = line + block.count("\n", 0, start + len(text) - len(text.lstrip()))
        yield Sentence(page, first, " ".join(text.split()))
        start = end[1]


def texts_of(module: Path) -> Iterator[Sentence]:
    """Yield the sentences of the texts in a module of Python that people may come to read."""
    nodes = list(ast.walk(ast.parse(module.read_text(encoding="utf-8"))))
    unread = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}  # docstrings, mostly
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            unread |= {id(part) for part in ast.walk(node)} - {id(node)}
        elif isinstance(node, ast.Call):
            unread |= _lists_and_patterns(node)
    for node in nodes:
        if id(node) not in unread and isinstance(node, ast.JoinedStr | ast.Constant):
            text = _text(node)
            if len(text.split()) >= SHORTEST:
                yield from _sentences(module, node.lineno, text)


def _lists_and_patterns(call: ast.Call) -> set[int]:
    """Return the texts that are split into words, or are regular expressions."""
    if isinstance(call.func, ast.Attribute) and call.func.attr == "split":
        return {id(call.func.value)}
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    is_pattern = name in ("regex", "compile", "Pattern", "StringConstraints")
    return {id(part) for part in ast.walk(call)} - {id(call)} if is_pattern else set()


def _text(node: ast.JoinedStr | ast.Constant) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    return "".join(_text(part) if isinstance(part, ast.Constant) else "CODE" for part in node.values)


def files_in(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield the pages and modules below the paths, but for ``UNREAD``."""
    for path in paths:
        files = [*path.rglob("*.md"), *path.rglob("*.py")] if path.is_dir() else [path]
        for file in sorted(file.resolve() for file in files):
            if not file.relative_to(ROOT).as_posix().startswith(UNREAD):
                yield file


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path, help="pages or folders (all pages)")
    parser.add_argument("--list", action="store_true", help="print each offence")
    parser.add_argument("--check", action="store_true", help="print offences and fail if a limit is passed")
    options = parser.parse_args(arguments)
    files = files_in(options.paths or [ROOT / name for name in SOURCES])
    sentences = [item for file in files for item in (texts_of if file.suffix == ".py" else sentences_of)(file)]
    counts = Counter(offence for sentence in sentences for offence in sentence.offences)
    passed = [kind for kind, most in LIMITS.items() if 100 * counts[kind] > most * len(sentences)]
    if options.list or (options.check and passed):
        for sentence in sentences:
            for offence in sentence.offences if options.list else [one for one in sentence.offences if one in passed]:
                print(f"{sentence.page.relative_to(ROOT)}:{sentence.line}: {offence}: {sentence.text}")  # noqa: T201 - a script
    elif not options.check:
        _print_table(sentences, counts)
    return 1 if options.check and passed else 0


def _print_table(sentences: Sequence[Sentence], counts: Counter[str]) -> None:
    total = Counter(sentence.page for sentence in sentences)
    by_page = Counter((sentence.page, offence) for sentence in sentences for offence in sentence.offences)
    for page, number in sorted(total.items(), key=lambda one: -sum(by_page[one[0], kind] for kind in LIMITS)):
        figures = " ".join(f"{by_page[page, kind]:4} {kind}" for kind in LIMITS)
        print(f"{figures} of {number:5}  {page.relative_to(ROOT)}")  # noqa: T201 - a script
    print(" ".join(f"{counts[kind]} {kind}" for kind in LIMITS), f"of {len(sentences)}")  # noqa: T201 - a script


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
