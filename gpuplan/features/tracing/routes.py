"""Routes in objects as people spell them: ``spec.hard["requests.nvidia.com/gpu"]``."""

from __future__ import annotations

import json
from typing import Final

from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.base.patterns import regex

_PLAIN: Final = regex(r"[A-Za-z_][A-Za-z0-9_-]*")
_QUOTED: Final = regex(r"""\[\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)')\s*\]""")
_INDEX: Final = regex(r"\[(\d+)\]")


def spelled(route: Path) -> str:
    """A route as Kubernetes spells it: an index or a key with dots is in brackets."""
    text = ""
    for part in route:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{json.dumps(part, ensure_ascii=False)}]"
    return text


def loosely(text: str) -> str:
    """A path in the one form in which all spellings of it are equal: dots alone, none in front."""
    text = text.strip().removeprefix("{").removesuffix("}").removeprefix("$")
    text = _QUOTED.sub(lambda match: f".{match[2] if match[1] is None else match[1]}", text)
    text = _INDEX.sub(lambda match: f".{match[1]}", text).replace("\\.", ".").replace("/", ".")
    return text.strip(".")


def leads_to(text: str, route: Path) -> bool:
    """Whether a path, however it is spelled, is that of a value or of what the value is in."""
    wanted = loosely(text)
    return any(loosely_of(route[:length]) == wanted for length in range(len(route) + 1))


def loosely_of(route: Path) -> str:
    return ".".join(str(part) for part in route).replace("/", ".")
