"""Reads the argparse parser of a Python program without running the program, and prints it as JSON.

Run by `runlore commands scan`; its words are those of the program's command line. What the program does before it asks argparse to read the
command line (imports, building the parser) is done; nothing after it.
"""

import argparse
import json
import os
import runpy
import sys

out = os.fdopen(os.dup(1), "w", encoding="utf-8")
# What the program prints on the way is none of the answer.
os.dup2(2, 1)


class Found(BaseException):
    """Not an Exception: a program's own handlers let it through."""


def hand_back(parser, *_, **__):
    raise Found(parser)


for name in ("parse_args", "parse_known_args", "parse_intermixed_args", "parse_known_intermixed_args"):
    setattr(argparse.ArgumentParser, name, hand_back)


def read(words):
    """The parser that the program asks, or why there is none."""
    if words[0] == "-m":
        sys.argv = words[1:]
        start = lambda: runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        sys.path.insert(0, os.getcwd())
    else:
        sys.argv = words
        sys.path.insert(0, os.path.dirname(os.path.abspath(words[0])))
        start = lambda: runpy.run_path(words[0], run_name="__main__")
    try:
        start()
    except Found as found:
        return found.args[0]
    except SystemExit as ended:
        sys.exit(f"it ended ({ended.code}) before it asked argparse to read its command line")
    sys.exit("it ended without asking argparse to read its command line")


def kind(action):
    if action.choices is not None:
        return "integer" if action.type is int else "choice"
    return {int: "integer", float: "number"}.get(action.type, "string")


def text(value):
    if value is None or value is argparse.SUPPRESS or isinstance(value, (list, tuple, dict, set)):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def helped(parser, action):
    """The help as argparse prints it: `%(default)s` filled in."""
    if not action.help:
        return ""
    try:
        return parser._get_formatter()._expand_help(action)
    except Exception:
        return action.help


def flag_of(action, last=False):
    long = [flag for flag in action.option_strings if flag.startswith("--")]
    return (long or action.option_strings)[-1 if last else 0]


def argument(parser, action):
    """One option or positional; a text where it cannot be one."""
    name = action.dest if action.option_strings or isinstance(action.dest, str) else str(action.metavar)
    one = {"name": name.replace("-", "_"), "help": helped(parser, action), "required": bool(action.required), "choices": [], "default": "",
           "repeated": False, "one_flag": False, "flag": ""}
    positional = not action.option_strings
    if not positional:
        one["flag"] = flag_of(action)
        turns_off = isinstance(action, getattr(argparse, "BooleanOptionalAction", ())) and action.default is True
        if turns_off:
            one["flag"], one["name"] = flag_of(action, last=True), "no_" + one["name"]
        elif isinstance(action, argparse._StoreFalseAction):
            one["name"] = one["flag"].lstrip("-").replace("-", "_")
        if action.nargs == 0 or isinstance(action, getattr(argparse, "BooleanOptionalAction", ())):
            one["type"], one["required"] = "boolean", False
            return one
    one["type"] = kind(action)
    if action.choices is not None:
        one["choices"] = [str(choice) for choice in action.choices if not str(choice).startswith("-")]
    if action.nargs in (argparse.REMAINDER, argparse.PARSER):
        return f"{name} takes whatever follows"
    if isinstance(action.nargs, int) and action.nargs > 1:
        return f"{name} takes exactly {action.nargs} values, which a schema cannot say"
    many = action.nargs in ("*", "+") or action.nargs == 1
    appended = isinstance(action, argparse._AppendAction) or isinstance(action, getattr(argparse, "_ExtendAction", ()))
    if appended and many:
        # Either way reads right: a flag before each value.
        many = False
    one["repeated"] = many or appended
    one["one_flag"] = many and not positional
    if positional:
        one["required"] = action.nargs in (None, "+", 1)
    if not one["repeated"]:
        one["default"] = text(action.default)
    return one


def described(parser, short):
    parts = [part.strip() for part in (short or "", parser.description or "") if part and part.strip()]
    return " ".join(dict.fromkeys(part if part.endswith((".", "!", "?")) else part + "." for part in parts))


def command(parser, path, short):
    """One command: a parser without subcommands."""
    one = {"path": path, "description": described(parser, short), "json_flag": "", "options": [], "positionals": [], "left_out": []}
    for action in parser._actions:
        if isinstance(action, (argparse._HelpAction, argparse._VersionAction, argparse._SubParsersAction)) or action.help is argparse.SUPPRESS:
            continue
        if "--json" in action.option_strings and action.nargs == 0:
            one["json_flag"] = "--json"
            continue
        if any(flag.lstrip("-") in OMIT for flag in action.option_strings) or action.dest in OMIT:
            continue
        found = argument(parser, action)
        if isinstance(found, str):
            one["left_out"].append(found)
        else:
            one["options" if action.option_strings else "positionals"].append(found)
    return one


def commands(parser, path, short):
    subs = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not subs:
        return [command(parser, path, short)]
    all_of = []
    # What stands before a subcommand is the operator's to choose, in `args`.
    before = [flag_of(action) for action in parser._actions if action.option_strings and not isinstance(action, (argparse._HelpAction, argparse._VersionAction))]
    for action in subs:
        helps = {choice.dest: choice.help for choice in action._choices_actions}
        seen = set()
        for name, inner in action.choices.items():
            # An alias is the same parser again.
            if id(inner) in seen:
                continue
            seen.add(id(inner))
            for one in commands(inner, path + [name], helps.get(name) or ""):
                one["left_out"] += [f"{flag} stands before the subcommand; put it into args where it is wanted" for flag in before]
                all_of.append(one)
    return all_of


OMIT = set(json.loads(sys.argv[1]))
json.dump({"commands": commands(read(sys.argv[2:]), [], "")}, out)
out.flush()
