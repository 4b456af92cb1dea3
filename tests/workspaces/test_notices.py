"""What operators tell everybody, or one workspace, between two moments."""

from datetime import timedelta

import pytest
from django.core.cache import cache
from django.db import IntegrityError, transaction
from django.urls import reverse
from django.utils import timezone

from apps.common.errors import NotAllowed
from apps.workspaces.models import AuditEvent, Notice
from apps.workspaces.services import delete_notice, save_notice
from tests.conftest import person

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _nothing_known():
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def operator(db):
    user = person("operator@example.com")
    user.is_staff = user.is_superuser = True
    user.save()
    return user


def a_notice(text, *, begins=-1, ends=1, **fields):
    now = timezone.now()
    times = {"begins_at": now + timedelta(hours=begins), "ends_at": now + timedelta(hours=ends)}
    return Notice(text_en=text, **times, **fields)


def page(client, user, slug, **headers):
    client.force_login(user)
    return client.get(reverse("workspaces:list-members", args=[slug]), **headers).content.decode()


def test_a_page_shows_what_is_for_all_and_for_its_workspace_now(client, ann, acme, mal, operator):
    theirs = mal.workspaces.get()
    for notice in (
        a_notice("For all", text_zh="给所有人"),
        a_notice("For Acme", workspace=acme, level="warn"),
        a_notice("For Mallory", workspace=theirs),
        a_notice("Over", begins=-3, ends=-1),
        a_notice("To come", begins=1, ends=2),
    ):
        save_notice(notice=notice, actor=operator)
    cache.clear()
    seen = page(client, ann, "acme")
    assert [text in seen for text in ("For all", "For Acme", "For Mallory", "Over", "To come")] == [
        True, True, False, False, False,
    ]  # fmt: skip
    assert "给所有人" in page(client, ann, "acme", headers={"Accept-Language": "zh-hans"})
    assert "For Mallory" in page(client, mal, theirs.slug)


def test_a_reader_closes_what_may_be_closed(client, ann, acme, mal, operator):
    closable, fixed, foreign = a_notice("Closable"), a_notice("Fixed", dismissable=False), a_notice("x", workspace=acme)
    for notice in (closable, fixed, foreign):
        save_notice(notice=notice, actor=operator)
    cache.clear()
    client.force_login(ann)
    close = [client.post(reverse("workspaces:dismiss-notice", args=[one.pk])) for one in (closable, fixed)]
    assert [answer.status_code for answer in close] == [302, 404]
    there = client.post(reverse("workspaces:dismiss-notice", args=[closable.pk]), {"next": "https://evil.example/"})
    assert there["Location"] == "/"
    seen = client.get(reverse("workspaces:list-members", args=["acme"])).content.decode()
    assert ("Closable" in seen, "Fixed" in seen) == (False, True)
    client.force_login(mal)
    assert client.post(reverse("workspaces:dismiss-notice", args=[foreign.pk])).status_code == 404
    assert "Closable" in page(client, mal, mal.workspaces.get().slug)  # closed for ann alone


def test_operators_alone_write_them_and_the_log_says_so(client, ann, acme, operator):
    with pytest.raises(NotAllowed):
        save_notice(notice=a_notice("No"), actor=ann)
    client.force_login(operator)
    now = timezone.localtime()
    form = {
        "text_en": "Down at ten", "text_zh": "十点维护", "level": "bad", "workspace": str(acme.pk), "dismissable": "on",
        "begins_at_0": (now - timedelta(days=1)).strftime("%Y-%m-%d"), "begins_at_1": "10:00:00",
        "ends_at_0": (now + timedelta(days=1)).strftime("%Y-%m-%d"), "ends_at_1": "10:00:00",
    }  # fmt: skip
    backwards = {**form, "ends_at_0": (now - timedelta(days=2)).strftime("%Y-%m-%d")}
    assert client.post(reverse("admin:workspaces_notice_add"), backwards).status_code == 200
    assert not Notice.objects.exists()
    assert client.post(reverse("admin:workspaces_notice_add"), form).status_code == 302
    notice = Notice.objects.get()
    assert (notice.workspace, notice.created_by, notice.text) == (acme, operator, "Down at ten")
    assert "Down at ten" in page(client, ann, "acme")
    client.force_login(operator)
    client.post(reverse("admin:workspaces_notice_delete", args=[notice.pk]), {"post": "yes"})
    assert not Notice.objects.exists()
    events = AuditEvent.objects.filter(workspace=acme, action__startswith="notice.").order_by("at")
    assert [(one.action, one.kind, one.right) for one in events] == [
        ("notice.made", "operator", "operator"),
        ("notice.deleted", "operator", "operator"),
    ]
    with pytest.raises(IntegrityError), transaction.atomic():
        a_notice("Backwards", begins=1, ends=0).save()
    gone = a_notice("Gone", workspace=acme)
    save_notice(notice=gone, actor=operator)
    delete_notice(notice=gone, actor=operator)
    assert not Notice.objects.exists()
