"""The compute_task namespace: what the API and compute hosts cast to a conductor becomes a flow."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from kilonova.conductor import records, refusal
from kilonova.conductor.building import elsewhere, watching
from kilonova.conductor.failures import describe
from kilonova.conductor.frames import pack
from kilonova.conductor.ops import build
from kilonova.conductor.world import World
from kilonova.contract import exceptions, objects
from kilonova.contract.context import RequestContext
from kilonova.contract.rpc import compute_task as table
from kilonova.flow import offers
from kilonova.flow.dispatcher import Dispatcher
from kilonova.flow.seal import Seal

LOG = logging.getLogger(__name__)


class ComputeTasks:
    """Handlers of the methods in contract/rpc/compute_task.py. A handler puts its flow down and returns."""

    namespace = "compute_task"

    def __init__(self, world: World, dispatcher: Dispatcher, seal: Seal) -> None:
        self.world = world
        self.dispatcher = dispatcher
        self.seal = seal

    def __getattr__(self, name: str) -> Callable[..., None]:
        """Methods of the contract that are not built."""
        if name not in table.API.served_by_name:
            raise AttributeError(name)

        def refused(ctxt: RequestContext, **args: Any) -> None:
            refusal.refuse(self.world, name, ctxt, args)

        return refused

    def schedule_and_build_instances(
        self,
        ctxt: RequestContext,
        *,
        build_requests: Sequence[objects.BuildRequest],
        request_specs: Sequence[objects.RequestSpec],
        image: dict[str, Any],
        admin_password: str | None,
        injected_files: Sequence[Any] | None,
        requested_networks: objects.NetworkRequestList | None,
        block_device_mapping: objects.BlockDeviceMappingList | None,
        tags: objects.TagList | None = None,
    ) -> None:
        """Build what was accepted. Our API has put the flow down already; a peer's API has not."""
        if self.dispatcher.resume(self.world.api_store(), request_specs[0].instance_uuid, offers.BUILD_BATCH):
            return
        new = offers.build_offer(
            self.seal,
            ctxt,
            request_specs=request_specs,
            image=image,
            admin_password=admin_password,
            injected_files=injected_files,
            requested_networks=requested_networks,
            block_device_mapping=block_device_mapping,
            tags=tags,
            grace=0.0,
            deadline=self.world.conf.kilonova.build_deadline,
        )
        if not self.dispatcher.take(self.world.api_store(), new, build.was_taken):
            LOG.info("build of server %s is under way, or was, already: the cast is a repeat", new.subject_id)

    def build_instances(
        self,
        ctxt: RequestContext,
        *,
        instances: Sequence[objects.Instance],
        image: dict[str, Any],
        filter_properties: dict[str, Any],
        admin_password: str | None,
        injected_files: Sequence[Any] | None,
        requested_networks: objects.NetworkRequestList | None,
        security_groups: Sequence[str] | None,
        block_device_mapping: Any = None,
        legacy_bdm: bool = True,
        request_spec: objects.RequestSpec | None = None,
        host_lists: Sequence[Sequence[objects.Selection]] | None = None,
    ) -> None:
        """A host gave servers back: try alternates. Without any, the server goes to ERROR."""
        secrets = {"auth_token": ctxt.auth_token, "admin_password": admin_password, "injected_files": injected_files}
        shared = {
            "context": offers.context_part(ctxt),
            "request_spec": pack(request_spec),
            "image": pack(image),
            "requested_networks": pack(requested_networks),
            "security_groups": pack(security_groups),
            "deadline_at": watching.deadline_at(self.world.conf.kilonova.build_deadline),
        }
        lists = host_lists if host_lists is not None else [[] for _ in instances]
        for server, hosts in zip(instances, lists, strict=True):
            self._elsewhere(ctxt, server, hosts, filter_properties, shared, self.seal.close(secrets))

    def _elsewhere(
        self,
        ctxt: RequestContext,
        server: objects.Instance,
        hosts: Sequence[objects.Selection],
        props: dict[str, Any],
        shared: dict[str, Any],
        sealed: str | None,
    ) -> None:
        place = self.world.place_of_server(server.uuid)
        if place is None:
            LOG.warning("server %s is in no cell, and a host wants it built elsewhere", server.uuid)
            return
        if shared["request_spec"] is None:
            error = exceptions.MaxRetriesExceeded(reason="the host sent no request spec to try again with")
            place.database.run(records.fail, ctxt, server.uuid, describe(error), self.world.host)
            return
        new = elsewhere.new_try(server.uuid, hosts, props, shared, sealed)
        if not self.dispatcher.take(place.store, new, elsewhere.was_tried):
            LOG.info("try %s of server %s is under way, or was, already", new.frame["attempt"], server.uuid)
