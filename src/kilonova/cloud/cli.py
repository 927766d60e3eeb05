"""`kilonova cloud up|down|status|restart|logs`: the one-machine cloud from the command line."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table

from kilonova.cloud import addresses, packages, site
from kilonova.cloud.errors import CloudError
from kilonova.cloud.first_server import KEY, FirstServer
from kilonova.cloud.progress import Terminal
from kilonova.cloud.site import Driver, Profile, Settings, Site
from kilonova.cloud.stack import Cloud
from kilonova.cloud.status import Standing, State, usual_apis


class Paper(Console):
    """Where nobody reads any more, as after `| head`, nothing is said, and the work goes on."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())


OUT = Paper(highlight=False)
ERR = Paper(stderr=True, highlight=False)


def parser() -> argparse.ArgumentParser:
    main = argparse.ArgumentParser(prog="kilonova cloud", description=__doc__)
    commands = main.add_subparsers(dest="command", required=True, metavar="up|down|status|restart|logs")
    common = argparse.ArgumentParser(add_help=False)
    where = "folder with everything the cloud has (default %(default)s)"
    common.add_argument("--state", type=Path, default=site.default_state(), help=where)

    up = commands.add_parser("up", parents=[common], help="start the cloud, setting it up the first time")
    up.add_argument("--profile", choices=["embedded", "full"], help="one process on SQLite, or a process per service")
    up.add_argument("--driver", choices=["libvirt", "fake"], help="real guests, or none (no root needed)")
    up.add_argument("--computes", type=int, help="number of compute hosts with --driver fake (embedded 1, full 3)")
    up.add_argument("--no-volumes", action="store_true", help="without Cinder")
    up.add_argument("--no-server", action="store_true", help="do not boot a first server")
    up.add_argument("--port-offset", type=int, help="added to every port, for a second cloud beside the first")
    up.set_defaults(run=up_command)

    down = commands.add_parser("down", parents=[common], help="stop everything that `up` started")
    down.add_argument("--wipe", action="store_true", help="remove all its data too")
    down.set_defaults(run=down_command)

    status = commands.add_parser("status", parents=[common], help="ask every daemon and say what it answers")
    status.add_argument("--json", action="store_true", help="for programs: a list with an object for each daemon")
    status.set_defaults(run=status_command)

    restart = commands.add_parser("restart", parents=[common], help="end a daemon and start it anew")
    restart.add_argument("service", help="a name as `status` shows it, or a service with all its daemons")
    restart.set_defaults(run=restart_command)

    logs = commands.add_parser("logs", parents=[common], help="print the end of a service's logs")
    logs.add_argument("service", nargs="?", help="a name as `status` shows it; without, the log files are listed")
    logs.add_argument("--lines", type=int, default=50, help="lines of each file (default %(default)s)")
    logs.add_argument("-f", "--follow", action="store_true", help="and what is written from now on, until Ctrl-C")
    logs.set_defaults(run=logs_command)
    return main


def main(argv: Sequence[str] | None = None) -> int:
    given = parser().parse_args(argv)
    given.state = given.state.absolute()
    work: Callable[[argparse.Namespace], int] = given.run
    try:
        return work(given)
    except PermissionError as error:
        ERR.print(
            f"[bold red]failed:[/bold red] {escape(str(error))}: the cloud belongs to another user", soft_wrap=True
        )
        return 1
    except CloudError as error:
        ERR.print(f"[bold red]failed:[/bold red] {escape(str(error))}", soft_wrap=True)
        if error.log is not None:
            ERR.print(f"the log to read: [bold]{error.log}[/bold]", soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        up, down = command(given.state, "up"), command(given.state, "down")
        ERR.print(f"interrupted; `{up}` goes on from here, `{down}` stops what runs", soft_wrap=True)
        return 130


def command(state: Path, *words: str) -> str:
    """What to type for a command about the cloud in that folder."""
    where = [] if state == site.default_state() else ["--state", str(state)]
    return shlex.join([str(Path(sys.executable).parent / "kilonova"), "cloud", *words, *where])


def settings_of(given: argparse.Namespace) -> Settings:
    """What a first `up` asks for."""
    profile: Profile = given.profile or "embedded"
    driver: Driver = given.driver or "libvirt"
    return Settings(
        profile=profile,
        driver=driver,
        network="ovn" if driver == "libvirt" else "bind-all",
        volumes=not given.no_volumes,
        computes=given.computes or (3 if profile == "full" else 1),
        port_offset=given.port_offset or 0,
        first_server=not given.no_server,
        number=addresses.free_number() if driver == "libvirt" else 0,
    )


def conflicts(given: argparse.Namespace, kept: Settings) -> list[str]:
    """What this `up` asks for and the cloud that is there does not have."""
    asked = {
        "profile": given.profile,
        "driver": given.driver,
        "computes": given.computes,
        "port_offset": given.port_offset,
    }
    differing = [
        f"--{name.replace('_', '-')} {value}"
        for name, value in asked.items()
        if value not in (None, getattr(kept, name))
    ]
    if given.no_volumes and kept.volumes:
        differing.append("--no-volumes")
    return differing


def up_command(given: argparse.Namespace) -> int:
    place = site.load(given.state)
    if place is not None and (differing := conflicts(given, place.settings)):
        raise CloudError(
            f"the cloud in {given.state} was set up without {', '.join(differing)}; "
            f"remove it by `{command(given.state, 'down', '--wipe')}`, or give another --state"
        )
    place = place or site.create(given.state, settings_of(given))
    place.refuse_known_password()
    if place.settings.driver == "libvirt" and os.getuid() != 0:
        raise CloudError("guests and their network need root: run this by sudo, or with --driver fake")
    cloud = Cloud(place)
    if (place.root / "cloud.json").exists() and packages.services_venv().exists() and cloud.complete():
        OUT.print("[green]Everything runs already.[/green]")
        code = show(place, Cloud(place).standings())
        next_steps(place)
        return code
    tell_moved_ports(place)
    first = FirstServer(place)
    # Guests that run already do not boot again.
    known = {} if cloud.supervisor.pid("libvirtd") else first.last_boots()
    begin = time.monotonic()
    terminal = Terminal(OUT)
    try:
        cloud.up(terminal)
    finally:
        terminal.close()
    OUT.print(f"[bold green]The cloud is up[/bold green] after {time.monotonic() - begin:.0f} s.")
    if place.settings.first_server:
        try:
            show_first_server(first, known)
        except CloudError as error:
            ERR.print(f"[yellow]the first server:[/yellow] {escape(str(error))}")
    next_steps(place)
    return 0


def tell_moved_ports(place: Site) -> None:
    for name, (usual, port) in place.moved_ports().items():
        OUT.print(f"[yellow]port {usual} is taken:[/yellow] {name} listens at {port}", soft_wrap=True)


COMING = ("ACTIVE", "BUILD", "REBOOT", "HARD_REBOOT")
"""States of a server that runs or is about to."""


def show_first_server(first: FirstServer, known: Mapping[str, str]) -> None:
    """Its console and whether ssh gets in. `known`: what servers said in an earlier boot."""
    if first.real and (status := first.status()) not in COMING:
        OUT.print(f"The first server is {status or 'gone'}; its console has nothing new.")
        return
    if first.real:
        OUT.print("Waiting until the first server says READY on its console (two minutes at most).", soft_wrap=True)
    OUT.print(Panel(escape(first.console(known=known)), title="console log of the first server", title_align="left"))
    if first.real and (address := first.address()):
        OUT.print(f"Trying ssh into it at {address} (a minute at most).", soft_wrap=True)
        answer = "answers" if first.reachable() else "does not answer"
        OUT.print(f"ssh {answer}: [bold]{' '.join(first.ssh(address))}[/bold]", soft_wrap=True)


def next_steps(place: Site) -> None:
    root = place.root
    client = Path(sys.executable).parent / "openstack"
    key = f" --key-name {KEY}" if FirstServer(place).real else ""
    OUT.print(
        f"""
Use it (passwords are random, and only you can read them in {root}/clouds.yaml):
  export OS_CLIENT_CONFIG_FILE={root}/clouds.yaml OS_CLOUD=demo      (or: . {root}/demo-openrc)
  {client} server list
  {client} server create --flavor c1.tiny --image guest --network private{key} --wait another
  {client} console log show another
Administrator: OS_CLOUD=admin. Logs: {place.log}.
Stop: {command(root, "down")}""",
        soft_wrap=True,
    )


def down_command(given: argparse.Namespace) -> int:
    place = site.load(given.state)
    if place is None:
        OUT.print(f"There is no cloud in {given.state}.")
        return 0
    Cloud(place).down(lambda name: OUT.print(f"[dim]stopped[/dim] {name}"), wipe=given.wipe)
    OUT.print("Everything is stopped" + (" and removed." if given.wipe else "; the data are kept."))
    return 0


COLOURS: Mapping[State, str] = {
    "answers": "green",
    "runs": "green",
    "silent": "yellow",
    "stopped": "yellow",
    "down": "red",
}


def status_command(given: argparse.Namespace) -> int:
    try:
        place = site.load(given.state)
    except PermissionError:
        return status_from_outside(given, given.state)
    if place is None:
        of_root = os.getuid() != 0 and given.state == site.default_state() and site.ROOTS_STATE.exists()
        return status_from_outside(given, site.ROOTS_STATE) if of_root else nothing_there(given)
    standings = Cloud(place).standings()
    if given.json:
        print(json.dumps([dataclasses.asdict(one) for one in standings], indent=1))
        return code_of(standings)
    return show(place, standings)


def show(place: Site, standings: Sequence[Standing]) -> int:
    OUT.print(table_of(standings))
    OUT.print(f"profile {place.settings.profile}, driver {place.settings.driver}, state {place.root}", soft_wrap=True)
    return code_of(standings)


def code_of(standings: Sequence[Standing]) -> int:
    return 0 if all(one.good for one in standings) else 3


def nothing_there(given: argparse.Namespace) -> int:
    if given.json:
        print("[]")
    else:
        OUT.print(f"There is no cloud in {given.state}.", soft_wrap=True)
    return 3


def table_of(standings: Sequence[Standing]) -> Table:
    table = Table("service", "pid", "state", "RSS MiB", "PSS MiB", "log", box=None, pad_edge=False)
    for one in standings:
        colour = COLOURS[one.state]
        state = f"[{colour}]{one.state}[/{colour}]"
        numbers = [str(value if value is not None else "") for value in (one.pid, one.rss, one.pss)]
        table.add_row(one.name, numbers[0], state, *numbers[1:], Path(one.log).name)
    return table


def status_from_outside(given: argparse.Namespace, folder: Path) -> int:
    """What somebody can tell who may not look into the state folder: which APIs answer at their usual ports."""
    found = usual_apis()
    if given.json:
        print(json.dumps([dataclasses.asdict(one) for one in found], indent=1))
    else:
        OUT.print(
            f"The cloud in {folder} belongs to another user, who alone can ask its daemons (try sudo).", soft_wrap=True
        )
        for one in found:
            OUT.print(f"{one.name:<10} {one.url:<22} [{COLOURS[one.state]}]{one.state}[/]", soft_wrap=True)
    return 0 if all(one.state == "answers" for one in found) else 3


def restart_command(given: argparse.Namespace) -> int:
    place = site.load(given.state)
    if place is None:
        raise CloudError(f"there is no cloud in {given.state}")
    Cloud(place).restart(given.service, lambda name: OUT.print(f"[dim]stopped[/dim] {name}"))
    OUT.print(f"{given.service} runs again.")
    return 0


def logs_command(given: argparse.Namespace) -> int:
    place = site.load(given.state)
    if place is None:
        raise CloudError(f"there is no cloud in {given.state}")
    files = Cloud(place).logs(given.service)
    if not files:
        lists = f"; `{command(given.state, 'logs')}` lists what there is" if given.service else ""
        raise CloudError(f"no log of {given.service or 'anything'} in {place.log}{lists}")
    if given.follow:
        return follow(files, given.lines)
    for file in files:
        if given.service is None:
            OUT.print(str(file), soft_wrap=True)
            continue
        OUT.print(f"[bold]{file}[/bold]", soft_wrap=True)
        lines = file.read_text(errors="replace").splitlines()[-given.lines :]
        OUT.print("\n".join(lines), markup=False, soft_wrap=True)
    return 0


def follow(files: Sequence[Path], lines: int) -> int:
    """Until the user has seen enough. A log that is turned over is followed by its name."""
    try:
        return subprocess.run(["tail", "-n", str(lines), "-F", *map(str, files)], check=False).returncode
    except KeyboardInterrupt:
        return 0
