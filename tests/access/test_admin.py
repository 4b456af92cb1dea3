"""The operators' pages: nobody else comes in, and no text of a tenant is in a list, a form, a title or a log.

``CHANGES`` says of each table what operators may do besides looking; a table in neither list fails.
"""

import pytest
from django.contrib import admin
from django.db import DatabaseError, models, transaction
from django.test import Client
from django.urls import reverse

from tests.access.personas import PERSONAS
from tests.conftest import person

ALL = {"add", "change", "delete"}
CHANGES = {
    "auth.Group": ALL,
    "axes.AccessAttempt": {"change", "delete"},
    "axes.AccessFailureLog": {"change", "delete"},
    "axes.AccessLog": {"change", "delete"},
    "django_q.Failure": {"change", "delete"},
    "django_q.OrmQ": {"change", "delete"},
    "django_q.Schedule": ALL,
    "django_q.Success": {"change", "delete"},
    "memory.MemoryItem": {"delete"},
    "models.Budget": {"add"},  # their own; a tenant's is looked at
    "models.ModelConfig": {"add"},  # their own; a tenant's is looked at
    "workspaces.Notice": ALL,
    "workspaces.Quota": {"change"},
    "workspaces.User": {"change"},
}
# These they only look at: ids, states and numbers.
LOOKED_AT = {
    "account.EmailAddress",
    "evals.Case", "evals.Dataset", "evals.DatasetShare", "knowledge.NextVector",
    "agents.Agent", "agents.AgentShare", "agents.AgentVersion", "agents.ConversationHandoff",
    "agents.ToolResultRef", "conversations.Attachment", "conversations.Citation", "conversations.Conversation",
    "conversations.Feedback", "conversations.Message", "conversations.Share", "conversations.Turn",
    "evals.EvalRun", "knowledge.Chunk", "knowledge.ChunkOverride", "knowledge.ChunkVector",
    "knowledge.Document", "knowledge.DocumentImage", "knowledge.DocumentShare", "knowledge.Folder",
    "knowledge.FolderShare", "knowledge.IngestionAttempt", "knowledge.Job", "knowledge.KnowledgeBase",
    "knowledge.KnowledgeBaseShare", "knowledge.MetadataField", "knowledge.PassageTokens",
    "knowledge.SearchProfile", "knowledge.StagedVector", "knowledge.Synonyms", "memory.ConversationNote",
    "memory.DocumentAffinity", "memory.MemorySwitch", "models.ModelShare", "models.Spending",
    "models.UsageRecord", "rest.CarriedOut", "widgets.Use", "widgets.Visitor", "widgets.Widget",
    "workspaces.ApiKey", "workspaces.AuditEvent", "workspaces.Department", "workspaces.DepartmentMember",
    "workspaces.Invitation", "workspaces.Membership", "workspaces.Workspace",
}  # fmt: skip
CANARY = "zebrafinch-7731"
# What operators may read of a row: addresses, codes, states; every other text of every table is a tenant's.
PLAIN = {
    "language", "time_zone", "password", "digest", "start", "sha256", "content_type", "media_type", "error_code",
    "stage", "kind", "key", "markdown_key", "client_id", "owner_process", "chunker", "scope", "currency", "unit",
    "purpose", "subject", "public_id", "color", "fingerprint", "caller", "row", "tool", "tools", "embedding_model",
    "numbers", "documents", "parts", "usage", "progress", "right", "action", "target_kind", "token", "chunker_settings",
    "text_en", "text_zh", "workspaces.User.email", "workspaces.Workspace.slug", "conversations.Turn.model",
    "models.UsageRecord.model", "workspaces.User.name",
    "knowledge.Job.result",  # counts
}  # fmt: skip
TEXTS = (models.CharField, models.TextField, models.JSONField)


def label(model):
    return model._meta.label


def address(model, page, *arguments):
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", args=arguments)


def registered():
    return sorted(admin.site._registry, key=label)


def ours():
    return [model for model in registered() if model.__module__.startswith("apps.")]


def pages(model):
    """Every page of a table; of a row too, where there is one."""
    found = [address(model, "changelist"), address(model, "add")]
    if (row := model.objects.first()) is not None:
        found += [address(model, page, row.pk) for page in ("change", "delete", "history")]
    return found


def test_every_table_has_a_row_here():
    assert set(CHANGES) | LOOKED_AT == {label(model) for model in registered()}


def test_operators_alone_come_in(world):
    addresses = [reverse("admin:index"), reverse("show-health"), reverse("admin:jsi18n")]
    addresses += [reverse("admin:app_list", args=[one]) for one in {model._meta.app_label for model in registered()}]
    addresses += [page for model in registered() for page in pages(model)]
    wrong = []
    for persona in PERSONAS:
        if persona == "operator":
            continue
        client = world.enter(persona)
        for path in addresses:
            for answer in (client.get(path), client.post(path)):
                if answer.status_code != 302 or not answer["Location"].startswith(
                    ("/accounts/login/", "/admin/login/")
                ):
                    wrong.append((persona, path, answer.status_code))
    assert wrong == []


def test_operators_sign_in_where_everybody_does(world):
    """Django's own sign-in for the admin asks nobody for a second step, and counts no wrong password."""
    operator, door = world.user("operator"), reverse("admin:login")
    client = Client()
    answers = [
        client.get(door, {"next": "/admin/health/"}),
        client.post(door, {"username": operator.email, "password": "correct horse battery", "next": "/admin/"}),
    ]
    there = [answer["Location"].partition("?")[0] for answer in answers]
    assert (there, "_auth_user_id" in client.session) == ([reverse("account_login")] * 2, False)
    assert answers[0]["Location"].endswith("?next=/admin/health/")
    for persona, status in (("owner", 403), ("operator", 302)):
        assert world.enter(persona).get(door).status_code == status


def test_staff_without_all_rights_see_no_row(world):
    """is_staff alone opens the door of the house and none of its rooms."""
    helper = person("helper@example.com")
    helper.is_staff = True
    helper.save()
    client = Client(raise_request_exception=False)
    client.force_login(helper)
    wrong = [page for model in registered() for page in pages(model) if client.get(page).status_code not in (403, 404)]
    assert wrong == []


def test_operators_look_and_change_what_the_table_says(world, rf):
    client, wrong = world.enter("operator"), []
    request = rf.get("/")
    request.user = world.user("operator")
    for model in registered():
        if client.get(address(model, "changelist")).status_code != 200:
            wrong.append((label(model), "list"))
        pages, row = admin.site.get_model_admin(model), model.objects.first()
        may = {"add"} if pages.has_add_permission(request) else set()
        may |= {act for act in ("change", "delete") if getattr(pages, f"has_{act}_permission")(request, row)}
        if may != CHANGES.get(label(model), set()):
            wrong.append((label(model), may))
    assert wrong == []


def texts(model):
    """The fields of a table that hold what a tenant wrote."""
    for field in model._meta.concrete_fields:
        plain = field.choices or field.primary_key or field.generated or not isinstance(field, TEXTS)
        if not plain and not {field.name, f"{label(model)}.{field.name}"} & PLAIN:
            yield field


def written(field):
    if isinstance(field, models.JSONField):
        return {"text": CANARY}
    return CANARY[: field.max_length] if getattr(field, "max_length", None) else CANARY


@pytest.fixture
def tainted(world):
    """Write the canary into every text of the first row of every table; return what could not be."""
    from apps.workspaces.models import AuditEvent

    left, tale = [], {"target_name": CANARY, "details": {"text": CANARY}}
    AuditEvent.objects.create(workspace=world.acme, actor=world.ann, kind="person", action="a.b", **tale)
    for model in set(ours()) - {AuditEvent}:  # which is only ever added to
        row = model.objects.first()
        for field in texts(model) if row else ():
            try:
                with transaction.atomic():
                    model._base_manager.filter(pk=row.pk).update(**{field.name: written(field)})
            except DatabaseError as error:
                left.append((label(model), field.name, str(error).splitlines()[0]))
    return left


def test_no_text_of_a_tenant_is_in_the_admin(world, tainted):
    assert tainted == []
    client, told, broken = world.enter("operator"), [], []
    for model in ours():
        for path in (*pages(model), f"{address(model, 'changelist')}?q=zebra", f"{address(model, 'changelist')}?o=1"):
            answer = client.get(path)
            if answer.status_code >= 500:
                broken.append(path)
            text = answer.content.decode().replace(f'value="{CANARY}"', "")
            if CANARY in text or CANARY in "".join(map(str, answer.headers.values())):
                told.append(path)
    assert (broken, told) == ([], [])


def test_a_row_is_called_by_id_and_kind(world, tainted):
    """``str`` of a row reaches logs, titles and messages."""
    assert [label(model) for model in ours() for row in model.objects.all()[:20] if CANARY in str(row)] == []


def test_nothing_that_signs_anybody_in_is_shown_to_operators(world):
    """allauth's own pages would: a seed, a code, a token. A lost second step goes by an act on the person."""
    from allauth.mfa.models import Authenticator

    from apps.workspaces.models import AuditEvent, User

    kept = {label(model) for model in registered() if model._meta.app_label in ("account", "mfa", "socialaccount")}
    assert kept == {"account.EmailAddress"}
    secret = {"secret": CANARY, "seed": CANARY, "migrated_codes": [CANARY], "name": CANARY}
    for kind in Authenticator.Type.values:
        Authenticator.objects.create(user=world.ann, type=kind, data=secret)
    client = world.enter("operator")
    act = {"action": "remove_second_steps", "_selected_action": [world.ann.pk]}
    told = [client.get(path) for path in (address(User, "changelist"), address(User, "change", world.ann.pk))]
    told.append(client.post(address(User, "changelist"), act, follow=True))
    assert [CANARY in answer.content.decode() for answer in told] == [False] * 3
    assert not Authenticator.objects.exists()
    entry = AuditEvent.objects.get(action="person.second_steps_removed")
    assert (entry.workspace_id, entry.right, entry.target_id) == (world.acme.pk, "operator", world.ann.pk)
