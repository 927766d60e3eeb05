"""What clients read of a value that does not fit: the words of JSON Schema's reference validator."""

from __future__ import annotations

from typing import Any

import pytest

from kilonova.contract.fields import NAME, Field, Invalid, Object, Validator, array, one_of


@pytest.mark.parametrize(
    ("shape", "value", "sentence"),
    [
        ({"type": "string", "maxLength": 2}, "abc", "'abc' is too long"),
        ({"type": "string", "minLength": 2}, "a", "'a' is too short"),
        (NAME, "", "'' should be non-empty"),
        ({"type": "integer"}, "x", "'x' is not of type 'integer'"),
        ({"type": ["string", "null"]}, 1, "1 is not of type 'string', 'null'"),
        ({"type": "string", "enum": ["a", "b"]}, "c", "'c' is not one of ['a', 'b']"),
        ({"const": ""}, "c", "'' was expected"),
        (array({}, maxItems=1), [1, 2], "[1, 2] is too long"),
        (array({}, minItems=1), [], "[] should be non-empty"),
        (array({}, minItems=2), [1], "[1] is too short"),
        (array({}, uniqueItems=True), [1, 1], "[1, 1] has non-unique elements"),
        (Object(Field("a", {}, required=True)), {}, "'a' is a required property"),
        (Object(Field("a", {})), {"b": 1}, "Additional properties are not allowed ('b' was unexpected)"),
        (Object(Field("a", {})), {"c": 1, "b": 1}, "Additional properties are not allowed ('b', 'c' were unexpected)"),
        (Object(patterns={"^a$": {}}), {"b": 1}, "'b' does not match any of the regexes: '^a$'"),
        (Object(minProperties=1, extra=True), {}, "{} should be non-empty"),
        (Object(maxProperties=1, extra=True), {"a": 1, "b": 2}, "{'a': 1, 'b': 2} has too many properties"),
        (one_of({"type": "string"}, {"type": "null"}), 1, "1 is not valid under any of the given schemas"),
        ({"minimum": 1}, 0, "0 is less than the minimum of 1"),
        ({"maximum": 1}, "2", "'2' is greater than the maximum of 1"),
        ({"pattern": "^a"}, "b", "'b' does not match '^a'"),
        ({"type": "string", "format": "uuid"}, "b", "'b' is not a 'uuid'"),
    ],
)
def test_sentences(shape: Any, value: Any, sentence: str) -> None:
    with pytest.raises(Invalid) as refused:
        Validator(shape, 1).check(value)
    assert refused.value.reason == sentence


def test_what_is_wrong_is_not_lost_behind_a_long_value() -> None:
    with pytest.raises(Invalid) as refused:
        Validator(NAME, 1).check("a" * 10000)
    assert refused.value.reason.endswith("... is too long")
    assert len(refused.value.reason) < 600


def test_deep_within_other_members() -> None:
    shape = Object(Field("a", array(Object(Field("b", Object(Field("c", {})))))))
    with pytest.raises(Invalid) as refused:
        Validator(shape, 1).check({"a": [{"b": {"d": 1}}]})
    assert refused.value.reason == "Additional properties are not allowed ('d' was unexpected)"
    assert refused.value.path == ["a", 0, "b"]
