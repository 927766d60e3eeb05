"""A libvirt of our own: its daemons see private copies of libvirt's folders, by a mount namespace.

The machine's own libvirt, running or not, keeps its sockets, its domains and its configuration.
"""

from __future__ import annotations

import os
import shlex
import signal
import uuid
from pathlib import Path

from kilonova.cloud import probes
from kilonova.cloud.commands import ok, run
from kilonova.cloud.daemons import Daemon, start_ticks, wait_until
from kilonova.cloud.services.ovn import Ovn
from kilonova.cloud.services.service import Service

FOLDERS = {
    "etc": "/etc/libvirt",
    "lib": "/var/lib/libvirt",
    "log": "/var/log/libvirt",
    "cache": "/var/cache/libvirt",
    "run": "/run/libvirt",
}


ANSWER_WITHIN = 6
"""Seconds: less than `status` has for all."""


class Libvirt(Service):
    name = "libvirt"
    set_up_needs = ("packages",)

    @property
    def uri(self) -> str:
        return f"qemu:///system?socket={self.data / 'run' / 'libvirt-sock'}"

    def configure(self) -> None:
        for folder in FOLDERS:
            (self.data / folder).mkdir(parents=True, exist_ok=True)
        identity = self.data / "host-uuid"
        if not identity.exists():
            identity.write_text(str(uuid.uuid4()))
        (self.data / "etc" / "libvirtd.conf").write_text(
            "listen_tls = 0\n"
            'auth_unix_rw = "none"\n'
            'auth_unix_ro = "none"\n'
            'unix_sock_rw_perms = "0770"\n'
            f'host_uuid = "{identity.read_text()}"\n'
            'log_outputs = "3:stderr"\n'
            "max_clients = 200\n"
        )
        (self.data / "etc" / "qemu.conf").write_text(
            'user = "root"\n'
            'group = "root"\n'
            'security_driver = "none"\n'
            "remember_owner = 0\n"
            'stdio_handler = "logd"\n'
            # No /dev of each guest's own: in a container it cannot always be made.
            "namespaces = [ ]\n"
            "max_core = 0\n" + ("" if cgroups_usable() else "cgroup_controllers = [ ]\n")
        )

    def daemons(self) -> list[Daemon]:
        ready = self.answers
        return [
            self.daemon("virtlogd", probes.libvirt_keepalive(self.data / "run" / "virtlogd-sock")),
            self.daemon("libvirtd", ready),
        ]

    def daemon(self, name: str, ready: object) -> Daemon:
        binds = "".join(
            f"mkdir -p {target} && mount --bind {shlex.quote(str(self.data / folder))} {target} && "
            for folder, target in FOLDERS.items()
        )
        # Their usual pid files lie outside those folders: the machine's own daemons, or another cloud's, hold them.
        command = f"{binds}exec {name} --pid-file {shlex.quote(str(self.data / f'{name}.pid'))}"
        argv = ["unshare", "--mount", "--propagation", "private", "sh", "-c", command]
        env = Ovn(self.site, self.supervisor).environment if self.site.settings.network == "ovn" else {}
        return Daemon(name, argv, env, ready, ready_within=90)  # type: ignore[arg-type]

    def answers(self) -> bool:
        return ok(self.virsh("version"), timeout=ANSWER_WITHIN)

    def virsh(self, *words: str) -> list[str]:
        return ["virsh", "-c", self.uri, *words]

    def domains(self) -> list[str]:
        if not self.supervisor.pid("libvirtd"):
            return []
        return run(self.virsh("list", "--name"), timeout=30, check=False).split()

    def power_off(self, times: int = 4, patience: float = 5) -> None:
        """End every guest of this cloud, before libvirt goes: all shut down at once, then the power is cut.

        They are asked so many times with so many seconds between: one that still boots does not listen yet.
        """
        for _ in range(times):
            for name in self.domains():
                run(self.virsh("shutdown", name), self.log, timeout=60, check=False)
            if wait_until(lambda: not self.domains(), patience, 0.5):
                return
        for name in self.domains():
            run(self.virsh("destroy", name), self.log, timeout=60, check=False)

    def end_orphans(self) -> list[str]:
        """End guests that outlived their libvirtd, and name them: nobody is left who could shut them down."""
        ended = []
        for file in (self.data / "run" / "qemu").glob("*.pid"):
            text = file.read_text().strip()
            if text.isdigit() and str(self.site.data) in command_line(int(text)):
                os.kill(int(text), signal.SIGKILL)
                wait_until(lambda pid=int(text): start_ticks(pid) is None, 10)  # type: ignore[misc]
                ended.append(file.stem)
        return ended


def command_line(pid: int) -> str:
    """Of a process; empty when there is none."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def cgroups_usable() -> bool:
    """Whether groups for guests can be made: not in most containers, where the hierarchy is read-only."""
    version2 = Path("/sys/fs/cgroup/cgroup.controllers")
    return os.access(version2.parent if version2.exists() else Path("/sys/fs/cgroup/cpu"), os.W_OK)
