"""Configurations are made, not shared; files and defaults are read as operators know them."""

from __future__ import annotations

import pathlib

import pytest
from oslo_config import cfg

from kilonova import conf as config


def test_every_module_declares_a_group_and_options() -> None:
    for module in config.modules():
        assert module.GROUP is None or isinstance(module.GROUP, str), module.__name__
        assert all(isinstance(option, cfg.Opt) for option in module.OPTIONS), module.__name__


def test_no_option_is_declared_twice() -> None:
    seen: dict[tuple[str | None, str], str] = {}
    for module in config.modules():
        for option in module.OPTIONS:
            key = (module.GROUP, option.dest)
            assert key not in seen or module.__name__ == seen[key], (key, seen.get(key), module.__name__)
            seen[key] = module.__name__


def test_configurations_are_apart() -> None:
    one, other = config.load([]), config.load([])
    one.set_override("host", "h1")
    assert other.host != "h1"
    assert one.my_ip
    assert one.state_path == one.pybasedir


def test_a_file_is_read_and_unknown_options_do_not_stop_it(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "nova.conf"
    file.write_text(
        "[DEFAULT]\nhost = h7\nof_a_later_release = 1\n[upgrade_levels]\ncompute = auto\n[stranger]\nx = 1\n"
    )
    conf = config.load(["--config-file", str(file)])
    assert (conf.host, conf.upgrade_levels.compute) == ("h7", "auto")


def test_a_wrong_value_is_told(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "nova.conf"
    file.write_text("[DEFAULT]\nlong_rpc_timeout = soon\n")
    conf = config.load(["--config-file", str(file)])
    with pytest.raises(cfg.ConfigFileValueError, match="soon"):
        _ = conf.long_rpc_timeout


def test_a_missing_file_is_told(tmp_path: pathlib.Path) -> None:
    with pytest.raises(cfg.ConfigFilesNotFoundError):
        config.load(["--config-file", str(tmp_path / "none.conf")])
