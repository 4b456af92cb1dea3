"""The product's settings with a state folder of their own, chosen before anything reads it."""

import os
from pathlib import Path

os.environ.setdefault("KNOWSPHERE_HOME", str(Path(__file__).resolve().parent.parent / "var" / "test"))

from knowsphere.settings import *  # noqa: F403
