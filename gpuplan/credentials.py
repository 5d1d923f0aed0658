"""What looks like a credential: people paste them, and whatever prints a policy must not print them once more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpuplan.patterns import regex

if TYPE_CHECKING:
    import re

_TOKENS: Final = (
    r"hf_[A-Za-z0-9]{30,}|nvapi-[A-Za-z0-9_-]{40,}|gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,}|"
    r"glpat-[A-Za-z0-9_-]{20,}|AKIA[A-Z0-9]{16}|xox[abprs]-[A-Za-z0-9-]{20,}|sk-[A-Za-z0-9_-]{32,}"
)
"""How tokens begin: of Hugging Face, NVIDIA NGC, GitHub, GitLab, AWS, Slack and OpenAI.

https://docs.github.com/en/code-security/secret-scanning/introduction/supported-secret-scanning-patterns
"""

_FOUND: Final = regex(rf"(^|[^A-Za-z0-9_-])({_TOKENS})|-----BEGIN [A-Z ]*PRIVATE KEY-----|https?://[^/\s@:]*:[^/\s@]+@")

# Tokens; lines of a key, which are nothing but base64; and what stands before the host in an address of HTTP.
_PARTS: Final = regex(rf"\b({_TOKENS})|^\s*[A-Za-z0-9+/]{{60,}}={{0,2}}\s*$|(?<=://)[^/\s@]*:[^/\s@]*(?=@)")


def holds_credential(text: str) -> bool:
    """Whether there is a token, a private key or an address with a password in it, as far as their forms tell."""
    return _FOUND.search(text) is not None


def hidden(text: str) -> str:
    """The text with a star for each character of a credential within, so that columns stay where they are."""
    return _PARTS.sub(_stars, text)


def _stars(match: re.Match[str]) -> str:
    return "*" * len(match[0])
