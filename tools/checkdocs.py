#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The manual pages name exactly the commands, options and settings that the program has.

usage: tools/checkdocs.py AMBIT

AMBIT is the built program; its own tables are asked. Names that one side lacks
are printed, and the exit status is 1.
"""
import json
import pathlib
import re
import subprocess
import sys

MAN = pathlib.Path(__file__).resolve().parent.parent / "man"


def ask(program, *args):
    return subprocess.run([program, *args], check=True, capture_output=True, text=True).stdout


def table(program):
    """Commands and options, from --list-options."""
    commands, options = set(), set()
    for line in ask(program, "--list-options").splitlines():
        kind, *fields = line.split("\t")
        if kind == "command":
            commands.add(fields[0])
        else:
            _, name, letter, *_ = fields
            options.add(name)
            if letter != "-":
                options.add(letter)
    return commands, options


def schema_keys(schema, prefix=""):
    """Dotted names of all settings in a JSON Schema; an object with properties is a group."""
    for name, sub in schema["properties"].items():
        if "properties" in sub:
            yield from schema_keys(sub, f"{prefix}{name}.")
        else:
            yield prefix + name


def items(page):
    """The heads of the items of all lists, by section, and the whole text."""
    section, heads = None, []
    text = (MAN / page).read_text()
    for line in text.splitlines():
        if line.startswith((".Sh ", ".Ss ")):
            section = line[4:]
        elif line.startswith(".It "):
            heads.append((section, line[4:]))
    return heads, text


def documented_options(heads):
    for _, head in heads:
        yield from ("--" + name for name in re.findall(r"\bFl Fl ([a-z-]+)", head))
        yield from ("-" + name for name in re.findall(r"\bFl ([a-z])\b", head))


def compare(what, have, documented, page):
    for name in sorted(have - documented):
        print(f"{page}: {what} {name} is missing")
    for name in sorted(documented - have):
        print(f"{page}: {what} {name} does not exist")
    return have == documented


def check_library():
    """Every function of the public header is in libambit(3), and can be looked up by its name."""
    tree = MAN.parent
    header = re.sub(r"/\*.*?\*/", "", (tree / "include/ambit.h").read_text(), flags=re.S)
    have = set(re.findall(r"AMBIT_API [^;]*?\b(ambit_\w+)\(", header))
    page = (MAN / "libambit.3").read_text()
    ok = compare("function", have, set(re.findall(r"^\.Fn (ambit_\w+)", page, re.M)) & have, "libambit.3")
    named = set(re.findall(r"^\.Nm (ambit_\w+)", page, re.M))
    ok &= compare("name", have, named, "libambit.3")
    linked = set(re.findall(r"'(ambit_\w+)'", (tree / "man/meson.build").read_text()))
    return compare("page", have, linked, "man/meson.build") and ok


def main(program):
    commands, options = table(program)
    heads, _ = items("ambit.1")
    named = {head.split()[1] for section, head in heads if section == "Commands"}
    ok = compare("command", commands, named, "ambit.1")
    ok &= compare("option", options, set(documented_options(heads)), "ambit.1")

    ok &= check_library()
    keys = set(schema_keys(json.loads(ask(program, "policy", "--schema"))))
    heads, text = items("ambit-settings.5")
    named = {k for _, head in heads if head.startswith("Ic ") for k in head[3:].split(" , ")}
    # the keys of sandbox-runtime stand in two sentences
    compatible = text.partition(".Sh KEYS OF SANDBOX-RUNTIME\n")[2].partition("\n.Sh ")[0]
    named |= set(re.findall(r"^\.Ic (\S+)", compatible, re.M))
    ok &= compare("setting", keys, named, "ambit-settings.5")
    return 0 if ok else 1


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
