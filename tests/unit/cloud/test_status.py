import os
import signal
import threading
import time

from kilonova.cloud import status
from kilonova.cloud.daemons import Daemon, Supervisor, held, wait_until

SLEEP = ["sleep", "60"]


def test_each_daemon_says_how_it_is(supervisor: Supervisor) -> None:
    daemons = [
        Daemon("good", SLEEP, ready=lambda: True),
        Daemon("mute", SLEEP, ready=lambda: True, asked=lambda: False),
        Daemon("unasked", SLEEP),
        Daemon("held", SLEEP, ready=lambda: True),
    ]
    supervisor.start(*daemons)
    pid = supervisor.pid("held")
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    assert wait_until(lambda: held(pid), 5)
    found = status.standings(supervisor, [*daemons, Daemon("gone", SLEEP)])
    assert {one.name: one.state for one in found} == {
        "good": "answers",
        "mute": "silent",
        "unasked": "runs",
        "held": "stopped",
        "gone": "down",
    }
    assert [one.name for one in found if one.good] == ["good", "unasked"]
    assert set(status.MEANING) >= {one.state for one in found}
    os.kill(pid, signal.SIGCONT)


def test_a_question_that_hangs_holds_nobody(supervisor: Supervisor) -> None:
    let_go = threading.Event()
    daemons = [
        Daemon("hangs", SLEEP, ready=lambda: True, asked=lambda: let_go.wait(60)),
        Daemon("good", SLEEP, ready=lambda: True),
    ]
    supervisor.start(*daemons)
    begin = time.monotonic()
    found = status.standings(supervisor, daemons, within=0.3)
    let_go.set()
    assert time.monotonic() - begin < 5
    assert {one.name: one.state for one in found} == {"hangs": "silent", "good": "answers"}
