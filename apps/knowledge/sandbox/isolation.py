"""What a process that reads foreign files may not do: no network, no new programs, no endless work.

Three layers against the network and other programs. The first that the machine permits of the
first two is enough; the third also holds where there is no Linux:

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

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, PR_SET_PDEATHSIG, SECCOMP_MODE_FILTER = 38, 22, 1, 2
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
