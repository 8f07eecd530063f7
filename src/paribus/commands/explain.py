"""The verb `paribus explain`: what a field, a group, one of its options or an experiment is.

With `--completion`, verbs, flags, groups with their options, and fields, completed by the shell.
"""

import difflib
from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console

from paribus.commands import VERBS
from paribus.config.arguments import Option, groups, known_flags, options
from paribus.config.explain import Field, fields_of, summaries
from paribus.config.fields import ARM, DOC
from paribus.errors import ConfigurationError

HELP = """usage: paribus explain PATH            a field: its meaning, type, default and choices
       paribus explain GROUP           its options and fields
       paribus explain GROUP=OPTION    an option and its file
       paribus explain --completion bash|zsh    print shell completion; add eval "$(paribus explain --completion bash)"
                                       to ~/.bashrc, or that of zsh to ~/.zshrc after compinit

examples:
  paribus explain training.global_batch
  paribus explain tokenizer
  paribus explain experiment=lbpe/table_1
"""
SCALE = "scale"
_FILES_ALONE = ("experiment",)
"""Groups whose fields are for the files of options, and no one's command line."""


def explain_command(arguments: Sequence[str], console: Console) -> int:
    """Explain each argument; ConfigurationError for what is none of these, with what was probably meant."""
    if arguments[:1] == ["--completion"]:
        return completion_command(arguments[1:], console)
    if flags := [argument for argument in arguments if argument.startswith("-")]:
        raise ConfigurationError(f"{flags[0]} is no flag of paribus explain")
    texts = [explain(argument) for argument in arguments] or [_overview()]
    console.print("\n\n".join(texts), markup=False, soft_wrap=True, highlight=False)
    return 0


def explain(word: str) -> str:
    """The text about a field, a group or an option. ConfigurationError where there is none of that name."""
    name, chosen, option = word.lstrip("+~").partition("=")
    fields = [field for field in fields_of() if field.path == name]
    if name in groups():
        return _explain_option(name, option) if option else _explain_group(name)
    if not fields:
        paths = sorted({field.path for field in fields_of()})
        last = [path for path in paths if path.rpartition(".")[2] == name.rpartition(".")[2]]
        close = last[:3] or difflib.get_close_matches(name, sorted({*paths, *groups()}), n=3)
        hint = f"did you mean {' or '.join(close)}? " if close else ""
        raise ConfigurationError(f"{word!r} is no field and no group; {hint}paribus explain lists the groups")
    block = next((field for field in fields if field.group), None)
    if block is None or chosen:
        return "\n\n".join(_explain_field(*same) for same in _merge_equal(fields))
    below = [field for field in fields_of() if field.path.startswith(f"{block.path}.")]
    return "\n".join([f"{block.path}: {block.doc}", "", "fields:", *_field_lines(below)])


def _overview() -> str:
    own = [field for field in fields_of() if "." not in field.path]
    named = {ARM: DOC} | {field.path: field.doc for field in own}
    lines = ["groups (paribus explain GROUP lists the options and fields of one):"]
    lines += _columns([(name, named.get(name, "")) for name in groups()])
    lines += ["", "fields of the run itself:"]
    return "\n".join([*lines, *_columns([(field.path, field.doc) for field in own if not field.group])])


def _explain_group(name: str) -> str:
    about = DOC if name == ARM else next((field.doc for field in fields_of() if field.path == name), "")
    lines = [f"{name}: {about}" if about else name, "", f"options ({name}=OPTION):"]
    lines += _columns([(option.name, _first_sentence(name, option)) for option in options(name)])
    fields = [] if name in _FILES_ALONE else [field for field in fields_of() if field.path.startswith(f"{name}.")]
    return "\n".join([*lines, *(["", "fields:", *_field_lines(fields)] if fields else [])])


def _field_lines(fields: Sequence[Field]) -> list[str]:
    shown = {field.path: field.doc for field in fields if not field.path.endswith(".kind")}
    return _columns(list(shown.items()))


def _explain_option(group: str, name: str) -> str:
    known = {option.name: option for option in options(group)}
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {group}={close[0]}? " if close else ""
        raise ConfigurationError(f"{group}={name} is no option of {group}; {hint}options: {', '.join(known)}")
    option = known[name]
    text = option.path.read_text(encoding="utf-8").rstrip()
    sentence = "" if option.comment else _first_sentence(group, option)
    title = f"{group}={name}: {sentence}" if sentence else f"{group}={name}"
    return f"{title}\n({option.path})\n\n{text}"


def _first_sentence(group: str, option: Option) -> str:
    """First sentence of an option's file, else of the class of its kind."""
    if option.comment:
        return option.comment[0]
    kind = _value_in_option(option, "kind", nested=False) or ""
    return summaries(group).get(kind.strip("'\""), "")


def _explain_field(field: Field, kinds: Sequence[str]) -> str:
    """One field in full; of one that options set, what they set in place of the default of its class."""
    group, _, name = field.path.partition(".")
    where = f" ({group}={'|'.join(kinds)})" if kinds and group in groups() else ""
    set_by = list(_set_by(group, name))
    lines = [f"{field.path}{where}", f"  {field.doc}", f"  type: {field.type.replace('`', '')}"]
    if not set_by:
        lines.append(f"  default: {field.default}" if field.default is not None else "  no default: it has to be given")
    changes = {
        "identity": "identity: another value is another result, and another key",
        "execution": "execution: it changes how or where something is computed, and no result",
    }
    changed = f"{SCALE}: the fields that take it, which its meaning names, decide results" if group == SCALE else ""
    return "\n".join([*lines, f"  {changed or changes[field.role]}", *set_by])


def _set_by(group: str, name: str) -> Iterator[str]:
    """The options of its group that give it a value, with those of the scales where it is taken from there."""
    if not name or "." in name or group not in groups() or group in _FILES_ALONE:
        return
    for option in options(group):
        value = _value_in_option(option, name, nested=group == SCALE)
        if value is None:
            continue
        taken = value.removeprefix(f"${{{SCALE}.").removesuffix("}")
        scales = options(SCALE) if taken != value else ()
        sizes = [(scale.name, _value_in_option(scale, taken, nested=True)) for scale in scales]
        listed = ", ".join(f"{SCALE}={scale}: {size}" for scale, size in sizes if size is not None)
        yield f"  {group}={option.name} sets {value}{f' ({listed})' if listed else ''}"


def _value_in_option(option: Option, name: str, *, nested: bool) -> str | None:
    """Value that the file of an option gives to a field of its group, as it is written; None where it gives none."""
    for line in option.path.read_text(encoding="utf-8").splitlines():
        field, colon, value = line.partition(":")
        if colon and field == (f"  {name}" if nested else name):
            return value.partition(" #")[0].strip()
    return None


def _merge_equal(fields: Sequence[Field]) -> list[tuple[Field, list[str]]]:
    """Fields of one path that say the same, with the kinds of all of them."""
    merged: dict[tuple[str, str, str | None], tuple[Field, list[str]]] = {}
    for field in fields:
        _, kinds = merged.setdefault((field.doc, field.type, field.default), (field, []))
        kinds += field.kinds
    return list(merged.values())


def _columns(rows: Sequence[tuple[str, str]]) -> list[str]:
    width = max((len(name) for name, _ in rows), default=0)
    return [f"  {name:<{width}}  {text}".rstrip() for name, text in rows]


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
        text = "".join(f"{word}\n" for word in complete(arguments[1]))
    else:
        raise ConfigurationError(f"--completion takes a shell: {' or '.join(SCRIPTS)}")
    console.print(text, markup=False, end="", soft_wrap=True, highlight=False)
    return 0


def complete(line: str) -> list[str]:
    """The words that the last word of a command may become; one that is whole ends with a space."""
    *before, word = line.split(" ") or [""]
    words = [each for each in before if each]
    if len(words) <= 1:
        return _beginning_with(word, (f"{verb} " for verb in VERBS))
    verb = words[1]
    if verb == "tokens" and len(words) == 2:
        return _beginning_with(word, (f"{action} " for action in _ACTIONS))
    if verb == "explain":
        return _beginning_with(word, [*_with_values(word), *(f"{name} " for name in (*groups(), *_field_paths()))])
    if verb not in _WITH_OVERRIDES:
        return []
    if word.startswith("-"):
        return _beginning_with(word, (f"{flag} " for flag in [*known_flags(verb), "-m"]))
    return _beginning_with(
        word, _with_values(word) if "=" in word else [f"{name}=" for name in (*groups(), *_field_paths())]
    )


def _with_values(word: str) -> list[str]:
    """A group or field with each value that it may have, of a sweep with the values before it."""
    name, equals, value = word.partition("=")
    if not equals:
        return []
    types = [field.type for field in fields_of() if field.path == name]
    choices = [part for text in types for part in text.split("`")[1::2]]
    choices += ["true", "false"] if "bool" in types else []
    if name in groups():
        choices = [option.name for option in options(name)]
    return [f"{name}={value[: value.rfind(',') + 1]}{choice}" for choice in dict.fromkeys(choices)]


def _field_paths() -> list[str]:
    """Fields that an override may set, the blocks of which have no options."""
    hidden = ("experiment.", "scale.", "sweep")
    paths = (field.path for field in fields_of() if not field.group and not field.path.startswith(hidden))
    return sorted({path for path in paths if path.rpartition(".")[2] != "kind"})


def _beginning_with(word: str, candidates: Iterable[str]) -> list[str]:
    return [candidate for candidate in dict.fromkeys(candidates) if candidate.startswith(word)]
