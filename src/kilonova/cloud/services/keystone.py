"""Keystone: users, projects, roles and the catalog."""

from __future__ import annotations

import os

from kilonova.cloud import credentials, ini, uwsgi
from kilonova.cloud.commands import run, run_each
from kilonova.cloud.daemons import Daemon
from kilonova.cloud.rest import Rest
from kilonova.cloud.services.service import Service
from kilonova.cloud.site import REGION
from kilonova.cloud.steps import Step

CATALOG = [
    ("placement", "placement", "placement", ""),
    ("glance", "image", "glance", ""),
    ("neutron", "network", "neutron", ""),
    ("cinder", "block-storage", "cinder", "/v3/%(project_id)s"),
    ("cinderv3", "volumev3", "cinder", "/v3/%(project_id)s"),
    ("nova", "compute", "compute", "/v2.1"),
]
"""(name, type, port name, path) of every endpoint."""

SERVICE_USERS = ("nova", "placement", "neutron", "glance", "cinder")
PROJECTS = ("service", "demo", "alt_demo")
GRANTS = [
    ("admin", "demo", ("admin",)),
    ("admin", "alt_demo", ("admin",)),
    ("demo", "demo", ("member",)),
    ("alt_demo", "alt_demo", ("member",)),
    ("demo_reader", "demo", ("reader",)),
    ("demo_manager", "demo", ("manager",)),
    *((user, "service", ("service", "admin")) for user in SERVICE_USERS),
]
"""(user, project, roles)"""


class Keystone(Service):
    name = "keystone"
    data_needs = ()

    def configure(self) -> None:
        keys = {"key_repository": self.data / "fernet"}
        cache = {"enabled": True, "backend": "oslo_cache.dict"}
        if self.site.full:
            servers = f"unix:{self.site.memcached}"
            cache = {"enabled": True, "backend": "dogpile.cache.pymemcache", "memcache_servers": servers}
        ini.write(
            self.folder / "keystone.conf",
            {
                "DEFAULT": {"log_file": self.log, "max_token_size": 255},
                "database": self.database("keystone"),
                "token": {"provider": "fernet", "expiration": 86400},
                "fernet_tokens": keys,
                "fernet_receipts": keys,
                "credential": {"key_repository": self.data / "credential"},
                "cache": cache,
                # Cheap hashes: the passwords are random, and every login of a bootstrap would pay for costly ones.
                "identity": {"password_hash_rounds": 4},
                "oslo_middleware": {"enable_proxy_headers_parsing": True},
            },
        )

    def set_up(self) -> None:
        for name in ("fernet", "credential"):
            (self.data / name).mkdir(parents=True, exist_ok=True)
            (self.data / name).chmod(0o700)
        owner = ["--keystone-user", "root", "--keystone-group", "root"] if os.getuid() == 0 else []
        urls = [
            f"--bootstrap-{kind}-url={self.site.url('keystone', '/v3')}" for kind in ("admin", "internal", "public")
        ]
        run(
            run_each(
                self.venv / "bin" / "python",
                "keystone.cmd.manage:main",
                ["keystone-manage", "--config-file", self.folder / "keystone.conf"],
                ["fernet_setup", *owner],
                ["credential_setup", *owner],
                ["db_sync"],
                ["bootstrap", f"--bootstrap-region-id={REGION}", *urls],
            ),
            self.set_up_log,
            self.foreign | {"OS_BOOTSTRAP_PASSWORD": self.site.user_password("admin")},
        )

    def daemons(self) -> list[Daemon]:
        env = {"OS_KEYSTONE_CONFIG_DIR": str(self.folder)}
        port = self.site.ports["keystone"]
        return [uwsgi.daemon(self.site, self.name, self.venv, "keystone.wsgi.api:application", port, env, "/v3")]

    def steps(self) -> list[Step]:
        identity = Step("identity", self.identity, (self.name,), self.log, self.stamp("identity"))
        return [*super().steps(), identity]

    def identity(self) -> None:
        """Users, projects, roles, endpoints and the files with which a user logs in."""
        admin = Rest(self.site)
        base = self.site.url("keystone", "/v3")
        admin.login()
        roles = {role["name"]: role["id"] for role in admin.get(f"{base}/roles")["roles"]}
        in_domain = {"domain_id": "default"}
        projects = {
            name: admin.ensure(f"{base}/projects", "project", {"name": name, **in_domain})["id"] for name in PROJECTS
        }
        names = {user for user, _, _ in GRANTS}
        users = {
            name: admin.ensure(
                f"{base}/users", "user", {"name": name, **in_domain, "password": self.site.user_password(name)}
            )["id"]
            for name in names
        }
        for user, project, granted in GRANTS:
            for role in granted:
                admin.put(f"{base}/projects/{projects[project]}/users/{users[user]}/roles/{roles[role]}")
        self.endpoints(admin, base)
        credentials.write(self.site)

    def endpoints(self, admin: Rest, base: str) -> None:
        services = {item["type"]: item["id"] for item in admin.get(f"{base}/services")["services"]}
        present = {(item["service_id"], item["interface"]) for item in admin.get(f"{base}/endpoints")["endpoints"]}
        for name, kind, port, path in CATALOG:
            if port == "cinder" and not self.site.settings.volumes:
                continue
            if kind not in services:
                made = admin.post(f"{base}/services", {"service": {"name": name, "type": kind}})
                services[kind] = made["service"]["id"]
            for interface in ("public", "internal", "admin"):
                if (services[kind], interface) not in present:
                    endpoint = {
                        "service_id": services[kind],
                        "interface": interface,
                        "region": REGION,
                        "url": self.site.url(port, path),
                    }
                    admin.post(f"{base}/endpoints", {"endpoint": endpoint})
