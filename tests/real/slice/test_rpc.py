"""The tests of messages (tests/unit/wire/test_rpc.py) on RabbitMQ."""

from __future__ import annotations

import pathlib
import tempfile
from collections.abc import Iterator

import pytest
from tests.needs import needs
from tests.real import broker
from tests.unit.wire import test_rpc as messages

from kilonova.base import ids
from kilonova.wire.rpc.bus import Bus

pytestmark = [pytest.mark.real, pytest.mark.timeout(300), pytest.mark.xdist_group("servers"), needs("rabbitmq")]


@pytest.fixture(scope="module")
def broker_url() -> Iterator[str]:
    with (
        tempfile.TemporaryDirectory(prefix="kn-mq-", ignore_cleanup_errors=True) as folder,
        broker.rabbitmq(pathlib.Path(folder)) as url,
    ):
        yield url


@pytest.fixture
def bus(broker_url: str) -> Iterator[Bus]:
    conf = messages.configuration()
    made = Bus(conf, broker_url)
    conf.set_override("control_exchange", f"test-{ids.new_uuid()}")
    yield made
    made.close()


hosts, slow = messages.hosts, messages.slow
globals().update({name: test for name, test in vars(messages).items() if name.startswith("test_")})
