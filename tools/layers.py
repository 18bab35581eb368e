#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The rules of the house that no compiler knows. Prints what breaks them; exit status 1 if any.

    layers      a room includes only from the rooms below it
    banned      functions that are never the right one here
    size        functions of 80 lines, files of 900, headers of 300 at most
    unfinished  no TODO and the like in what ships
    licence     an SPDX line opens every file

    tools/layers.py [ROOT]
"""
import re
import sys
from pathlib import Path

ROOMS = {
    "base": "",
    "policy": "base",
    "sandbox": "base policy",
    "proxy": "base policy",
    "audit": "base policy",
    "supervise": "base policy sandbox proxy audit",
    "mcp": "base policy sandbox proxy audit supervise",
    "agent": "base policy sandbox proxy audit supervise",
    "api": "base policy sandbox proxy audit supervise mcp agent",
    "cli": "base policy sandbox proxy audit supervise mcp agent api",
}
BANNED = {
    "strcpy strcat stpcpy sprintf vsprintf gets": "no bound: struct buf, snprintf",
    "strncpy strncat": "may not terminate, pads: base/text.h",
    "strtok strtok_r": "writes into its input: base/text.h",
    "atoi atol atoll atof strtol strtoul strtoll strtoull sscanf scanf fscanf":
        "overflow and rest of input go unseen: base/text.h",
    "system popen wordexp": "a shell reads it: execve with an argv array",
    "tmpnam tempnam mktemp tmpfile": "race for the name: mkostemp, O_TMPFILE",
    "alloca": "stack of unknown size",
    "setlocale": "text handling here is locale-free",
    "asctime ctime gmtime localtime": "static buffer: gmtime_r",
}
FUNCTION_LINES, FILE_LINES, HEADER_LINES = 80, 900, 300

INCLUDE = re.compile(r'\s*#\s*include\s+"([^"]+)"')
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
CALL = re.compile(r"(?<![\w.>])(%s)\s*\(" % "|".join(" ".join(BANNED).split()))
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")


def without_comments(text):
    """Comments and strings blanked, line numbers kept."""
    return TOKEN.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)


def layers(room, text, src):
    below = ROOMS[room].split()
    for n, line in enumerate(text.splitlines(), 1):
        found = INCLUDE.match(line)
        if not found:
            continue
        target = found[1]
        other = target.split("/")[0]
        if other not in ROOMS:
            if not (target == "ambit.h" and room in ("api", "cli")):
                yield n, f'"{target}": write the path from src/, room first'
        elif other != room and other not in below:
            yield n, f'"{target}": {room}/ may include from {ROOMS[room] or "nowhere"} only'
        elif target.endswith(".h") and not (src / target).exists():
            yield n, f'"{target}": no such file'


def banned(text):
    for n, line in enumerate(without_comments(text).splitlines(), 1):
        for call in CALL.finditer(line):
            reason = next(r for names, r in BANNED.items() if call[1] in names.split())
            yield n, f"{call[1]}(): {reason}"


def size(path, text):
    lines = text.splitlines()
    if any("do not edit" in line for line in lines[:5]):
        return
    most = HEADER_LINES if path.suffix == ".h" else FILE_LINES
    if len(lines) > most:
        yield len(lines), f"{len(lines)} lines, {most} at most: this wants to be two files"
    start = None
    for n, line in enumerate(lines, 1):
        if line == "{":
            start = n
        elif line == "}" and start:
            if n - start - 1 > FUNCTION_LINES:
                yield start, f"function of {n - start - 1} lines, {FUNCTION_LINES} at most: " \
                             "this wants to be two, or a table"
            start = None


def complaints(root):
    src = root / "src"
    for path in sorted([*src.rglob("*.[ch]"), *src.rglob("*.def"), *root.glob("include/*.h")]):
        text = path.read_text()
        room = path.relative_to(src).parts[0] if path.is_relative_to(src) else None
        checks = [banned(text), size(path, text)]
        if room in ROOMS:
            checks.append(layers(room, text, src))
        elif room:
            yield path, 1, f"src/{room} is no room of the house: tools/layers.py lists them"
        for check in checks:
            for n, what in check:
                yield path, n, what
        for n, line in enumerate(text.splitlines(), 1):
            if UNFINISHED.search(line):
                yield path, n, "unfinished: " + line.strip()
        if "SPDX-License-Identifier" not in text[:200]:
            yield path, 1, "no SPDX line"


def main(root):
    found = [f"{path.relative_to(root)}:{n}: {what}" for path, n, what in complaints(root)]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()))
