# SPDX-License-Identifier: Apache-2.0
"""What the scripts in bench/ share: taking turns, things to measure on, rows of results.

Commands that are compared take turns, round by round, in changing order, so that whatever else
the machine does hits them alike; a ratio is the median of the ratios of the rounds.
"""
import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

IMAGE_SIZE = 2 << 30
TREE = Path(__file__).resolve().parent.parent.parent


class Failed(Exception):
    pass


def say(text):
    print(text, file=sys.stderr, flush=True)


# --- taking turns -----------------------------------------------------------------

def once(argv, cwd):
    """Milliseconds from spawn to exit."""
    os.chdir(cwd)
    null = [(os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_RDWR, 0) for fd in (0, 1, 2)]
    start = time.perf_counter_ns()
    pid = os.posix_spawnp(argv[0], argv, os.environ, file_actions=null)
    status = os.waitpid(pid, 0)[1]
    elapsed = time.perf_counter_ns() - start
    if status:
        raise Failed(f"{' '.join(argv)} in {cwd}: exit status {os.waitstatus_to_exitcode(status)}")
    return elapsed / 1e6


def try_out(argv, cwd):
    """A first run, which warms the caches and shows what is wrong: its output."""
    p = subprocess.run(argv, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if p.returncode:
        raise Failed(f"{' '.join(argv)} in {cwd}: exit status {p.returncode}\n{p.stderr.rstrip()}")
    return p.stdout


def in_turn(names, rounds):
    """The names once per round, each time in another order."""
    for i in range(rounds):
        turn = names[i % len(names):] + names[:i % len(names)]
        yield turn if i % 2 else turn[::-1]


def take_turns(cases, rounds):
    """cases: name -> (argv, cwd); the result: name -> milliseconds of each round."""
    return {name: steps[""] for name, steps in
            take_turns_in_steps({n: ({"": argv}, cwd) for n, (argv, cwd) in cases.items()},
                                rounds).items()}


def take_turns_in_steps(cases, rounds):
    """cases: name -> ({step: argv}, cwd), the last step leaving things as they were before the
    first; the result: name -> {step: milliseconds of each round}."""
    for steps, cwd in cases.values():
        for argv in steps.values():
            try_out(argv, cwd)
    times = {name: {step: [] for step in steps} for name, (steps, _) in cases.items()}
    for turn in in_turn(list(cases), rounds):
        for name in turn:
            steps, cwd = cases[name]
            for step, argv in steps.items():
                times[name][step].append(once(argv, cwd))
    return times


def ratio_of(values, to):
    return statistics.median(a / b for a, b in zip(values, to))


def ratio(times, name, to):
    return ratio_of(times[name], times[to])


# --- things to measure on ---------------------------------------------------------

def git(*args, cwd):
    subprocess.run(["git", "-c", "user.name=bench", "-c", "user.email=bench@example.org",
                    "-c", "init.defaultBranch=main", *args], cwd=cwd, check=True,
                   stdout=subprocess.DEVNULL)


def many_files(where, count, text=""):
    """count files, 500 to a directory, each with `text` and its own number in it."""
    for d in range((count + 499) // 500):
        sub = where / f"d{d}"
        sub.mkdir(parents=True)
        for f in range(min(500, count - d * 500)):
            (sub / f"f{f}.txt").write_text(f"{text}{d * 500 + f}\n" if text else "")


# --- results ----------------------------------------------------------------------

class Bench:
    def __init__(self, ambit, base, quick):
        self.ambit, self.base, self.quick = str(ambit), base, quick
        self.rows = []

    def close(self):
        pass

    def inside(self, *command, options=()):
        return [self.ambit, "run", "-q", *options, "--", *command]

    def row(self, group, what, value, unit="", target=None, note=""):
        verdict = "" if target is None else "PASS" if value <= target else "over"
        self.rows.append({"group": group, "what": what, "value": round(value, 3), "unit": unit,
                          "target": target, "verdict": verdict, "note": note})

    def note(self, group, what, text):
        self.rows.append({"group": group, "what": what, "value": None, "unit": "", "target": None,
                          "verdict": "", "note": text})

    def time(self, group, name, values):
        self.row(group, name, statistics.median(values), "ms",
                 note=f"least {min(values):.2f}, {len(values)} rounds")

    def times(self, group, times):
        for name, values in times.items():
            self.time(group, name, values)


def table(rows):
    width = max((len(r["what"]) for r in rows), default=0) + 2
    lines = []
    for r in rows:
        value = "" if r["value"] is None else f"{r['value']:.2f} {r['unit']}"
        target = "" if r["target"] is None else f"<= {r['target']} {r['unit']}"
        lines.append(f"{r['group']:9}{r['what']:{width}}{value:>12}  {target:12}"
                     f"{r['verdict']:5} {r['note']}".rstrip())
    return "\n".join(lines)


@contextlib.contextmanager
def scratch(where, image):
    """A directory of our own on a real disk, removed in the end; with `image` on a file system
    of its own, which only this process and what it starts can see."""
    where.mkdir(parents=True, exist_ok=True)
    base = Path(tempfile.mkdtemp(prefix="ambit-bench.", dir=where))
    try:
        if image:
            (base / "mnt").mkdir()
            # in memory: what the disk does meanwhile is not what is measured
            room = shutil.disk_usage("/dev/shm").free if os.path.isdir("/dev/shm") else 0
            held = tempfile.NamedTemporaryFile(dir="/dev/shm" if room > IMAGE_SIZE else base)
            held.truncate(IMAGE_SIZE)
            try_out(["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0",
                     held.name], base)
            try_out(["mount", "-o", "loop", held.name, "mnt"], base)
        yield base / "mnt" if image else base
    finally:
        os.chdir("/")
        if image:
            subprocess.run(["umount", base / "mnt"], check=False)
        shutil.rmtree(base, ignore_errors=True)


def start_again(mark, *prefix):
    """By way of another program, once."""
    if mark not in os.environ:
        os.environ[mark] = "1"
        os.execvp(prefix[0], [*prefix, sys.executable, *sys.argv])
    del os.environ[mark]


def in_own_mounts():
    start_again("AMBIT_BENCH_MOUNTS", "unshare", "-m")


def before_others():
    """In a session of our own, of the highest rank: whatever else wants to run here waits."""
    start_again("AMBIT_BENCH_FIRST", "setsid", "-w")
    os.setpriority(os.PRIO_PROCESS, 0, -20)
    with contextlib.suppress(OSError):  # where sessions have a rank
        Path("/proc/self/autogroup").write_text("-20")


def main(kind, groups, description):
    """The command line of a script whose class `kind` has one method for each group."""
    parser = argparse.ArgumentParser(description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("groups", nargs="*", metavar="GROUP",
                        help=f"{', '.join(groups)}; default: all")
    parser.add_argument("--ambit", type=Path, metavar="PROGRAM",
                        default=os.environ.get("AMBIT_BIN", TREE / "build/src/cli/ambit"))
    parser.add_argument("--dir", type=Path, help="where to make the directories (not in /tmp: the "
                        "sandbox has its own); default /srv for root, else ~/.cache")
    parser.add_argument("--image", action="store_true", help="on a fresh ext4 in an image file "
                        "there (root only), whatever state the disk is in")
    parser.add_argument("--first", action="store_true", help="before all other work on this machine "
                        "(root only): use it where that cannot be stopped")
    parser.add_argument("--quick", action="store_true",
                        help="few rounds, small trees: a smoke test")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    for group in args.groups:
        if group not in groups:
            parser.error(f"no group {group}")
    if args.first:
        before_others()
    if args.image:
        in_own_mounts()
    where = args.dir or Path("/srv" if os.geteuid() == 0 else Path.home() / ".cache")
    with scratch(where, args.image) as base:
        bench = kind(Path(args.ambit).absolute(), base, args.quick)
        try:
            for group in args.groups or groups:
                say(f"measuring {group}")
                getattr(bench, group)()
        except Failed as e:
            say(f"bench: {e}")
            return 1
        finally:
            bench.close()
        print(json.dumps(bench.rows, indent=1) if args.json else table(bench.rows))
    return 0
