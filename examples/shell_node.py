#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What pflow's ShellNode would do, by ctypes: run a shell step in the sandbox of a project.

    LIBAMBIT=/path/to/libambit.so.0 ./shell_node.py DIRECTORY COMMAND
"""
import ctypes
import os
import sys
from ctypes import (CFUNCTYPE, POINTER, Structure, byref, c_bool, c_char, c_char_p, c_int, c_int64,
                    c_size_t, c_uint, c_uint64, c_void_p)


class Error(Structure):
    _fields_ = [("code", c_int), ("exit_code", c_int), ("text", c_char * 1000)]


class Violation(Structure):
    _fields_ = [(name, c_char_p) for name in
                ("kind", "target", "rule", "source", "reason", "process", "hint")] + \
               [("pid", c_int64), ("time_ms", c_int64)]


OnViolation = CFUNCTYPE(None, c_void_p, POINTER(Violation))
OnAsk = CFUNCTYPE(c_int, c_void_p, c_char_p, c_uint)
OnAskWrite = CFUNCTYPE(c_int, c_void_p, c_char_p, c_char_p)


class Spawn(Structure):
    _fields_ = [("size", c_size_t), ("argv", POINTER(c_char_p)), ("shell", c_char_p),
                ("stdin_fd", c_int), ("stdout_fd", c_int), ("stderr_fd", c_int),
                ("directory", c_char_p), ("env", POINTER(c_char_p)),
                ("violation", OnViolation), ("ask", OnAsk), ("ask_write", OnAskWrite),
                ("ctx", c_void_p)]


class Result(Structure):
    _fields_ = [("size", c_size_t), ("exit_code", c_int), ("signal", c_int), ("timed_out", c_bool),
                ("started", c_bool), ("wall_ms", c_uint64), ("cpu_ms", c_uint64),
                ("max_rss", c_uint64), ("violations", c_uint64)]


def load():
    lib = ctypes.CDLL(os.environ.get("LIBAMBIT", "libambit.so.0"))
    lib.ambit_config_new.restype = c_void_p
    for name in ("free",):
        getattr(lib, f"ambit_config_{name}").argtypes = [c_void_p]
    lib.ambit_config_set.argtypes = [c_void_p, c_char_p, c_char_p]
    lib.ambit_config_directory.argtypes = [c_void_p, c_char_p]
    lib.ambit_spawn.argtypes = [c_void_p, POINTER(Spawn), POINTER(c_void_p), POINTER(Error)]
    lib.ambit_process_wait.argtypes = [c_void_p, c_int, POINTER(Result), POINTER(Error)]
    lib.ambit_process_free.argtypes = [c_void_p]
    lib.ambit_is_available.argtypes = [POINTER(Error)]
    lib.ambit_is_available.restype = c_bool
    return lib


class Refused(Exception):
    """The sandbox could not be had, or the policy is wrong: nothing was run."""


class ShellNode:
    """One policy, any number of commands."""

    def __init__(self, directory, **settings):
        self.lib = load()
        self.config = self.lib.ambit_config_new()
        self.lib.ambit_config_directory(self.config, os.fsencode(directory))
        for key, values in settings.items():
            for value in values if isinstance(values, (list, tuple)) else [values]:
                self.set(key.replace("__", "."), value)

    def set(self, key, value):
        if self.lib.ambit_config_set(self.config, key.encode(), os.fsencode(str(value))) < 0:
            raise Refused(f"no such setting: {key}")

    def run(self, command):
        """(exit code, output, what was blocked)"""
        blocked, error = [], Error()
        result = Result(size=ctypes.sizeof(Result))
        read, write = os.pipe()
        on_violation = OnViolation(lambda _, v: blocked.append(
            {name: (getattr(v.contents, name) or b"").decode(errors="replace")
             for name in ("kind", "target", "reason", "hint")}))
        spawn = Spawn(size=ctypes.sizeof(Spawn), shell=os.fsencode(command), stdin_fd=-1,
                      stdout_fd=write, stderr_fd=write, violation=on_violation)
        process = c_void_p()
        status = self.lib.ambit_spawn(self.config, byref(spawn), byref(process), byref(error))
        os.close(write)
        with os.fdopen(read, "rb") as f:
            if status < 0:
                raise Refused(error.text.decode(errors="replace"))
            output = f.read().decode(errors="replace")
        self.lib.ambit_process_wait(process, -1, byref(result), byref(error))
        self.lib.ambit_process_free(process)
        if not result.started:
            raise Refused(error.text.decode(errors="replace"))
        return result.exit_code, output, blocked

    def close(self):
        self.lib.ambit_config_free(self.config)


def main():
    node = ShellNode(sys.argv[1], limits__timeout="10m")
    try:
        code, output, blocked = node.run(sys.argv[2])
    except Refused as e:
        sys.exit(f"not run: {e}")
    finally:
        node.close()
    sys.stdout.write(output)
    for b in blocked:
        print(f"[blocked] {b['kind']} {b['target']}: {b['reason']}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
