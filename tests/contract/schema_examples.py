"""Values made to fit a JSON schema, always the same ones."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tests.contract.schema_oracle import CHECKER, STRICT

UUID = "8d5f2b1e-3c4a-4f6b-9a7d-0123456789ab"
GUESSES = [
    "a",
    "1",
    "abc",
    UUID,
    "2026-01-02T03:04:05Z",
    "10.0.0.1",
    "fe80::1",
    "10.0.0.0/24",
    "http://localhost/x",
    "aGVsbG8=",
    "/dev/vdb",
    "/10.0.0.1",
    "52:54:00:12:34:56",
    "nova",
    "_x",
    "property-x",
    "a" * 32,
    "2.1",
    "a/b",
    "abcdefgh",
    "",
]


def flat(schemas: list[Any]) -> list[dict[str, Any]]:
    """The schemas with their alternatives laid beside them, each once (equal schemas are one object)."""
    out: dict[int, dict[str, Any]] = {}
    for s in schemas:
        if isinstance(s, dict):
            out.setdefault(id(s), s)
            for x in flat([x for k in ("oneOf", "anyOf", "allOf") for x in s.get(k, [])]):
                out.setdefault(id(x), x)
    return list(out.values())


def below(schemas: list[dict[str, Any]], key: str | int) -> list[Any]:
    """The schemas that may speak of a member."""
    out: list[Any] = []
    for s in schemas:
        if isinstance(key, int):
            out += s.get("prefixItems", [])[key : key + 1] + ([s["items"]] if "items" in s else [])
        else:
            out += [s["properties"][key]] if key in s.get("properties", {}) else []
            out += [x for p, x in s.get("patternProperties", {}).items() if re.search(p, key)]
            out += [s["additionalProperties"]] if isinstance(s.get("additionalProperties"), dict) else []
    return out


def fits(schema: Any, value: Any) -> bool:
    return bool(STRICT(schema, format_checker=CHECKER).is_valid(value))


_EXAMPLES: dict[tuple[int, bool], tuple[Any, Any]] = {}


def example(schema: Any, full: bool) -> Any:
    """A value made to fit a schema; the smallest one, or one with every member."""
    if (id(schema), full) not in _EXAMPLES:
        _EXAMPLES[id(schema), full] = (schema, _example(schema, full))  # keeps the schema, so that its id stays its own
    return _EXAMPLES[id(schema), full][1]


def _example(schema: Any, full: bool) -> Any:
    if not isinstance(schema, dict):
        return "x"
    for key in ("oneOf", "anyOf", "allOf"):
        if key in schema:
            return _of_alternatives(schema, key, full)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    kinds = schema.get("type", "object" if schema.get("properties") or schema.get("required") else "string")
    kind = kinds if isinstance(kinds, str) else next((k for k in kinds if k != "null"), "null")
    return MAKERS.get(kind, lambda schema, full: None)(schema, full)


def _of_alternatives(schema: dict[str, Any], key: str, full: bool) -> Any:
    rest = {k: v for k, v in schema.items() if k != key}
    tries = [
        example({**rest, **b, "properties": {**rest.get("properties", {}), **b.get("properties", {})}}, full)
        for b in schema[key]
        if isinstance(b, dict)
    ]
    return next((t for t in tries if fits(schema, t)), tries[0] if tries else None)


def _object(schema: dict[str, Any], full: bool) -> dict[str, Any]:
    wanted = list(schema.get("properties", {})) if full else list(schema.get("required", []))
    out = {k: example((below([schema], k) or [{}])[0], full) for k in wanted}
    if full or len(out) < schema.get("minProperties", 0):
        room = schema.get("maxProperties", 9) - len(out)
        for pattern, member in schema.get("patternProperties", {}).items():
            fresh = [k for k in ("a", "1", "_x", "property-x") if re.search(pattern, k) and k not in out]
            out |= {k: example(member, full) for k in fresh[:room]}
            room -= len(fresh)
    return out


def _array(schema: dict[str, Any], full: bool) -> list[Any]:
    first = schema.get("prefixItems", [])
    size = max(schema.get("minItems", 0), 1 if full else 0)
    return [example(s, full) for s in first] or [example(schema.get("items", {}), full)] * size


def _string(schema: dict[str, Any], full: bool) -> str:
    size = schema.get("minLength", 0)
    return next((g for g in [*GUESSES, "a" * size] if fits(schema, g)), "a" * max(size, 1))


def _number(schema: dict[str, Any], full: bool) -> Any:
    return next((n for n in (schema.get("minimum", 1), schema.get("maximum", 1), 1, 0) if fits(schema, n)), 1)


MAKERS: dict[str, Callable[[dict[str, Any], bool], Any]] = {
    "object": _object,
    "array": _array,
    "string": _string,
    "integer": _number,
    "number": _number,
    "boolean": lambda schema, full: True,
}
