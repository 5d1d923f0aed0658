"""The parts of a file that nobody may be shown: data of Secrets, values named like passwords, and likely credentials.

The reader here takes any text, broken YAML and JSON too: it never fails, and where it is in doubt it takes a text for
a value. Names and keys are shown, with stars for values, so that columns stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Final, cast

from gpuplan.compiler.base.credentials import hidden, is_harmless, is_secret_name
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.values import NamedTuple, Value

if TYPE_CHECKING:
    import re

SHORTEST: Final = 6
"""Characters of a value that is hidden wherever it stands; shorter ones are common words, and hidden in quotes."""


class Confidential(Value):
    """The confidential parts of a file: its lines with stars, and the values themselves."""

    lines: tuple[str, ...] = ()
    values: frozenset[str] = frozenset()
    has_aws_key: bool = False

    def line(self, number: int) -> str:
        """A line as it may be shown, numbered from 1; empty past the end."""
        text = self.lines[number - 1] if 0 < number <= len(self.lines) else ""
        return hidden(self._without_values(text), has_aws_key=self.has_aws_key)

    def hidden(self, text: str) -> str:
        """Return a text with stars in place of these values, cited whole or in part."""
        if text not in self._covered:
            plain = _QUOTED.sub(self._unquoted, self._without_values(text)) if self.values else text
            self._covered[text] = hidden(plain, has_aws_key=self.has_aws_key)
        return self._covered[text]

    @cached_property
    def _covered(self) -> dict[str, str]:
        """The texts that were covered already, since findings of a rule share most of their words."""
        return {}

    def shown(self, value: object) -> object:
        """A value of the file, or of the object that ``data`` was, with stars for what of it is confidential."""
        match value:
            case None | bool():
                return value
            case Mapping():
                return {key: self.shown(item) for key, item in value.items()}
            case list() | tuple():
                return [self.shown(item) for item in value]
            case str():
                return "*" * len(value) if value in self.values else self.hidden(value)
            case _:
                return "*" * len(str(value)) if str(value) in self.values else value

    def _without_values(self, text: str) -> str:
        for value in self._long:
            if value in text:
                text = text.replace(value, "*" * len(value))
        return text

    def _unquoted(self, match: re.Match[str]) -> str:
        """Words within quotes that are values, and what a value was cut off to."""
        quoted = match[2].removesuffix("...")
        if quoted in self.values or (len(quoted) >= SHORTEST and any(quoted in value for value in self._long)):
            return f"{match[1]}{'*' * len(quoted)}{match[2][len(quoted) :]}{match[1]}"
        return _WORD.sub(lambda word: "*" * len(word[0]) if word[0] in self.values else word[0], match[0])

    @cached_property
    def _long(self) -> tuple[str, ...]:
        return tuple(sorted((value for value in self.values if len(value) >= SHORTEST), key=lambda value: -len(value)))


_QUOTED: Final = regex(r"""([`"'])((?:(?!\1).)+)\1""")
_WORD: Final = regex(r"""[^\s"'`,:=()\[\]{}]+""")


def confidential_in(text: str, data: object = None) -> Confidential:
    """Return the confidential parts of a text. For ``data`` whose text is not kept these are the values alone."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    has_aws_key = "AKIA" in lines or "ASIA" in lines
    if data is not None:
        return Confidential((), _values_of(_spans(data)))
    if _NOT_SHOWN.search(lines):  # characters that hide may divide a word that is looked for
        kept = [index for index, char in enumerate(lines) if not _NOT_SHOWN.match(char)]
        plain = "".join([lines[index] for index in kept])
    else:
        kept, plain = None, lines
    if not _HINT.search(plain):
        return Confidential(tuple(lines.split("\n")), has_aws_key=has_aws_key)
    found = [*_spans(read(plain))]
    shown = [*lines]
    for start, end, _ in found:
        for index in range(start, end):
            at = kept[index] if kept else index
            if not shown[at].isspace():
                shown[at] = "*"
    return Confidential(tuple("".join(shown).split("\n")), _values_of(found), has_aws_key)


_NOT_SHOWN: Final = regex("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_HINT: Final = regex(
    r"(?i:secret|pass|pwd|token|(?:api|access|account|private|signing|encryption|license|ssh|master)[-_]?key|credential|"
    r"auth\b|authorization|dockerc|bearer|\bdata\b)|KEY\b|-----BEGIN|\\u00|\\x|\bsig=|"
    r"hf_|nvapi-|gh[pousr]_|github_|glpat-|AKIA|ASIA|xox|sk-|eyJ|AIza|ya29|GOCSPX|Q~|hvs\.|npm_|pypi-|://[^/\s]*@"
)
"""A text without any of these has nothing to hide."""

_Span = tuple[int, int, str]
"""A stretch of a text, and what it stands for."""


def _values_of(spans: Sequence[_Span] | Iterator[_Span]) -> frozenset[str]:
    """The texts that messages may cite: values as they are written and as they are read, and lines of long ones."""
    values: set[str] = set()
    for _, _, value in spans:
        lines = [line.strip() for line in value.split("\n")]
        escaped = json_escaped(value)
        words = value.split() if len(value) <= _LONGEST_WORDS and "{" not in value else ()
        parts = (part for part in (*lines, *words) if len(part) >= SHORTEST)
        values |= {value, value.strip(), " ".join(lines), escaped, *parts}
    return frozenset(value for value in values if value and not is_harmless(value, "password"))


_LONGEST_WORDS: Final = 500


def json_escaped(text: str) -> str:
    """The text as JSON spells it, without quotes."""
    from json import dumps

    return dumps(text, ensure_ascii=False)[1:-1]


# --- What is confidential ----------------------------------------------------------------------------------------

_IS_SECRET: Final = regex(r"(?i:\W*secrets?(?:list)?\W*)")
_ENCRYPTED: Final = ("SealedSecret", "ExternalSecret", "ClusterExternalSecret", "PushSecret", "SecretStore")
"""They name Secrets, and hold none."""
_SHOWN_OF_SECRET: Final = frozenset(
    (
        *((key,) for key in ("apiversion", "kind", "type", "immutable")),
        *(("metadata", key) for key in ("name", "namespace")),
    )
)
_GENERATOR: Final = "secretGenerator"
_SHOWN_OF_GENERATOR: Final = frozenset(("name", "namespace", "type", "behavior", "files", "envs", "env", "options"))
_DATA: Final = ("data", "binaryData")
_HOLDS_NAMES: Final = frozenset(("name", "key"))
_DEEPEST: Final = 8
"""The most texts within texts that are read, such as a note of `kubectl apply` that holds a manifest."""


class _Where(NamedTuple):
    """The context of a place: the route in a Secret or None, and the name that its values are under."""

    of_secret: tuple[str, ...] | None = None
    name: str = ""
    is_named: bool = False
    has_names: bool = True


_ANYWHERE: Final = _Where()
_WITHOUT_NAMES: Final = _Where(has_names=False)


def _spans(root: object, depth: int = 0) -> Iterator[_Span]:
    """The confidential stretches below a node; of plain data they have no place."""
    waiting: list[tuple[object, _Where]] = [(root, _ANYWHERE)]
    seen = set[int]()
    tree = _Tree(root)
    while waiting:
        node, where = waiting.pop()
        entries = _entries(node)
        if entries is None:
            yield from _in_scalar(node, where, depth)
        elif id(node) not in seen:
            seen.add(id(node))
            waiting += _below(entries, where, tree)
            for values in _lists(entries):
                yield from _after_flags(values)


class _Tree:
    def __init__(self, root: object) -> None:
        self._root = root

    @cached_property
    def has_secret(self) -> bool:
        """Whether there is a Secret anywhere: what is cut off beside it may be a part of it."""
        waiting, seen = [self._root], set[int]()
        while waiting:
            node = waiting.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            for key, values in _entries(node) or ():
                if len(key) == _KIND and key.lower() == "kind" and any(map(_is_secret, values)):
                    return True
                waiting += [value for value in values if not isinstance(value, str | Scalar | int)]
        return False


_KIND: Final = len("kind")


def _is_secret(value: object) -> bool:
    return _IS_SECRET.fullmatch(_text(value)) is not None


def _below(entries: _Entries, where: _Where, tree: _Tree) -> Iterator[tuple[object, _Where]]:
    kinds = [_text(value) for key, values in entries if len(key) == _KIND and key.lower() == "kind" for value in values]
    if any(kind in _ENCRYPTED for kind in kinds):
        where = where._replace(has_names=False)
    elif kinds and where.of_secret is None and _says_secret(kinds, tree):
        where = where._replace(of_secret=())
    is_variable = where.has_names and any(
        is_secret_name(_text(value)) for key, values in entries if key in _HOLDS_NAMES for value in values
    )
    is_cut_off = not kinds and any(key in _DATA for key, _ in entries) and _is_cut_off(entries, tree)
    for key, values in entries:
        inner = _ANYWHERE if where.has_names else _WITHOUT_NAMES
        if where.of_secret is not None:
            inner = _Where((*where.of_secret, key.lower())[:_DEEPEST] if key else where.of_secret, key)
        elif not key:  # an item of a list is under the name that the list is under
            inner = where
        elif (key == "stringData" and where.has_names) or (key in _DATA and is_cut_off):
            inner = _Where(("data",), key)
        elif key == _GENERATOR or (where.name == _GENERATOR and key not in _SHOWN_OF_GENERATOR):
            inner = _Where(None, _GENERATOR, is_named=True)
        elif where.has_names and (is_secret_name(key) or (is_variable and key == "value")):
            inner = _Where(None, key, is_named=True)
        for value in values:
            if inner is not _ANYWHERE or not isinstance(value, int | float | None):
                yield value, inner


def _says_secret(kinds: Sequence[str], tree: _Tree) -> bool:
    """Whether one of the kinds is a Secret, or an alias that may stand for one."""
    return any(map(_is_secret, kinds)) or (any(kind.startswith("*") for kind in kinds) and tree.has_secret)


def _is_cut_off(entries: _Entries, tree: _Tree) -> bool:
    """Whether what has no kind may be a Secret, as far as it goes."""
    return any(key in ("apiVersion", "<<") for key, _ in entries) or tree.has_secret


def _in_scalar(node: object, where: _Where, depth: int) -> Iterator[_Span]:
    scalar = node if isinstance(node, Scalar) else Scalar(str(node), -1, -1)
    text = scalar.text
    if where.of_secret is not None:
        if scalar.is_comment or where.of_secret not in _SHOWN_OF_SECRET:
            yield scalar.span
        return
    if where.is_named and where.name == _GENERATOR:
        name, equals, value = text.partition("=")
        skipped = len(name) + 1 if equals and value and not scalar.is_escaped else 0
        yield scalar.start + scalar.offset + skipped, scalar.end - scalar.offset, value if equals else text
        return
    is_named = where.is_named and not scalar.is_comment and not is_harmless(text.strip(), where.name)
    if is_named or "PRIVATE KEY-----" in text:
        yield scalar.span
    elif "\n" in text or "{" in text or "kind" in text:
        yield from _in_text(scalar, depth)
    else:
        yield from _in_words(scalar)


def _in_text(scalar: Scalar, depth: int) -> Iterator[_Span]:
    """The same of a text that may be YAML or JSON itself: of one with escapes as a whole, since its places differ."""
    if depth >= _DEEPEST:
        return
    inner = [*_spans(read(scalar.text), depth + 1)]
    if inner and (scalar.is_escaped or scalar.start < 0):
        yield scalar.span
        yield from ((scalar.start, scalar.start, value) for _, _, value in inner)
    else:
        begin = scalar.start + scalar.offset
        yield from ((begin + start, begin + end, value) for start, end, value in inner)
    if not inner:
        yield from _in_words(scalar)


def _in_words(scalar: Scalar) -> Iterator[_Span]:
    """Texts that assign a credential to a name, such as an argument of a program."""
    if len(scalar.text) > 3 and (shown := hidden(scalar.text, in_comment=scalar.is_comment)) != scalar.text:
        values = [scalar.text[match.start() : match.end()] for match in _STARS.finditer(shown)]
        if scalar.is_escaped or scalar.start < 0:
            yield scalar.span
            yield from ((scalar.start, scalar.start, value) for value in values)
            return
        begin = scalar.start + scalar.offset
        for match, value in zip(_STARS.finditer(shown), values, strict=True):
            if set(value) != {"*"}:
                yield begin + match.start(), begin + match.end(), value


_STARS: Final = regex(r"\*+")
_FLAG: Final = regex(r"--?[A-Za-z][\w.-]*")


def _lists(entries: _Entries) -> Iterator[list[object]]:
    """The items of lists: of one between brackets, and of one in lines, where each is a block."""
    if items := [item for key, values in entries if not key for item in values]:
        yield items
    yield from ([*values] for key, values in entries if key and len(values) > 1)


def _after_flags(items: Sequence[object]) -> Iterator[_Span]:
    """The items of a list that are behind a flag such as `--password`."""
    for first, second in pairwise(items):
        flag = _text(_leaf(first))
        if flag.startswith("-") and _FLAG.fullmatch(flag) and is_secret_name(flag):
            value = _leaf(second)
            if not _text(value).startswith("-") and not is_harmless(_text(value), flag):
                yield value.span if isinstance(value, Scalar) else (-1, -1, _text(value))


def _leaf(value: object) -> object:
    """Return the scalar that is all of a block, or any other value as it is."""
    if isinstance(value, Block) and len(value.entries) == 1 and not value.entries[0][0] and value.entries[0][1]:
        return value.entries[0][1][0]
    return value


def _text(value: object) -> str:
    return value.text if isinstance(value, Scalar) else value if isinstance(value, str) else ""


_Entries = Sequence[tuple[str, Sequence[object]]]


def _entries(node: object) -> _Entries | None:
    """The keys and values of a mapping, the items of a list under no key, and None of a scalar."""
    if isinstance(node, Block):
        return node.entries
    if isinstance(node, Scalar | str):
        return None
    if isinstance(node, dict | Mapping):  # of which the first is faster to ask
        return [(key if isinstance(key, str) else str(key), (value,)) for key, value in node.items()]
    return [("", (item,)) for item in node] if isinstance(node, list | tuple) else None


# --- Reading -----------------------------------------------------------------------------------------------------


class Scalar(NamedTuple):
    """A value, or a comment, as it is written between two offsets, and as it is read."""

    text: str
    start: int
    end: int
    offset: int = 0
    """The number of characters of its quotes on each side."""
    is_escaped: bool = False
    """Whether its characters differ from those that are written."""
    is_comment: bool = False

    @property
    def span(self) -> _Span:
        return self.start + self.offset, self.end - self.offset, self.text


class Block:
    """A mapping or a list, whichever it turns out to be: values under keys, and under none."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, list[object]]] = []


class _Level:
    """A block that is being read: in lines from a column on, or between brackets."""

    def __init__(self, block: Block, column: int, bracket: str = "", *, is_item: bool = False) -> None:
        self.block = block
        self.column = column
        self.bracket = bracket
        self.is_item = is_item
        self.has_ended = False
        """Whether the last entry has: a comma is behind it."""


def read(text: str) -> Block:
    """All values of a text under their keys, as far as indentation and brackets tell."""
    return _Reader(text).read()


_BLANKS: Final = regex(r"[ \t\r]*")
_TO_END: Final = regex(r"[^\n]*")
_DIVIDER: Final = regex(r"(?:---|\.\.\.)(?=\s|$)")
_DASH: Final = regex(r"[-?](?=[ \t\n]|$)")
_PROPERTY: Final = regex(r"[&!][^\s,\[\]{}]*")
_QUOTED_KEY: Final = regex(r""""((?:\\.|[^"\\\n]){0,1024})"[ \t]*:|'((?:''|[^'\n]){0,1024})'[ \t]*:""")
_KEY: Final = regex(r"""([^\s"'{}\[\],#|>][^\n]{0,1023}?):(?=[ \t\n]|$)""")
_KEY_IN_FLOW: Final = regex(r"""([^\s"'{}\[\],#][^\n,{}\[\]"']{0,1023}?):(?=[\s,\[\]{}"']|$)""")
_DOUBLE: Final = regex(r'"((?:\\[\s\S]|[^"\\])*)"')
_SINGLE: Final = regex(r"'((?:''|[^'])*)'")
_LINE_OF_KEY: Final = regex(r"""\n(?:---|[ \t]*(?:- +)*["']?[\w./-]+["']?:(?:\s|$))""")
_PLAIN: Final = regex(r"(?:(?!\s#)[^\n])+")
_PLAIN_IN_FLOW: Final = regex(r"(?:(?!\s#)[^\n,\[\]{}])+")
_BLOCK_TEXT: Final = regex(r"[|>][-+0-9]*[ \t]*(?:#[^\n]*)?(?=\n|$)")
_ESCAPE: Final = regex(r"\\(x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[\s\S])")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "f": "\f"}
_FOLDED: Final = regex(r"[ \t]*\n[ \t]*")


_LEVELS: Final = 64
"""The most levels that are searched for the one that a bracket ends. Only hostile texts have more."""


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._line = 0
        """Where the line begins."""
        self._root = Block()
        self._levels = [_Level(self._root, -1)]
        self._begins = True
        """Whether a key may stand here: at the start of a line, an item or an entry between brackets."""
        self._is_first = True
        """Whether nothing but dashes is before it in its line."""

    def read(self) -> Block:
        while self._at < len(self._text):
            self._at = cast("re.Match[str]", _BLANKS.match(self._text, self._at)).end()
            if self._at < len(self._text):
                self._step(self._text[self._at])
        return self._root

    def _step(self, char: str) -> None:
        is_first, self._is_first = self._is_first, False
        if char == "\n":
            self._at += 1
            self._line, self._begins, self._is_first = self._at, True, True
        elif is_first and self._at == self._line and (found := _DIVIDER.match(self._text, self._at)):
            self._at = found.end()
            self._levels = [_Level(Block(), -1)]
            self._root.entries.append(("", [self._levels[0].block]))
        elif is_first and (found := _DASH.match(self._text, self._at)):
            self._enter_item(found.end())
        elif char == "#" and (self._at == self._line or self._text[self._at - 1] in " \t,[]{}"):
            self._scalar(_TO_END, is_comment=True)
        elif char in "{[":
            self._open(char)
        elif char in "}]" and self._is_in_flow:
            self._close(char)
        elif char == "," and self._is_in_flow:
            self._at += 1
            self._begins = self._levels[-1].has_ended = True
        elif not (self._begins and self._key()):
            self._value(char)

    @property
    def _is_in_flow(self) -> bool:
        return bool(self._levels[-1].bracket)

    @property
    def _column(self) -> int:
        return self._at - self._line

    def _enter_item(self, end: int) -> None:
        """Begin an item of a list in lines; no bracket goes on there."""
        while self._levels[-1].bracket or (self._levels[-1].column > self._column and len(self._levels) > 1):
            self._levels.pop()
        block = Block()
        self._add(block)
        self._levels.append(_Level(block, self._column + 1, is_item=True))
        self._at, self._begins, self._is_first = end, True, True

    def _open(self, bracket: str) -> None:
        block = Block()
        if self._begins and not self._is_in_flow:
            self._find_level()
        self._add(block)
        self._levels.append(_Level(block, self._levels[-1].column, bracket))
        self._at += 1
        self._begins = True

    def _close(self, bracket: str) -> None:
        """End what the bracket ends: the nearest of its kind among the innermost levels, or else the innermost one."""
        opening = "{" if bracket == "}" else "["
        innermost = range(len(self._levels) - 1, max(len(self._levels) - _LEVELS, 0) - 1, -1)
        brackets = (index for index in innermost if self._levels[index].bracket)
        del self._levels[next((at for at in brackets if self._levels[at].bracket == opening), len(self._levels) - 1) :]
        self._at += 1
        self._begins = False

    def _key(self) -> bool:
        """Read a key, if one stands here, with the marks before it."""
        at = self._at
        while found := _PROPERTY.match(self._text, at):
            at = cast("re.Match[str]", _BLANKS.match(self._text, found.end())).end()
        pattern = _KEY_IN_FLOW if self._is_in_flow else _KEY
        key = _QUOTED_KEY.match(self._text, at) or pattern.match(self._text, at)
        if key is None:
            return False
        if not self._is_in_flow:
            self._find_level()
        self._levels[-1].block.entries.append((_read_double(key[1] or "") if key[1] else key[key.lastindex or 0], []))
        self._levels[-1].has_ended = self._begins = False
        self._at = key.end()
        return True

    def _find_level(self) -> None:
        """Go to the block that has this column, or begin one in the last value."""
        while self._levels[-1].column > self._column and len(self._levels) > 1:
            self._levels.pop()
        level = self._levels[-1]
        if level.is_item:
            level.column, level.is_item = self._column, False
        elif level.column < self._column:
            block = Block()
            self._add(block)
            self._levels.append(_Level(block, self._column))

    def _value(self, char: str) -> None:
        if self._begins and not self._is_in_flow:
            while self._levels[-1].column > self._column and len(self._levels) > 1:
                self._levels.pop()
        self._begins = False
        if char in "|>" and not self._is_in_flow and (found := _BLOCK_TEXT.match(self._text, self._at)):
            self._block_text(found.end())
        elif char in "\"'":
            self._quoted(_DOUBLE if char == '"' else _SINGLE, char)
        elif found := _PROPERTY.match(self._text, self._at):
            self._add(Scalar(found[0][1:], self._at + 1, found.end()))
            self._at = found.end()
        else:
            self._scalar(_PLAIN_IN_FLOW if self._is_in_flow else _PLAIN)

    def _scalar(self, pattern: re.Pattern[str], *, is_comment: bool = False) -> None:
        found = pattern.match(self._text, self._at)
        end = found.end() if found and found.end() > self._at else self._at + 1
        text = self._text[self._at : end]
        self._add(Scalar(text.rstrip(), self._at, self._at + len(text.rstrip()), is_comment=is_comment))
        self._at = end

    def _quoted(self, pattern: re.Pattern[str], quote: str) -> None:
        """Read a text in quotes; without the closing one, which a line with a key in it tells, to the line's end."""
        found = pattern.match(self._text, self._at)
        if found is None or _LINE_OF_KEY.search(self._text, self._at, found.end()):
            line = cast("re.Match[str]", _TO_END.match(self._text, self._at))
            found = pattern.match(self._text, self._at, line.end())
            if found is None:
                self._add(Scalar(line[0][1:], self._at + 1, line.end()))
                self._at = line.end()
                return
        text = _read_double(found[1]) if quote == '"' else found[1].replace("''", "'")
        if "\n" in found[1]:
            text = _FOLDED.sub(" ", text)
        self._add(Scalar(text, self._at, found.end(), offset=1, is_escaped=text != found[1]))
        self._at = found.end()

    def _block_text(self, at: int) -> None:
        """Read the lines behind `|` or `>` that are further in than what they belong to."""
        column = self._levels[-1].column
        end = start = min(at + 1, len(self._text))
        while end < len(self._text):
            line = cast("re.Match[str]", _TO_END.match(self._text, end))
            if line[0].strip() and len(line[0]) - len(line[0].lstrip(" \t")) <= column:
                break
            end = min(line.end() + 1, len(self._text))
        self._add(Scalar(self._text[start:end], start, end))
        self._at = self._line = end
        self._begins = self._is_first = True

    def _add(self, value: object) -> None:
        """Put a value under the last key, or under none."""
        level = self._levels[-1]
        if level.has_ended or not level.block.entries:
            level.block.entries.append(("", []))
            level.has_ended = False
        level.block.entries[-1][1].append(value)


def _read_double(text: str) -> str:
    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(_unescaped, text)
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) > 1:
        number = int(code[1:], 16)
        return chr(number) if number < 0x110000 else "?"
    return _ESCAPES.get(code, code)
