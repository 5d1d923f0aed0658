"""Rules: a list of all, and the page of one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gpuplan.diagnostics import RetiredRule, Rule
from gpuplan.patterns import regex
from gpuplan.views.json_findings import json_text
from gpuplan.views.text import table
from gpuplan.views.theme import SEVERITY_STYLES, Style, Theme

_MARKUP = regex(r"(?m)^#+ (?P<heading>.*)$|`(?P<code>[^`\n]+)`")


def rules_table(rules: Sequence[Rule]) -> str:
    return table(
        ("CODE", "SEVERITY", "NAME", "MEANING"),
        [(rule.code, rule.severity, rule.name, rule.summary) for rule in rules],
    )


def rules_json(rules: Sequence[Rule]) -> str:
    body = [
        {
            "code": rule.code,
            "name": rule.name,
            "severity": rule.severity.value,
            "ignorable": rule.ignorable,
            "summary": rule.summary,
            "docs": rule.docs.strip(),
        }
        for rule in rules
    ]
    return json_text({"format_version": "1.0", "rules": body})


def rule_page(rule: Rule, theme: Theme) -> str:
    """All that is known of a rule, for a terminal."""
    style = SEVERITY_STYLES[rule.severity]
    head = f"{theme.paint(f'{rule.severity}[{rule.code}]', style)} {theme.paint(rule.name, Style.STRONG)}\n\n"
    return head + marked_up(rule.docs.strip(), theme) + f"\n\n{how_to_ignore(rule)}\n"


def retired_page(rule: RetiredRule, theme: Theme) -> str:
    """What is left of a rule, for those who meet its code in a comment or an old report."""
    head = f"{theme.paint(rule.code, Style.STRONG)} {theme.paint(rule.name, Style.STRONG)} is retired."
    gone = f"No release after {rule.after} has this rule. A comment that ignores it can go."
    return f"{head}\n\n{marked_up(rule.reason, theme)}\n\n{gone}\n"


def how_to_ignore(rule: Rule) -> str:
    if rule.ignorable:
        return f"Where it is right all the same, a comment says so: `# gpuplan: ignore[{rule.code}] the reason`."
    return "It cannot be ignored: there is nothing that gpuplan could do instead."


def marked_up(markdown: str, theme: Theme) -> str:
    """Markdown as a terminal shows it: headings strong, code marked, everything else as written."""

    def paint(match: re.Match[str]) -> str:
        if match["heading"]:
            return theme.paint(match["heading"], Style.STRONG)
        return theme.paint(match["code"], Style.NOTE) if theme.color else match[0]

    return _MARKUP.sub(paint, markdown)
