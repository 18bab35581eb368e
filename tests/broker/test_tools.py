# SPDX-License-Identifier: Apache-2.0
"""Package managers and build tools, which write much: the same tree inside as outside."""
import hashlib
import io
import json
import os
import shutil
import stat
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from ambit_test import skip_impossible

SLOW = 120


def tree(top, leave_out=()):
    """path -> (kind, permissions, content) of everything below."""
    found = {}
    for d, dirs, files in os.walk(top):
        for name in dirs + files:
            path = os.path.join(d, name)
            relative = os.path.relpath(path, top)
            if any(part in leave_out for part in relative.split("/")):
                continue
            st = os.lstat(path)
            content = os.readlink(path) if stat.S_ISLNK(st.st_mode) else \
                hashlib.sha256(open(path, "rb").read()).hexdigest() if stat.S_ISREG(st.st_mode) else ""
            found[relative] = (stat.S_IFMT(st.st_mode), stat.S_IMODE(st.st_mode), content)
    return found


def same(outside, inside, **kw):
    a, b = tree(outside, **kw), tree(inside, **kw)
    assert a and a == b, {p: (a.get(p), b.get(p)) for p in a.keys() | b.keys() if a.get(p) != b.get(p)}


# --- npm, from its cache ------------------------------------------------------------------

def package(name, files, **fields):
    """A package as npm packs it."""
    described = {"name": name, "version": "1.0.0", **fields}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for path, text in {"package.json": json.dumps(described), **files}.items():
            entry = tarfile.TarInfo(f"package/{path}")
            entry.size, entry.mode = len(text), 0o755 if path.startswith("bin/") else 0o644
            tar.addfile(entry, io.BytesIO(text.encode()))
    return described, out.getvalue()


PACKAGES = {d["name"]: (d, t) for d, t in (
    package("first", {"index.js": "module.exports = require('second') + 1\n", "bin/first.js":
                      "#!/usr/bin/env node\nconsole.log(require('..'))\n",
                      # packages do bring such names
                      ".vscode/settings.json": "{}\n", ".env": "A=b\n",
                      **{f"lib/f{i}.js": f"// {i}\n" for i in range(200)}},
            dependencies={"second": "^1.0.0"}, bin={"first": "bin/first.js"},
            scripts={"postinstall": "echo built > built.txt"}),
    package("second", {"index.js": "module.exports = 41\n"}),
)}


@pytest.fixture
def registry():
    """A registry on the loopback with PACKAGES in it: its address."""
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            name = self.path.strip("/").split("/")[0]
            if name not in PACKAGES:
                self.send_error(404)
                return
            described, tarball = PACKAGES[name]
            body, kind = tarball, "application/octet-stream"
            if not self.path.endswith(".tgz"):
                dist = {"tarball": f"{address}/{name}/-/{name}-1.0.0.tgz",
                        "shasum": hashlib.sha1(tarball).hexdigest()}
                body, kind = json.dumps({
                    "name": name, "dist-tags": {"latest": "1.0.0"},
                    "versions": {"1.0.0": {**described, "dist": dist}}}).encode(), "application/json"
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    address = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield address
    server.shutdown()


def test_npm(box, registry):
    """Install from the cache, twice: the second time over what is there, as `npm ci` does."""
    box.write("ws/outside/package.json", '{"name": "x", "version": "1.0.0", "dependencies": {"first": "^1.0.0"}}')
    box.mkdir("cache")
    npm = ["npm", "--registry", registry, "--cache", str(box.home / "cache"), "--no-audit", "--no-fund",
           "--no-update-notifier", "--loglevel", "error"]
    box.host(*npm, "install", cwd=box.ws / "outside", timeout=SLOW).ok()
    assert (box.ws / "outside/node_modules/first/built.txt").exists()
    inside = box.mkdir("ws/inside")
    for name in ("package.json", "package-lock.json"):
        box.write(f"ws/inside/{name}", (box.ws / "outside" / name).read_text())
    options = ["--allow-write", str(box.home / "cache"), "--report", str(box.home / "report.json")]
    for command in ("install", "ci"):
        r = box.run(*npm, "--offline", command, cwd=inside, options=options, timeout=SLOW)
        assert r.code == 0, str(r)
        same(box.ws / "outside", inside)
        told = json.loads((box.home / "report.json").read_text())
        assert told["violations"] == [], told["violations"]
    r = box.sh("node_modules/.bin/first", cwd=inside)
    assert r.out == "42\n", str(r)
    # names that a package brought are told, the lock file not: no host is new
    assert not [p for p in told["runsLater"] if p["path"].endswith("package-lock.json")]


# --- builds ------------------------------------------------------------------------------------

RUST = {
    "Cargo.toml": '[package]\nname = "hello"\nversion = "0.1.0"\nedition = "2021"\n'
                  '[dependencies]\nlocal = { path = "local" }\n',
    "build.rs": 'fn main() { std::fs::write(std::path::Path::new(&std::env::var("OUT_DIR").unwrap())'
                '.join("made.rs"), "pub const MADE: u32 = 40;").unwrap(); }\n',
    "src/main.rs": 'include!(concat!(env!("OUT_DIR"), "/made.rs"));\n'
                   'fn main() { println!("{}", MADE + local::two()); }\n'
                   '#[test] fn works() { assert_eq!(local::two(), 2); }\n',
    "local/Cargo.toml": '[package]\nname = "local"\nversion = "0.1.0"\nedition = "2021"\n',
    "local/src/lib.rs": "pub fn two() -> u32 { 2 }\n",
}


def test_cargo(boxes):
    """Root's only where cargo is root's; the toolchain lies outside the project, read-only."""
    cargo = shutil.which("cargo")
    if not cargo:
        skip_impossible("cargo is not installed")
    box = boxes("root" if cargo.startswith("/root/") else "user")
    for path, text in RUST.items():
        box.write(f"ws/{path}", text)
    env = {"CARGO_HOME": str(box.mkdir("ws/cargo-home")), "CARGO_TERM_COLOR": "never", "CARGO_NET_OFFLINE": "true"}
    options = ["--env", "CARGO_HOME,CARGO_TERM_COLOR,CARGO_NET_OFFLINE"]
    if os.path.isdir(os.path.expanduser("~/.rustup")):
        env["RUSTUP_HOME"] = os.path.expanduser("~/.rustup")
        env["PATH"] = os.path.dirname(cargo) + ":" + os.environ["PATH"]
        options += ["--env", "RUSTUP_HOME", "--allow-read", os.path.dirname(cargo)]
    r = box.run(cargo, "build", "-q", env=env, options=options, timeout=SLOW)
    assert r.code == 0, str(r)
    assert box.host(box.ws / "target/debug/hello").ok().out == "42\n"
    r = box.run(cargo, "test", "-q", env=env, options=options, timeout=SLOW)
    assert r.code == 0 and "1 passed" in r.out, str(r)
    r = box.run(cargo, "clean", env=env, options=options, timeout=SLOW)
    assert r.code == 0 and not (box.ws / "target").exists(), str(r)


MAKEFILE = """all: prog lib.a gen.h
gen.h:
\techo '#define N 42' > $@.tmp && mv $@.tmp $@
%.o: %.c gen.h
\t$(CC) -O0 -c -o $@ $<
prog: main.o a.o b.o
\t$(CC) -o $@ $^
lib.a: a.o b.o
\tar rcsD $@ $^
install: all
\tinstall -d dest/bin && install -m 755 prog dest/bin && install -m 644 lib.a dest
clean:
\trm -rf *.o prog lib.a gen.h dest
"""


def test_make(box):
    for where in ("outside", "inside"):
        box.write(f"ws/{where}/Makefile", MAKEFILE)
        box.write(f"ws/{where}/main.c", '#include <stdio.h>\n#include "gen.h"\nint a(void), b(void);\n'
                  'int main(void) { printf("%d\\n", N + a() + b()); }\n')
        for name in "ab":
            box.write(f"ws/{where}/{name}.c", f"int {name}(void) {{ return 0; }}\n")
    for target in ("all", "install", "clean", "install"):
        box.host("make", "-s", "-j2", target, cwd=box.ws / "outside").ok()
        r = box.run("make", "-s", "-j2", target, cwd=box.ws / "inside", options=["-q"])
        assert r.code == 0 and r.err == "", str(r)
        same(box.ws / "outside", box.ws / "inside")
    assert box.host(box.ws / "inside/dest/bin/prog").ok().out == "42\n"


def test_venv(box):
    """With pip in it, if there is one to put; made where it is, so only names and kinds are compared."""
    for where, run in (("outside", box.host), ("inside", box.run)):
        top = box.mkdir(f"ws/{where}")
        r = run("/usr/bin/python3", "-m", "venv", "env", cwd=top, timeout=SLOW)
        if "ensurepip is not" in r.out:
            skip_impossible("python3-venv is not installed")
        assert r.code == 0, str(r)
        r = run(top / "env/bin/python", "-c", "import sys; print(sys.prefix)", cwd=top)
        assert r.ok().out == f"{top}/env\n"
    names = [{p: (kind, mode) for p, (kind, mode, _) in tree(box.ws / where, ("__pycache__",)).items()}
             for where in ("outside", "inside")]
    assert names[0] == names[1]


def test_pip_from_files(box):
    """pip builds and installs what lies there, without any index."""
    box.write("ws/p/setup.py", "from setuptools import setup\nsetup(name='amb', version='1', py_modules=['amb'])\n")
    box.write("ws/p/amb.py", "print('amb')\n")
    r = box.run("/usr/bin/python3", "-m", "venv", "--system-site-packages", "env", timeout=SLOW)
    if r.code != 0:
        skip_impossible("python3-venv is not installed")
    if box.run("env/bin/python", "-c", "import setuptools, wheel").code != 0:
        skip_impossible("python3-setuptools and python3-wheel are not installed")
    r = box.run("env/bin/pip", "install", "-q", "--no-index", "--no-build-isolation", "./p", timeout=SLOW)
    assert r.code == 0, str(r)
    assert box.run("env/bin/python", "-m", "amb").ok().out == "amb\n"
