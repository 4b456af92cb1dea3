"""A scripted OpenAI-compatible vendor on real HTTP, for tests, benchmarks and runs by hand.

``vendor.script([...])`` says what to answer, in order; ``vendor.requests`` has what was asked, byte
for byte; ``vendor.closed`` has the requests whose client hung up before the answer's end.
"""

from tests.vendor.replies import Reply, call
from tests.vendor.server import Received, Vendor

__all__ = ["Received", "Reply", "Vendor", "call"]
