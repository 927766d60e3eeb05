"""Run by the peer's Python: its operators' commands, many in one process.

CONF as the argument; each line of stdin is a JSON list [category, action, keywords, options]: `options` are overrides
of the configuration, read anew before. Each answer is a line `ANSWER [exit code, output]`.
"""

import contextlib
import io
import json
import sys


def main(path):
    # First: it decides how the process runs threads.
    from nova.cmd import manage, policy, status  # isort: skip

    import nova.conf
    from nova import config, objects

    conf = nova.conf.CONF
    conf.register_cli_opts(policy.cli_opts)
    config.parse_args(["peer", "--config-file", path])
    objects.register_all()
    categories = {**manage.CATEGORIES, **policy.CATEGORIES, **status.CATEGORIES}
    for line in sys.stdin:
        category, action, keywords, options = json.loads(line)
        conf.reload_config_files()
        for name, value in options.items():
            conf.set_override(name, value)
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            code = getattr(categories[category](), action)(**keywords)
        print("ANSWER", json.dumps([code, shown.getvalue()]), flush=True)


main(sys.argv[1])
