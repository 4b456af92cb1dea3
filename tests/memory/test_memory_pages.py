"""Memory: what is said explicitly, what is counted, the page to see and erase it, and the switch."""

import pytest
from django.urls import reverse

from apps.agents.nodes.manage_memory import statements
from apps.knowledge.models import Document
from apps.memory import services
from apps.memory.errors import MemoryOff
from apps.memory.models import DocumentAffinity, MemoryItem
from tests.memory.recalled import recall


def url(name, *args):
    return reverse(f"memory:{name}", args=["acme", *args])


@pytest.fixture
def signed_in(client, ann, acme):
    client.force_login(ann)
    return client


def document(acme, base, name, digest):
    return Document.objects.create(
        workspace=acme, knowledge_base=base, name=name, size_bytes=1, sha256=digest * 64, status="indexed"
    )


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("Remember: I work in finance", "I work in finance"),
        ("remember that I like tables.", "I like tables."),
        ("Please remember that the budget is 5,000", "the budget is 5,000"),
        ("Please remember my name is Ann", "my name is Ann"),
        ("Can you please remember: lunch is at 12", "lunch is at 12"),
        ("Keep in mind that we use SAP", "we use SAP"),
        ("Note that the code is 42", "the code is 42"),
        ("Remember: I work in finance. Tell me how long leave is.", "I work in finance."),
        ("Remember: I work in finance. My boss is Bea. How long is leave?", "I work in finance. My boss is Bea."),
        ("记住：我在财务部工作。年假多少天？", "我在财务部工作。"),
        ("记住：我在财务部工作", "我在财务部工作"),
        ("记住我喜欢简短的回答", "我喜欢简短的回答"),
        ("请记住，预算是五千", "预算是五千"),
        ("请记住预算是五千", "预算是五千"),
        ("帮我记住：密码是 42", "密码是 42"),
        ("请帮我记一下：周五开会", "周五开会"),
        ("麻烦你记一下，周五开会", "周五开会"),
        ("别忘了：周五开会", "周五开会"),
        ("What is leave?\n记住：我在上海", "我在上海"),
    ],
)
def test_statements_in_both_languages(said, kept):
    assert statements(said)[0] == [kept]


@pytest.mark.parametrize(
    "said",
    [
        "Do you remember my name?",
        "Remember when we met?",
        "What should I remember about leave?",
        "I remember that the budget was 5,000",
        "Can you remember that?",
        "Remember that we met?",
        "你记住了吗？",
        "你还记得我的名字吗？",
        "怎么才能记住这些？",
        "记住了",
        "员工应当记住以下规定",
        "Note: the valve must be closed",
        "Sum this up:\nRemember: call Bob\nYours, Al",
        "请记住我的名字了吗",
        "请记住我的名字了吗。",
    ],
)
def test_questions_about_memory_are_no_statements(said):
    assert statements(said) == ([], said)


def test_the_page_shows_changes_and_erases(signed_in, ann, bea, acme):
    signed_in.post(url("add-item"), {"text": "I work in finance"})
    item = MemoryItem.objects.get()
    assert item.kind == "profile"
    services.store_items(workspace=acme, texts=["secret of bea"], actor=bea)
    page = signed_in.get(url("list-items")).content.decode()
    assert "I work in finance" in page
    assert "secret of bea" not in page
    signed_in.post(url("update-item", item.pk), {"text": "The code is 42"})
    item.refresh_from_db()
    assert (item.text, item.kind) == ("The code is 42", "fact")
    assert signed_in.post(url("update-item", item.pk), {"text": " "}).status_code == 422
    signed_in.post(url("delete-item", item.pk))
    assert not MemoryItem.objects.filter(user=ann).exists()
    assert recall(user=ann, workspace_id=acme.pk, question="code") == []


def test_switched_off_nothing_is_read_and_nothing_written(signed_in, ann, acme, handbook):
    services.store_items(workspace=acme, texts=["I work in finance"], actor=ann)
    plan = document(acme, handbook, "plan.md", "a")
    signed_in.post(url("switch"), {"on": "0"})
    assert recall(user=ann, workspace_id=acme.pk, question="finance") == []
    with pytest.raises(MemoryOff):
        services.store_items(workspace=acme, texts=["more"], actor=ann)
    assert signed_in.post(url("add-item"), {"text": "more"}).status_code == 409
    services.count_citations(workspace=acme, actor=ann, documents=[plan.pk])
    assert not DocumentAffinity.objects.exists()
    assert "I work in finance" in signed_in.get(url("list-items")).content.decode()  # still there to be erased
    signed_in.post(url("switch"), {"on": "1"})
    assert recall(user=ann, workspace_id=acme.pk, question="finance") == ["I work in finance"]


def test_two_citations_make_a_document_often_consulted(signed_in, ann, bea, acme, handbook):
    plan, other = document(acme, handbook, "plan.md", "a"), document(acme, handbook, "other.md", "b")
    services.count_citations(workspace=acme, actor=ann, documents=[plan.pk, other.pk])
    assert recall(user=ann, workspace_id=acme.pk, question="x") == []
    services.count_citations(workspace=acme, actor=ann, documents=[plan.pk])
    assert recall(user=ann, workspace_id=acme.pk, question="x") == ["Often consulted: plan.md"]
    assert recall(user=bea, workspace_id=acme.pk, question="x") == []
    assert "plan.md" in signed_in.get(url("list-items")).content.decode()
    row = DocumentAffinity.objects.get(document=plan)
    handbook.restricted = True
    handbook.save()
    from apps.workspaces.models import Membership

    Membership.objects.filter(user=ann).update(role="viewer")  # ann may not read it any more
    assert recall(user=ann, workspace_id=acme.pk, question="x") == []
    assert signed_in.post(url("forget-document", row.pk)).status_code == 302
    assert not DocumentAffinity.objects.filter(document=plan).exists()


def test_documents_of_others_do_not_count(ann, mal, acme):
    from apps.knowledge.models import KnowledgeBase

    theirs = mal.workspaces.get()
    foreign = document(theirs, KnowledgeBase.objects.create(workspace=theirs, name="S"), "s.md", "c")
    services.count_citations(workspace=acme, actor=ann, documents=[foreign.pk])
    assert not DocumentAffinity.objects.exists()
