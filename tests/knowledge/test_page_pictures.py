"""Pages of PDFs as pictures: the right page, the right words in yellow, and for readers only."""

import io

import numpy as np
import pytest
from django.test import Client
from django.urls import reverse
from PIL import Image

from apps.knowledge import page_pictures, sheets
from apps.knowledge.sandbox import reader
from tests.knowledge.files import pdf

PAGES = [
    [(72, 720, 18, "Travel policy"), (72, 680, 11, "Flights are booked through the travel desk.")],
    [
        (72, 720, 11, "Where the flight time exceeds eight hours, business class"),
        (72, 704, 11, "may be booked with written consent."),
        (72, 640, 11, "The daily allowance in Munich is ninety-five euros."),
    ],
]


@pytest.fixture
def policy(ingest):
    document = ingest(pdf(PAGES), "Travel policy.pdf")
    assert document.status == "indexed"
    return document


def place(document, words):
    text = sheets._stretch(document, 0)
    start = text.index(words[:20])
    return str(start), str(text.index(words[-12:]) + 12)


def yellow_rows(picture):
    """Where, from 0 at the top to 1, the page has yellow."""
    red, green, blue = np.moveaxis(np.asarray(Image.open(io.BytesIO(picture.data)).convert("RGB")), 2, 0)
    yellow = (red > 225) & (green > 200) & (blue < 160)
    return [y / len(yellow) for y, row in enumerate(yellow) if row.sum() > 20]


def test_cited_words_are_yellow_where_they_stand(policy, ann):
    start, end = place(
        policy, "Where the flight time exceeds eight hours, business class may be booked with written consent."
    )
    picture = page_pictures.draw(policy, 2, actor=ann, start=start, end=end)
    rows = yellow_rows(picture)
    assert (picture.page, picture.media_type) == (2, "image/webp")
    assert rows
    assert min(rows) > 1 - 740 / 792
    assert max(rows) < 1 - 690 / 792  # two lines of it, and not the third


def test_words_of_the_page_after_are_followed_there(policy, ann):
    start, end = place(policy, "The daily allowance in Munich is ninety-five euros.")
    picture = page_pictures.draw(policy, 1, actor=ann, start=start, end=end)
    assert picture.page == 2
    assert yellow_rows(picture)


@pytest.mark.parametrize("marked", [("", ""), ("-3", "x"), ("999999", "1000000")])
def test_an_address_may_hold_anything(policy, ann, marked):
    assert yellow_rows(page_pictures.draw(policy, 1, actor=ann, start=marked[0], end=marked[1])) == []


def test_readers_alone_see_it(policy, ingest, client, acme, ann, mal):
    start, end = place(policy, "Flights are booked through the travel desk.")
    address = reverse("knowledge:show-page", args=[acme.slug, policy.pk, 1])
    client.force_login(ann)
    shown = client.get(address, {"start": start, "end": end})
    assert (shown.status_code, shown["Content-Type"]) == (200, "image/webp")
    assert "sandbox" in shown["Content-Security-Policy"]
    assert shown["Cache-Control"].startswith("private")
    for number in (0, 3, 10**9):
        assert client.get(reverse("knowledge:show-page", args=[acme.slug, policy.pk, number])).status_code == 404
    other = ingest("# No pages here", "a.md")
    assert client.get(reverse("knowledge:show-page", args=[acme.slug, other.pk, 1])).status_code == 404
    policy.file.storage.delete(policy.file.name)
    assert client.get(address).status_code in (404, 410, 422)
    client.force_login(mal)
    assert client.get(address).status_code == 404


def test_a_page_that_kills_its_reader_is_an_error_and_no_more(policy, ann, monkeypatch):
    from apps.knowledge.errors import DocumentFailure

    with policy.file.storage.open(policy.file.name, "wb") as file:
        file.write(b"%PDF-1.7\nnothing more")
    with pytest.raises(DocumentFailure):
        page_pictures.draw(policy, 1, actor=ann)


def test_who_waits_too_long_for_the_sandbox_is_told_to_come_again(policy, client, acme, ann, monkeypatch):
    monkeypatch.setattr(page_pictures, "WAIT_S", 0.05)
    client.force_login(ann)
    address = reverse("knowledge:show-page", args=[acme.slug, policy.pk, 1])
    with reader._channel.lock:  # the file of somebody else
        refused = client.get(address, headers={"accept": "application/json"})
    assert refused.status_code == 503
    assert client.get(address).status_code == 200


def test_a_person_has_one_page_drawn_at_a_time_and_others_have_theirs(policy, client, acme, ann, bea, monkeypatch):
    real, meanwhile = reader.read, []
    address = reverse("knowledge:show-page", args=[acme.slug, policy.pk, 1])

    def read(*args, **more):
        if not meanwhile:  # ann's first, while it is being drawn
            meanwhile.append("begun")
            for person in (ann, bea):
                tab = Client()
                tab.force_login(person)
                meanwhile.append(tab.get(address).status_code)
        return real(*args, **more)

    monkeypatch.setattr(reader, "read", read)
    client.force_login(ann)
    assert client.get(address).status_code == 200
    assert meanwhile == ["begun", 503, 200]
    assert client.get(address).status_code == 200
