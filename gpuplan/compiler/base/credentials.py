"""Texts that look like credentials. People paste them, and nothing that prints a policy may print them again."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from gpuplan.compiler.base.patterns import regex

if TYPE_CHECKING:
    import re

_TOKENS: Final = (
    r"hf_[A-Za-z0-9]{30,}|nvapi-[A-Za-z0-9_-]{40,}|gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,}|"
    r"glpat-[A-Za-z0-9_-]{20,}|(?:AKIA|ASIA)[A-Z0-9]{16}|xox[abprs]-[A-Za-z0-9-]{20,}|sk-[A-Za-z0-9_-]{32,}|"
    r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]*)?|AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,}|"
    r"GOCSPX-[A-Za-z0-9_-]{28}|[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}|hvs\.[A-Za-z0-9_-]{24,}|"
    r"npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{50,}"
)
"""The beginnings of JSON Web Tokens and of tokens of Hugging Face, NVIDIA NGC, GitHub, GitLab, AWS, Slack, OpenAI,
Google, Azure (Entra), Vault, npm and PyPI.

https://docs.github.com/en/code-security/secret-scanning/introduction/supported-secret-scanning-patterns
"""

_FOUND: Final = regex(
    rf"(^|[^A-Za-z0-9_-])({_TOKENS})|-----BEGIN [A-Z ]*PRIVATE KEY-----|\b[a-z][a-z0-9+.-]{{0,30}}://[^/\s@:]*:[^/\s@]+@"
)

# Tokens; lines of a key, which are nothing but base64, or the rest of a line where it begins.
_PARTS: Final = regex(rf"\b({_TOKENS})|^\s*[A-Za-z0-9+/]{{60,}}={{0,2}}\s*$|(?<=PRIVATE KEY-----)(?!$)((?!-----END).)+")
_LONG_RUN: Final = regex(r"[A-Za-z0-9_.~+/-]{18}")
_IN_ADDRESS: Final = regex(r"""(?<=://)[^/\s"'`:@]*+:[^/\s"'`]*(?=@)""")
"""The part before the host."""
_AWS_SECRET: Final = regex(r"(?<![A-Za-z0-9/+=])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])")
"""The second half of an AWS access key, whose form alone says nothing."""

_NAME: Final = r"(?<![\w.-])([\w.-]++)"
_QUOTE: Final = r"""(?:\\?["'])?"""
_ASSIGNED: Final = regex(rf"{_NAME}{_QUOTE}\s?=\s?{_QUOTE}")
_SAID: Final = regex(rf"{_NAME}{_QUOTE}\s*:\s+{_QUOTE}")
_FLAG: Final = regex(rf"(?<![\w-])(--?[A-Za-z][\w-]*+)\s+{_QUOTE}(?!-)")
_HEADER: Final = regex(r"""(?i:\b(authorization))(?:\\?["'])?\s*[:=]\s*(?:\\?["'])?(?:\w+\s+(?=\S))?""")
_BEARER: Final = regex(r"(?i:\b(bearer))\s+(?=[A-Za-z0-9._~+/=-]{8})(?=\S*[0-9])")
_VALUE: Final = regex(r"""\$\([^)\s]*\)|\$\{[^}\s]*\}|(?i:bearer|basic)\s+[^\s"'`\\]+|[^\s"'`\\]+""")


def holds_credential(text: str) -> bool:
    """Whether there is a token, a private key or an address with a password in it, as far as their forms tell."""
    return _FOUND.search(text) is not None


def is_credential(name: str, value: str) -> bool:
    """Whether a variable holds a credential, by the form of its value or by its name; a number or a switch is none."""
    is_named = is_secret_name(name) and not value.isdecimal() and not is_harmless(value, name)
    return is_named or holds_credential(value)


def hidden(text: str, *, in_comment: bool = False, has_aws_key: bool = False) -> str:
    """The text with a star for each character of a credential within, so that columns stay where they are.

    Credentials are known by their forms, and by names that they are assigned to, in a comment with a colon, too. The
    second half of an AWS key is known beside the first one, in the text or elsewhere in a file that ``has_aws_key``.
    """
    if _LONG_RUN.search(text):
        has_aws_key = has_aws_key or "AKIA" in text or "ASIA" in text
        text = _PARTS.sub(_stars, text)
        if has_aws_key:
            text = _AWS_SECRET.sub(_stars, text)
    if "://" in text and "@" in text:
        text = _IN_ADDRESS.sub(_stars, text)
    if "=" in text:
        text = _starred(_ASSIGNED, text)
    if "--" in text:
        text = _starred(_FLAG, text)
    if "uthorization" in text:
        text = _starred(_HEADER, text)
    if "earer" in text:
        text = _starred(_BEARER, text)
    return _starred(_SAID, text) if in_comment and ":" in text else text


def _stars(match: re.Match[str]) -> str:
    return "*" * len(match[0])


def _starred(named: re.Pattern[str], text: str) -> str:
    """The text with stars for values behind what a pattern takes for a name, if the name is one of a credential."""
    parts: list[str] = []
    end = 0
    for match in named.finditer(text):
        if match.start() >= end and is_secret_name(match[1]) and (value := _VALUE.match(text, match.end())):
            is_shown = is_harmless(value[0], match[1])
            parts += (text[end : match.end()], value[0] if is_shown else "*" * len(value[0]))
            end = value.end()
    return "".join((*parts, text[end:])) if parts else text


# --- By name -----------------------------------------------------------------------------------------------------

_PARTS_OF_NAME: Final = regex(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_PASSWORDS: Final = frozenset(("password", "passwd", "passphrase", "passcode", "passwords"))
_LAST: Final = _PASSWORDS | {
    *("pwd", "sig", "token", "auth", "authorization", "bearer", "credential", "credentials"),
    *("dockerconfigjson", "dockercfg", "apikey", "apikeys", "accesskey", "secretkey", "privatekey", "authtoken"),
}
_BEFORE_KEY: Final = frozenset(
    ("api", "access", "secret", "private", "account", "signing", "encryption", "license", "ssh", "auth", "master")
)
_BEFORE_SECRET: Final = frozenset(("client", "shared", "webhook", "app", "consumer", "session", "cookie"))


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Whether a field or a variable of this name holds a credential itself, and not the name of a Secret.

    Kubernetes has names of Secrets in fields such as `tlsSecret` and `secretName`.
    """
    words = [word.lower() for word in _PARTS_OF_NAME.findall(name.rstrip("0123456789"))] or [""]
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    is_constant = name.isupper() or ("_" in name and name.islower())
    if last in ("key", "keys"):
        return before in _BEFORE_KEY or (name.isupper() and last == "key")
    if last == "secret":
        return not before or before in _BEFORE_SECRET or is_constant
    return last in _LAST or (last == "pass" and (is_constant or not before))


_HARMLESS: Final = regex(
    r"(?i:\$\([\w.-]+\)|\$\{[^}]*\}|\$\w+|\{\{[^}]*\}\}|<[^<>]*>|\*+|true|false|null|yes|no|on|off|none|~|[|>][+-]?|)"
)
_IS_PATH: Final = regex(r"(?:/[a-z0-9._-]+)+/?")


def is_harmless(value: str, name: str = "") -> bool:
    """Whether a value of such a name is a reference, a placeholder, a switch or the path of a file."""
    if _HARMLESS.fullmatch(value):
        return True
    is_password = any(word in name.lower() for word in _PASSWORDS)
    return not is_password and len(value) < 100 and _IS_PATH.fullmatch(value) is not None
