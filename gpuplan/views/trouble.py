"""What to say when there is nothing to show: trouble, and bugs of our own."""

from __future__ import annotations

import traceback

from gpuplan.views.text import printable
from gpuplan.views.theme import Style, Theme


def trouble(message: str, hint: str, theme: Theme) -> str:
    """Why a command could not do its work, and what to type instead."""
    text = f"{theme.paint('error', Style.ERROR)}{theme.paint(f': {printable(message)}', Style.STRONG)}\n"
    if hint:
        text += f"  = {theme.paint('help:', Style.HELP)} {printable(hint)}\n"
    return text


def bug(error: BaseException, theme: Theme) -> str:
    """An error that nobody foresaw, and how to report it."""
    what = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
    hint = (
        "report it where you have gpuplan from, with what `gpuplan version` prints and what this command prints when "
        "GPUPLAN_DEBUG=1 is set; in private, as SECURITY.md there says, if a stranger's files caused it"
    )
    return trouble(f"this is a bug in gpuplan: {what}", hint, theme)
