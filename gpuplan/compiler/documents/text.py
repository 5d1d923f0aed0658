"""Text from bytes: UTF-8 without characters that hide or that YAML readers disagree about."""

from __future__ import annotations

import re
import unicodedata
from shlex import quote

from gpuplan.compiler.base.diagnostics import (
    Diagnostic,
    Finding,
    Location,
    Origin,
    Position,
    SourceFile,
    Span,
    WholeFile,
)
from gpuplan.compiler.documents.document import Spot
from gpuplan.compiler.documents.rules import NOT_TEXT, TOO_LARGE

MAX_BYTES = 8 * 2**20
MAX_DIRECTIVES = 64  # libyaml compares each %TAG with all before it


def decode(path: str, raw: bytes) -> tuple[SourceFile, Diagnostic | None]:
    """The file as text, or as much of it as a message can show and why it is refused."""
    if len(raw) > MAX_BYTES:
        file = SourceFile(path, "")
        return file, _too_large(file, f"file is larger than {MAX_BYTES // 2**20} MiB")
    try:
        return SourceFile(path, raw.decode("utf-8-sig")), None
    except UnicodeDecodeError as error:
        encoding = _UTF16_MARKS.get(raw[:2])
        if encoding:
            file = SourceFile(path, raw[2:].decode(encoding, "replace"))
            name = quote(path)
            way = f"iconv -f UTF-16 -t UTF-8 {name} > {name}.new && mv {name}.new {name}"
            help_ = f"save it as UTF-8: type `{way}`"
            finding = Finding(Origin(WholeFile(file)), "file is UTF-16, not UTF-8", help=help_)
            return file, NOT_TEXT.report(finding)
        file = SourceFile(path, raw.decode("utf-8-sig", "replace"))
        place = len(raw[: error.start].decode("utf-8-sig"))
        finding = Finding(
            at=Spot(Location(file, span_of(file.text, place, place + 1))).origin,
            message=f"byte 0x{raw[error.start]:02X} is not UTF-8",
            label="not UTF-8",
            help="save the file as UTF-8",
        )
        return file, NOT_TEXT.report(finding)


def check_text(file: SourceFile) -> Diagnostic | None:
    """Why no YAML parser should be given this text: its size, or its first character that hides."""
    if len(file.text) > MAX_BYTES:
        return _too_large(file, f"file is larger than {MAX_BYTES // 2**20} MiB")
    if file.text.count("\n%") + file.text.count("\r%") > MAX_DIRECTIVES:
        return _too_large(file, f"file has more than {MAX_DIRECTIVES} lines that begin with `%`")
    if file.text.isascii() and not file.text.encode().translate(None, _PRINTABLE_ASCII):
        return None
    found = re.search(_UNPRINTABLE, file.text)
    return _unprintable(file, found) if found else None


def span_of(text: str, start: int, end: int) -> Span:
    """Lines and columns of a stretch of text that is given by offsets."""
    return Span(_position(text, start), _position(text, end))


def _position(text: str, offset: int) -> Position:
    before = text[:offset].replace("\r\n", "\n").replace("\r", "\n")
    return Position(before.count("\n") + 1, len(before) - before.rfind("\n"))


_PRINTABLE_ASCII = bytes([*b"\t\n\r", *range(0x20, 0x7F)])
# The printable characters of YAML 1.2, but for the byte order mark and the line breaks that only YAML 1.1 knows.
# Not compiled here: that takes 4 ms, and nearly all files are printable ASCII.
_UNPRINTABLE = "[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
_UTF16_MARKS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}


def _too_large(file: SourceFile, message: str) -> Diagnostic:
    return TOO_LARGE.report(Finding(Origin(WholeFile(file)), message, help="split it into several files"))


def _unprintable(file: SourceFile, match: re.Match[str]) -> Diagnostic:
    code = ord(match[0])
    name = unicodedata.name(match[0], "").lower()
    escape = f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
    finding = Finding(
        at=Spot(Location(file, span_of(file.text, match.start(), match.end()))).origin,
        message=f"character U+{code:04X}{name and f' ({name})'} cannot stand in a policy",
        label="invisible here",
        help="remove it" if unicodedata.category(match[0]) == "Cs" else f'remove it, or write `"{escape}"`',
    )
    return NOT_TEXT.report(finding)
