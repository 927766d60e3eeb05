"""Native threads only: eventlet stays out of the process, and oslo.service runs on threads.

oslo.service and oslo.utils take eventlet when they find it installed. Both decide when they are first imported, so this
must come before any oslo import.
"""

from __future__ import annotations

import sys


def insist() -> None:
    """Make `import eventlet` fail in this process and choose oslo.service's threading backend; repeatable."""
    if "eventlet" not in sys.modules:
        # None makes the import system raise ModuleNotFoundError, which the oslo libraries take for "not installed".
        sys.modules["eventlet"] = None  # type: ignore[assignment]

    from oslo_service import backend

    backend.register_backend_default_hook(lambda: backend.BackendType.THREADING)
