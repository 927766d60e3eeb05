"""Regular expressions of users: one dialect, and an end to what matching may take."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
import sqlalchemy as sa

from kilonova.db import patterns
from kilonova.db.engine import Database
from kilonova.db.outcomes import InvalidFilterError

SLOW = [
    "([0-9a-f:]+)+x",
    "(a|a)*x",
    "(?:(a*)b?)*",
    "(a{1,9}){2,}",
    ".*.*.*.*.*x",
    r"(\w+\s?)+$",
    "(?:a?a?){12}b",
    "a?" * 30 + "b",
    "(a|b)" * 30,
]
BROKEN = [
    *("a++", "a**", "*", "+a", "?", "a|*", "(", ")", "[", "a{2}{3}", "^*", "(?=a)", "(?P<n>a)", "(?i)a", r"(a)\1"),
    *(r"\A", r"\z", r"\p{L}", r"[\D]", "a{", "]", "}", "[[]", "[a&&b]", "a{2,1}", "a{256}", "[b-a]", "a" * 256, "a\\"),
]
TEXTS = ["", "web", "a web b", "web-12-x", "10.0.0.6", "abcabc", "(aa)", "acd", "+x", "fd00::1", "aab", "*?", "éé"]
GOOD = [
    *("^web-[0-9]+-.*$", r"10\.0\.0\.(5|6)$", "(abc)+", r"[(+*]+x", r"\(a+\)+", "(a|b)cd*", "[]+*(]+(x|y)", "a+b+c+"),
    *(
        "(a+)?",
        "fd00::",
        "",
        "a|",
        "(|a)",
        "[[:alpha:]_]+",
        r"\bweb\b",
        r"[^\d-]",
        "a{2,3}?",
        "é+",
        r"\*\?",
        "a.*b.*c.*d",
    ),
]


@pytest.mark.parametrize("pattern", SLOW)
def test_d1_patterns_that_could_take_for_ever_are_refused(pattern: str) -> None:
    with pytest.raises(InvalidFilterError, match="takes too long"):
        patterns.checked("ip6", pattern)


@pytest.mark.parametrize("pattern", BROKEN)
def test_r01_what_not_all_databases_understand_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidFilterError, match=r"^name: "):
        patterns.checked("name", pattern)


@pytest.mark.parametrize("pattern", GOOD)
def test_ordinary_patterns_mean_what_python_means(pattern: str) -> None:
    compiled = patterns.matcher("name", patterns.checked("name", pattern))
    python = re.compile(pattern.replace("[:alpha:]", "a-zA-Z"))
    for text in TEXTS:
        assert bool(compiled.search(text)) == bool(python.search(text)), text


def test_d1_sqlite_matches_without_going_back(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/x.db")
    text, pattern = sa.literal("a" * 255), sa.literal("(?:a?a?){60}" * 2 + "b")
    began = time.monotonic()
    with database.read() as tx:
        assert tx.execute(sa.select(text.regexp_match(pattern))).scalar() == 0
        assert tx.execute(sa.select(text.regexp_match("^a+$"))).scalar() == 1
        assert tx.execute(sa.select(sa.null().regexp_match("a"))).scalar() is None
    assert time.monotonic() - began < 2
    database.dispose()


def test_the_longest_and_widest_patterns_are_quick() -> None:
    began = time.monotonic()
    for pattern in ("a{255}" * 40, "(a{0,15}){0,15}" * 2, "[[:alpha:]]" * 23, "(((a{9}){9}){9}){9}"):
        try:
            patterns.matcher("name", pattern).search("a" * 255)
        except InvalidFilterError:
            continue
    assert time.monotonic() - began < 2


def test_word_boundaries_have_another_name_in_postgresql() -> None:
    assert patterns.of_dialect(r"\bweb\B\\b[\w]", "postgresql") == r"\yweb\Y\\b[\w]"
    assert patterns.of_dialect(r"\bweb", "mysql") == r"\bweb"
