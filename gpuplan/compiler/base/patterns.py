"""Regular expressions that are compiled when they are first used, since most runs use few of them.

With `re.compile` in its place `gpuplan validate -c dev` of the example takes 2 % more CPU time.
"""

from __future__ import annotations

import re
from typing import Any, cast


def regex(text: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    """Return a pattern as `re.compile` does, and compile it later."""
    return cast("re.Pattern[str]", _Pattern(text, flags))


class _Pattern:
    """A pattern whose text is compiled when one of its methods is first called."""

    def __init__(self, text: str, flags: re.RegexFlag) -> None:
        self._text, self._flags = text, flags

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever `re.Pattern` has
        found = getattr(re.compile(self._text, self._flags), name)
        setattr(self, name, found)
        return found
