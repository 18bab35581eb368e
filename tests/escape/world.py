# SPDX-License-Identifier: Apache-2.0
"""A world to attack: a person's home with secrets, and around it everything on the host
that a command inside the sandbox must not reach. Every thing is a canary: touched(probe)
says, from outside, whether that attempt got to it.

Two worlds are made per person: one is attacked without the sandbox (the control: there
every attempt must get through and every canary must show it), one from inside.
"""
import ctypes
import os
import secrets
import socket
import stat
import subprocess
import threading
from pathlib import Path

import ambit_test

SUBST = ["/bin/bash", "-c",
         'exec 9<"$1" 20<"$2"; ulimit -c "$(ulimit -Hc)"; shift 2; exec "$@"', "world"]
LIBC = ctypes.CDLL(None, use_errno=True)
IPC_RMID = 0

# Name below the home -> what it is. All of them are unreadable by default (CONTRACT 5).
SECRETS = {
    ".ssh/id_ed25519": "SSH key",
    ".gnupg/private-keys-v1.d/k.key": "GnuPG key",
    ".aws/credentials": "AWS",
    ".config/gh/hosts.yml": "GitHub CLI",
    ".netrc": "netrc",
    ".docker/config.json": "docker",
    ".kube/config": "kubernetes",
    ".npmrc": "npm",
    ".pypirc": "PyPI",
    ".mozilla/firefox/p.default/logins.json": "Firefox",
    ".config/google-chrome/Default/Login Data": "Chrome",
    ".config/chromium/Default/Cookies": "Chromium",
    ".local/share/keyrings/login.keyring": "keyring",
    ".bash_history": "history",
    ".zsh_history": "history",
    ".claude/.credentials.json": "Claude's token",
    ".codex/auth.json": "Codex's token",
}

OUTSIDE = ["write-outside", "write-reopen", "write-truncate", "write-chmod", "write-fchmod",
           "write-utimes", "write-xattr", "write-unlink", "write-hardlink", "write-symlink"]


class Listener:
    """Sockets of the host; remembers what was said to them."""

    def __init__(self):
        self.heard, self.sockets = [], []

    def add(self, sock):
        self.sockets.append(sock)
        threading.Thread(target=self._serve, args=(sock,), daemon=True).start()
        return sock

    def _serve(self, sock):
        try:
            while True:
                if sock.type == socket.SOCK_DGRAM:
                    self.heard.append(sock.recv(64).decode())
                    continue
                conn, _ = sock.accept()
                conn.settimeout(2)
                self.heard.append(conn.recv(64).decode())
                conn.close()
        except OSError:
            pass

    def inet(self, family, kind, address, port=0):
        s = socket.socket(family, kind)
        s.bind((address, port))
        if kind == socket.SOCK_STREAM:
            s.listen()
        return self.add(s).getsockname()[1]

    def unix(self, name, kind=socket.SOCK_STREAM):
        s = socket.socket(socket.AF_UNIX, kind)
        s.bind(name)
        if kind == socket.SOCK_STREAM:
            s.listen()
        if not name.startswith("\0"):
            os.chmod(name, 0o777)
        self.add(s)

    def close(self):
        for s in self.sockets:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            s.close()


class World:
    def __init__(self, box, probe):
        self.box = box
        self.probe = box.write("probe", probe.read_bytes(), 0o755)
        self.token = "TOKEN" + secrets.token_hex(12)
        self.lines, self.output = {}, ""
        self.ear, self.sockets, self.victims = Listener(), {}, []
        self.shm_key = secrets.randbelow(1 << 30) + 1
        self.posix_shm = Path(f"/dev/shm/ambit-canary-{self.token[-8:]}")
        self.mqueue = f"/ambit-canary-{self.token[-8:]}"
        try:
            self._files()
            self._listeners()
            self._ipc()
            self._victims()
        except BaseException:
            self.close()
            raise

    # --- making it ---

    def _files(self):
        b = self.box
        for name in SECRETS:
            b.write(name, f"{self.token} {name}\n", 0o600)
        self.secret = b.home / ".ssh/id_ed25519"
        self.outside = b.mkdir("outside")
        for name in OUTSIDE:
            b.write(self.outside / name, "GOOD\n", 0o600)
        self.before = {n: self._fact(self.outside / n) for n in OUTSIDE}
        self.node = b.ws / "node-there"
        if os.geteuid() == 0:
            os.mknod(self.node, stat.S_IFCHR | 0o666, os.makedev(1, 11))
            self.node.chmod(0o666)
        r = subprocess.run([self.probe, "handle", self.secret], capture_output=True, text=True)
        self.handle = r.stdout.split() if r.returncode == 0 else ["0", "00"]

    @staticmethod
    def _fact(path):
        try:
            st = path.stat()
            return (path.read_bytes(), st.st_mode, st.st_ino, st.st_nlink, st.st_mtime_ns,
                    os.listxattr(path))
        except FileNotFoundError:
            return None

    def _listeners(self):
        ear = self.ear
        self.port = self._one_port(ear)
        name = f"ambit-canary-{os.getpid()}-{self.token[-6:]}"
        run = "/run" if os.access("/run", os.W_OK) else f"/run/user/{os.getuid()}"
        self.box.mkdir(".gnupg")
        self.sockets = {
            "unix-tmp": f"/tmp/{name}", "unix-run": f"{run}/{name}",
            "unix-home": str(self.box.home / "agent.sock"),
            "unix-hidden": str(self.box.home / ".gnupg/S.gpg-agent"),
        }
        for path in self.sockets.values():
            if os.path.isdir(os.path.dirname(path)):
                ear.unix(path)
        self.sockets["unix-pair"] = f"/tmp/{name}-d"
        ear.unix(self.sockets["unix-pair"], socket.SOCK_DGRAM)
        ear.unix("\0" + name)
        self.sockets["unix-abstract"] = name

    @staticmethod
    def _one_port(ear):
        """The same number for TCP, UDP and IPv6."""
        for _ in range(20):
            try:
                port = ear.inet(socket.AF_INET, socket.SOCK_STREAM, "127.0.0.1")
                ear.inet(socket.AF_INET, socket.SOCK_DGRAM, "127.0.0.1", port)
                ear.inet(socket.AF_INET6, socket.SOCK_STREAM, "::1", port)
                return port
            except OSError:  # somebody has one of them
                continue
        raise RuntimeError("no free port")

    def _ipc(self):
        self.box.host(self.probe, "make-shm", str(self.shm_key), self.token).ok()
        self.posix_shm.write_text(self.token)
        self.posix_shm.chmod(0o666)
        small = (ctypes.c_long * 8)(0, 1, 16)  # one message: a user has little room for queues
        q = LIBC.mq_open(self.mqueue.encode(), os.O_CREAT | os.O_RDWR, 0o666, small)
        assert q >= 0, os.strerror(ctypes.get_errno())
        os.close(q)

    def _victims(self):
        self.mark = "VICTIM" + secrets.token_hex(6)
        self.victims = [
            self.box.who.popen([self.probe, "hold", "600", self.mark], env=self.box.env)
            for _ in range(2)]

    # --- attacking it ---

    def context(self):
        host, victim = (str(v.pid) for v in self.victims)
        half = len(self.mark) // 2
        facts = {
            "ws": self.box.ws, "secret": self.secret, "secret-size": self.secret.stat().st_size,
            "secret-in-home": ".ssh/id_ed25519", "home-name": self.box.home.name,
            "outside": self.outside, "mask": self.secret.parent, "host": host, "victim": victim,
            "mark1": self.mark[:half], "mark2": self.mark[half:], "handle-type": self.handle[0],
            "handle": self.handle[1], "node": self.node, "port": self.port,
            "shm-key": self.shm_key, "posix-shm": "/" + self.posix_shm.name,
            "mqueue": self.mqueue, **self.sockets,
        }
        return [f"{k}={v}" for k, v in facts.items()]

    def attack(self, names, prefix=()):
        """Run the probes behind `prefix` (nothing: the host; ambit run --: the sandbox), with
        a secret on fd 9, the home on fd 20 and a secret in the session keyring. Mounts come
        last: where they work they would cover what the others need."""
        names = sorted(names, key=lambda n: n.startswith("mount-"))
        r = self.box.execute([*SUBST, self.secret, self.box.home, self.probe, "with-key",
                              self.token, *prefix, self.probe, "run", *self.context(), *names])
        self.output += r.out + r.err
        for line in r.out.splitlines():
            name, verdict, detail = (line.split("\t") + ["", ""])[:3]
            self.lines[name] = (verdict, detail)
        return r

    # --- judging it ---

    def touched(self, name):
        """Did this attempt reach its canary? None: the attempt has none outside."""
        detail = self.lines[name][1]
        if name in OUTSIDE:
            return self._fact(self.outside / name) != self.before[name]
        if name == "write-create":
            return (self.outside / "write-created").exists()
        if name in ("suid-chmod", "sgid-chmod", "suid-create", "suid-node"):
            p = self.box.ws / name
            return p.exists() and bool(p.stat().st_mode & 0o6000)
        if name in ("node-char", "node-block"):
            return (self.box.ws / name).exists()
        if name == "fd-dir-write":
            return (self.box.home / name).exists()
        if name == "host-kill":
            return self.victims[1].poll() is not None
        if name == "host-renice":
            return (os.getpriority(os.PRIO_PROCESS, self.victims[0].pid) !=
                    os.getpriority(os.PRIO_PROCESS, 0))
        if name == "ipc-shm-remove":
            return LIBC.shmget(self.shm_key, 0, 0) < 0
        if name.startswith(("net-", "unix-")) and name != "net-interfaces":
            return ambit_test.wait_until(lambda: name in self.ear.heard,
                                         5 if self.lines[name][0] == "open" else 0)
        if name.startswith(("read-", "exec-", "fd-file", "fd-dir", "key-session", "key-request",
                            "ipc-shm", "ipc-posix")) and name != "read-stat":
            return self.token in detail
        return None

    def close(self):
        self.ear.close()
        for v in self.victims:
            v.kill()
            v.wait()
        LIBC.shmctl(LIBC.shmget(self.shm_key, 0, 0), IPC_RMID, None)
        LIBC.mq_unlink(self.mqueue.encode())
        self.posix_shm.unlink(missing_ok=True)
        for path in self.sockets.values():
            if path.startswith("/"):
                Path(path).unlink(missing_ok=True)
