"""The bindings of all nouns and verbs, found by walking the two packages."""

import importlib
import pkgutil

from kilonova.api import nouns, ops
from kilonova.wire.http.call import Binding


def collect() -> list[Binding]:
    """Every binding in a module's ``ROUTES``, in the order of module names."""
    found: list[Binding] = []
    for package in (nouns, ops):
        for module in sorted(pkgutil.iter_modules(package.__path__), key=lambda info: info.name):
            found += getattr(importlib.import_module(f"{package.__name__}.{module.name}"), "ROUTES", [])
    return found
