"""What a process that reads foreign files may not do: no network, no programs, no other files, no endless work.

Files: Landlock (Linux 5.13 and newer) leaves it the code that it runs, to read, and nothing else; the
file that it is given and the one for its answer are open already.

Three layers against the network and other programs. The first that the machine permits of the first
two is enough; the third also holds where there is no Linux:

1. a network namespace of its own, in which no interface is up (needs root or user namespaces);
2. a seccomp filter that answers EPERM to socket, connect, exec, ptrace and their kin (x86-64, arm64);
3. a Python audit hook that refuses sockets and programs before the kernel is asked.

This module runs in the sandbox: standard library only.
"""

import ctypes
import os
import platform
import resource
import signal
import struct
import sys
from collections.abc import Sequence
from pathlib import Path

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, PR_SET_PDEATHSIG, SECCOMP_MODE_FILTER = 38, 22, 1, 2
LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT, LANDLOCK_BENEATH = 444, 445, 446, 1
ALL_OF_FILES, READ_FILES_AND_FOLDERS = (1 << 13) - 1, 0b1100  # of Landlock's first version
_ALLOW, _EPERM = 0x7FFF0000, 0x00050001

# socket, socketpair, connect, bind, listen, ptrace, execve, execveat, io_uring_setup, mount, unshare, setns,
# kexec_load, bpf
_CALLS = {
    "x86_64": (0xC000003E, (41, 53, 42, 49, 50, 101, 59, 322, 425, 165, 272, 308, 246, 321)),
    "aarch64": (0xC00000B7, (198, 199, 203, 200, 201, 117, 221, 281, 425, 40, 97, 268, 104, 280)),
}
_FORBIDDEN_EVENTS = frozenset(
    {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty", "pty.spawn", "os.kill"}
)


def leave_network() -> bool:
    """Move this process into a network namespace with nothing in it. False where that is not permitted."""
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    return any(libc.unshare(flags) == 0 for flags in (CLONE_NEWNET, CLONE_NEWUSER | CLONE_NEWNET))


def forbid_system_calls() -> bool:
    """Install the seccomp filter for this process and its children. False where it cannot be."""
    if sys.platform != "linux" or platform.machine() not in _CALLS:
        return False
    architecture, numbers = _CALLS[platform.machine()]
    load, equal, at_least, give = 0x20, 0x15, 0x35, 0x06
    count = len(numbers)  # a jump is counted from the next line; the refusal stands behind the permission
    program = [
        struct.pack("HBBI", load, 0, 0, 4),  # the architecture: another one's numbers mean other calls
        struct.pack("HBBI", equal, 1, 0, architecture),
        struct.pack("HBBI", give, 0, 0, _EPERM),
        struct.pack("HBBI", load, 0, 0, 0),  # the call's number
        struct.pack("HBBI", at_least, count + 1, 0, 0x40000000),  # x32's numbers for the same calls
        *(struct.pack("HBBI", equal, count - at, 0, number) for at, number in enumerate(numbers)),
        struct.pack("HBBI", give, 0, 0, _ALLOW),
        struct.pack("HBBI", give, 0, 0, _EPERM),
    ]
    code = ctypes.create_string_buffer(b"".join(program))
    filters = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        return False
    return bool(libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(filters), 0, 0) == 0)


def forbid_files(readable: Sequence[str]) -> bool:
    """Leave this process and its children no files but those below ``readable``, and those only to read.

    False where the kernel has no Landlock. Descriptors that are open already stay so.
    """
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    handled = ctypes.create_string_buffer(struct.pack("Q", ALL_OF_FILES), 8)
    ruleset = libc.syscall(LANDLOCK_CREATE, ctypes.byref(handled), ctypes.c_size_t(8), 0)
    if ruleset < 0:
        return False
    try:
        for path in readable:
            try:
                folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except OSError:
                continue  # it is not there
            rule = ctypes.create_string_buffer(struct.pack("=Qi", READ_FILES_AND_FOLDERS, folder), 12)
            libc.syscall(LANDLOCK_ADD, ruleset, LANDLOCK_BENEATH, ctypes.byref(rule), 0)
            os.close(folder)
        libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        return bool(libc.syscall(LANDLOCK_RESTRICT, ruleset, 0) == 0)
    finally:
        os.close(ruleset)


def own_code() -> list[str]:
    """Return the folders that this interpreter may still import from or load libraries of."""
    ours = str(Path(__file__).resolve().parents[2])
    return [ours, sys.prefix, sys.base_prefix, "/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/share/zoneinfo"]


def forbid_in_python() -> None:
    """Refuse sockets and other programs inside this interpreter, for good."""

    def hook(event: str, arguments: object) -> None:
        if event in _FORBIDDEN_EVENTS or (event.startswith("socket.") and event != "socket.__new__"):
            raise PermissionError(f"{event} is not allowed while reading a file")

    sys.addaudithook(hook)


def limit(*, memory_bytes: int, cpu_s: int, output_bytes: int) -> None:
    """Bound what this process may use. CPU seconds of 0 mean no bound (a long-lived process has a timer a file)."""
    _lower(resource.RLIMIT_AS, memory_bytes)
    _lower(resource.RLIMIT_FSIZE, output_bytes)
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_NOFILE, 64)
    if cpu_s:
        _lower(resource.RLIMIT_CPU, cpu_s)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write beyond the limit is an error, not an end


def end_with_parent() -> None:
    """Ask Linux to kill this process when its parent dies; elsewhere the closed channel ends it."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == 1:
            os._exit(0)


def _lower(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    try:
        resource.setrlimit(kind, (value, value))
    except (ValueError, OSError):
        pass  # macOS refuses some; the wall clock still holds
