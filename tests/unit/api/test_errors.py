"""Which failures a client hears about, and as what."""

from __future__ import annotations

import pytest

from kilonova.api.errors import seen
from kilonova.contract import exceptions
from kilonova.wire.rpc import errors


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (exceptions.InstanceNotFound(instance_id="x"), 404),
        (errors.RpcUnreachable("no route"), 503),
        (errors.RpcTimeout("late"), None),
        (exceptions.NovaException("inside"), None),
        (KeyError("inside"), None),
    ],
)
def test_seen(error: Exception, code: int | None) -> None:
    found = seen(error)
    assert (found[0] if found else None) == code
    assert found is None or "no route" not in found[1]
