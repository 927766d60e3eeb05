"""Host names that are derived are labels that DNS takes; given ones that are none are refused."""

from __future__ import annotations

import re
import string

import pytest
from hypothesis import given, strategies

from kilonova.api.servers import hostnames
from kilonova.wire.http.faults import Fault

LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
UUID = "5f1c1e6e-0f0b-4c9d-8f6f-2a3d7c9b1e44"


@pytest.mark.parametrize(
    ("name", "count", "found"),
    [
        # As Nova derives them.
        ("One Two", 1, "one-two"),
        ("a.b_c", 1, "a-b-c"),
        ("-web-", 1, "web"),
        ("web", 3, "web-2"),
        ("日本", 1, f"Server-{UUID}"),
        ("日本", 3, f"Server-{UUID}"),
        ("a" * 70, 1, "a" * 63),
        # Where Nova's are none.
        ("é", 1, "e"),
        ("Größe", 1, "groe"),
        ("æ", 1, f"Server-{UUID}"),
        ("a" * 63, 3, "a" * 61 + "-2"),
        ("a" * 60 + "-b", 3, "a" * 60 + "-2"),
        ("-é-", 1, "e"),
        ("¼" * 63, 1, ("14" * 63)[:63]),
    ],
)
def test_r24_derived_names(name: str, count: int, found: str) -> None:
    assert hostnames.of_server(None, name, UUID, 1, count) == found


@given(
    strategies.text(alphabet=string.printable + "éßÿªµ¼½²đ日\U0001f600\u0130\u017f", min_size=1, max_size=255),
    strategies.integers(1, 5000),
)
def test_r24_whatever_a_server_is_called(name: str, count: int) -> None:
    assert LABEL.fullmatch(hostnames.of_server(None, name, UUID, count - 1, count))


@pytest.mark.parametrize(
    "name", ["a", "web-1", "WEB", "a.b", "db.example.org", "1", "a" * 63, "4a.b4", ".".join(["a" * 63] * 3)]
)
def test_r24_given_names(name: str) -> None:
    assert hostnames.checked(name) == name


@pytest.mark.parametrize(
    "name",
    ["a-", "-a", "A_b", "x.", ".x", "a..b", "a" * 64, "a.1", "é", "ab\n", "a b", ".".join(["a" * 63] * 4), "."],
)
def test_r24_given_names_that_are_none(name: str) -> None:
    with pytest.raises(Fault) as caught:
        hostnames.checked(name)
    assert caught.value.code == 400
