"""Findings as Markdown: readable, small enough for GitHub, and never markup of a policy's making."""

from __future__ import annotations

import re
from html import unescape

from hypothesis import example, given, strategies as st

from gpuplan.compiler.base.diagnostics import Label
from gpuplan.terminal.formats import Format, findings
from gpuplan.terminal.markdown import LIMIT, LONGEST, escape
from gpuplan.terminal.text import PLAIN, Theme, printable
from tests.plans import a_plan
from tests.terminal.builders import BROKEN, FIT, LIMIT as SHORT, a_diagnostic, a_report, at, whole

OURS = re.compile(r"<br>|</?code>|</?strong>|^\| | \| | \|$")
"""What a row is made of, beside text."""


def markdown(*diagnostics: object, theme: Theme = PLAIN, **report: object) -> str:
    return findings(a_report(*diagnostics, **report), Format.MARKDOWN, theme)  # type: ignore[arg-type] # any finding


def rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if re.match(r"\| (error|warning|note) ", line)]


def test_a_finding_is_a_row_with_all_that_is_known_of_it() -> None:
    (row,) = rows(markdown(FIT))

    assert row == (
        "| error | GPU203<br>layout-does-not-fit | <code>policies/team.yaml:4:27</code> "
        "| layout <code>mixed</code> does not fit on H100-80GB: no free placement left"
        "<br><code>policies/team.yaml:3:8</code> this model has 8 memory slices"
        "<br>note: 2x <code>3g.40gb</code> take memory slices 0-3 and 4-7"
        "<br><strong>help: write <code>&#123;3g.40gb: 1, 1g.10gb: 4&#125;</code></strong> "
        "| <code>dev</code> |"
    )


def test_the_verdict_comes_first() -> None:
    text = markdown(SHORT, FIT, clusters=("dev", "prod"), files=12)

    assert text.startswith(
        "## gpuplan: 1 error and 1 warning\n\n12 files, 2 clusters: <code>dev</code>, <code>prod</code>.\n\n| | Rule |"
    )


def test_nothing_found_is_said_too() -> None:
    assert markdown() == "## gpuplan: no findings\n\n1 file, 1 cluster: <code>dev</code>.\n"


def test_errors_come_first() -> None:
    assert [row.split(" ")[1] for row in rows(markdown(SHORT, FIT))] == ["error", "warning"]


def test_a_finding_about_a_file_names_no_line() -> None:
    assert "| <code>policies/notes.yaml</code> |" in markdown(BROKEN)


def test_files_are_named_as_the_reader_can_open_them() -> None:
    assert "<code>platform/policies/team.yaml:4:27</code>" in markdown(FIT, theme=Theme(root="platform/"))


def test_each_rule_is_explained_once() -> None:
    text = markdown(FIT, FIT, SHORT)

    assert text.count("<details><summary>GPU203 layout-does-not-fit</summary>") == 1
    assert "\n**Why**\n\nThe driver has fixed starts.\n" in text
    assert text.index("GPU203 layout") < text.index("<summary>GPU401 ")


def test_what_the_clusters_hand_out_is_a_table() -> None:
    plan = a_plan(
        """
        apiVersion: gpuplan.dev/v1
        kind: Pool
        metadata: {name: research}
        spec:
          gpu: A100-80GB
          nodes: {count: 2, gpusPerNode: 8, namePattern: "research-[0-9]+"}
          sharing: {timeSlicing: {replicas: 3}}
        """
    )
    report = a_report()
    text = findings(type(report)((), (plan,), ("test",), 1), Format.MARKDOWN, PLAIN)

    assert text.endswith(
        "\n### What the clusters hand out\n\n"
        "| Cluster | Pools | Nodes | GPUs | Tenants | Guaranteed | Units |\n"
        "|---|---|---|---|---|---|---|\n"
        "| test | 1 | 2 | 16 | 0 | 0% | 48 shared |\n"
    )


# --- Size --------------------------------------------------------------------------------------------------------


def test_more_than_github_takes_is_counted() -> None:
    many = [a_diagnostic(at("«a»: 1\n"), f"finding {number} {'x' * 400}") for number in range(3_000)]

    text = markdown(*many)

    shown = len(rows(text))
    assert 1_000 < shown < 3_000
    assert len(text.encode()) <= LIMIT < 1024 * 1024
    assert f"\n{3_000 - shown} of 3000 findings are not shown; `gpuplan validate` prints them all.\n" in text
    assert "<summary>GPU203 " in text


def test_a_message_of_a_megabyte_is_shortened() -> None:
    text = markdown(a_diagnostic(at("«a»: 1\n"), f"no pool {'é ' * 500_000}"))

    (row,) = rows(text)
    assert LONGEST < len(row) < 2 * LONGEST
    assert " ..." in row


# --- Text that would be markup -----------------------------------------------------------------------------------


@given(st.text())
@example("<script>alert(1)</script> [x](https://example.com) ![](//example.com/x.png) @team #1 $a$ a|b `c` \\| _d_")
@example("www.example.com HTTPS://example.com **a** ~~b~~ {{ c }} <!-- d")
def test_escaped_text_reads_as_it_was_and_holds_no_markup(text: str) -> None:
    escaped = re.sub("</?code>", "", escape(text))

    assert unescape(escaped) == printable(text)
    assert not re.search(r"[!$*<>@\[\\\]_`{|}~\n]|#(?!\d)|&(?!#\d+;)|://|www\.", escaped, re.IGNORECASE)


@given(st.text())
@example('@team a@example.com #1 a/b#1 GH-1 !2 $3 %4 %"x" &5 ~bug ^alert#6 https://example.com www.example.com')
def test_no_text_outside_of_code_is_a_mention_or_an_address_when_it_is_read_again(text: str) -> None:
    """As servers do: they look at each stretch of text by itself, and pass over code."""
    for stretch in re.split(r"<code>[^<]*</code>", escape(text)):
        assert not re.search(r"""[!#$%&@^~][\w"']|://|www\.|\bgh-\d""", unescape(stretch), re.IGNORECASE)


def test_a_name_that_ends_its_quotes_mentions_nobody() -> None:
    (row,) = rows(markdown(a_diagnostic(at("«a»: 1\n"), "no pool `a` @team `b`")))

    assert "no pool <code>a</code> <code>&#64;</code>team <code>b</code>" in row


@given(st.text(max_size=80))
@example("` <img src=x onerror=alert(1)> `")
@example("a\n\n# heading\n| b |")
def test_no_text_changes_the_shape_of_the_table(text: str) -> None:
    hostile = a_diagnostic(
        at("«a»: 1\n", file=f"policies/{text}.yaml"),
        text,
        label=text,
        related=(Label(whole(text), text),),
        notes=(text,),
        help=text,
        clusters=(text,),
    )

    (row,) = rows(markdown(hostile, clusters=(text,)))

    assert row.count("|") == 6
    assert not re.search(r"[<>`\[\]]", OURS.sub("", row))
