"""Questions to which a daemon that works has an answer.

That a connection is taken says little: the kernel takes it for a process that stands still. So each is asked something
in its own protocol.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import urllib.error
from collections.abc import Callable
from pathlib import Path

from kilonova.cloud import loopback
from kilonova.cloud.site import LOOPBACK

Probe = Callable[[], bool]
PATIENCE = 5.0
"""Seconds for an answer."""

LONGEST_ANSWER = 4096
OVSDB_ECHO = b'{"method":"echo","params":["kilonova"],"id":"kilonova"}'
UNIXCTL_VERSION = b'{"method":"version","params":[],"id":0}'
KEEPALIVE = struct.pack(">7I", 28, 0x6B656570, 1, 1, 2, 0, 0)
"""libvirt's ping: length, program, version, procedure, type, serial, status (virkeepaliveprotocol.x)."""
KEEPALIVE_ANSWER = struct.pack(">4I", 28, 0x6B656570, 1, 2)


def says(where: int | Path, said: bytes, heard: bytes, patience: float = PATIENCE) -> Probe:
    """Whether the answer to these bytes, at a port of the loopback or a socket's path, has those bytes in it."""

    def probe() -> bool:
        with contextlib.suppress(OSError), connected(where, patience) as stream:
            if said:
                # Even nothing cannot be sent to one who has answered and closed already.
                stream.sendall(said)
            text = b""
            while heard not in text and len(text) < LONGEST_ANSWER and (more := stream.recv(LONGEST_ANSWER)):
                text += more
            return heard in text
        return False

    return probe


def connected(where: int | Path, patience: float) -> socket.socket:
    if isinstance(where, int):
        return socket.create_connection((LOOPBACK, where), patience)
    stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    stream.settimeout(patience)
    try:
        stream.connect(str(where))
    except OSError:
        stream.close()
        raise
    return stream


def ovsdb(path: Path) -> Probe:
    """A database server of Open vSwitch or OVN (RFC 7047, 4.1.11)."""
    return says(path, OVSDB_ECHO, b'"kilonova"')


def unixctl(path: Path) -> Probe:
    """Another daemon of theirs, by its control socket."""
    return says(path, UNIXCTL_VERSION, b'"result"')


def libvirt_keepalive(path: Path) -> Probe:
    """A daemon of libvirt."""
    return says(path, KEEPALIVE, KEEPALIVE_ANSWER)


def memcached(path: Path) -> Probe:
    return says(path, b"version\r\n", b"VERSION")


def amqp(port: int) -> Probe:
    """A broker names its ways to log in to who knows the protocol."""
    return says(port, b"AMQP\0\0\x09\x01", b"AMQPLAIN")


def epmd(port: int) -> Probe:
    """Erlang's port mapper lists its names, its own port first."""
    return says(port, b"\0\x01n", struct.pack(">I", port))


def http_answers(url: str, timeout: float = 15) -> Probe:
    """Any answer below 500 counts: most services ask for a token first."""

    def probe() -> bool:
        try:
            with loopback.opened(url, timeout) as answer:
                return bool(answer.status < 500)
        except urllib.error.HTTPError as error:
            return error.code < 500
        except OSError:
            return False

    return probe
