#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""README.md shows what the program really says.

usage: tools/readme-check.py AMBIT [FILE...]

Runs every command of the ```console blocks of README.md (or the FILEs), in order, in a project
made for it, and compares what comes out with what is shown:

  - lines are compared without their order: ambit and the command write to one terminal
  - numbers (but not "status N"), commit hashes and the home directory stand for any other;
    a line "..." stands for any lines
  - "$ " begins a command, "> " goes on with it

Prints what differs, and exits with 1. Says "# skip" where this machine cannot enforce everything.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parent.parent
HOME = "/home/ada"  # as the documents have it
COMMAND_LIMIT_S = 20
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)


def commands(text):
    """(line number, command, lines shown) of each command in the console blocks."""
    for block in BLOCK.finditer(text):
        number = text.count("\n", 0, block.start(1))
        at = command = None
        shown = []
        for line in block[1].splitlines():
            number += 1
            if line.startswith("$ "):
                if command:
                    yield at, command, shown
                at, command, shown = number, line[2:], []
            elif line.startswith("> ") and command and not shown:
                command += "\n" + line[2:]
            elif command:
                shown.append(line)
            else:
                sys.exit(f"line {number}: a console block begins with a command")
        if command:
            yield at, command, shown


def loose(line):
    if re.fullmatch(r"status \d+", line):
        return line  # an exit status is a promise
    return re.sub(r"\b[0-9a-f]{7,40}\b|\d+(\.\d+)?", "N", line).rstrip()


def compare(shown, real):
    """What is shown and was not said, and what was said and is not shown."""
    rest = list(real)
    absent = []
    for line in shown:
        same = next((x for x in rest if loose(x) == loose(line)), None)
        if same is not None:
            rest.remove(same)
        elif line != "...":
            absent.append(line)
    return absent, [] if "..." in shown else rest


class World:
    """A home directory with a secret and a project, and nothing of the caller's environment."""

    def __init__(self, program):
        # not below /tmp, which the sandbox replaces
        base = "/srv" if os.geteuid() == 0 else os.path.expanduser("~/.cache")
        os.makedirs(base, exist_ok=True)
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="ambit-readme.", dir=base)).resolve()
        self.home = self.top / "ada"
        self.project = self.home / "shop"
        for directory in (self.top / "bin", self.home / ".ssh", self.project):
            directory.mkdir(parents=True)
        (self.top / "bin/ambit").symlink_to(os.path.abspath(program))
        (self.home / ".ssh/id_ed25519").write_text("a secret\n")
        (self.home / ".gitconfig").write_text(
            "[user]\n\tname = Ada\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n")
        (self.project / "main.c").write_text("int main(void) { return 0; }\n")
        self.environment = {
            "HOME": str(self.home),
            "PATH": f"{self.top / 'bin'}:/usr/local/bin:/usr/bin:/bin",
            "LC_ALL": "C.UTF-8",
        }

    def run(self, command):
        command = command.replace(HOME, str(self.home))
        p = subprocess.run(["bash", "-c", command], cwd=self.project, env=self.environment,
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, timeout=COMMAND_LIMIT_S, check=False)
        output = p.stdout.decode(errors="replace").replace(str(self.home), HOME)
        # ambit writes a line at once, but maybe into the middle of one of the command's
        own = re.findall(r"ambit: .*\n", output)
        return p.returncode, "".join([*own, re.sub(r"ambit: .*\n", "", output)]).splitlines()

    def done(self):
        shutil.rmtree(self.top, ignore_errors=True)


def check(world, path):
    good = True
    for number, command, shown in commands(path.read_text()):
        absent, more = compare(shown, world.run(command)[1])
        if absent or more:
            good = False
            print(f"{path.name}:{number}: $ {command}")
            print("\n".join([*(f"  only shown:  {x}" for x in absent),
                             *(f"  only really: {x}" for x in more)]))
    return good


def main(program, *files):
    world = World(program)
    try:
        status, output = world.run("ambit check")
        if status:
            print("# skip: " + "; ".join(line for line in output if "MISSING" in line))
            print("ok 1 - readme # SKIP")
            return 0
        paths = [pathlib.Path(f) for f in files] or [TREE / "README.md"]
        return 0 if all([check(world, p) for p in paths]) else 1
    finally:
        world.done()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
