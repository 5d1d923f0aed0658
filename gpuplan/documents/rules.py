"""The rules of what a policy file may hold (GPU001 to GPU029), before anybody asks what it means."""

from __future__ import annotations

from gpuplan.diagnostics import Rule, Severity

SYNTAX_ERROR = Rule(
    code="GPU001",
    name="syntax-error",
    severity=Severity.ERROR,
    ignorable=False,
    docs="""A document is not YAML from some place on.

## Why
The parser stops where the text makes no sense to it, which is often a little after the mistake. Where one small edit
makes YAML of the document, and all such edits mean the same, the finding stands at the line to edit; else look at the
line above as well. gpuplan reads on at the next `---`. Nothing is concluded from what was not read: names that the
document may have held are not judged, nor is anything that counts documents.

## Instead
Indent with spaces, put a space after each `:` and `-`, and quote text that holds `: `, ` #` or that begins
with one of ``* & ! % @ ` | > [ {``.

```yaml
description: "training: the nightly runs"
```
""",
)

NOT_TEXT = Rule(
    code="GPU002",
    name="not-utf8-text",
    severity=Severity.ERROR,
    ignorable=False,
    docs="""A file is not UTF-8 text without control characters.

## Why
Tools guess differently at what other encodings mean, so that a reviewer and the cluster would see different names.
NUL and other control characters hide text from a terminal. The line separators U+0085, U+2028 and U+2029 end a line
for some YAML readers and not for others, and a byte order mark belongs only at the very start.

## Instead
Save the file as UTF-8. Write a special character as an escape in double quotes: `"\\u2028"`.
""",
)

TOO_LARGE = Rule(
    code="GPU003",
    name="too-large",
    severity=Severity.ERROR,
    ignorable=False,
    docs="""A file, or a tree of tenants, goes beyond a limit that nothing written by hand or by a script comes near.

## Why
A file of a few bytes can be made to stand for gigabytes, or to nest so deeply that a reader runs out of stack. The
limits keep a pull request from a stranger from stopping CI: 8 MiB and 100,000 documents a file, 64 levels of
nesting, 10,000 values reached through aliases, 64 directives, 1,000 findings of this kind, 64 tenants that are each the
parent of the next. What stands before the limit is still read.

## Instead
Split the file; any number of files and folders is read. Flatten what nests.
""",
)

NOT_A_FILE = Rule(
    code="GPU004",
    name="not-a-file",
    severity=Severity.ERROR,
    ignorable=False,
    docs="""A name that ends in `.yaml` or `.yml` is a folder, a pipe, a socket or a device.

## Why
Passing over it would leave out what somebody took for a policy, and reading a pipe could wait for ever.

## Instead
Rename the folder, or remove the entry.
""",
)

REFUSED_LINK = Rule(
    code="GPU005",
    name="refused-link",
    severity=Severity.ERROR,
    ignorable=False,
    docs="""A symbolic link points to a folder, out of the repository, or nowhere.

## Why
What gpuplan reads has to be what was reviewed: a link that leaves the repository reads whatever the machine has
there. A linked folder can contain itself, and its documents would be met once under each name. A link to a
file inside the repository is fine, and is read under the link's name.

## Instead
Copy the file into the repository. For a folder, name it in `bases` of the `Cluster`, in place of the link.
""",
)

NOT_A_MAPPING = Rule(
    code="GPU006",
    name="not-a-mapping",
    severity=Severity.ERROR,
    ignorable=False,
    docs="""A document is a list or a single value where a mapping with `kind` and `metadata` is expected.

## Why
Policies are Kubernetes-style documents. A list at the top is usually several documents that were joined by `- `. An
empty document, between two `---` or of comments alone, is fine.

## Instead
Separate documents with a line `---` and begin each with `apiVersion: gpuplan.dev/v1`.
""",
)

MISSING_SEPARATOR = Rule(
    code="GPU021",
    name="missing-separator",
    severity=Severity.ERROR,
    ignorable=False,
    docs="""A document begins where another one has not ended.

## Why
Without `---` between them two documents are one mapping that sets `kind` and `metadata` twice. Most readers keep the
last of each, so that the first document is gone without a word.

## Instead
Write `---` on a line of its own between them. gpuplan reads both as they were meant, so that nothing else is said of
them that follows from this.
""",
)

CURLY_QUOTE = Rule(
    code="GPU022",
    name="curly-quote",
    severity=Severity.ERROR,
    docs="""A value or a key begins with a curly quote, as word processors and chat programs make them.

## Why
YAML knows `"` and `'` only. A curly quote becomes a part of the text, so that a name or a version is another one than
it looks.

## Instead
Write straight quotes. Text that is meant to begin with a curly quote stands in straight ones: `"“as is” is fine"`.
""",
    ignorable=False,
)

DUPLICATE_KEY = Rule(
    code="GPU007",
    name="duplicate-key",
    severity=Severity.ERROR,
    ignorable=False,
    docs="""A mapping sets the same key twice.

## Why
YAML forbids it, yet most readers keep the last value and some the first, without a word: a quota would depend on
the tool that reads it. gpuplan takes neither: of such a document it judges the form, and concludes nothing from it.

## Instead
Keep one of the two.
""",
)

KEY_NOT_TEXT = Rule(
    code="GPU008",
    name="key-not-text",
    severity=Severity.ERROR,
    ignorable=False,
    docs="""A key is a number, a boolean, null, a list or a mapping.

## Why
Everything that gpuplan writes ends up as JSON, whose keys are text. A number as a key is one text for some readers
and another for others: `1.0` or `1`.

## Instead
Quote the key.

```yaml
nodeLabels:
  "1": rack
```
""",
)

ANCHOR_OR_ALIAS = Rule(
    code="GPU009",
    name="anchor-or-alias",
    severity=Severity.ERROR,
    docs="""A value is named by an anchor (`&name`) or repeated by an alias (`*name`).

## Why
An alias sets a value far from where a reviewer looks, and a change at the anchor changes places that its diff
does not show. An overlay that replaces the anchor's value leaves the aliases as they were. Aliases of aliases
are also the oldest way to make a small file fill the memory.

## Instead
Write the value out. What several pools share is a `MigLayout` or a `PriorityClass` of its own; what clusters share
belongs in the bases. Text that begins with `*` or `&` needs quotes.
""",
)

EXPLICIT_TAG = Rule(
    code="GPU010",
    name="explicit-tag",
    severity=Severity.ERROR,
    docs="""A value carries a YAML tag such as `!!str` or `!secret`.

## Why
A tag tells a reader which type or which program makes the value. gpuplan runs none, and the types of fields
are known: the tag says nothing, or something that is not so.

## Instead
Leave the tag out. A number that is meant as text takes quotes: `"12"`. Text that begins with `!` takes quotes too.
""",
)

MERGE_KEY = Rule(
    code="GPU011",
    name="merge-key",
    severity=Severity.ERROR,
    docs="""A mapping takes in another one by the key `<<`.

## Why
Merge keys are no part of YAML 1.2; some readers obey them, others keep a key called `<<`. The keys that arrive that
way have no line of their own that a finding or a reviewer could point at.

## Instead
Write the fields out, or put what clusters share into the bases and change it by overlays.
""",
)

DIRECTIVE = Rule(
    code="GPU012",
    name="directive",
    severity=Severity.WARNING,
    docs="""A file asks by a directive to be read as other YAML than 1.2, or declares prefixes for tags.

## Why
Policies are always read by the core schema of YAML 1.2, so `%YAML 1.1` is not obeyed; and tags are refused, so that
`%TAG` has no use.

## Instead
Remove the directive.
""",
)

AMBIGUOUS_NUMBER = Rule(
    code="GPU013",
    name="ambiguous-number",
    severity=Severity.ERROR,
    docs="""A plain value is a number for one version of YAML, and another number or text for the other.

## Why
`012` is twelve in YAML 1.2 and ten in YAML 1.1; `1_000`, `0b11` and `+0x1f` are text and numbers; `0o14` and `1e3` are
numbers and text. Editors, linters and the tools of Kubernetes follow both versions, so each of them shows a reviewer
something else. Commit ids and PCI ids such as `1e30` fall into the same trap. gpuplan reads by YAML 1.2.

## Instead
Write the number in plain decimal digits, such as `12`, `1000` or `1.5`; or quote what is text, such as `"1e30"`.
""",
)

NUMBER_OUT_OF_RANGE = Rule(
    code="GPU014",
    name="number-out-of-range",
    severity=Severity.ERROR,
    ignorable=False,
    docs="""A number is infinite, not a number, or does not fit into 64 bits.

## Why
JSON has no `.inf` or `.nan`, and Kubernetes keeps integers in 64 bits: a larger one is refused or rounded there.

## Instead
Write a number that fits. A quota without an upper bound is `limit: none`. Digits that are a name take quotes.
""",
)

AMBIGUOUS_TEXT = Rule(
    code="GPU015",
    name="ambiguous-text",
    severity=Severity.WARNING,
    docs="""A plain word is text here, but a boolean, a time or a date for readers of YAML 1.1.

## Why
`yes`, `no`, `on`, `off`, `y` and `n` are booleans in YAML 1.1, `22:30` is the number 1350 and `2026-01-31` is a date.
gpuplan reads by YAML 1.2, where all of them are text; an editor or a script may see something else.

## Instead
Quote it, or write `true` or `false` where a boolean is meant.

```yaml
start: "22:30"
```
""",
)

DUPLICATE_DOCUMENT = Rule(
    code="GPU016",
    name="duplicate-document",
    severity=Severity.ERROR,
    ignorable=False,
    docs="""Two documents have the same kind and name.

## Why
Kind and name say which document is meant. Two in the bases, or two in one overlay, leave open which of them counts;
the order of files is no answer, because renaming a file must not change a cluster.

## Instead
Give one of them another name, or join them. A document of an overlay that changes one of the bases carries
the same kind and name: that is not a duplicate.
""",
)

BAD_PATCH = Rule(
    code="GPU017",
    name="bad-patch-directive",
    severity=Severity.ERROR,
    ignorable=False,
    docs="""A `$patch` says something else than `delete`, or stands where there is nothing to patch.

## Why
An overlay's document changes the one of the same kind and name as RFC 7386 says: mappings merge, lists and single
values replace, `null` removes a field. The only directive is `$patch: delete`, which takes a whole document out for
this cluster; it belongs in the `metadata` of an overlay's document that holds nothing but its kind and name.

## Instead
```yaml
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: research, $patch: delete}
```
To change a document leave `$patch` out. To drop one of the bases for every cluster, delete its text.
""",
)

NOTHING_TO_DELETE = Rule(
    code="GPU018",
    name="nothing-to-delete",
    severity=Severity.ERROR,
    docs="""An overlay removes a document that the bases do not have.

## Why
The name may be misspelt, and then the document that was meant to go stays; or the base was removed or renamed, and the
overlay says something that is no longer so.

## Instead
Correct the kind or the name, or delete this document of the overlay.
""",
)

NOTHING_TO_UNSET = Rule(
    code="GPU019",
    name="nothing-to-unset",
    severity=Severity.WARNING,
    docs="""An overlay sets a field to `null` that the base does not have.

## Why
`null` in an overlay removes a field. Where there is nothing to remove the field may be misspelt, and the one that was
meant to go stays.

## Instead
Correct the name of the field, or leave the line out.
""",
)

MALFORMED_IGNORE = Rule(
    code="GPU020",
    name="malformed-ignore",
    severity=Severity.WARNING,
    ignorable=False,
    docs="""A comment `# gpuplan: …` is not an instruction that gpuplan knows.

## Why
A finding is silenced only by its code and with a reason, so that the next reader can judge whether the reason still
holds. A comment that is not understood silences nothing.

## Instead
Put it at the end of the line that the finding points at, or on a line of its own above.

```yaml
value: 500  # gpuplan: ignore[GPU501] shared with the batch system
```
Several codes are separated by commas: `ignore[GPU501,GPU502]`.
""",
)

UNREAD: tuple[Rule, ...] = (
    SYNTAX_ERROR,
    NOT_TEXT,
    TOO_LARGE,
    NOT_A_FILE,
    REFUSED_LINK,
    NOT_A_MAPPING,
    DUPLICATE_KEY,
)
"""What keeps documents of a file, or a part of one, from being read at all."""

RULES: tuple[Rule, ...] = (
    *UNREAD,
    KEY_NOT_TEXT,
    ANCHOR_OR_ALIAS,
    EXPLICIT_TAG,
    MERGE_KEY,
    DIRECTIVE,
    AMBIGUOUS_NUMBER,
    NUMBER_OUT_OF_RANGE,
    AMBIGUOUS_TEXT,
    DUPLICATE_DOCUMENT,
    BAD_PATCH,
    NOTHING_TO_DELETE,
    NOTHING_TO_UNSET,
    MALFORMED_IGNORE,
    MISSING_SEPARATOR,
    CURLY_QUOTE,
)
