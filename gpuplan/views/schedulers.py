"""What schedulers keep of a policy: a list of them, and the page of one."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import fill
from typing import Final

from gpuplan.catalog.schedulers import Capability, Concept, Needs, Support, concepts, release_read
from gpuplan.planning.schedulers import SCHEDULERS
from gpuplan.views.fields import WIDEST
from gpuplan.views.rules import marked_up
from gpuplan.views.text import indent, table
from gpuplan.views.theme import Style, Theme

HEADINGS: Final = {Support.EXACT: "Kept", Support.LOSSY: "Kept in part", Support.IMPOSSIBLE: "Not kept"}


def schedulers_table() -> str:
    """One line for each scheduler: how much it keeps."""
    rows = [
        (
            f"scheduler/{name}",
            SCHEDULERS[name].title,
            release_read(name),
            *(str(_count(name, item)) for item in Support),
        )
        for name in SCHEDULERS
    ]
    headings = ("SUBJECT", "SCHEDULER", "AS READ IN", *(heading.upper() for heading in HEADINGS.values()))
    return table(headings, rows, right=(3, 4, 5))


def _count(name: str, support: Support) -> int:
    return sum(concept.capabilities[name].support is support for concept in concepts())


def scheduler_page(name: str, theme: Theme) -> str:
    """All that one scheduler keeps of what a policy can ask for, by how well."""
    head = f"{theme.paint(SCHEDULERS[name].title, Style.STRONG)}  as read in {release_read(name)}\n"
    parts = (_supported(name, support, theme) for support in Support)
    return "\n".join((head, *filter(None, parts)))


def _supported(name: str, support: Support, theme: Theme) -> str:
    found = [concept for concept in concepts() if concept.capabilities[name].support is support]
    text = "".join(_concept(concept, concept.capabilities[name], theme) for concept in found)
    return f"{theme.paint(HEADINGS[support], Style.STRONG)}\n{indent(text)}" if found else ""


def _concept(concept: Concept, kept: Capability, theme: Theme) -> str:
    facts = "".join(f"{marked_up(_wrapped(fact, theme), theme)}\n" for fact in facts_of(kept))
    return f"{concept.title}  {theme.paint(concept.field, Style.NOTE)}\n{facts}"


def _wrapped(fact: str, theme: Theme) -> str:
    """A fact below its concept, which is indented itself."""
    width = min(theme.width, WIDEST) - 2
    return fill(fact, width, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)


def facts_of(kept: Capability) -> Iterator[str]:
    """By what something is kept, what it takes, what is lost, and how certain that is."""
    if kept.how:
        yield f"by {kept.how}"
    if kept.needs is Needs.ADMISSION:
        yield "needs admission policies, which gpuplan writes"
    if kept.setting:
        yield f"needs {kept.setting}"
    if kept.loss:
        yield f"lost: {kept.loss}" if kept.how else kept.loss
    if kept.is_uncertain:
        yield "not certain"
