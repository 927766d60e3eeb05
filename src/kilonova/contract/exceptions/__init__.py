"""Nova's exceptions: the names under which errors cross the bus and reach users as faults."""

from kilonova.contract.exceptions.base import *  # noqa: F403
from kilonova.contract.exceptions.flavor import *  # noqa: F403
from kilonova.contract.exceptions.hardware import *  # noqa: F403
from kilonova.contract.exceptions.host import *  # noqa: F403
from kilonova.contract.exceptions.image import *  # noqa: F403
from kilonova.contract.exceptions.instance import *  # noqa: F403
from kilonova.contract.exceptions.network import *  # noqa: F403
from kilonova.contract.exceptions.placement import *  # noqa: F403
from kilonova.contract.exceptions.quota import *  # noqa: F403
from kilonova.contract.exceptions.remote import *  # noqa: F403
from kilonova.contract.exceptions.share import *  # noqa: F403
from kilonova.contract.exceptions.volume import *  # noqa: F403
