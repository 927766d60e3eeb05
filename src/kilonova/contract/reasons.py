"""Why a value does not fit its shape, in the words of JSON Schema's reference validator: clients look for them.

Long values are shown by their beginning, so that what is wrong with them is not lost behind them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import jsonschema_rs

LONGEST: Final = 500
_MOST_NAMES: Final = 10


def shown(value: Any) -> str:
    """A value as Python writes it, cut where it is long."""
    return _cut(repr(value))


def said(value: Any) -> str:
    """A value within a sentence: a text as it is."""
    return _cut(str(value))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST] + "..."


def sentence(error: jsonschema_rs.ValidationError, schema: Any) -> str:
    """What is wrong with a value of the schema, as one sentence."""
    kind: Any = error.kind
    # Our own keywords have the names of those that they replace, and say themselves what is wrong.
    word = None if isinstance(kind, jsonschema_rs.ValidationErrorKind.Custom) else _WORDS.get(kind.name)
    return said(error.message) if word is None else word(error, _parent(error, schema))


Word = Callable[[Any, Any], str]
"""What to say of an error and of the schema that has the keyword which refused."""


def _parent(error: jsonschema_rs.ValidationError, schema: Any) -> Any:
    """The schema that has the keyword which refused."""
    for step in error.schema_path[:-1]:
        schema = schema[step]
    return schema


def _of_value(sentence: Callable[[Any], str]) -> Word:
    return lambda error, parent: f"{shown(error.instance)} {sentence(parent)}"


def _short(limit: str, other: str) -> Word:
    return _of_value(lambda parent: "should be non-empty" if parent[limit] == 1 else other)


def _long(limit: str, other: str) -> Word:
    return _of_value(lambda parent: other if parent[limit] else "is expected to be empty")


def _listed(values: Iterable[Any]) -> str:
    return ", ".join(shown(value) for value in values)


def _unexpected(error: Any, parent: Any) -> str:
    patterns = parent.get("patternProperties", ())
    names = sorted(unknown(parent, error.instance))[:_MOST_NAMES]
    one = len(names) == 1
    if patterns:
        shown_patterns = _listed(sorted(pattern.replace("\n?$", "$") for pattern in patterns))
        return f"{_listed(names)} {'does' if one else 'do'} not match any of the regexes: {shown_patterns}"
    return f"Additional properties are not allowed ({_listed(names)} {'was' if one else 'were'} unexpected)"


def unknown(schema: Mapping[str, Any], instance: Mapping[str, Any]) -> list[str]:
    """The members that the schema does not name."""
    patterns, known = schema.get("patternProperties", ()), schema.get("properties", ())
    return [key for key in instance if key not in known and not any(re.search(p, key) for p in patterns)]


def _types(parent: Any) -> list[str]:
    return parent["type"] if isinstance(parent["type"], list) else [parent["type"]]


_NO_SCHEMA: Final = _of_value(lambda parent: "is not valid under any of the given schemas")
_WORDS: Final[Mapping[str, Word]] = {
    "type": _of_value(lambda parent: f"is not of type {_listed(_types(parent))}"),
    "required": lambda error, parent: f"{shown(error.kind.property)} is a required property",
    "additionalProperties": _unexpected,
    "enum": _of_value(lambda parent: f"is not one of {shown(parent['enum'])}"),
    "const": lambda error, parent: f"{shown(parent['const'])} was expected",
    "minLength": _short("minLength", "is too short"),
    "maxLength": _long("maxLength", "is too long"),
    "minItems": _short("minItems", "is too short"),
    "maxItems": _long("maxItems", "is too long"),
    "minProperties": _short("minProperties", "does not have enough properties"),
    "maxProperties": _long("maxProperties", "has too many properties"),
    "uniqueItems": _of_value(lambda parent: "has non-unique elements"),
    "oneOf": _NO_SCHEMA,
    "anyOf": _NO_SCHEMA,
}
"""Sentences by the keyword that refused; other keywords say it themselves."""
