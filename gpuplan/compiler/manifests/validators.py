"""Make validators of JSON Schema that know the definitions which they are given, and fetch no others.

This is the only place that makes one: left to itself, the library follows a ``$ref`` to files and to addresses of HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator, Registry

Schema = Mapping[str, Any]


def compile_schema(schema: Schema | str, known: Registry | None = None) -> Draft202012Validator:
    """Make a validator of a schema, or of its text in JSON; ValueError if the schema is none, or refers elsewhere.

    The engine for patterns knows nearly what Go's knows, by which the API server judges: it needs time linear in
    the text, and has no lookaround and no backreferences. It refuses what hardly any definition has: ``\\Q``, a
    class in a range such as ``[\\w-.]``, and a brace that stands for itself. It reads ``[[:alpha:]]`` as other letters,
    and ``\\s`` as blanks beyond ASCII, too.
    """
    from jsonschema_rs import Draft202012Validator, RegexOptions

    plain: Any = schema if isinstance(schema, str) else dict(schema)
    return Draft202012Validator(plain, registry=known, retriever=_refuse, pattern_options=RegexOptions())


def registry(address: str, definitions: Mapping[str, Schema]) -> Registry:
    """Return a registry of definitions, to which schemas refer below one address."""
    from jsonschema_rs import Registry

    return Registry([(address, {"$id": address, "$defs": dict(definitions)})], retriever=_refuse)


def _refuse(_: str) -> NoReturn:
    raise LookupError("a schema refers only to what comes with it")
