"""What a shell needs to complete words of the command line: a script that asks the program itself.

On every press of the key the script runs the program with ``_ADVMDP_COMPLETE`` set, the line in ``COMP_WORDS`` (a word
a line, or as one would type it) and in ``COMP_CWORD`` which of the words, counted from 0, is to be completed.  The
program prints what that can become, a line each.  Where that is nothing the shell offers files.
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
"""What a shell reads when it starts; fish reads a whole folder of completions."""


def answer(parser: Parser, asked: Mapping[str, str]) -> None:
    """Print what the word can become, for a script above."""
    line, number = asked.get("COMP_WORDS", ""), int(asked.get("COMP_CWORD") or 0)
    words = line.split("\n") if "\n" in line else line.split(" ")
    for word in parser.candidates([*words[1:number], *(words[number : number + 1] or [""])]):
        print(word)


def install(shell: str) -> str:
    """Put the script where the shell finds it, once; what to tell the user."""
    home = Path.home()
    if shell == "fish":
        script = home / ".config" / "fish" / "completions" / f"{PROGRAM}.fish"
    else:
        script = home / ".local" / "share" / "advmdp" / f"completion.{shell}"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(SCRIPTS[shell])
    if shell in START:
        _add_line(home / START[shell], f"source {shlex.quote(str(script))}\n".encode())
    return f"{shell} completes advmdp from its next start on, by {script}"


def _add_line(path: Path, line: bytes) -> None:
    """At the end of the file, unless it is there already."""
    known = path.read_bytes() if path.exists() else b""
    if line not in known:
        with path.open("ab") as file:
            file.write(line if known.endswith(b"\n") or not known else b"\n" + line)


def shell_of_user() -> str:
    """The name of the user's shell, or nothing if that is none of those known here."""
    name = os.path.basename(os.environ.get("SHELL", ""))
    return name if name in SCRIPTS else ""
