"""Mail (.eml, .mbox) and saved web pages (.mhtml): headers that matter, the body, what is attached."""

import email
import re
from collections.abc import Iterator
from email.header import decode_header, make_header
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import BinaryIO
from urllib.parse import unquote

from apps.common.text import legible
from apps.knowledge.parsers.embedded import one_budget, read_inside, unread_inside
from apps.knowledge.parsers.encodings import decode
from apps.knowledge.parsers.html import Find, fragment_to_markdown
from apps.knowledge.parsers.illustrations import wanted
from apps.knowledge.parsers.parsed import Parsed, ParseFailure, tidy
from apps.knowledge.parsers.properties import facts

HEADERS = ("From", "To", "Cc", "Date")
MOST_MESSAGES = 20_000
DEEPEST = 20
MBOX_START = re.compile(rb"^From [^\n]*\n", re.MULTILINE)


@one_budget()
def parse_mail(file: BinaryIO) -> Parsed:
    """Read one message with its attachments. Raises ParseFailure(empty_file)."""
    message = _message(file.read())
    parsed = _parsed("\n\n".join(_blocks(message, 1)), _header(message, "Subject"))
    parsed.metadata.update(unread_inside())
    parsed.metadata.update(facts((("author", _header(message, "From")), ("created", _date(_header(message, "Date"))))))
    return parsed


@one_budget()
def parse_mbox(file: BinaryIO) -> Parsed:
    """Read a mailbox: its messages one after the other. Raises ParseFailure(empty_file)."""
    parts = [part for part in MBOX_START.split(file.read().replace(b"\r\n", b"\n")) if part.strip()]
    blocks = ["\n\n".join(_blocks(_message(part), 1)) for part in parts[:MOST_MESSAGES]]
    parsed = _parsed("\n\n".join(filter(None, blocks)), "")
    parsed.metadata.update({"messages": len(parts), **unread_inside()})
    if len(parts) > MOST_MESSAGES:
        parsed.metadata["truncated"] = f"{len(parts) - MOST_MESSAGES} of {len(parts)} messages"
    return parsed


def parse_saved_page(file: BinaryIO) -> Parsed:
    """Read the page of a web archive; frames and pictures inside are not followed. Raises ParseFailure(empty_file)."""
    message = _message(file.read())
    pages = (part for part in message.walk() if part.get_content_type() in ("text/html", "application/xhtml+xml"))
    find = _pictures(message)
    text = next(filter(None, (_html(page, find) for page in pages)), "")
    text, title = text or "\n\n".join(_body(message, find, 0)), _header(message, "Subject")
    return _parsed(f"# {title}\n\n{text}" if title and text and title not in text else text, title)


def _date(header: str) -> str:
    try:
        return parsedate_to_datetime(header).isoformat()
    except (ValueError, TypeError, IndexError, OverflowError):
        return ""


def _parsed(markdown: str, title: str) -> Parsed:
    markdown = tidy(legible(markdown)).strip()
    if not markdown:
        raise ParseFailure("empty_file")
    return Parsed(markdown, metadata={"title": title[:300]} if title else {})


def _message(data: bytes) -> Message:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") or data[:200].count(0) > 50:
        data = decode(data)[0].encode()
    return email.message_from_bytes(data.lstrip())


def _header(message: Message, name: str) -> str:
    raw = next((str(text) for key, text in message.raw_items() if key.lower() == name.lower()), "")
    if not raw.isascii():  # bytes that nobody declared
        raw = decode(raw.encode("utf-8", "surrogateescape"))[0]
    try:
        text = str(make_header(decode_header(raw)))
    except (ValueError, LookupError, UnicodeError):
        text = raw
    return " ".join(legible(text).split())


def _blocks(message: Message, level: int, depth: int = 0) -> Iterator[str]:
    """Yield a message's headers, body and attachments."""
    subject = _header(message, "Subject")
    if subject:
        yield f"{'#' * level} {subject}"
    about = [f"{name}: {text}" for name in HEADERS if (text := _header(message, name))]
    body = list(_body(message, _pictures(message), depth))
    if about and (body or subject):
        yield "\n".join(about)
    yield from body


def _body(message: Message, find: Find, depth: int) -> Iterator[str]:
    if depth > DEEPEST:
        return
    kind, name = message.get_content_type(), message.get_filename()
    if kind == "multipart/alternative" and message.is_multipart():
        choices = ["\n\n".join(_body(part, find, depth + 1)) for part in _parts(message)]
        yield next((text for text in choices if text.strip()), "")
    elif kind == "message/rfc822" and message.is_multipart():
        for part in _parts(message):
            yield from _blocks(part, 2, depth + 1)
    elif message.is_multipart():
        for part in _parts(message):
            yield from _body(part, find, depth + 1)
    elif name or message.get_content_disposition() == "attachment":
        yield from _attachment(message, _filename(message))
    elif kind == "text/html":
        yield _html(message, find)
    elif message.get_content_maintype() == "text":
        yield _text(message)


def _parts(message: Message) -> list[Message]:
    parts = message.get_payload()
    return [part for part in parts if isinstance(part, Message)] if isinstance(parts, list) else []


def _filename(message: Message) -> str:
    raw = message.get_filename() or ""
    try:
        return " ".join(legible(str(make_header(decode_header(raw)))).split())
    except (ValueError, LookupError, UnicodeError):
        return raw.encode("utf-8", "replace").decode()


def _attachment(message: Message, name: str) -> Iterator[str]:
    if message.get_content_disposition() != "attachment" and message.get_content_maintype() == "image":
        return  # a picture in the text
    text, _ = read_inside(_bytes(message), name)
    yield f"## {name or message.get_content_type()}"
    if text:
        yield text


def _bytes(message: Message) -> bytes:
    payload = message.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def _text(message: Message) -> str:
    return decode(_bytes(message), str(message.get_content_charset() or ""))[0].strip()


def _pictures(message: Message) -> Find:
    """Return how to find the pictures that a message carries, by what its text calls them."""
    found: dict[str, Message] = {}
    for part in message.walk() if wanted() else ():
        if part.get_content_maintype() == "image":
            found[f"cid:{str(part.get('Content-ID') or '').strip().strip('<>')}"] = part
            found[str(part.get("Content-Location") or "").strip()] = part

    def find(source: str) -> bytes | None:
        part = found.get(unquote(source)) or found.get(source)
        return None if part is None else _bytes(part)

    return find


def _html(message: Message, find: Find) -> str:
    charset = message.get_content_charset()
    data = _bytes(message)
    if charset:
        data = b"\xef\xbb\xbf" + decode(data, str(charset))[0].encode("utf-8", "replace")
    return fragment_to_markdown(data, find)
