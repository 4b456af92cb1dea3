"""``make bench``: run every benchmark and print its ratios. ``python -m benchmarks start`` runs one.

Each runs in a process of its own, so that none warms another up. The exit code is 0 unless a
benchmark could not run: a ratio above its bar is printed, not punished, since machines differ.
"""

import importlib
import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from benchmarks.report import Ratio, table
from knowsphere import postgres

FOLDER = Path(__file__).parent
RUN_ONE = "--run-one"


def names() -> list[str]:
    """Return what can be measured."""
    return sorted(path.stem.removeprefix("bench_") for path in FOLDER.glob("bench_*.py"))


def run_one(name: str) -> None:
    """Set Django up, run one benchmark, print its ratios as the last line, in JSON."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "knowsphere.settings")
    postgres.hold()
    import django

    django.setup()
    ratios: list[Ratio] = importlib.import_module(f"benchmarks.bench_{name}").run()
    print(json.dumps([asdict(ratio) for ratio in ratios]))


def measure(name: str) -> list[Ratio] | None:
    """Run one benchmark in a process of its own; None if it failed, its reason printed."""
    print(f"… {name}", file=sys.stderr, flush=True)
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", RUN_ONE, name],
        cwd=FOLDER.parent,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        return None
    return [Ratio(**ratio) for ratio in json.loads(done.stdout.splitlines()[-1])]


def main() -> int:
    """Measure what is asked for, or everything; return the exit code."""
    if sys.argv[1:2] == [RUN_ONE]:
        run_one(sys.argv[2])
        return 0
    unknown = set(sys.argv[1:]) - set(names())
    if unknown:
        print(f"There is no benchmark {', '.join(sorted(unknown))}; there are: {', '.join(names())}", file=sys.stderr)
        return 2
    os.environ.setdefault("KNOWSPHERE_HOME", str(FOLDER.parent / "var" / "bench"))
    postgres.hold()  # once for all of them
    subprocess.run([sys.executable, "manage.py", "setup"], cwd=FOLDER.parent, check=True)
    failed = []
    for name in sys.argv[1:] or names():
        ratios = measure(name)
        if ratios is None:
            failed.append(name)
        else:
            print(f"\n{name}\n{table(ratios)}\n", flush=True)
    if failed:
        print(f"could not run: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
