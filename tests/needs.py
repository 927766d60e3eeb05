"""What tests need of their machine, and what becomes of them where it is missing.

A test says `pytestmark = needs("mariadb", "rabbitmq")`, or calls `lacking` where it finds out by itself. What is
missing skips the test, and fails it where KILONOVA_REQUIRE names it: names separated by commas, or `all`. No test skips
itself in another way (tests/arch/test_house.py), so that nothing is green for want of a program.
"""

from __future__ import annotations

import functools
import os
import pathlib
import shutil
from collections.abc import Callable, Mapping
from typing import NoReturn

import pytest
from tests.real import broker, clouds, servers

ROOT = pathlib.Path(__file__).parents[1]
CONTRACT = ROOT.parent / "shared" / "contract"
"""The data that tests/contract/facts was packed from, where they are beside the work tree."""


def _program(name: str) -> Callable[[], bool]:
    return lambda: shutil.which(name) is not None


def _environment(name: str) -> Callable[[], bool]:
    return lambda: bool(os.environ.get(name))


FOUND: Mapping[str, Callable[[], bool]] = {
    "apache-mod-wsgi": _environment("KILONOVA_TEST_APACHE"),
    "contract": CONTRACT.exists,
    "genisoimage": _program("genisoimage"),
    "guest-image": _environment("KILONOVA_GUEST_IMAGE"),
    # Found out once: a cloud of the tests themselves is a switch in user space too.
    "guests": functools.cache(clouds.real_guests_possible),
    "iptables": _program("iptables"),
    "isoinfo": _program("isoinfo"),
    "libvirtd": _environment("KILONOVA_LIBVIRT_URI"),
    "libvirtd-restart": _environment("KILONOVA_LIBVIRTD_RESTART"),
    "mariadb": servers.mariadb_found,
    "mtools": _program("mcopy"),
    "peer": _environment("PEER_PYTHON"),
    "postgresql": servers.postgresql_found,
    "qemu-img": _program("qemu-img"),
    "rabbitmq": broker.rabbitmq_found,
    "root": lambda: os.geteuid() == 0,
    "transport-url": _environment("TEST_TRANSPORT_URL"),
    "wsgi-servers": _environment("KILONOVA_TEST_WSGI"),
}
"""How it is found out whether something is there."""

SELDOM = frozenset({"contract", "libvirtd-restart", "transport-url"})
"""What a machine with all packages may still lack; `all` does not mean these."""


@functools.cache
def _required() -> frozenset[str]:
    named = {name.strip() for name in os.environ.get("KILONOVA_REQUIRE", "").split(",")} - {""}
    if unknown := named - set(FOUND) - OTHERS - {"all"}:
        raise pytest.UsageError(f"KILONOVA_REQUIRE names what no test needs: {', '.join(sorted(unknown))}")
    return frozenset(named | (set(FOUND) | OTHERS) - SELDOM if "all" in named else named)


OTHERS = frozenset({"openvswitch", "package-index", "uefi", "uv"})
"""What only its test can find out; it calls `lacking`."""


def needs(*names: str) -> pytest.MarkDecorator:
    """A mark: the test wants all of these."""
    assert set(names) <= set(FOUND), names
    return pytest.mark.needs(*names)


def check(*names: str, module: bool = False) -> None:
    """Skip or fail where one of these is missing; `module` is said where a module is being imported."""
    for name in names:
        if not FOUND[name]():
            lacking(name, f"{name} is not on this machine", module=module)


def lacking(name: str, why: str, *, module: bool = False) -> NoReturn:
    """What the test needs is not here."""
    assert name in FOUND or name in OTHERS, name
    if name in _required():
        pytest.fail(f"KILONOVA_REQUIRE asks for {name}: {why}", pytrace=False)
    pytest.skip(why, allow_module_level=module)


def inapplicable(why: str) -> NoReturn:
    """There is no such case: of the combinations that a test is asked for, this one does not exist."""
    pytest.skip(why)
