"""The parser of the command line: argparse, with one-line errors that suggest what was meant.

``advmdp --help`` and every completion in a shell start a process, so this module imports almost nothing else.
"""

import argparse
import re
from collections.abc import Callable, Sequence
from itertools import takewhile
from math import nan
from textwrap import wrap
from typing import Any, NoReturn

from advmdp.core.wording import meant, one_of

OPTION = re.compile("--|-[A-Za-z]")


class Layout(argparse.HelpFormatter):
    """Help in two columns, with defaults; each line of a description or an example is wrapped separately."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(super(Layout, self)._fill_text(line, width, indent) for line in text.splitlines())

    def _get_help_string(self, action: argparse.Action) -> str:
        default = action.default
        shown = isinstance(default, int | float | str) and default is not False and default != argparse.SUPPRESS
        return f"{action.help}{' [default: %(default)s]' if shown else ''}"

    def _format_action(self, action: argparse.Action) -> str:
        """Like argparse, but with a narrow column for the names of commands."""
        if not isinstance(action, argparse._SubParsersAction):
            return super()._format_action(action)
        indent = 4 + max(map(len, action.choices))
        names = (f"  {one.dest}".ljust(indent) for one in action._choices_actions)
        texts = (self._split_lines(one.help or "", self._width - indent) for one in action._choices_actions)
        rows = (name + ("\n" + " " * indent).join(text) for name, text in zip(names, texts, strict=True))
        return "\n".join(rows) + "\n"

    def _split_lines(self, text: str, width: int) -> list[str]:
        return wrap(text, width, break_on_hyphens=False)


class Parser(argparse.ArgumentParser):
    """The parser of the program or of one of its commands."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given, formatter_class=Layout, allow_abbrev=False, add_help=False)
        self.add_argument("-h", "--help", action="help", help="Show this message and exit.")
        self.commands: dict[str, Parser] = {}
        """The commands of the program by name; a command has none."""
        self._adding: argparse._SubParsersAction[Parser] | None = None

    def add_command(self, name: str, command: Callable[..., bool], usage: str, example: str) -> "Parser":
        """Add a command, described by its docstring; it is called with its options and returns whether it succeeded."""
        self._adding = self._adding or self.add_subparsers(title="commands", metavar="COMMAND", required=True)
        text = command.__doc__ or ""
        prog = f"{self.prog} {name}"
        found = self._adding.add_parser(
            name, prog=prog, help=text, description=text, usage=f"{prog} {usage}", epilog=f"Example: {example}"
        )
        found.set_defaults(command=command)
        self.commands[name] = found
        return found

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Like argparse, but report an unknown option before a missing one: it may be the missing one, misspelt."""
        own = takewhile(lambda word: word != "--" and (not self.commands or word.startswith("-")), args)
        for word in own:
            option = word.split("=")[0] if word.startswith("--") else word[:2]  # -j4 is -j 4, and -1 is a number
            if OPTION.match(word) and option not in self._option_string_actions:
                self.error(f"unknown option {option}{meant(option, self._option_string_actions)}")
        return super().parse_known_args(args, namespace)

    def candidates(self, words: Sequence[str]) -> list[str]:
        """Possible completions of the last word; none if it is, for example, the name of a file."""
        *before, begun = words
        if command := next((word for word in before if word in self.commands), None):
            return self.commands[command].candidates(words[words.index(command) + 1 :])
        options = self._option_string_actions
        asked = options.get(before[-1]) if before else None
        if asked is not None and asked.nargs != 0:  # its value
            found = [*(asked.choices or ())]
        elif begun.startswith("-"):
            found = [name for name in options if name.startswith("--")]
        else:
            found = [name for action in self._get_positional_actions() for name in action.choices or ()]
        return [name for name in found if name.startswith(begun)]

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            raise argparse.ArgumentError(action, f"{value!r}; expected {one_of(value, action.choices)}")

    def error(self, message: str) -> NoReturn:
        """Print one line and exit with code 2."""
        self.exit(2, f"error: {message} (see {self.prog} --help)\n")


def at_least(least: float, kind: type[int] | type[float] = int) -> Callable[[str], float]:
    """A parser for numbers of this kind that are at least ``least``."""

    def number(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = nan
        if not value >= least:
            what = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"{text!r}; expected {what}, {least} or more")
        return value

    return number
