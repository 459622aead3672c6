"""Shell completion: scripts that ask the program itself for completions.

For each completion, the script runs the program with ``_ADVMDP_COMPLETE`` set, the command line in ``COMP_WORDS`` (one
word per line, or as typed) and the index of the word to complete, counted from 0, in ``COMP_CWORD``.  The program
prints the possible completions, one per line.  If there are none, the shell offers files.
"""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from advmdp.cli.parsing import Parser

BASH = """\
_advmdp_completion() {
    local IFS=$'\\n'
    COMPREPLY=( $( env COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD _ADVMDP_COMPLETE=complete_bash "$1" ) )
}
complete -o default -F _advmdp_completion advmdp
"""
ZSH = """\
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
_advmdp_completion() {
    local -a found
    found=("${(@f)$(COMP_WORDS="${(F)words}" COMP_CWORD=$((CURRENT - 1)) _ADVMDP_COMPLETE=complete_zsh "$words[1]")}")
    if [[ -n "$found" ]]; then compadd -a found; else _files; fi
}
compdef _advmdp_completion advmdp
"""
FISH = """\
function _advmdp_completion
    set -lx _ADVMDP_COMPLETE complete_fish
    set -lx COMP_CWORD (count (commandline -opc))
    set -lx COMP_WORDS (string join \\n -- (commandline -opc) (commandline -ct) | string collect)
    advmdp
end
complete -c advmdp -a "(_advmdp_completion)"
"""
PROGRAM = "advmdp"
SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}
START = {"bash": ".bashrc", "zsh": ".zshrc"}
"""The file that a shell reads when it starts; fish reads a whole folder of completions."""


def answer(parser: Parser, asked: Mapping[str, str]) -> None:
    """Print the possible completions of the word, for one of the scripts above."""
    line, number = asked.get("COMP_WORDS", ""), int(asked.get("COMP_CWORD") or 0)
    words = line.split("\n") if "\n" in line else line.split(" ")
    for word in parser.candidates([*words[1:number], *(words[number : number + 1] or [""])]):
        print(word)


def install(shell: str) -> str:
    """Put the script where the shell finds it; return a message for the user."""
    home = Path.home()
    if shell == "fish":
        script = home / ".config" / "fish" / "completions" / f"{PROGRAM}.fish"
    else:
        script = home / ".local" / "share" / "advmdp" / f"completion.{shell}"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(SCRIPTS[shell])
    if shell in START:
        _add_line(home / START[shell], f"source {shlex.quote(str(script))}\n".encode())
    return f"installed {script}; start a new {shell} to use it"


def _add_line(path: Path, line: bytes) -> None:
    """Append the line to the file, unless it is there already."""
    known = path.read_bytes() if path.exists() else b""
    if line not in known:
        with path.open("ab") as file:
            file.write(line if known.endswith(b"\n") or not known else b"\n" + line)


def shell_of_user() -> str:
    """The name of the user's shell, or "" if it is not supported."""
    name = os.path.basename(os.environ.get("SHELL", ""))
    return name if name in SCRIPTS else ""
