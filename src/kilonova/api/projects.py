"""Projects, as far as Keystone tells."""

import logging

from kilonova.api.services import Services
from kilonova.clients.http import ServiceError
from kilonova.wire.http.call import Call
from kilonova.wire.http.faults import bad_request

LOG = logging.getLogger(__name__)


def check_exists(call: Call[Services], project_id: str) -> None:
    """Raise `Fault` 400 for a project that Keystone does not know; when it does not say, the project passes."""
    try:
        known = call.services.clients.keystone.project_exists(call.context, project_id)
    except ServiceError as error:
        LOG.warning("Keystone does not say whether project %s exists, so it is taken as given: %s", project_id, error)
        return
    if known is False:
        raise bad_request(f"Project ID {project_id} is not a valid project.")
