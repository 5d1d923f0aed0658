"""The glossary explains words that the documentation uses, each with a page to read on."""

from __future__ import annotations

import re

from tests.docs.pages import DOCS, anchors
from tests.every import every

GLOSSARY = DOCS / "glossary.md"
_TERM = re.compile(r"^### (.+)\n\n((?:.+\n)+)", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)#]+)(?:#([^)]+))?\)")
TERMS = dict(_TERM.findall(GLOSSARY.read_text(encoding="utf-8")))

every_term = every(TERMS)


def others() -> str:
    pages = [page.read_text(encoding="utf-8") for page in sorted(DOCS.rglob("*.md")) if page != GLOSSARY]
    return " ".join(" ".join(pages).split())


ELSEWHERE = others()


def test_each_heading_explains_something() -> None:
    headings = re.findall(r"^### (.+)$", GLOSSARY.read_text(encoding="utf-8"), re.MULTILINE)
    assert headings == list(TERMS)
    assert len(TERMS) > 20


@every_term
def test_a_term_is_one_sentence_with_a_link_that_leads_somewhere(term: str) -> None:
    text = " ".join(TERMS[term].split())

    assert re.fullmatch(r"[^.]+(\.[\w/][^.]*)*\.", re.sub(r"\]\([^)]*\)", "]", text)), "one sentence"
    links = _LINK.findall(text)
    assert links
    for page, anchor in links:
        assert (DOCS / page).is_file(), page
        assert not anchor or anchor in anchors(DOCS / page), f"{page}#{anchor}"


@every_term
def test_a_term_is_used_on_other_pages(term: str) -> None:
    spelling = term.replace(" ", " ?")
    assert re.search(rf"\b{spelling}(s|es)?\b", ELSEWHERE, re.IGNORECASE)
