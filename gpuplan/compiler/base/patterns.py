"""Regular expressions that are compiled when they are first asked: most runs ask few of them."""

from __future__ import annotations

import re
from typing import Any, cast


def regex(text: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    """What `re.compile` gives, later."""
    return cast("re.Pattern[str]", _Pattern(text, flags))


class _Pattern:
    """Has each method of the compiled pattern from when it is first called."""

    def __init__(self, text: str, flags: re.RegexFlag) -> None:
        self._text, self._flags = text, flags

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever `re.Pattern` has
        found = getattr(re.compile(self._text, self._flags), name)
        setattr(self, name, found)
        return found
