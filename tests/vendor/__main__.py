"""``python -m tests.vendor PORT``: the vendor as a process, for benchmarks and runs by hand.

Answers every chat with ``--tokens`` tokens at ``--per-second`` each second (0: as fast as it can).
With ``--tool NAME`` each turn first calls that tool once, with the question as its ``query``. With
``--clock`` each token is the moment at which it is sent.
"""

import argparse
import threading
from typing import Any

from tests.vendor.replies import Reply, call
from tests.vendor.server import Received, Vendor


def question(messages: list[dict[str, Any]]) -> str:
    return next((str(m["content"]) for m in reversed(messages) if m["role"] == "user"), "")


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.vendor", description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("--tokens", type=int, default=300)
    parser.add_argument("--per-second", type=float, default=0)
    parser.add_argument("--tool", default="", metavar="NAME")
    parser.add_argument("--clock", action="store_true")
    options = parser.parse_args()
    pieces = [f" word{number}" for number in range(options.tokens)]

    def answer(request: Received) -> Reply:
        body = request.body or {}
        usage = {"prompt_tokens": len(request.raw) // 4, "completion_tokens": options.tokens}
        offered = {tool["function"]["name"] for tool in body.get("tools", [])}
        if options.tool in offered and body["messages"][-1]["role"] == "user":
            arguments = {"query": question(body["messages"])[-300:]}
            return Reply(tool_calls=[call(options.tool, arguments, f"call_{len(vendor.requests)}")], usage=usage)
        text = "".join(pieces)
        return Reply(text=text, pieces=pieces, per_second=options.per_second, usage=usage, clock=options.clock)

    vendor = Vendor(options.port)
    vendor.otherwise = answer
    vendor.start()
    print(vendor.url, flush=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        vendor.stop()


if __name__ == "__main__":
    main()
