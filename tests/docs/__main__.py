"""Write into the pages what their commands print now: ``python -m tests.docs`` after output has changed on purpose."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.docs.pages import Block, blocks_of, by_hand
from tests.docs.platform import prepare
from tests.docs.sessions import ANYTHING, Session, transcript


def rewritten(page: Path, folder: Path) -> str:
    """The page with the output of each command that shows all of its output."""
    text = page.read_text(encoding="utf-8")
    session = Session(folder)
    for block in blocks_of(page):
        if block.language == "console" and "needs" not in block.options:
            text = text.replace(block.text, _replay(block, session), 1)
        else:
            session.follow(block)
    return text


def _replay(block: Block, session: Session) -> str:
    text = block.text
    at = 0
    for command, shown in transcript(block.text):
        _, printed = session.shell(command)
        if shown and ANYTHING not in (line.strip() for line in shown):
            before = "\n" + "\n".join(shown) + "\n"
            after = "\n" + "\n".join(line.rstrip() for line in printed.strip("\n").split("\n")) + "\n"
            start = text.index(before, at)
            text = text[:start] + after + text[start + len(before) :]
            at = start + len(after) - 1
    return text


if __name__ == "__main__":
    for page in by_hand():
        with tempfile.TemporaryDirectory() as folder:
            page.write_text(rewritten(page, prepare(page, Path(folder) / "reader")), encoding="utf-8")
