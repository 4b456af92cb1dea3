"""The product's application with the scripted runner, for servers in processes of their own."""

from knowsphere.asgi import application  # first: it sets Django up

# isort: split
import os

from apps.conversations import ending
from apps.conversations.engine import ENGINE
from tests.conversations import scripted

ENGINE.run_turn = scripted.run_turn
ENGINE.grace_s = 0.5
ending.PATIENCE_S = float(os.environ.get("PATIENCE_S", "60"))

__all__ = ["application"]
