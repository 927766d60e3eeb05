from collections.abc import Callable
from pathlib import Path

import pytest

from kilonova.cloud import cli
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


def test_down_of_nothing_running_and_wipe(make_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch) -> None:
    place = make_site(driver="fake", network="bind-all")
    assert cli.main(["down", "--wipe", "--state", str(place.root)]) == 0
    assert not place.root.exists()


def test_status_tells_what_is_down(make_site: Callable[..., Site]) -> None:
    place = make_site(driver="fake", network="bind-all")
    assert cli.main(["status", "--state", str(place.root)]) == 3


def test_unknown_commands_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert kilonova.main(["dance"]) == 2
    assert kilonova.main([]) == 2
    assert kilonova.main(["--help"]) == 0
    assert "cloud" in capsys.readouterr().out
