"""What of a console log is shown."""

from typing import Any

import pytest

from kilonova.cloud import first_server
from kilonova.cloud.first_server import FirstServer, last_boot
from kilonova.cloud.site import Site

OLD = """guest: [1.83] root file system on /dev/vda2
guest login: guest: [3.87] metadata from metadata service
guest: [3.85] a program that was a little slower
guest: [3.93] READY first
guest: [99.10] going down
reboot: Power down
"""
NEW = """guest: [2.16] root file system on /dev/vda2
first login: guest: [4.52] metadata from metadata service
guest: [4.64] READY first
"""


def test_only_the_last_boot_counts() -> None:
    assert last_boot(OLD) == OLD
    assert last_boot(OLD + NEW) == NEW
    assert last_boot("no stamps\n") == "no stamps\n"
    assert last_boot("") == ""


@pytest.mark.parametrize("kept", [OLD, ""], ids=["the log goes on", "the log begins anew"])
def test_the_console_of_an_earlier_boot_is_not_shown_again(
    make_site: Any, monkeypatch: pytest.MonkeyPatch, kept: str
) -> None:
    place: Site = make_site()
    folder = place.data / "compute" / "instances" / "u"
    folder.mkdir(parents=True)
    (folder / "console.log").write_text(OLD)
    first = FirstServer(place)
    known = first.last_boots()
    assert known == {"u": OLD}
    heard = iter([OLD, OLD, kept + NEW[:60], kept + NEW])

    class Rest:
        def __init__(self, *args: object) -> None:
            pass

        def post(self, *args: object) -> dict[str, str]:
            return {"output": next(heard)}

    monkeypatch.setattr(first_server, "Rest", Rest)
    monkeypatch.setattr(first_server.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(FirstServer, "find", lambda self, demo: {"id": "u"})
    assert first.console(known=known) == NEW.strip()
