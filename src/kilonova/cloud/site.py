"""What one cloud on one machine is: its settings, folders, ports and credentials."""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import json
import os
import secrets
import socket
import stat
from pathlib import Path
from typing import Any, BinaryIO, Literal

from kilonova.cloud.errors import CloudError

Profile = Literal["embedded", "full"]
Driver = Literal["libvirt", "fake"]
Network = Literal["ovn", "bind-all"]

LOOPBACK = "127.0.0.1"
REGION = "RegionOne"

PORTS: dict[str, int] = {
    "mariadb": 3306,
    "rabbitmq": 5672,
    "rabbitmq-dist": 25672,
    "epmd": 4369,
    "keystone": 5000,
    "placement": 8778,
    "glance": 9292,
    "neutron": 9696,
    "cinder": 8776,
    "compute": 8774,
    "metadata": 8775,
}
"""The usual ports. With an offset they move together; a port that somebody else holds moves alone."""


ROOTS_STATE = Path("/var/lib/kilonova")


def default_state() -> Path:
    """`/var/lib/kilonova` for root, else the user's XDG state folder."""
    if os.getuid() == 0:
        return ROOTS_STATE
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "kilonova"


def cache_root() -> Path:
    """Where what is costly to make and the same for every cloud lives (environments, packages of the guest image)."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kilonova"


@dataclasses.dataclass(frozen=True)
class Settings:
    """What the user chose. Kept in the state folder, so that `down`, `status` and `logs` need no repetition."""

    profile: Profile = "embedded"
    driver: Driver = "libvirt"
    network: Network = "ovn"
    volumes: bool = True
    computes: int = 1
    port_offset: int = 0
    first_server: bool = True
    access_logs: bool = False
    """Whether the WSGI services write a line for every request, for whoever counts them."""
    number: int = 0
    """Keeps clouds on one machine apart: bridge names and guest networks derive from it."""

    @property
    def wants_bus(self) -> bool:
        return self.profile == "full"


@dataclasses.dataclass(frozen=True)
class Site:
    """A cloud's place: settings plus everything derived from the state folder. Creating one touches nothing."""

    root: Path
    settings: Settings
    ports: dict[str, int]
    peer: Path | None = None
    """Developers only: an environment whose Nova runs in place of ours."""
    key: str = dataclasses.field(default_factory=lambda: secrets.token_hex(32), repr=False)
    """Random; every password of the cloud is derived from it."""

    @property
    def etc(self) -> Path:
        return self.root / "etc"

    @property
    def log(self) -> Path:
        return self.root / "log"

    @property
    def run(self) -> Path:
        return self.root / "run"

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def done(self) -> Path:
        return self.root / "done"

    @property
    def full(self) -> bool:
        return self.settings.profile == "full"

    @property
    def bus(self) -> bool:
        """Whether RabbitMQ runs: in profile full, and for the peer, whose services cannot share a process."""
        return self.full or self.peer is not None

    @property
    def host(self) -> str:
        """Name of the compute host that runs real guests; Neutron's chassis has the same one."""
        return socket.gethostname()

    def derived(self, owner: str) -> str:
        """64 hexadecimal digits that this cloud has for an owner; who knows one knows no other."""
        return hmac.new(self.key.encode(), owner.encode(), hashlib.sha256).hexdigest()

    def refuse_known_password(self) -> None:
        """Raises `CloudError` for a cloud of an older version, whose one password everybody knows."""
        if not self.key:
            raise CloudError(
                f"the cloud in {self.root} was set up by an older version and has a password that everybody knows; "
                "remove it by `kilonova cloud down --wipe` and start anew"
            )

    def password(self, owner: str) -> str:
        """A word that needs no quoting in URLs, INI, YAML and SQL: never a number."""
        return f"k{self.derived(owner)[:39]}"

    def user_password(self, user: str) -> str:
        """Of a user of Keystone."""
        return self.password(f"user {user}")

    def url(self, service: str, path: str = "") -> str:
        return f"http://{LOOPBACK}:{self.ports[service]}{path}"

    def database(self, name: str) -> str:
        """SQLAlchemy URL of a database for the services of other projects; each has an account of its own."""
        if self.full:
            login = f"{name}:{self.password(f'database {name}')}"
            return f"mysql+pymysql://{login}@{LOOPBACK}:{self.ports['mariadb']}/{name}?charset=utf8mb3"
        return f"sqlite:///{self.data / 'sqlite' / name}.db?plugin=kilonova_sqlite"

    def transport(self, vhost: str) -> str:
        """URL of a bus. Each virtual host has an account of its own, which may enter no other."""
        if not self.bus:
            return "fake://"
        return f"rabbit://{vhost}:{self.password(f'bus {vhost}')}@{LOOPBACK}:{self.ports['rabbitmq']}/{vhost}"

    @property
    def memcached(self) -> Path:
        """Its socket, and no port: whoever may write to it could have pickles of his own loaded by the services."""
        return self.run / "memcached.sock"

    def moved_ports(self) -> dict[str, tuple[int, int]]:
        """(usual port, the one it has) of what the cloud runs and found its port taken."""
        offset = self.settings.port_offset
        return {
            name: (usual + offset, self.ports[name])
            for name, usual in PORTS.items()
            if self.ports.get(name, usual + offset) != usual + offset and self.runs(name)
        }

    def runs(self, name: str) -> bool:
        """Whether this cloud has the service of that port."""
        if name == "mariadb":
            return self.full
        if name in ("rabbitmq", "rabbitmq-dist", "epmd"):
            return self.bus
        return name != "cinder" or self.settings.volumes

    def access_log(self, name: str) -> Path:
        """Where a WSGI service writes its requests: method, URI, status, milliseconds."""
        return self.log / f"{name}.access"

    def prepare(self) -> None:
        """Make the folders, closed to everybody else, and remember settings, ports and the key."""
        self.root.mkdir(parents=True, exist_ok=True)
        for folder in (self.root, self.etc, self.log, self.run, self.data, self.done):
            folder.mkdir(exist_ok=True)
            folder.chmod(0o700)
        for folder in (self.data / "sqlite", self.data / "lock"):
            folder.mkdir(exist_ok=True)
        kept = {"settings": dataclasses.asdict(self.settings), "ports": self.ports, "key": self.key}
        write_atomically(self.root / "cloud.json", json.dumps(kept, indent=1))


def open_private(path: Path, mode: int = 0o600) -> BinaryIO:
    """To append; a file that is made is its owner's alone from its first moment."""
    return open(path, "ab", opener=lambda name, flags: os.open(name, flags, mode))


def write_atomically(path: Path, text: str, mode: int = 0o600) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with open_private(fresh, mode=mode) as file:
        file.write(text.encode())
    fresh.replace(path)
    return path


def load(root: Path) -> Site | None:
    """The cloud that was set up in this folder, or nothing."""
    try:
        kept = json.loads((root / "cloud.json").read_text())
    except FileNotFoundError:
        return None
    except ValueError as error:
        way_out = f"end what runs (its pids are in {root / 'run'}) and remove {root}"
        raise CloudError(f"{root / 'cloud.json'} is damaged ({error}); {way_out}") from error
    # Older versions kept their one password among the settings.
    names = {field.name for field in dataclasses.fields(Settings)}
    settings = Settings(**{name: value for name, value in kept["settings"].items() if name in names})
    return Site(root, settings, kept["ports"], developer_peer(), kept.get("key", ""))


def create(root: Path, settings: Settings) -> Site:
    """A new cloud in this folder with ports that are free now. Raises `CloudError` for a folder that is not ours."""
    refuse_foreign(root)
    return Site(root, settings, choose_ports(settings.port_offset), developer_peer())


def refuse_foreign(root: Path) -> None:
    """A folder that another user made, or that has other things in it: `down --wipe` would remove them."""
    try:
        found = root.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(found.st_mode):
        raise CloudError(f"{root} is not a folder; choose another --state")
    if found.st_uid != os.getuid():
        raise CloudError(f"{root} belongs to another user; choose another --state")
    strange = sorted({path.name for path in root.iterdir()} - {"etc", "log", "run", "data", "done"})
    if strange:
        raise CloudError(
            f"{root} is no cloud and has other things in it ({', '.join(strange[:3])}); choose another --state"
        )


def developer_peer() -> Path | None:
    value = os.environ.get("KILONOVA_CLOUD_NOVA_VENV")
    return Path(value) if value else None


def choose_ports(offset: int) -> dict[str, int]:
    """The usual ports moved by `offset`; a taken one goes to the next free port above 30000 plus the offset."""
    chosen: dict[str, int] = {}
    for name, usual in PORTS.items():
        port = usual + offset
        spare = 30000 + offset + usual % 10000
        while port in chosen.values() or not port_free(port):
            port, spare = spare, spare + 1
            if spare > 65535:
                raise CloudError(f"no free port for {name}; try another --port-offset")
        chosen[name] = port
    return chosen


def port_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def keystone_auth(site: Site, user: str, project: str = "service") -> dict[str, Any]:
    """A configuration section with which a service logs in to Keystone."""
    return {
        "auth_type": "password",
        "auth_url": site.url("keystone", "/v3"),
        "username": user,
        "password": site.user_password(user),
        "project_name": project,
        "user_domain_name": "Default",
        "project_domain_name": "Default",
        "region_name": REGION,
    }


def authtoken(site: Site, user: str, service_type: str) -> dict[str, Any]:
    """The `[keystone_authtoken]` section of a service."""
    section = keystone_auth(site, user) | {
        "www_authenticate_uri": site.url("keystone", "/v3"),
        "service_token_roles": "service",
        "service_token_roles_required": True,
        "service_type": service_type,
    }
    if site.full:
        section["memcached_servers"] = f"unix:{site.memcached}"
    return section
