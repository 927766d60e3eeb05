"""kilonova: an OpenStack compute service that speaks Nova's contracts."""

from kilonova.base import native_threads

__version__ = "0.1.0"

native_threads.insist()
