"""Words for each problem that libyaml names, and for each slip that is mended."""

from gpuplan.compiler.documents.repair import Slip, Words

TAB = Words("a tab cannot indent YAML", "a tab", "indent with spaces")
_UNCLOSED_TEXT = Words(
    "text in quotes is not closed", "opens here", "close it with the same quote", at_start=True, other="read up to here"
)
_BROKEN_ESCAPE = Words(
    "a backslash in double quotes begins no escape that YAML knows",
    "no such escape",
    "double the backslash, or use single quotes",
)
BAD_NAME = Words(
    "`*` and `&` begin an alias or an anchor, and no name follows",
    "no name here",
    'quote the text: `"*"`',
    at_start=True,
)
CONFLICT = Words(
    "Git could not merge this file, and marked both sides",
    "the conflict begins here",
    "keep the lines of one side, and delete all else from the line `<<<<<<<` to the line `>>>>>>>`",
)
_BLOCK_HEADER = Words(
    "nothing but `+`, `-` or a digit can follow `|` or `>` on its line", "unexpected", "put the text on the next line"
)
_TAG = Words("`!` begins a tag, and this is not one", "unexpected", 'quote text that begins with `!`: `"!x"`')
_DIRECTIVE = Words("a line that begins with `%` is a directive, and this is none", "unknown", "quote the text")

WORDS = {
    "found a tab character that violates indentation": TAB,
    "found a tab character where an indentation space is expected": TAB,
    "found unexpected end of stream": _UNCLOSED_TEXT,
    "found unexpected document indicator": _UNCLOSED_TEXT,
    "found unknown escape character": _BROKEN_ESCAPE,
    "did not find expected hexdecimal number": _BROKEN_ESCAPE,
    "found invalid Unicode character escape code": _BROKEN_ESCAPE,
    "did not find expected alphabetic or numeric character": BAD_NAME,
    "did not find expected comment or line break": _BLOCK_HEADER,
    "found an indentation indicator equal to 0": _BLOCK_HEADER,
    "did not find expected whitespace or line break": _TAG,
    "did not find the expected '>'": _TAG,
    "did not find expected '!'": _TAG,
    "did not find expected tag URI": _TAG,
    "found undefined tag handle": Words("a tag has a prefix that no `%TAG` declares", "this tag", "remove the tag"),
    "mapping values are not allowed in this context": Words(
        "`: ` cannot stand here", "a second value", "quote text that holds `: `, or correct the indentation"
    ),
    "block sequence entries are not allowed in this context": Words(
        "`- ` cannot begin a list here", "an item", "put the list on the lines below, indented"
    ),
    "mapping keys are not allowed in this context": Words(
        "`? ` cannot begin a key here", "a key", "correct the indentation"
    ),
    "could not find expected ':'": Words(
        "line is neither `key: value` nor `- item`", "no `:` follows", "write `key: value`", at_start=True
    ),
    "did not find expected key": Words(
        "indentation or text fits no mapping that is open",
        "no key of the mapping above",
        "align it with the other keys of its mapping",
        other="this mapping is still open",
    ),
    "did not find expected '-' indicator": Words(
        "indentation fits no list that is open",
        "no item of the list above",
        "begin the line with `- `, or correct the indentation",
        other="this list is still open",
    ),
    "did not find expected ',' or ']'": Words(
        "list in brackets goes on without `,` or `]`", "`,` or `]` expected", "close the list", other="opens here"
    ),
    "did not find expected ',' or '}'": Words(
        "mapping in braces goes on without `,` or `}`", "`,` or `}` expected", "close the mapping", other="opens here"
    ),
    "did not find expected node content": Words("a value is expected here", "no value", "write one, or quote the text"),
    "did not find expected <document start>": Words(
        "text follows a document that has ended", "unexpected", "begin a new document with `---` on a line of its own"
    ),
    "found incompatible YAML document": Words(
        "directive asks for a version of YAML that does not exist here", "not read", "remove the directive"
    ),
    "found unknown directive name": _DIRECTIVE,
    "could not find expected directive name": _DIRECTIVE,
}


SLIPS = {
    Slip.TAB: TAB,
    Slip.INDENTATION: Words("indentation fits nothing that is open", other="does not fit what stands above"),
    Slip.COLON: WORDS["could not find expected ':'"],
    Slip.SPACE: Words("`:` has no space behind it", "no space behind it", "write a space behind the `:`"),
    Slip.BLANK: Words("a blank that is not a plain one is a letter to YAML", "such a blank"),
    Slip.DASH: Words("`-` has no space behind it", "no space behind it", "write a space behind the `-`"),
    Slip.BRACKET: Words("is not closed", "opens here", "close it at the end of the line"),
    Slip.SURPLUS: Words("closes nothing", "opens nowhere", "remove it"),
    Slip.QUOTE: _UNCLOSED_TEXT,
    Slip.CURLY_QUOTE: Words("curly quotes are letters to YAML", "a curly quote", 'write `"`'),
    Slip.SEPARATOR: Words("this line separates no documents", "not `---`"),
}
"""The words about each repair; for those left out the words of the parser hold."""
