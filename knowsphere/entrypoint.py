"""What the container image runs: ``web``, ``worker``, ``migrate``, or ``manage COMMAND…``.

The process becomes what is asked for, so signals reach it directly. ``healthy`` is the image's probe.
"""

import os
import sys
from typing import NoReturn

from django.core.exceptions import ImproperlyConfigured

from knowsphere import environment, supervisor

USAGE = "Say what to run: web | worker | migrate | manage COMMAND [ARGUMENT…]"


def command(words: list[str]) -> list[str] | None:
    """Return the command line for a role, or None if there is no such role."""
    port = environment.whole("PORT", 8000, least=1, most=65535)
    match words:
        case ["web"]:
            return supervisor.web_command("--host", environment.text("HOST", "0.0.0.0"), "--port", str(port))  # noqa: S104
        case ["worker"]:
            return supervisor.worker_command()
        case ["migrate"]:
            return [sys.executable, "manage.py", "setup"]
        case ["manage", _, *_]:
            return [sys.executable, "manage.py", *words[1:]]
    return None


def main(words: list[str]) -> int:
    """Become the role; return an exit code only where that is not possible."""
    os.chdir(environment.CHECKOUT)
    try:
        if words == ["healthy"]:
            port = environment.whole("PORT", 8000, least=1, most=65535)
            return 0 if supervisor.healthy(("127.0.0.1", port)) else 1
        found = command(words)
    except ImproperlyConfigured as error:
        print(error, file=sys.stderr)
        return 1
    if found is None:
        print(USAGE, file=sys.stderr)
        return 2
    return become(found, process=words[0] if words[0] in {"web", "worker"} else "command")


def become(found: list[str], *, process: str) -> NoReturn:
    """Replace this process."""
    os.execve(found[0], found, {**os.environ, "KNOWSPHERE_PROCESS": process})  # noqa: S606 (no shell is meant)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
