"""Shell completion of an operator's command line, derived from its parser.

A list of flags written by hand would miss the next one. Scripts complete commands, flags, choices
and, after a flag with a value, files; they start no process. Pure.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast


@dataclass(frozen=True, slots=True)
class Completion:
    """What may follow: flags and choices, and of the flags those that take a value."""

    words: tuple[str, ...]
    with_value: tuple[str, ...]


def derive_completion(parser: argparse.ArgumentParser, shell: str) -> str:
    """The script to source in `bash`, `zsh` or `fish`."""
    commands = {name: _completion_of(each) for name, each in _find_commands(parser).items()}
    root = _completion_of(parser)
    if shell == "fish":
        return "".join(_draw_fish(parser.prog, root, commands))
    script = _draw_bash(parser.prog, root, commands)
    # zsh runs completions of bash, once it is asked to.
    return f"autoload -U +X bashcompinit && bashcompinit\n{script}" if shell == "zsh" else script


def _find_commands(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to list them
        if isinstance(action.choices, dict):
            return cast("Mapping[str, argparse.ArgumentParser]", action.choices)
    return {}


def _completion_of(parser: argparse.ArgumentParser) -> Completion:
    words: list[str] = []
    with_value: list[str] = []
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to list them
        words += [flag for flag in action.option_strings if flag.startswith("--")]
        if action.option_strings and action.nargs is None:
            with_value += action.option_strings
        if not action.option_strings and action.choices is not None:
            words += [str(choice) for choice in action.choices]
    return Completion(tuple(words), tuple(with_value))


def _draw_bash(program: str, root: Completion, commands: Mapping[str, Completion]) -> str:
    function = "_" + program.replace("-", "_")
    flags = sorted({flag for each in (root, *commands.values()) for flag in each.with_value})
    cases = "".join(
        f'    {name}) words="{" ".join(each.words)}" ;;\n' for name, each in commands.items()
    )
    return f"""\
{function}() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" command="" each words
  for each in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$each" in {"|".join(commands)}) command="$each"; break ;; esac
  done
  case "${{COMP_WORDS[COMP_CWORD-1]}}" in
    {"|".join(flags)}) COMPREPLY=($(compgen -f -- "$word")); return ;;
  esac
  case "$command" in
{cases}    *) words="{" ".join(root.words)}" ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -F {function} {program}
"""


def _draw_fish(program: str, root: Completion, commands: Mapping[str, Completion]) -> Iterator[str]:
    for name in commands:
        yield f"complete -c {program} -n __fish_use_subcommand -f -a {name}\n"
    yield from _draw_fish_flags(program, "__fish_use_subcommand", root)
    for name, each in commands.items():
        yield from _draw_fish_flags(program, f"'__fish_seen_subcommand_from {name}'", each)


def _draw_fish_flags(program: str, condition: str, each: Completion) -> Iterator[str]:
    for word in each.words:
        if word.startswith("--"):
            value = " -r" if word in each.with_value else ""
            yield f"complete -c {program} -n {condition} -l {word.removeprefix('--')}{value}\n"
        elif condition != "__fish_use_subcommand":
            yield f"complete -c {program} -n {condition} -f -a {word}\n"
