"""Who asks, under which request id; travels with every call on the bus under Nova's keys."""

from __future__ import annotations

import copy
import datetime
from collections.abc import Iterable, Mapping
from typing import Any

from oslo_context import context as oslo_context

from kilonova.base import clock

CATALOG_TYPES = frozenset(
    {
        "accelerator",
        "block-storage",
        "image",
        "key-manager",
        "network",
        "placement",
        "sharev2",
        "volumev3",
    }
)
"""Service types of the catalog that travel; the rest is left out to keep messages small."""

READ_DELETED = ("no", "yes", "only")

SENDING_HOST = "kilonova_host"
"""A key of our own in what travels; Nova's services pass it over."""


class RequestContext(oslo_context.RequestContext):
    """Identity, roles and request id of one request.

    `timestamp` is naive UTC. Making one does not make it the thread's present one: `kilonova.base.present` does that.
    """

    auth_token: str | None
    user_id: str | None
    project_id: str | None
    user_name: str | None
    project_name: str | None
    user_domain_id: str | None
    project_domain_id: str | None
    system_scope: str | None
    roles: list[str]
    is_admin: bool
    request_id: str
    global_request_id: str | None
    service_catalog: list[dict[str, Any]]
    timestamp: datetime.datetime

    def __init__(
        self,
        user_id: str | None = None,
        project_id: str | None = None,
        is_admin: bool = False,
        read_deleted: str = "no",
        remote_address: str | None = None,
        timestamp: datetime.datetime | str | None = None,
        quota_class: str | None = None,
        service_catalog: Iterable[Mapping[str, Any]] | None = None,
        **kwargs: Any,
    ) -> None:
        if read_deleted not in READ_DELETED:
            raise ValueError(f"read_deleted is one of {READ_DELETED}, not {read_deleted!r}")
        super().__init__(user_id=user_id, project_id=project_id, is_admin=bool(is_admin), **kwargs)
        self.read_deleted = read_deleted
        self.remote_address = remote_address
        self.timestamp = _moment(timestamp)
        self.quota_class = quota_class
        self.sending_host: str | None = None
        """The compute host that says this, by its own account; only what our hosts ask a conductor has it."""
        self.service_catalog = [dict(entry) for entry in service_catalog or () if entry.get("type") in CATALOG_TYPES]

    def update_store(self) -> None:
        """What oslo.context calls for each context that is made: the thread still works for whom it worked before."""

    def to_dict(self) -> dict[str, Any]:
        """The context as it goes on the wire (the keys of `context_fields` in the RPC contract)."""
        values: dict[str, Any] = super().to_dict()
        values.update(
            user_id=self.user_id,
            project_id=self.project_id,
            is_admin=self.is_admin,
            read_deleted=self.read_deleted,
            remote_address=self.remote_address,
            timestamp=self.timestamp.strftime("%Y-%m-%dT%H:%M:%S.%f"),
            request_id=self.request_id,
            quota_class=self.quota_class,
            user_name=self.user_name,
            service_catalog=self.service_catalog,
            project_name=self.project_name,
            is_admin_project=self.is_admin_project,
        )
        if self.sending_host is not None:
            values[SENDING_HOST] = self.sending_host
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], **kwargs: Any) -> RequestContext:
        """The context that a peer sent. Unknown keys are passed over."""
        made: RequestContext = super().from_dict(
            dict(values),
            user_id=values.get("user_id"),
            project_id=values.get("project_id"),
            read_deleted=values.get("read_deleted", "no"),
            remote_address=values.get("remote_address"),
            timestamp=values.get("timestamp"),
            quota_class=values.get("quota_class"),
            service_catalog=values.get("service_catalog"),
            **kwargs,
        )
        made.sending_host = values.get(SENDING_HOST)
        return made

    def sent_by(self, host: str) -> RequestContext:
        """The same request, said by that compute host."""
        other = copy.copy(self)
        other.sending_host = host
        return other

    def elevated(self, read_deleted: str | None = None) -> RequestContext:
        """The same request with an administrator's rights."""
        other = copy.copy(self)
        other.roles = list(self.roles)
        if "admin" not in other.roles:
            other.roles.append("admin")
        other.is_admin = True
        if read_deleted is not None:
            other.read_deleted = read_deleted
        return other

    def to_policy_values(self) -> dict[str, Any]:
        """Credentials as policy rules see them."""
        values = dict(super().to_policy_values())
        values["is_admin"] = self.is_admin
        return values


def admin(read_deleted: str = "no") -> RequestContext:
    """An administrator's context without a user, for work that no request asked for."""
    return RequestContext(is_admin=True, read_deleted=read_deleted)


def _moment(given: datetime.datetime | str | None) -> datetime.datetime:
    if isinstance(given, str):
        given = clock.parse(given)
    return clock.naive(given) or clock.naive_now()
