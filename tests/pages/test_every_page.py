"""Every page, as it is looked at: wide and narrow, light and dark, in English and in Chinese.

Pages are those of the access matrix that answer with a whole document, those of accounts, and those of failures. Each
is checked by axe (WCAG 2.2 A and AA), for refusals of its policy, for errors of its scripts, and for running off its
side, at 320 px and from right to left too (``looks.py``). PAGES_ONLY is a pattern of the names of those to look at.
"""

import os
import re

import pytest
from django.contrib.auth.models import AnonymousUser
from django.shortcuts import render
from django.test import Client, RequestFactory
from django.urls import reverse
from django.utils import translation

from apps.common.errors import NotAllowed, NotFound, RequestTooLarge, ServiceUnavailable
from apps.common.middleware import error_response
from apps.workspaces.errors import QuotaExceeded
from tests.access.tables import ACCOUNT_ROUTES, EXPECTED, WITH_ARGUMENTS
from tests.access.world import World
from tests.pages.conftest import launched
from tests.pages.indoors import SITE, answer_from
from tests.pages.looks import DESK, look, squeeze
from tests.pages.world import furnish

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PARTS = 3  # of the pages, each a test of its own
LANGUAGES = {"en": "en-GB", "zh-hans": "zh-CN"}
# What else a page shows when it is asked something.
QUERIES = {
    "knowledge:search-documents": "?q=business+class",
    "knowledge:try-search": "?q=business+class",
    "conversations:list-conversations": "?q=business",
    "knowledge:show-knowledge-base": "?q=policy",
}
NOBODY = ("account_login", "account_signup", "account_reset_password")


def pages_of(client, world, more):
    """Return name → (address, response) of all routes that answer ann with a whole page, told by asking them."""
    routes = [route for method, route in EXPECTED if method == "get" and EXPECTED[method, route]["owner"] == 200]
    routes += sorted(ACCOUNT_ROUTES - WITH_ARGUMENTS - {*NOBODY})
    asked = {route: world.path(route) for route in routes}
    asked |= {f"{route}-asked": asked[route] + query for route, query in QUERIES.items()} | more
    answers = {name: client.get(address) for name, address in asked.items()}
    bodies = {name: getattr(got, "content", b"") for name, got in answers.items() if got.status_code == 200}
    whole = [name for name, body in bodies.items() if b"<html" in body[:600]]
    return {name: (asked[name], answers[name]) for name in sorted(whole)}


def others(language):
    """Return name → response of pages that ann does not get by asking: signed out, and failures of each kind."""
    nobody = Client(headers={"accept-language": language})
    found = {route: nobody.get(reverse(route)) for route in NOBODY}
    with translation.override(language):
        asked = RequestFactory().get("/")
        asked.user, asked.LANGUAGE_CODE = AnonymousUser(), language
        failures = (NotFound(), NotAllowed(), RequestTooLarge(limit_mb=1), ServiceUnavailable(service="PostgreSQL"))
        limited = QuotaExceeded(whose="Acme", kind="turns", limit=1, used=1)
        found |= {f"error-{error.status}": error_response(asked, error) for error in (*failures, limited)}
        for name in ("400", "403_csrf", "500", "account/lockout", "account/signup_closed"):
            found[name] = render(asked, f"{name}.html")
    for response in found.values():
        response.status_code = 200  # a browser would log others as failures of the page
    return found


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_page_is_for_everybody(client, acme, ann, bea, mal, handbook, language, part):
    world = World(acme, ann, bea, mal, handbook)
    document, turn = furnish(acme, ann, handbook)
    client.force_login(ann)
    client.cookies["ks_language"] = language
    rich = {
        "rich-answer": reverse("conversations:show-conversation", args=[acme.slug, turn.conversation_id]),
        "rich-source": reverse("conversations:show-source", args=[acme.slug, turn.pk, 1]),
        "rich-document": reverse("knowledge:show-document", args=[acme.slug, document.pk]),
        "rich-passages": reverse("knowledge:list-chunks", args=[acme.slug, document.pk]),
    }
    pages = pages_of(client, world, rich)
    pages |= {name: (f"/ready/{name.replace('/', '-')}/", response) for name, response in others(language).items()}
    assert len(pages) > 60
    pages = {name: pages[name] for name in sorted(pages)[part::PARTS]}
    with launched() as chromium:
        context = chromium.new_context(viewport=DESK, locale=LANGUAGES[language], reduced_motion="reduce")
        answer_from(context, client, dict(pages.values()))
        offenders = look_at({name: address for name, (address, _) in pages.items()}, context.new_page(), language)
    assert not offenders, "\n".join(f"{name}: {said}" for name, all_ in offenders.items() for said in all_)


def look_at(pages, tab, language):
    """Return name → what is wrong with a page, of all pages that PAGES_ONLY matches."""
    wrong, offenders = [], {}
    tab.on("console", lambda message: wrong.append(f"console: {message.text}") if blamed(message) else None)
    tab.on("pageerror", lambda error: wrong.append(f"script: {error}"))
    for name in filter(re.compile(os.environ.get("PAGES_ONLY", "")).search, pages):
        wrong.clear()
        tab.goto(SITE + pages[name])
        wrong += look(tab, f"{name}.{language}") + squeeze(tab)
        if wrong:
            offenders[name] = sorted(set(wrong))
    return offenders


def blamed(message):
    """Whether a page is to blame; the widget's preview is refused a session here, where its frame sends no Origin."""
    return message.type == "error" and not ("401" in message.text and "/widget/" in message.location["url"])
