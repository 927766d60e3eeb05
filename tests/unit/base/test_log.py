"""A log line is one line, and says whose it is."""

from __future__ import annotations

import logging
import pathlib
import subprocess
import sys

import pytest

from kilonova.base import log, periodic, pools, present
from kilonova.contract import exceptions
from kilonova.contract.context import RequestContext

PROGRAM = """
import logging, sys
from kilonova import conf as configuration
from kilonova.base import log
conf = configuration.load(["--log-file", sys.argv[1]])
log.setup(conf)
name = "web\\n2026-12-01 00:00:00.000 1 INFO nova.forged [-] all is well\\x1b[2J\\u2028\\x85."
logging.getLogger("kilonova.x").warning("server %s", name)
try:
    raise ValueError(name)
except ValueError:
    logging.getLogger("kilonova.x").exception("server %s failed", "é")
"""


def test_text_of_users_neither_makes_a_line_nor_speaks_to_a_terminal(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "log"
    subprocess.run([sys.executable, "-c", PROGRAM, str(file)], check=True, timeout=60)
    text = file.read_text()
    lines = text.split("\n")
    assert not any(line.startswith("2026-12-01 00:00:00.000 1 INFO nova.forged") for line in lines)
    assert "all is well\\x1b[2J\\u2028\\x85." in lines[0]
    assert "é failed" in text
    assert not set(text) & {"\x1b", "\x85"}


HANDLED = """
import logging, sys
from kilonova import conf as configuration
from kilonova.base import log
conf = configuration.load(["--log-file", sys.argv[1], *sys.argv[2:]])
log.setup(conf)
try:
    raise OSError(5, "first line\\nsecond")
except OSError as exc:
    told = logging.getLogger("kilonova.x")
    told.error("it says: %s", exc)
    told.error("it says no more than this")
    told.error("it says: %s", exc, exc_info=True)
"""


def test_what_a_line_says_of_an_exception_is_not_repeated_behind_it(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "log"
    subprocess.run([sys.executable, "-c", HANDLED, str(file)], check=True, timeout=60)
    once, added, traced = (line.partition("it says")[2] for line in file.read_text().splitlines()[:3])
    assert once == r": [Errno 5] first line\nsecond"
    assert added == " no more than this: OSError: [Errno 5] first line"
    assert traced.count("first line") == 2  # as oslo.log does it, with the lines that follow


def test_a_format_that_asks_for_the_exception_has_it(tmp_path: pathlib.Path) -> None:
    file, conf = tmp_path / "log", tmp_path / "nova.conf"
    conf.write_text("[DEFAULT]\nlogging_default_format_string = %(message)s: %(error_summary)s\n")
    subprocess.run([sys.executable, "-c", HANDLED, str(file), "--config-file", str(conf)], check=True, timeout=60)
    assert file.read_text().splitlines()[0].endswith(r"second: OSError: [Errno 5] first line")


def test_making_a_context_changes_nobodys_log_lines() -> None:
    RequestContext("u", "p")
    assert present.current() is None
    with present.working(RequestContext("u", "p")) as outer:
        with present.working(None):
            assert present.current() is None
        assert present.current() is outer
    assert present.current() is None


def test_a_pool_works_for_who_gave_the_job_and_forgets_it() -> None:
    pool = pools.ThreadPool("one", 1)
    with present.working(RequestContext("u", "p", request_id="req-1")) as asked:
        assert pool.submit(present.current).result(5) is asked
    assert pool.submit(present.current).result(5) is None
    pool.stop(5)


def test_a_periodic_task_works_for_nobody_whatever_the_last_one_left() -> None:
    seen: list[object] = []

    def leave() -> None:
        seen.append(present.current())
        present.become(RequestContext("u", "p"))

    timers = periodic.Periodic("test", workers=1)
    timer = timers.every(0.01, leave, initial_delay=0.0)
    timers.start()
    while timer.runs < 3:
        pass
    timers.stop()
    assert set(seen) == {None}


@pytest.mark.parametrize(
    ("error", "ordinary"),
    [
        (exceptions.NoValidHost(reason="none"), True),
        (exceptions.OverQuota(overs="cores"), True),
        (exceptions.InstanceNotFound(instance_id="1"), True),
        (exceptions.NovaException("broken"), False),
        (KeyError("x"), False),
    ],
)
def test_a_refusal_has_no_traceback(error: Exception, ordinary: bool, caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("kilonova.x").error("failed: %s", error, exc_info=log.trace(error))
    assert (caplog.records[0].exc_info is None) is ordinary
