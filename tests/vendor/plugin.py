"""Pytest fixtures: ``vendor`` and ``scripted_model``."""

import pytest

from tests.vendor.server import Vendor

CANARY = "sk-canary-5f2c9d-never-show-this"  # a key that must never be seen outside a request's header


@pytest.fixture(scope="session")
def _vendor_process():
    vendor = Vendor().start()
    yield vendor
    vendor.stop()


@pytest.fixture
def vendor(_vendor_process):
    """The scripted vendor, with nothing scripted yet."""
    _vendor_process.reset()
    return _vendor_process


@pytest.fixture
def scripted_model(settings, vendor):
    """The environment names the vendor's chat models, as CHAT_MODEL and FAST_MODEL do; returns ``vendor``."""
    settings.OPENAI_BASE_URL = vendor.url
    settings.OPENAI_API_KEY = CANARY
    settings.CHAT_MODEL = "scripted-chat"
    settings.FAST_MODEL = "scripted-fast"
    return vendor
