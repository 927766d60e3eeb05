"""`bash-completion [CATEGORY]` of the operators' programs: the words that a shell may offer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

NAME = "bash-completion"


def declare(subparsers: Any) -> None:
    """Add the command to a program's parsers."""
    parser = subparsers.add_parser(NAME, help="the categories, or the actions of one, for the shell to offer")
    parser.add_argument("query_category", nargs="?", metavar="CATEGORY", help="whose actions; default: the categories")


def show(categories: Mapping[str, Iterable[str]], category: str | None) -> int:
    """Print the words on one line: none for a category that does not exist."""
    if not category:
        print(" ".join(categories))
    elif category in categories:
        print(" ".join(categories[category]))
    return 0
