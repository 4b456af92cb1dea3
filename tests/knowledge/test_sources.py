"""Web pages, texts written here, questions and answers, locked files."""

import threading
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from django.utils import timezone

from apps.common.errors import InvalidInput, NotFound
from apps.knowledge import questions, services
from apps.knowledge.errors import BusyDocument, Cancelled, SameContent
from apps.knowledge.models import Chunk, Document
from apps.knowledge.questions import Pair
from apps.knowledge.services.sweeping import sweep
from apps.workspaces.models import Quota
from tests.vendor import Reply

Status = Document.Status
PAGE = "<html><head><title>Opening hours</title></head><body><h1>Hours</h1><p>Open from {}.</p></body></html>"


class Site:
    """A web site on this machine: what it answers can be changed."""

    def __init__(self):
        self.status, self.body, self.asked = 200, PAGE.format("nine"), 0
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                site.asked += 1
                self.send_response(site.status)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.end_headers()
                self.wfile.write(site.body.encode())

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def site(settings):
    site = Site()
    settings.OUTBOUND_ALLOW = [site.address]
    yield site
    site.server.shutdown()


@pytest.fixture
def page(site, handbook, ann, embedder):
    """Add the site's page and take it in; return the document."""

    def page(**more):
        url = f"http://{site.address}/hours#today"
        document = services.add_page(knowledge_base=handbook, url=url, actor=ann, **more)
        return work(document)

    return page


def work(document):
    services.ingest_document(document.pk)
    document.refresh_from_db()
    return document


def texts(document):
    return [chunk.text for chunk in Chunk.objects.filter(document=document, level=0).order_by("ordinal")]


def test_a_page_is_fetched_by_the_worker_and_found_by_its_title(page, site, caplog):
    document = page()
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
    assert (document.error_code, document.error_details) == ("", {})
    assert (document.status, document.kind, document.name) == (Status.INDEXED, "web", "Opening hours")
    assert document.source_url == f"http://{site.address}/hours"
    assert "Open from nine." in texts(document)[0]
    assert b"<title>" in document.file.read()
    assert page().pk == document.pk
    assert site.asked == 1


def test_a_refresh_indexes_only_what_is_different(page, site, embedder, ann):
    document = page()
    asked = len(embedder.requests)
    services.refresh_page(document=document, actor=ann)
    work(document)
    assert (document.status, document.generation, site.asked) == (Status.INDEXED, 1, 2)
    assert len(embedder.requests) == asked
    site.body = PAGE.format("ten")
    services.refresh_page(document=document, actor=ann)
    work(document)
    assert (document.generation, document.name) == (2, "Opening hours")
    assert "Open from ten." in texts(document)[0]


def test_a_change_that_was_not_indexed_is_not_taken_for_old(page, site, embedder, ann):
    document = page()
    site.body = PAGE.format("ten")
    embedder.otherwise = lambda request: Reply(status=400, error="no")
    services.refresh_page(document=document, actor=ann)
    assert work(document).status == Status.ERROR_INDEXING
    embedder.reset()
    services.refresh_page(document=document, actor=ann)
    assert (work(document).status, document.generation) == (Status.INDEXED, 2)


def test_a_page_that_did_not_change_still_takes_up_what_people_changed_in_it(page, site, embedder, ann):
    document = page()
    passage = Chunk.objects.get(document=document, level=0)
    services.edit_chunk(chunk=passage, text="Open from noon.", actor=ann)
    embedder.otherwise = lambda request: Reply(status=400, error="no")
    assert work(document).status == Status.ERROR_INDEXING
    embedder.reset()
    services.refresh_page(document=document, actor=ann)
    assert (work(document).status, texts(document)) == (Status.INDEXED, ["Open from noon."])
    services.refresh_page(document=document, actor=ann)
    assert (work(document).generation, texts(document)) == (2, ["Open from noon."])


def test_a_page_whose_first_fetch_failed_is_fetched_by_itself_later(page, site):
    site.status = 503
    document = page(refresh_hours=1)
    assert document.status == Status.ERROR_PARSING
    site.status = 200
    Document.objects.update(refresh_at=document.refresh_at - timedelta(hours=2))
    assert sweep()["refreshed"] == 1
    assert work(document).status == Status.INDEXED


def test_a_page_that_does_not_come_is_given_up_as_soon_as_that_is_wanted(page, handbook, ann, monkeypatch):
    import asyncio

    from apps.knowledge.services import sources
    from apps.knowledge.services.work import Work

    async def fetch(url, **_more):
        await asyncio.Event().wait()

    monkeypatch.setattr(sources, "fetch", fetch)
    document = services.add_page(knowledge_base=handbook, url="https://example.com/", actor=ann)
    looked = []

    def check(work):
        looked.append(work)
        if len(looked) > 3:  # the first looks are before the fetch begins
            raise Cancelled

    monkeypatch.setattr(Work, "check", check)
    assert (work(document).status, document.pk) == (Status.ERROR_PARSING, document.pk)
    assert Document.objects.get().error_code == "cancelled"


def test_a_page_that_is_gone_is_said_and_what_was_read_still_answers(page, site, ann):
    document = page()
    site.status = 404
    services.refresh_page(document=document, actor=ann)
    work(document)
    assert (document.status, document.error_code, document.error_details) == (
        Status.ERROR_PARSING,
        "page_unreachable",
        {"reason": "HTTP 404"},
    )
    assert "Open from nine." in texts(document)[0]
    site.status = 200
    services.retry_document(document=document, actor=ann)
    assert work(document).status == Status.INDEXED


def test_a_page_takes_up_what_it_weighs_and_gives_it_back(page, site, ann, acme, monkeypatch):
    used = lambda: {  # noqa: E731
        (row.kind, row.user_id is None): row.used
        for row in Quota.objects.filter(workspace=acme, kind__in=["storage", "documents"])
    }
    document = page()
    size = len(site.body)
    both = {(kind, whose): count for kind, count in (("storage", size), ("documents", 1)) for whose in (True, False)}
    assert used() == both
    assert document.size_bytes == size
    site.body = PAGE.format("ten, and on Sundays from eleven")
    services.refresh_page(document=document, actor=ann)
    document = work(document)
    both |= {("storage", whose): len(site.body) for whose in (True, False)}
    assert used() == both

    Quota.objects.filter(workspace=acme, user=None, kind="storage").update(limit=len(site.body) + 10)
    site.body = PAGE.format("noon " * 100)
    services.refresh_page(document=document, actor=ann)
    document = work(document)
    assert (document.status, document.error_code, document.generation) == ("error_parsing", "no_room", 2)
    assert used() == both
    Document.objects.update(deleted_at=timezone.now() - timedelta(seconds=11))
    sweep()
    assert set(used().values()) == {0}


def test_an_address_inside_is_not_fetched(page, settings, site):
    settings.OUTBOUND_ALLOW = []
    document = page()
    assert (document.status, document.error_code, site.asked) == (Status.ERROR_PARSING, "page_unreachable", 0)


def test_pages_are_fetched_on_schedule(page, site, ann):
    document = page(refresh_hours=24)
    assert document.refresh_at > timezone.now() + timedelta(hours=23)
    assert sweep()["refreshed"] == 0
    Document.objects.update(refresh_at=timezone.now() - timedelta(seconds=1))
    assert sweep()["refreshed"] == 1
    assert sweep()["refreshed"] == 0
    assert (work(document).status, site.asked) == (Status.INDEXED, 2)
    services.schedule_page(document=document, refresh_hours=None, actor=ann)
    document.refresh_from_db()
    assert document.refresh_at is None


@pytest.mark.parametrize("url", ["", "ftp://x/", "javascript:alert(1)", "http://", "x", "http://[::1", "file:///etc"])
def test_what_is_no_address_is_refused(handbook, ann, url):
    with pytest.raises(InvalidInput):
        services.add_page(knowledge_base=handbook, url=url, actor=ann)
    assert not Document.objects.exists()


def test_a_text_is_written_and_changed(handbook, ann, embedder):
    document = work(services.add_text(knowledge_base=handbook, name="Rules", text="# Rules\n\nBe kind.", actor=ann))
    assert (document.status, document.kind, texts(document)) == (Status.INDEXED, "text", ["# Rules\n\nBe kind."])
    assert not services.edit_text(document=document, name="Rules", text="# Rules\n\nBe kind.", actor=ann)
    assert services.edit_text(document=document, name="House rules", text="# Rules\n\nBe very kind.", actor=ann)
    work(document)
    assert (document.name, texts(document)) == ("House rules", ["# Rules\n\nBe very kind."])
    with pytest.raises(InvalidInput):
        services.edit_text(document=document, name=" ", text="x", actor=ann)
    services.add_text(knowledge_base=handbook, name="Other", text="Other text", actor=ann)
    with pytest.raises(SameContent):
        services.edit_text(document=document, name="House rules", text="Other text", actor=ann)


def test_new_content_is_counted_by_its_size_and_none_goes_to_a_deleted_document(handbook, acme, ann):
    document = services.add_text(knowledge_base=handbook, name="Rules", text="Be kind.", actor=ann)
    for text in ("Be very, very kind.", "Be."):
        assert services.edit_text(document=document, name="Rules", text=text, actor=ann)
        used = Quota.objects.filter(workspace=acme, kind="storage").values_list("used", flat=True)
        assert list(used) == [len(text), len(text)]
    services.delete_document(document=document, actor=ann)
    with pytest.raises(NotFound):
        services.edit_text(document=document, name="Rules", text="Be late.", actor=ann)
    assert document.file.read() == b"Be."


def test_an_address_is_no_place_for_a_password_and_no_text(handbook, ann, site):
    with pytest.raises(InvalidInput):
        services.add_page(knowledge_base=handbook, url="https://ann:secret@example.com/", actor=ann)
    address = f"http://{site.address}/hours"
    services.add_text(knowledge_base=handbook, name="Address", text=address, actor=ann)
    assert services.add_page(knowledge_base=handbook, url=address, actor=ann).source_url == address


def test_each_question_is_a_passage_with_its_answer(handbook, ann, embedder):
    pairs = [Pair("When is it open?", "From nine.\n\n# Not a heading\n\nAnd so on."), Pair("哪里?", "北京。")]
    document = work(services.add_questions(knowledge_base=handbook, name="FAQ", pairs=pairs, actor=ann))
    assert (document.status, document.kind) == (Status.INDEXED, "qa")
    rows = Chunk.objects.filter(document=document, level=0).order_by("ordinal")
    assert [row.heading for row in rows] == ["When is it open?", "哪里?"]
    assert r"\# Not a heading" in rows[0].text
    assert questions.read(document.file.read()) == questions.cleaned(pairs)
    services.edit_questions(document=document, name="FAQ", pairs=pairs[1:], actor=ann)
    assert len(texts(work(document))) == 1
    with pytest.raises(InvalidInput):
        services.edit_questions(document=document, name="FAQ", pairs=[Pair("Why?", " ")], actor=ann)
    with pytest.raises(BusyDocument):
        services.edit_text(document=document, name="FAQ", text="x", actor=ann)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gb18030", "utf-16"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_pairs_are_read_from_any_usual_table(encoding, delimiter):
    table = f'问题{delimiter}答案\r\n什么时候开门？{delimiter}"九点，\r\n周末除外。"\r\n只有问题{delimiter}\r\n'
    assert questions.from_csv(table.encode(encoding)) == [Pair("什么时候开门？", "九点，\n周末除外。")]


def test_nothing_in_an_export_is_computed_by_a_spreadsheet():
    cells = ["=1+1", "+1", "-1", "@x", "＝1", "-5", "-5.5%", "plain"]
    written = questions.to_csv([Pair(cell, cell) for cell in cells])
    assert written.startswith(b"\xef\xbb\xbf")
    found = [line.split(",")[0] for line in written.decode("utf-8-sig").splitlines()[1:]]
    assert found == ["'=1+1", "+1", "-1", "'@x", "'＝1", "-5", "-5.5%", "plain"]
    assert questions.from_csv(written) == [Pair(cell, cell) for cell in cells]  # and back as it was


def test_a_list_that_is_too_long_is_refused_and_not_cut(handbook, ann):
    for pairs, told in (
        ([Pair(f"{at}?", "Yes.") for at in range(questions.MOST_PAIRS + 1)], "5001 pairs"),
        ([Pair("Why?", "Because. " * 3_000)], "Why?"),
        ([Pair(f"{at}?", "因" * 19_000) for at in range(80)], "4 MB"),
    ):
        with pytest.raises(InvalidInput) as refused:
            services.add_questions(knowledge_base=handbook, name="FAQ", pairs=pairs, actor=ann)
        assert told in refused.value.message


def test_a_table_of_pairs_may_hold_other_delimiters_and_quotation_marks_without_end():
    table = "问题;答案\n怎么走？;先左转,再右转,然后直走\n几点？;九点,周末除外\n"
    assert questions.from_csv(table.encode()) == [
        Pair("怎么走？", "先左转,再右转,然后直走"),
        Pair("几点？", "九点,周末除外"),
    ]
    endless = 'Why?,"Because\n' + "How?,So it is said.\n" * 10_000
    assert questions.from_csv(endless.encode())[1] == Pair("How?", "So it is said.")


def test_a_password_opens_a_locked_file_and_is_kept_encrypted(add, embedder, ann, data_folder):
    document = add((data_folder / "documents/files/2206.01062_pg3.pdf").read_bytes(), "locked.pdf")
    assert work(document).error_code == "password_required"
    services.unlock_document(document=document, password="wrong", actor=ann)
    assert work(document).error_code == "password_required"
    services.unlock_document(document=document, password="1234", actor=ann)
    assert work(document).status == Status.INDEXED
    services.reparse_document(document=document, actor=ann)
    assert (work(document).status, document.generation) == (Status.INDEXED, 2)
    assert str(document.password) == "********"
    with pytest.raises(BusyDocument):
        services.unlock_document(document=document, password="1234", actor=ann)
