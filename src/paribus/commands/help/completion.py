"""`paribus explain --completion`: verbs, flags, groups with their options, and fields, completed by the shell."""

from collections.abc import Iterable, Sequence

from rich.console import Console

from paribus.commands.help.verbs import VERBS
from paribus.config.arguments import known_flags
from paribus.config.explain import groups, options
from paribus.errors import ConfigurationError

# Bash parts words at = too and replaces the part after the last one alone, so that is all it is given.
SCRIPTS = {
    "bash": """_paribus() {
  local IFS=$'\\n' line="${COMP_LINE:0:COMP_POINT}" head=""
  COMPREPLY=($(paribus explain --completion query "$line" 2>/dev/null))
  [[ ${line##* } == *=* ]] && head="${line##* }" && head="${head%=*}="
  COMPREPLY=("${COMPREPLY[@]#"$head"}")
}
complete -o nospace -o default -F _paribus paribus
""",
    "zsh": """_paribus() {
  local -a found
  found=("${(@f)$(paribus explain --completion query "${(j: :)words[1,CURRENT]}" 2>/dev/null)}")
  compadd -Q -S '' -- $found
}
compdef _paribus paribus
""",
}
_WITH_OVERRIDES = ("run", "plan", "status", "report", "orders", "tokens")
_ACTIONS = ("statistics", "encode", "entropy")
"""Actions of `paribus tokens`."""


def completion_command(arguments: Sequence[str], console: Console) -> int:
    """Print the script of a shell, or what may follow `query LINE`; ConfigurationError for anything else."""
    if len(arguments) == 1 and arguments[0] in SCRIPTS:
        text = SCRIPTS[arguments[0]]
    elif len(arguments) == 2 and arguments[0] == "query":
        text = "".join(f"{found}\n" for found in complete(arguments[1]))
    else:
        raise ConfigurationError(f"--completion takes a shell: {' or '.join(SCRIPTS)}")
    console.print(text, markup=False, end="", soft_wrap=True, highlight=False)
    return 0


def complete(line: str) -> list[str]:
    """The words that the last word of a command may become; one that is whole ends with a space."""
    *before, word = line.split(" ") or [""]
    words = [each for each in before if each]
    if len(words) <= 1:
        return _beginning(word, (f"{verb} " for verb in VERBS))
    verb = words[1]
    if verb == "tokens" and len(words) == 2:
        return _beginning(word, (f"{action} " for action in _ACTIONS))
    if verb == "explain":
        return _beginning(word, [*_values(word), *(f"{name} " for name in (*groups(), *_paths()))])
    if verb not in _WITH_OVERRIDES:
        return []
    if word.startswith("-"):
        return _beginning(word, (f"{flag} " for flag in [*known_flags(verb), "-m"]))
    return _beginning(word, _values(word) if "=" in word else [f"{name}=" for name in (*groups(), *_paths())])


def _values(word: str) -> list[str]:
    """A group or field with each value that it may have, of a sweep with the values before it."""
    name, equals, value = word.partition("=")
    kept = f"{name}={value[: value.rfind(',') + 1]}"
    if not equals:
        return []
    return [f"{kept}{choice}" for choice in _choices(name)]


def _choices(name: str) -> list[str]:
    from paribus.config.explain import fields_of

    if name in groups():
        return [option.name for option in options(name)]
    types = [field.type for field in fields_of() if field.path == name]
    quoted = [part for text in types for part in text.split("`")[1::2]]
    return list(dict.fromkeys([*quoted, *(["true", "false"] if "bool" in types else [])]))


def _paths() -> list[str]:
    """Fields that an override may set, the blocks of which have no options."""
    from paribus.config.explain import fields_of

    hidden = ("experiment.", "scale.", "sweep")
    found = (field.path for field in fields_of() if not field.group and not field.path.startswith(hidden))
    return sorted({path for path in found if path.rpartition(".")[2] != "kind"})


def _beginning(word: str, candidates: Iterable[str]) -> list[str]:
    return [candidate for candidate in dict.fromkeys(candidates) if candidate.startswith(word)]
