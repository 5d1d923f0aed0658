"""The rules of what a policy file may hold (GPU001 to GPU029), before anybody asks what it means."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from gpuplan.compiler.base.diagnostics import Rule, rules_among

_HERE: Final = Path(__file__).parent

SYNTAX_ERROR = Rule("GPU001", _HERE)
NOT_TEXT = Rule("GPU002", _HERE)
TOO_LARGE = Rule("GPU003", _HERE)
NOT_A_FILE = Rule("GPU004", _HERE)
REFUSED_LINK = Rule("GPU005", _HERE)
NOT_A_MAPPING = Rule("GPU006", _HERE)
MISSING_SEPARATOR = Rule("GPU021", _HERE)
CURLY_QUOTE = Rule("GPU022", _HERE)
DUPLICATE_KEY = Rule("GPU007", _HERE)
KEY_NOT_TEXT = Rule("GPU008", _HERE)
ANCHOR_OR_ALIAS = Rule("GPU009", _HERE)
EXPLICIT_TAG = Rule("GPU010", _HERE)
MERGE_KEY = Rule("GPU011", _HERE)
DIRECTIVE = Rule("GPU012", _HERE)
AMBIGUOUS_NUMBER = Rule("GPU013", _HERE)
NUMBER_OUT_OF_RANGE = Rule("GPU014", _HERE)
AMBIGUOUS_TEXT = Rule("GPU015", _HERE)
DUPLICATE_DOCUMENT = Rule("GPU016", _HERE)
BAD_PATCH = Rule("GPU017", _HERE)
NOTHING_TO_DELETE = Rule("GPU018", _HERE)
NOTHING_TO_UNSET = Rule("GPU019", _HERE)
MALFORMED_IGNORE = Rule("GPU020", _HERE)
EMBEDDED_REPOSITORY = Rule("GPU023", _HERE)

UNREAD: tuple[Rule, ...] = (SYNTAX_ERROR, NOT_TEXT, TOO_LARGE, NOT_A_FILE, REFUSED_LINK, NOT_A_MAPPING, DUPLICATE_KEY)
"""The rules whose findings keep documents of a file, or a part of one, from being read at all."""

RULES: Final = rules_among(globals())
