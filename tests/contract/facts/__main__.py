"""Print the facts of a kind: `./run python -m tests.contract.facts KIND`."""

import json
import sys

from tests.contract import facts

if len(sys.argv) != 2 or sys.argv[1] not in facts.kinds():
    sys.exit("usage: python -m tests.contract.facts " + "|".join(facts.kinds()))
json.dump(facts.load(sys.argv[1]), sys.stdout, indent=1, sort_keys=True)
