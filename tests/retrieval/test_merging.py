"""Three levels: where enough pieces of a section were hit the section is what is read, whichever way it is ordered."""

import pytest
from django.core.files.base import ContentFile

from apps.knowledge import services
from apps.knowledge.retrieval import legs
from apps.knowledge.retrieval.profiles import Profile
from apps.knowledge.retrieval.search import search
from apps.knowledge.services import create_knowledge_base

pytestmark = pytest.mark.django_db(transaction=True)

SECTION = "员工每年有十五天带薪年假，第{}条说明如何申请。" * 12


@pytest.fixture
def cut_up(acme, ann, in_thread, settings):
    settings.EMBEDDING_MODEL = ""  # the built-in one

    def make():
        base = create_knowledge_base(workspace=acme, name="Rules", actor=ann)
        base.chunker, base.chunker_settings = "three_level", {}
        base.save()
        text = "\n\n".join(f"# 第{at}章\n\n" + SECTION.replace("{}", str(at)) for at in range(4))
        file = ContentFile(text.encode())
        document = services.add_document(knowledge_base=base, file=file, name="rules.md", actor=ann)
        services.ingest_document(document.pk)
        document.refresh_from_db()
        assert document.status == "indexed", document.error_code
        return base

    return in_thread(make)


async def test_parents_that_cannot_be_read_leave_their_children(ann, cut_up, monkeypatch):
    monkeypatch.setattr(legs, "ancestors_statement", lambda *_, **__: ("SELECT 1 FROM nowhere", {}))
    found = await search(ann, "年假", knowledge_bases=[cut_up.pk], profile=Profile(merge_share=0.2))
    assert found.degraded == ("merging",)
    assert "年假" in found.passages[0].text


@pytest.mark.parametrize(("question", "by"), [("How many days of paid leave?", "built_in"), ("年假", "")])
async def test_parents_stand_for_their_children(ann, cut_up, question, by):
    found = await search(ann, question, knowledge_bases=[cut_up.pk], profile=Profile(merge_share=0.2))
    assert found.reranked_by == by
    assert any(stage.name == "merging" and stage.left < stage.entered for stage in found.stages)
    assert "年假" in found.passages[0].text
    texts = [passage.text for passage in found.passages]
    assert not [one for one in texts for other in texts if one is not other and one in other], (
        "no child beside its parent"
    )
