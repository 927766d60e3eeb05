"""``python -m kilonova.contract export KIND`` and ``... validate``: what is declared, for the contract checks."""

import sys

from kilonova.cmd.contract import main

sys.exit(main())
