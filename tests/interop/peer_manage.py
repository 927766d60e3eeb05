"""Runs in the peer's environment: its nova-manage, loaded once and then a process for each line of standard input.

Each line is a JSON list of words of the command line; the answer is a JSON list of exit code and output.
"""

import json
import os
import sys
import tempfile

from nova.cmd import manage


def run(words: list[str]) -> tuple[int, str]:
    with tempfile.TemporaryFile("w+") as output:
        child = os.fork()
        if not child:
            os.dup2(output.fileno(), 1)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            sys.argv = ["nova-manage", *words]
            try:
                code = manage.main()
            except SystemExit as end:
                code = int(end.code or 0)
            sys.stdout.flush()
            os._exit(code or 0)
        _, status = os.waitpid(child, 0)
        output.seek(0)
        return os.waitstatus_to_exitcode(status), output.read()


for line in sys.stdin:
    print(json.dumps(run(json.loads(line))), flush=True)
