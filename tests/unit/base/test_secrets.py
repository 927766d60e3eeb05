"""Passwords in URLs are masked whole, however they are written."""

from __future__ import annotations

import pytest

from kilonova.base.secrets import masked


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("mysql+pymysql://u:p@h/n", "mysql+pymysql://u:****@h/n"),
        ("mysql://u:se/cret@h/n?charset=utf8", "mysql://u:****@h/n?charset=utf8"),
        ("mysql://u:se/cr@et@h:3306/n", "mysql://u:****@h:3306/n"),
        ("mysql://u:se:cr?et@h/n", "mysql://u:****@h/n"),
        ("mysql://u:se#cret@h/n", "mysql://u:****@h/n"),
        ("mysql://u:se://cret@h/n", "mysql://u:****@h/n"),
        ("mysql://:secret@h/n", "mysql://:****@h/n"),
        ("rabbit://a:secret@h1:5,b:secret@h2:6/v", "rabbit://a:****@h1:5,b:****@h2:6/v"),
        ("rabbit://a:secret@h1:5,b:se/cret@h2:6/v", "rabbit://a:****@h2:6/v"),
        ("rabbit://a:secret@[fd00::1]:5/", "rabbit://a:****@[fd00::1]:5/"),
        ("postgresql://u@h/n?password=secret&x=y", "postgresql://u@h/n?password=****&x=y"),
        ("postgresql+psycopg2://u:secret@/n?host=/run/pg", "postgresql+psycopg2://u:****@/n?host=/run/pg"),
        ("u:secret@h", "u:****@h"),
        ("sqlite:////x/y.db", "sqlite:////x/y.db"),
        ("mysql://h/n", "mysql://h/n"),
        ("none:///", "none:///"),
        ("nonsense", "nonsense"),
        ("{scheme}://{username}:{password}@db2/{path}?{query}", "{scheme}://{username}:****@db2/{path}?{query}"),
    ],
)
def test_masked_whole(url: str, shown: str) -> None:
    assert masked(url) == shown
