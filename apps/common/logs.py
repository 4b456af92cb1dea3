"""Log records carry the request's or turn's id, and never a tenant's content."""

import json
import logging
from contextvars import ContextVar
from datetime import UTC, datetime
from ipaddress import ip_address

request_id: ContextVar[str] = ContextVar("request_id", default="-")
turn_id: ContextVar[str] = ContextVar("turn_id", default="")
client_ip: ContextVar[str | None] = ContextVar("client_ip", default=None)  # whom the audit log names as the place


def address(host: object) -> str | None:
    """Return the address of a connection's other end, None where it has none (a Unix socket) or says nonsense."""
    try:
        return str(ip_address(str(host).partition("%")[0]))  # without the interface of a link-local address
    except ValueError:
        return None


class RequestIdFilter(logging.Filter):
    """Put the current ids on each record."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id = request_id.get()
        record.turn_id = turn_id.get()
        return True


class JsonFormatter(logging.Formatter):
    """One JSON object a line, for log collectors: LOG_FORMAT=json."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "request_id": getattr(record, "request_id", "-"),
        }
        if turn := getattr(record, "turn_id", ""):
            line["turn_id"] = turn
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)
