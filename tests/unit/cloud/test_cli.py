import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kilonova import __version__
from kilonova.cloud import cli, status
from kilonova.cloud.site import Settings, Site
from kilonova.cloud.stack import Cloud
from kilonova.cmd import kilonova


def test_no_cloud_yet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["status", "--state", str(tmp_path)]) == 3
    assert cli.main(["down", "--state", str(tmp_path)]) == 0
    assert cli.main(["logs", "--state", str(tmp_path)]) == 1


def test_another_shape_than_the_one_set_up_is_refused(make_site: Callable[..., Site]) -> None:
    place = make_site(driver="fake", network="bind-all")
    assert cli.main(["up", "--state", str(place.root), "--profile", "full"]) == 1
    given = cli.parser().parse_args(["up", "--profile", "full", "--driver", "fake", "--no-volumes"])
    assert cli.conflicts(given, Settings(driver="fake")) == ["--profile full", "--no-volumes"]
    assert cli.conflicts(cli.parser().parse_args(["up"]), Settings(profile="full")) == []


def test_hints_can_be_typed(
    make_site: Callable[..., Site], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = make_site(driver="fake", network="bind-all")
    cli.next_steps(place)
    assert f"kilonova cloud down --state {place.root}\n" in capsys.readouterr().out
    monkeypatch.setattr(cli.site, "default_state", lambda: place.root)
    cli.next_steps(place)
    assert "kilonova cloud down\n" in capsys.readouterr().out
    assert cli.main(["up", "--state", str(place.root), "--profile", "full"]) == 1
    assert "kilonova cloud down --wipe`" in capsys.readouterr().err


def test_logs_of_a_service(make_site: Callable[..., Site], capsys: pytest.CaptureFixture[str]) -> None:
    place = make_site()
    (place.log / "glance.log").write_text("one\n[two]\nthree\n")
    (place.log / "neutron.log").write_text("other\n")
    assert [file.name for file in Cloud(place).logs("gla")] == ["glance.log"]
    assert cli.main(["logs", "glance", "--lines", "2", "--state", str(place.root)]) == 0
    shown = capsys.readouterr().out
    assert "[two]\nthree" in shown
    assert "one" not in shown.replace("one\n[two]", "")
    assert cli.main(["logs", "swift", "--state", str(place.root)]) == 1


def test_a_log_that_is_not_there(make_site: Callable[..., Site], capsys: pytest.CaptureFixture[str]) -> None:
    place = make_site()
    assert cli.main(["logs", "swift", "--state", str(place.root)]) == 1
    assert f"cloud logs --state {place.root}` lists what there is" in capsys.readouterr().err


def test_a_second_up_says_what_runs_and_how_to_go_on(
    make_site: Callable[..., Site], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    place = make_site(driver="fake", network="bind-all")
    standing = status.Standing("keystone", 1, "answers", 1, 1, "keystone.log")
    monkeypatch.setattr(Cloud, "complete", lambda self: True)
    monkeypatch.setattr(Cloud, "standings", lambda self: [standing])
    monkeypatch.setattr(cli.packages, "services_venv", lambda: tmp_path)
    assert cli.main(["up", "--state", str(place.root)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("Everything runs already.")
    assert "answers" in said
    assert "server create" in said


def test_down_of_nothing_running_and_wipe(make_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch) -> None:
    place = make_site(driver="fake", network="bind-all")
    assert cli.main(["down", "--wipe", "--state", str(place.root)]) == 0
    assert not place.root.exists()


def test_status_tells_what_is_down(make_site: Callable[..., Site], capsys: pytest.CaptureFixture[str]) -> None:
    place = make_site(driver="fake", network="bind-all")
    assert cli.main(["status", "--state", str(place.root)]) == 3
    assert "down" in capsys.readouterr().out
    assert cli.main(["status", "--json", "--state", str(place.root)]) == 3
    found = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in found] == Cloud(place).daemon_names()
    assert {(one["state"], one["pid"]) for one in found} == {("down", None)}


def test_status_of_a_cloud_into_which_one_may_not_look(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(root: Path) -> None:
        raise PermissionError(13, "Permission denied", str(root / "cloud.json"))

    monkeypatch.setattr(cli.site, "load", refuse)
    monkeypatch.setattr(status, "ask_all", lambda questions, within: dict.fromkeys(list(questions)[1:], True))
    assert cli.main(["status", "--state", str(tmp_path)]) == 3
    said = capsys.readouterr().out
    assert "belongs to another user" in said
    assert "http://127.0.0.1:5000/ silent" in " ".join(said.split())
    assert cli.main(["status", "--json", "--state", str(tmp_path)]) == 3
    states = {one["name"]: one["state"] for one in json.loads(capsys.readouterr().out)}
    assert states == {"keystone": "silent"} | dict.fromkeys(status.APIS[1:], "answers")
    assert cli.main(["logs", "--state", str(tmp_path)]) == 1
    assert "belongs to another user" in capsys.readouterr().err


def test_restart_needs_a_cloud_and_a_name_of_it(make_site: Callable[..., Site], tmp_path: Path) -> None:
    assert cli.main(["restart", "nova-api", "--state", str(tmp_path)]) == 1
    assert cli.main(["restart", "dance", "--state", str(make_site(driver="fake", network="bind-all").root)]) == 1


def test_logs_can_be_followed(make_site: Callable[..., Site]) -> None:
    place = make_site()
    log = place.log / "glance.log"
    log.write_text("one\n")
    argv = [sys.executable, "-m", "kilonova.cmd.kilonova", "cloud", "logs", "glance", "-f", "--state", str(place.root)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, start_new_session=True) as following:
        assert following.stdout is not None
        assert following.stdout.readline() == "one\n"
        with log.open("a") as file:
            file.write("two\n")
        assert following.stdout.readline() == "two\n"
        os.killpg(following.pid, signal.SIGINT)
    assert following.returncode in (0, -signal.SIGINT)


def test_ports_that_moved_are_said(make_site: Callable[..., Site], capsys: pytest.CaptureFixture[str]) -> None:
    place = make_site(driver="fake", network="bind-all")
    cli.tell_moved_ports(Site(place.root, place.settings, place.ports | {"keystone": 35000}))
    assert "port 5000 is taken: keystone listens at 35000" in capsys.readouterr().out


def test_the_hint_gives_real_guests_a_key(make_site: Callable[..., Site], capsys: pytest.CaptureFixture[str]) -> None:
    cli.next_steps(make_site())
    assert "--network private --key-name cloud --wait another" in capsys.readouterr().out
    cli.next_steps(make_site(driver="fake", network="bind-all"))
    assert "--key-name" not in capsys.readouterr().out


def test_it_says_what_it_waits_for_and_nothing_of_a_server_that_is_off(capsys: pytest.CaptureFixture[str]) -> None:
    class Fake:
        real = True
        state = "ACTIVE"

        def status(self) -> str:
            return self.state

        def console(self, known: object) -> str:
            assert "Waiting until the first server says READY" in capsys.readouterr().out
            return "READY"

        def address(self) -> None:
            return None

    cli.show_first_server(Fake(), {})  # type: ignore[arg-type]
    assert "READY" in capsys.readouterr().out
    Fake.state = "SHUTOFF"
    cli.show_first_server(Fake(), {})  # type: ignore[arg-type]
    assert capsys.readouterr().out == "The first server is SHUTOFF; its console has nothing new.\n"


def test_the_version_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert kilonova.main(["--version"]) == 0
    assert capsys.readouterr().out == f"kilonova {__version__}\n"


def test_unknown_commands_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert kilonova.main(["dance"]) == 2
    assert kilonova.main([]) == 2
    assert kilonova.main(["--help"]) == 0
    assert "cloud" in capsys.readouterr().out


def test_the_work_goes_on_when_nobody_reads_of_it() -> None:
    code = "from kilonova.cloud.cli import OUT, ERR\nfor n in range(3): OUT.print(n)\nERR.print('done')"
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-c", code], stdout=writing, stderr=subprocess.PIPE, text=True, timeout=60
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (0, "done\n")
