"""Signatures of remote methods, declared as text such as `"uuid, expected_attrs=None"`."""

from __future__ import annotations

import ast
import functools
from typing import Any

import msgspec


class Argument(msgspec.Struct, frozen=True):
    """One argument of a remote method; `kind` is `""`, `"*"` or `"**"`; a `default` of `...` means none."""

    name: str
    default: Any = ...
    kind: str = ""


@functools.cache
def arguments(text: str) -> tuple[Argument, ...]:
    """Parse a declared signature."""
    node = ast.parse(f"lambda {text}: 0", mode="eval").body
    assert isinstance(node, ast.Lambda)
    plain = node.args.args
    defaults = [...] * (len(plain) - len(node.args.defaults)) + [ast.literal_eval(d) for d in node.args.defaults]
    found = [Argument(arg.arg, default) for arg, default in zip(plain, defaults, strict=True)]
    if node.args.vararg is not None:
        found.append(Argument(node.args.vararg.arg, kind="*"))
    if node.args.kwarg is not None:
        found.append(Argument(node.args.kwarg.arg, kind="**"))
    return tuple(found)
