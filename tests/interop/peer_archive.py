"""Run by the peer's Python: its `nova-manage db` commands one after the other in one process.

peer_archive.py CONF STEPS      prints for each step a line of JSON: exit code, what was printed, rows of each table

STEPS is JSON: lists of a command's name and its arguments by name.
"""

import contextlib
import io
import json
import sys

import sqlalchemy as sa


def counts(urls):
    found = {}
    for name, url in urls.items():
        engine = sa.create_engine(url)
        with engine.connect() as connection:
            for table in sa.inspect(connection).get_table_names():
                count = connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one()
                if count and not table.startswith("kn_"):
                    found[f"{name}.{table}"] = count
        engine.dispose()
    return found


def main(conf, steps):
    from nova import config, objects
    from nova.cmd import manage

    objects.register_all()
    config.parse_args(["peer", "--config-file", conf])
    commands = manage.DbCommands()
    for name, arguments, urls in json.loads(steps):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            code = getattr(commands, name)(**arguments)
        print("ANSWER " + json.dumps([code, said.getvalue(), counts(urls)]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
