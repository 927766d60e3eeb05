"""Shapes of REST requests and responses, declared once for all microversions.

A shape is JSON Schema (2020-12) written as Python data, in which `Object` and `ByVersion` may stand anywhere: an
`Object` lists fields with the microversions that have them, a `ByVersion` holds a shape per range. From a shape are
derived, on first use and then kept: the plain schema of a microversion, its validator, and its serializer, which
leaves only the members that the microversion knows.

Numbers and strings follow the API's dialect: limits apply to numeric strings too, patterns are Python's and searched,
and formats are those of `kilonova.contract.formats`. On the legacy endpoint unknown members are dropped.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import jsonschema_rs

from kilonova.contract import reasons
from kilonova.contract.formats import FORMATS
from kilonova.contract.microversions import ALL, LEGACY, Versions

Shape = Any
Serialize = Callable[[Any], Any]


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """A member of an object: in which microversions it exists, and in which of those it must be given."""

    name: str
    shape: Shape
    versions: Versions = ALL
    required: bool | Versions = False

    def required_in(self, version: int) -> bool:
        return self.required if isinstance(self.required, bool) else version in self.required


class Object:
    """A JSON object. ``extra`` says what unknown members are: refused (False), let pass (True) or of a shape.

    ``patterns`` maps regular expressions over member names to shapes; ``limits`` are further keywords.
    """

    __slots__ = ("extra", "fields", "limits", "nullable", "patterns")

    def __init__(
        self,
        *fields: Field,
        extra: Shape = False,
        patterns: Mapping[str, Shape] | None = None,
        nullable: bool = False,
        **limits: Any,
    ) -> None:
        self.fields = fields
        self.extra = extra
        self.patterns = patterns or {}
        self.nullable = nullable
        self.limits = limits

    def names(self, version: int) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields if version in field.versions)

    def schema(self, version: int) -> dict[str, Any]:
        known = [field for field in self.fields if version in field.versions]
        schema: dict[str, Any] = {
            "type": ["object", "null"] if self.nullable else "object",
            "properties": {field.name: schema_at(field.shape, version) for field in known},
            "additionalProperties": schema_at(self.extra, version),
            **self.limits,
        }
        if required := [field.name for field in known if field.required_in(version)]:
            schema["required"] = required
        if self.patterns:
            # Python's `$` also stands before a newline at the very end, the compiled validator's does not.
            schema["patternProperties"] = {
                name.replace("$", "\n?$"): schema_at(shape, version) for name, shape in self.patterns.items()
            }
        return schema

    def children(self) -> Iterator[Shape]:
        yield from (field.shape for field in self.fields)
        yield from self.patterns.values()
        yield self.extra


class ByVersion:
    """A shape per range of microversions: the first range that holds the version wins."""

    __slots__ = ("cases",)

    def __init__(self, *cases: tuple[Versions, Shape]) -> None:
        self.cases = cases

    def shape(self, version: int) -> Shape:
        return next(shape for versions, shape in self.cases if version in versions)


def array(items: Shape, **limits: Any) -> dict[str, Any]:
    """A JSON array of ``items``."""
    return {"type": "array", "items": items, **limits}


def one_of(*shapes: Shape, **also: Any) -> dict[str, Any]:
    """Exactly one of the shapes."""
    return {"oneOf": list(shapes), **also}


def nullable(shape: Mapping[str, Any]) -> dict[str, Any]:
    """The shape, or null."""
    kinds = shape["type"] if isinstance(shape["type"], list) else [shape["type"]]
    return {**shape, "type": [*kinds, "null"]}


def schema_at(shape: Shape, version: int) -> Any:
    """The plain JSON schema of a shape in one microversion."""
    if isinstance(shape, Object):
        return shape.schema(version)
    if isinstance(shape, ByVersion):
        return schema_at(shape.shape(version), version)
    if isinstance(shape, dict):
        return {key: schema_at(value, version) for key, value in shape.items()}
    if isinstance(shape, list):
        return [schema_at(value, version) for value in shape]
    return shape


# ---------------------------------------------------------------- validation


def _number(value: Any) -> int | float | None:
    """What a limit is held against: numeric strings count, a fraction is cut off."""
    for kind in (int, float):
        try:
            return kind(value)
        except (TypeError, ValueError):
            continue
    return None


class _Keyword:
    def __init__(self, schema: dict[str, Any], value: Any, path: list[str | int]) -> None:
        self.schema = schema
        self.value = value

    def validate(self, instance: Any) -> None:
        raise NotImplementedError


class _Minimum(_Keyword):
    def validate(self, instance: Any) -> None:
        number = _number(instance)
        if number is not None and number < self.value:
            raise ValueError(f"{reasons.shown(instance)} is less than the minimum of {self.value}")


class _Maximum(_Keyword):
    def validate(self, instance: Any) -> None:
        number = _number(instance)
        if number is not None and number > self.value:
            raise ValueError(f"{reasons.shown(instance)} is greater than the maximum of {self.value}")


class _Pattern(_Keyword):
    def __init__(self, schema: dict[str, Any], value: Any, path: list[str | int]) -> None:
        super().__init__(schema, value, path)
        self.search = re.compile(value).search

    def validate(self, instance: Any) -> None:
        if isinstance(instance, str) and not self.search(instance):
            raise ValueError(f"{reasons.shown(instance)} does not match {self.value!r}")


class _Format(_Keyword):
    def validate(self, instance: Any) -> None:
        check = FORMATS.get(self.value)
        if check is not None and not check(instance):
            raise ValueError(f"{reasons.shown(instance)} is not a {self.value!r}")


class _LegacyAdditional(_Keyword):
    """The legacy endpoint drops unknown members; beside patterns they are an error unless nothing else is there."""

    def validate(self, instance: Any) -> None:
        if self.value is not False or "patternProperties" not in self.schema or not isinstance(instance, dict):
            return
        unknown = reasons.unknown(self.schema, instance)
        if unknown and len(unknown) < len(instance):
            raise ValueError(f"unexpected members {reasons.said(unknown)}")


_KEYWORDS: Final[dict[str, type[_Keyword]]] = {
    "minimum": _Minimum,
    "maximum": _Maximum,
    "pattern": _Pattern,
    "format": _Format,
}
_LEGACY_KEYWORDS: Final[dict[str, type[_Keyword]]] = {**_KEYWORDS, "additionalProperties": _LegacyAdditional}


class Invalid(ValueError):
    """Input that its shape refuses. ``path`` leads to the member, ``value`` is what stood there."""

    def __init__(self, path: list[str | int], value: Any, reason: str) -> None:
        super().__init__(reason)
        self.path = path
        self.value = value
        self.reason = reason


class Validator:
    """A shape compiled for one microversion; ``relaxed`` drops unknown members on the legacy endpoint."""

    def __init__(self, shape: Shape, version: int, *, relaxed: bool = True) -> None:
        self._schema = schema_at(shape, version)
        self._legacy = relaxed and version == LEGACY
        keywords = _LEGACY_KEYWORDS if self._legacy else _KEYWORDS
        self._compiled = jsonschema_rs.Draft202012Validator(
            self._schema,
            keywords=keywords,  # type: ignore[arg-type]
            validate_formats=False,
        )

    def check(self, value: Any) -> Any:
        """The value, on the legacy endpoint without its unknown members. Raises `Invalid`."""
        if self._legacy:
            value = _pruned(self._schema, value)
        try:
            self._compiled.validate(value)
        except jsonschema_rs.ValidationError as error:
            reason = reasons.sentence(error, self._schema)
            raise Invalid(list(error.instance_path), error.instance, reason) from None
        return value


def _pruned(schema: Any, value: Any) -> Any:
    """A copy of ``value`` without members that the schema would refuse, unless none would be left."""
    if not isinstance(schema, dict):
        return value
    if isinstance(value, list) and "items" in schema:
        return [_pruned(schema["items"], item) for item in value]
    if not isinstance(value, dict):
        return value
    known = schema.get("properties", {})
    drop: set[str] = set()
    if schema.get("additionalProperties") is False and "patternProperties" not in schema:
        drop = set(reasons.unknown(schema, value))
        drop = set() if len(drop) == len(value) else drop
    return {key: _pruned(known.get(key), item) for key, item in value.items() if key not in drop}


# ---------------------------------------------------------------- serialization


def _serializer(shape: Shape, version: int) -> Serialize | None:
    """A function that leaves what the version knows; None where the shape never varies."""
    if isinstance(shape, ByVersion):
        return _serializer(shape.shape(version), version)
    if isinstance(shape, Object):
        return _object_serializer(shape, version)
    if isinstance(shape, dict) and shape.get("type") == "array":
        each = _serializer(shape.get("items"), version)
        return None if each is None else lambda values: [each(value) for value in values]
    return None


def _object_serializer(shape: Object, version: int) -> Serialize | None:
    members = [(field.name, _serializer(field.shape, version)) for field in shape.fields if version in field.versions]
    hidden = {field.name for field in shape.fields if version not in field.versions}
    nested = {name: child for name, child in members if child is not None}
    if not hidden and not nested:
        return None

    def serialize(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        kept = {name: member for name, member in value.items() if name not in hidden}
        for name, child in nested.items():
            if name in kept:
                kept[name] = child(kept[name])
        return kept

    return serialize


def _same(value: Any) -> Any:
    return value


# ---------------------------------------------------------------- what routes hold


class Compiled:
    """A shape with the versions at which it changes, so that one compilation serves a whole range."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self._edges: list[int] | None = None
        self._serializers: dict[int, Serialize] = {}
        self._validators: dict[tuple[int, bool], Validator] = {}
        self._known: dict[int, Callable[[str], bool]] = {}

    def _start_of_range(self, version: int) -> int:
        if self._edges is None:
            self._edges = sorted({LEGACY, LEGACY + 1} | _edges(self.shape), reverse=True)
        return next(edge for edge in self._edges if edge <= version)

    def known(self, version: int) -> Callable[[str], bool]:
        """Whether an object of this shape has a member of that name."""
        start = self._start_of_range(version)
        found = self._known.get(start)
        if found is None:
            found = self._known[start] = _membership(self.shape, start)
        return found

    def validator(self, version: int, *, relaxed: bool = True) -> Validator:
        key = self._start_of_range(version), relaxed
        found = self._validators.get(key)
        if found is None:
            found = self._validators[key] = Validator(self.shape, key[0], relaxed=relaxed)
        return found

    def serializer(self, version: int) -> Serialize:
        start = self._start_of_range(version)
        found = self._serializers.get(start)
        if found is None:
            found = self._serializers[start] = _serializer(self.shape, start) or _same
        return found


def _membership(shape: Shape, version: int) -> Callable[[str], bool]:
    """Whether a name is a member; a shape that says nothing of members knows all."""
    while isinstance(shape, ByVersion):
        shape = shape.shape(version)
    if not isinstance(shape, Object):
        return lambda name: True
    names = frozenset(shape.names(version))
    patterns = [re.compile(pattern) for pattern in shape.patterns]
    return lambda name: name in names or any(pattern.search(name) for pattern in patterns)


def _edges(shape: Shape) -> set[int]:
    """The microversions at which a shape or one of its parts changes."""
    if isinstance(shape, Object):
        own = {edge for field in shape.fields for edge in field.versions.edges()}
        own |= {edge for f in shape.fields if isinstance(f.required, Versions) for edge in f.required.edges()}
        return own.union(*(_edges(child) for child in shape.children()))
    if isinstance(shape, ByVersion):
        own = {edge for versions, _ in shape.cases for edge in versions.edges()}
        return own.union(*(_edges(case) for _, case in shape.cases))
    if isinstance(shape, dict):
        return set().union(*(_edges(value) for value in shape.values()))
    if isinstance(shape, list):
        return set().union(*(_edges(value) for value in shape))
    return set()


# ---------------------------------------------------------------- shapes that many nouns share

NAME: Final = {"type": "string", "minLength": 1, "maxLength": 255, "format": "name"}
UUID: Final = {"type": "string", "format": "uuid"}
BOOLEAN: Final = {
    "type": ["boolean", "string"],
    "enum": [True, False]
    + [word for text in ("true", "on", "yes") for word in (text, text.title(), text.upper())]
    + [word for text in ("false", "off", "no") for word in (text, text.title(), text.upper())]
    + ["1", "0"],
}
METADATA_KEY: Final = "^[a-zA-Z0-9-_:. ]{1,255}$"
METADATA: Final = Object(patterns={METADATA_KEY: {"type": "string", "maxLength": 255}})
TEXT: Final = {"type": "string"}
INTEGER: Final = {"type": "integer"}
URI: Final = {"type": "string", "format": "uri"}
NOTHING: Final = {"type": "null"}
LINKS: Final = array(Object(Field("href", URI, required=True), Field("rel", TEXT, required=True)))
NEXT_LINK: Final = array(
    Object(Field("href", URI, required=True), Field("rel", {"const": "next"}, required=True)), minItems=1, maxItems=1
)
LIMIT: Final = {"type": ["integer", "string"], "pattern": "^[0-9]*$", "minLength": 1, "minimum": 0}


def query(*fields: Field, lenient: Versions | None = None, patterns: Mapping[str, Shape] | None = None) -> Object:
    """The parameters of a URL: each a list of values. In the ``lenient`` versions unknown ones are ignored."""
    as_lists = [Field(field.name, _as_list(field.shape), field.versions) for field in fields]
    extra: Shape = False if lenient is None else ByVersion((lenient, True), (ALL, False))
    as_patterns = {name: _as_list(shape) for name, shape in (patterns or {}).items()}
    return Object(*as_lists, extra=extra, patterns=as_patterns)


def _as_list(shape: Shape) -> Shape:
    if isinstance(shape, ByVersion):
        return ByVersion(*((versions, _as_list(case)) for versions, case in shape.cases))
    return shape if isinstance(shape, dict) and shape.get("type") == "array" else array(shape)


def single(shape: Shape) -> dict[str, Any]:
    """A URL parameter that may be given once."""
    return array(shape, maxItems=1)
