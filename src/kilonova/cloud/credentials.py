"""The files with which a user logs in: `clouds.yaml` and one `openrc` per user."""

from __future__ import annotations

from kilonova.cloud.site import REGION, Site, write_atomically

USERS = [
    ("admin", "admin", "admin"),
    ("demo", "demo", "demo"),
    ("alt-demo", "alt_demo", "alt_demo"),
    ("demo-reader", "demo_reader", "demo"),
    ("demo-manager", "demo_manager", "demo"),
]
"""(name of the cloud in clouds.yaml and of the openrc file, user, project)"""


def openrc(site: Site, user: str, project: str) -> str:
    values = {
        "OS_AUTH_URL": site.url("keystone", "/v3"),
        "OS_USERNAME": user,
        "OS_PASSWORD": site.user_password(user),
        "OS_PROJECT_NAME": project,
        "OS_USER_DOMAIN_NAME": "Default",
        "OS_PROJECT_DOMAIN_NAME": "Default",
        "OS_REGION_NAME": REGION,
        "OS_IDENTITY_API_VERSION": "3",
    }
    return "".join(f"export {name}={value}\n" for name, value in values.items())


def clouds_yaml(site: Site) -> str:
    lines = ["clouds:"]
    for name, user, project in USERS:
        lines += [
            f"  {name}:",
            f"    region_name: {REGION}",
            "    auth:",
            f"      auth_url: {site.url('keystone', '/v3')}",
            f"      username: {user}",
            f"      password: {site.user_password(user)}",
            f"      project_name: {project}",
            "      user_domain_id: default",
            "      project_domain_id: default",
        ]
    return "\n".join(lines) + "\n"


def write(site: Site) -> None:
    write_atomically(site.root / "clouds.yaml", clouds_yaml(site))
    for name, user, project in USERS:
        write_atomically(site.root / f"{name}-openrc", openrc(site, user, project))
