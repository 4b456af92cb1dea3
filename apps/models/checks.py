"""Checks of the models that the environment names: what cannot be right refuses to start."""

import re
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from apps.models.builtin.weights import bundled

VARIABLES = {
    ("CHAT_MODEL", "FAST_MODEL", "GRADE_MODEL", "VISION_MODEL"): ("OPENAI_BASE_URL", "OPENAI_API_KEY"),
    ("EMBEDDING_MODEL",): ("EMBEDDING_BASE_URL", "EMBEDDING_API_KEY"),
    ("RERANK_MODEL",): ("RERANK_BASE_URL", "RERANK_API_KEY"),
    ("ASR_MODEL",): ("ASR_BASE_URL", "ASR_API_KEY"),
}
NAME = re.compile(r"[^\s\x00-\x1f]{1,200}")
KEY = re.compile(r"[\x21-\x7e]+")
NEEDS_KEY = "api.openai.com"
PATHS = ("/chat/completions", "/embeddings", "/models", "/rerank", "/transcriptions")  # of single calls


@register()
def check_environment_models(**kwargs: Any) -> list[CheckMessage]:
    """Look at names, addresses and keys, without calling anybody; messages never hold a key."""
    problems: list[CheckMessage] = []
    for names, (address, key) in VARIABLES.items():
        named = [name for name in names if getattr(settings, name)]
        problems += [
            _error(name, "is not the name of a model") for name in named if not NAME.fullmatch(getattr(settings, name))
        ]
        if named:
            problems += _check_address(named[0], address, getattr(settings, address), key, getattr(settings, key))
    problems += [
        _error(name, "needs CHAT_MODEL: without it the built-in model answers")
        for name in ("FAST_MODEL", "GRADE_MODEL")
        if getattr(settings, name) and not settings.CHAT_MODEL
    ]
    return problems


@register()
def check_bundled_weights(**kwargs: Any) -> list[CheckMessage]:
    """The built-in embedder's weights come with a package; nothing is ever downloaded for them."""
    try:
        found = bundled().is_file()
    except FileNotFoundError:
        found = False
    if found:
        return []
    hint = "Install requirements.txt into this environment."
    return [Error("The weights of the built-in embedding model are missing.", hint=hint, id="knowsphere.E011")]


def _check_address(name: str, variable: str, address: str, key_variable: str, key: str) -> list[CheckMessage]:
    parts = urlsplit(address)
    if not parts.hostname:
        return [_error(variable, "must be an address, since a model is named")]
    if parts.username or parts.password:
        return [_error(variable, f"must not hold a password; put the key into {key_variable}")]
    if parts.path.endswith(PATHS):
        return [_error(variable, "must end before /chat/completions, usually in /v1")]
    if key and not KEY.fullmatch(key):
        return [_error(key_variable, "has blanks or characters that no key has")]
    if not key and parts.hostname == NEEDS_KEY:
        return [_error(key_variable, f"must be set for {name} at {NEEDS_KEY}; or set {variable}")]
    return []


def _error(variable: str, problem: str) -> CheckMessage:
    return Error(f"{variable} {problem}.", hint="See docs/environment.md.", id="knowsphere.E010")
