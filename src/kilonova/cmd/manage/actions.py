"""What an action of nova-manage is: its words, its arguments, what runs it."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from kilonova.cmd.manage.session import Session

if TYPE_CHECKING:
    from argparse import _SubParsersAction

UNFORESEEN = 255
"""The exit code of a command that something unforeseen happened to."""

MAX_COUNT = 2**63 - 1
"""More rows no database takes for a limit."""


@dataclasses.dataclass(frozen=True)
class Argument:
    """One argument: its flags (one word without dashes: a positional) and argparse's settings."""

    flags: tuple[str, ...]
    settings: dict[str, Any]

    @property
    def dest(self) -> str:
        """The parameter of the function that takes the value."""
        return str(self.settings.get("dest") or self.flags[-1].lstrip("-").replace("-", "_"))


def argument(*flags: str, **settings: Any) -> Argument:
    return Argument(flags, settings)


def switch(*flags: str, **settings: Any) -> Argument:
    return Argument(flags, {"action": "store_true", "default": False, **settings})


class Refused(Exception):
    """What was asked for is not done; `code` is the exit code."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


def positive(text: str, *, wrong: int) -> int:
    """The number that --max-count is given as. Raises Refused with the code `wrong`."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if not 0 < number <= MAX_COUNT:
        raise Refused(wrong, "--max-count must be a positive number.")
    return number


@dataclasses.dataclass(frozen=True)
class Action:
    """`nova-manage CATEGORY NAME`. `run(session, **arguments)` returns the exit code or raises Refused.

    `exit_codes` explains the action's own codes; `unforeseen` is that of an exception which nobody expected, and of a
    cell that does not answer where no other code says so.
    """

    category: str
    name: str
    help: str
    run: Callable[..., int]
    arguments: Sequence[Argument] = ()
    exit_codes: dict[int, str] = dataclasses.field(default_factory=dict)
    unforeseen: int = UNFORESEEN

    def add_parser(self, subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
        """Declare the action's words on the command line."""
        meanings = {self.unforeseen: "a cell does not answer, or something unforeseen happened", **self.exit_codes}
        codes = "\n".join(f"  {code}  {meaning}" for code, meaning in sorted(meanings.items()))
        parser = subparsers.add_parser(
            self.name,
            help=self.help,
            description=self.help,
            epilog=f"exit codes:\n{codes}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        for one in self.arguments:
            settings = dict(one.settings)
            positional = not one.flags[0].startswith("-")
            # The prefix keeps an argument called `name` apart from the name of the sub-command.
            settings["dest"] = f"arg_{one.dest}"
            if positional:
                settings.setdefault("metavar", one.flags[0].upper())
                parser.add_argument(**settings)
            else:
                parser.add_argument(*one.flags, **settings)
        parser.set_defaults(action=self)

    def call(self, session: Session, parsed: Any) -> int:
        """Run with the arguments of the command line."""
        try:
            return self.run(session, **{one.dest: getattr(parsed, f"arg_{one.dest}") for one in self.arguments})
        except Refused as no:
            session.say(no)
            return no.code
