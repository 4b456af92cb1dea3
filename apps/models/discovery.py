"""Which models there are: what a vendor lists, what its documentation names, and the Ollama on this machine."""

import asyncio
import re
from collections.abc import Iterable

import orjson

from apps.common.fields import Secret
from apps.models import connections
from apps.models.calls import list_names
from apps.models.chat import ResolvedModel
from apps.models.models import Kind
from apps.models.providers import CUSTOM, VENDORS

OLLAMA = "http://127.0.0.1:11434"
OLLAMA_S = 1.0  # on this machine it answers at once, or there is none
OLLAMA_BYTES = 2**20
# What names say about models that no table knows; the first that fits.
SIGNS = (
    (Kind.RERANK, re.compile(r"rerank", re.I)),
    (Kind.SPEECH, re.compile(r"whisper|transcribe|\basr\b|sensevoice|paraformer|telespeech", re.I)),
    (Kind.EMBEDDING, re.compile(r"embed|\bbge-|\bgte-|\be5-|\bm3e\b|minilm", re.I)),
    (Kind.VISION, re.compile(r"[-.\d]vl\b|[-/]vl-|\bvl\d|vision|ocr|llava|glm-\d(\.\d)?v|internvl", re.I)),
)


def guess_kind(provider: str, name: str) -> str:
    """Return what a model is for, by its vendor's documentation or else its name; chat where nothing says."""
    vendor = VENDORS.get(provider, VENDORS[CUSTOM])
    known = next((known.kind for known in vendor.models if known.name == name), None)
    guess = known or next((kind for kind, sign in SIGNS if sign.search(name)), Kind.CHAT)
    return str(guess) if guess in vendor.kinds else str(Kind.CHAT)


def list_models(provider: str, *, base_url: str, key: str) -> list[tuple[str, str]]:
    """Ask a vendor which models it has; return (name, kind). The address is a workspace's, so it is guarded.

    Raises:
        ModelUnavailable, ModelRefused, ModelAddressRefused, ModelOverloaded, ModelTimeout.
    """
    address = base_url.rstrip("/") or VENDORS.get(provider, VENDORS[CUSTOM]).base_url
    secret = Secret(key) if key else None
    model = ResolvedModel(Kind.CHAT, "openai_compatible", address, address, secret, guarded=True)

    async def ask() -> list[str]:
        try:
            return await list_names(model)
        finally:
            await connections.close()

    return with_kinds(provider, asyncio.run(ask()))


def documented(provider: str) -> list[tuple[str, str]]:
    """Return the models that the vendor's documentation names, without asking it."""
    return [(known.name, known.kind) for known in VENDORS.get(provider, VENDORS[CUSTOM]).models]


def with_kinds(provider: str, names: Iterable[str]) -> list[tuple[str, str]]:
    """Return names with what each is for."""
    return [(name, guess_kind(provider, name)) for name in names]


def ollama_models() -> list[tuple[str, str]] | None:
    """Return (name, kind) of what the Ollama on this machine has; None where none answers."""
    return asyncio.run(_ollama_models())


async def _ollama_models() -> list[tuple[str, str]] | None:
    import aiohttp

    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=OLLAMA_S)) as session,
            session.get(f"{OLLAMA}/api/tags", allow_redirects=False) as response,
        ):
            value = orjson.loads(await response.content.read(OLLAMA_BYTES)) if response.status == 200 else None
    except (aiohttp.ClientError, OSError, TimeoutError, orjson.JSONDecodeError):
        return None
    rows = value.get("models") if isinstance(value, dict) else None
    if not isinstance(rows, list):
        return None
    names = [row.get("name") for row in rows if isinstance(row, dict)]
    return with_kinds("ollama", [name for name in names if isinstance(name, str) and name])
