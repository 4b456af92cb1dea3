"""The product's settings with a state folder of their own, chosen before anything reads it."""

import os
from pathlib import Path

os.environ.setdefault("KNOWSPHERE_HOME", str(Path(__file__).resolve().parent.parent / "var" / "test"))

# A lock that a failed test left behind fails the next one that wants it, instead of holding it up for ever.
os.environ.setdefault("PGOPTIONS", "-c lock_timeout=60s")

from knowsphere.settings import *  # noqa: F403

# Tests that want a model say so (scripted_model); one that the environment names is never called by accident.
CHAT_MODEL = FAST_MODEL = GRADE_MODEL = VISION_MODEL = EMBEDDING_MODEL = RERANK_MODEL = ASR_MODEL = ""
OPENAI_API_KEY = EMBEDDING_API_KEY = RERANK_API_KEY = ASR_API_KEY = ""
EMBEDDER_THREADS = 1

MIDDLEWARE = ["tests.canary.ResponseWatch", *MIDDLEWARE]  # noqa: F405 (of the product's settings)
