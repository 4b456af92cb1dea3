"""Who may reach what. A route that is not in the table fails the build until someone decides.

Each row: method, route, and the status for nobody (signed out), mal (another tenant), bea (viewer)
and ann (owner). Routes take their arguments from ``arguments``; all of them name things of acme.
"""

from uuid import uuid4

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.urls import URLPattern, get_resolver, reverse

PERSONAS = ("nobody", "mal", "bea", "ann")
OPEN = (200, 200, 200, 200)
READ = (302, 404, 200, 200)  # everybody in the workspace
MANAGE = (302, 404, 404, 302)  # those who may manage the base; for others it is not there
WRITE = (302, 404, 404, 200)  # those who may manage the base, a page
OWN = (302, 404, 404, 200)  # the asker's alone
OWN_ACT = (302, 404, 404, 302)
RUN = (302, 404, 403, 200)  # those who own or administer the workspace
RUN_ACT = (302, 404, 403, 302)
EXPECTED = {
    ("get", "healthz"): OPEN,
    ("get", "readyz"): OPEN,
    ("get", "show-health"): (302, 302, 302, 302),  # operators alone: tests/platform/test_operations.py
    ("post", "set_language"): (302, 302, 302, 302),
    ("get", "workspaces:home"): (302, 302, 302, 302),
    ("post", "workspaces:create-workspace"): (302, 422, 422, 422),
    ("get", "workspaces:show-account"): (302, 200, 200, 200),
    ("post", "workspaces:change-account"): (302, 302, 302, 302),
    ("post", "workspaces:delete-account"): (302, 422, 422, 422),
    ("post", "workspaces:dismiss-notice"): (302, 404, 404, 404),
    ("get", "workspaces:show-invitation"): (404, 404, 404, 404),  # a token that was never made
    ("post", "workspaces:accept-invitation"): (302, 404, 404, 404),
    ("get", "workspaces:list-members"): READ,
    ("post", "workspaces:invite"): (302, 404, 403, 422),
    ("post", "workspaces:leave-workspace"): (302, 404, 302, 409),
    ("post", "workspaces:change-role"): (302, 404, 404, 422),
    ("post", "workspaces:remove-member"): MANAGE,
    ("post", "workspaces:transfer-workspace"): MANAGE,
    ("post", "workspaces:withdraw-invitation"): MANAGE,
    ("get", "workspaces:list-departments"): READ,
    ("post", "workspaces:create-department"): (302, 404, 403, 422),
    ("get", "workspaces:edit-department"): (302, 404, 404, 200),
    ("post", "workspaces:change-department"): (302, 404, 404, 422),
    ("post", "workspaces:set-department-members"): MANAGE,
    ("post", "workspaces:delete-department"): MANAGE,
    ("get", "workspaces:list-api-keys"): READ,
    ("post", "workspaces:create-api-key"): (302, 404, 422, 422),
    ("post", "workspaces:revoke-api-key"): MANAGE,
    ("get", "workspaces:show-sharing"): (302, 404, 404, 200),
    ("post", "workspaces:share"): (302, 404, 404, 422),
    ("post", "workspaces:restrict"): MANAGE,
    ("post", "workspaces:unshare"): MANAGE,
    ("get", "workspaces:show-audit-log"): RUN,
    ("get", "workspaces:export-audit-log"): RUN,
    ("get", "workspaces:show-limits"): READ,
    ("post", "workspaces:set-limit"): (302, 404, 403, 422),
    ("get", "workspaces:show-settings"): RUN,
    ("post", "workspaces:change-settings"): (302, 404, 403, 422),
    ("get", "workspaces:export-workspace"): RUN,
    ("post", "workspaces:delete-workspace"): (302, 404, 403, 422),
    ("get", "models:list-models"): RUN,
    ("post", "models:add-model"): (302, 404, 403, 422),
    ("post", "models:list-offered"): RUN,
    ("get", "models:find-ollama"): RUN,
    ("post", "models:add-ollama"): (302, 404, 403, 403),  # those who run the server
    ("post", "models:choose-model"): (302, 404, 403, 404),
    ("get", "models:show-model"): RUN,
    ("post", "models:change-model"): (302, 404, 403, 422),
    ("post", "models:test-model"): RUN_ACT,
    ("post", "models:switch-model"): RUN_ACT,
    ("post", "models:delete-model"): RUN_ACT,
    ("get", "models:show-usage"): RUN,
    ("get", "models:export-usage"): RUN,
    ("post", "models:set-budget"): (302, 404, 403, 422),
    ("post", "models:remove-budget"): RUN_ACT,
    ("get", "knowledge:list-knowledge-bases"): READ,
    ("post", "knowledge:create-knowledge-base"): (302, 404, 403, 422),
    ("post", "knowledge:create-sample"): (302, 404, 403, 302),
    ("get", "knowledge:show-knowledge-base"): READ,
    ("get", "knowledge:show-progress"): READ,
    ("post", "knowledge:delete-knowledge-base"): MANAGE,
    ("post", "knowledge:upload-documents"): (302, 404, 404, 422),
    ("post", "knowledge:upload-first"): (302, 404, 403, 422),
    ("get", "knowledge:show-document"): READ,
    ("get", "knowledge:download-original"): READ,
    ("get", "knowledge:show-picture"): READ,
    ("get", "knowledge:show-page"): (302, 404, 404, 404),  # of a PDF: tests/knowledge/test_page_pictures.py
    ("post", "knowledge:retry-document"): (302, 404, 404, 302),
    ("post", "knowledge:cancel-document"): (302, 404, 404, 409),
    ("post", "knowledge:delete-document"): MANAGE,
    ("post", "knowledge:restore-document"): (302, 404, 404, 404),
    ("get", "knowledge:search-documents"): READ,
    ("get", "knowledge:try-search"): READ,
    ("get", "knowledge:list-synonyms"): READ,
    ("post", "knowledge:add-synonyms"): (302, 404, 403, 422),
    ("post", "knowledge:delete-synonyms"): MANAGE,
    ("post", "knowledge:save-profile"): MANAGE,
    ("get", "memory:list-items"): READ,
    ("post", "memory:add-item"): (302, 404, 302, 302),
    ("post", "memory:switch"): (302, 404, 302, 302),
    ("post", "memory:update-item"): (302, 404, 404, 422),
    ("post", "memory:delete-item"): OWN_ACT,
    ("post", "memory:forget-document"): OWN_ACT,
    ("get", "agents:list-agents"): READ,
    ("get", "agents:create-agent"): RUN,
    ("get", "agents:edit-agent"): OWN,
    ("post", "agents:duplicate-agent"): OWN_ACT,
    ("post", "agents:make-default"): OWN_ACT,
    ("post", "agents:delete-agent"): OWN_ACT,
    ("get", "agents:show-version"): OWN,
    ("post", "agents:restore-version"): OWN_ACT,
    ("get", "conversations:list-agent-questions"): OWN,
    ("post", "knowledge:act-on-documents"): (302, 404, 404, 422),
    ("get", "knowledge:list-jobs"): READ,
    ("post", "knowledge:create-folder"): (302, 404, 404, 422),
    ("post", "knowledge:change-folder"): MANAGE,
    ("post", "knowledge:delete-folder"): MANAGE,
    ("post", "knowledge:add-page"): (302, 404, 404, 422),
    ("get", "knowledge:write-text"): WRITE,
    ("get", "knowledge:write-questions"): WRITE,
    ("get", "knowledge:check-quality"): WRITE,
    ("get", "knowledge:configure-chunker"): WRITE,
    ("post", "knowledge:save-chunker"): (302, 404, 404, 422),
    ("post", "knowledge:move-model"): (302, 404, 404, 422),
    ("get", "knowledge:list-fields"): WRITE,
    ("post", "knowledge:add-field"): (302, 404, 404, 422),
    ("post", "knowledge:delete-field"): MANAGE,
    ("get", "knowledge:show-facts"): READ,
    ("post", "knowledge:save-facts"): MANAGE,
    ("post", "knowledge:cancel-job"): MANAGE,
    ("post", "knowledge:retry-job"): (302, 404, 404, 422),
    ("post", "knowledge:restore-deleted"): (302, 404, 404, 409),
    ("get", "knowledge:tell-ends"): (302, 404, 204, 204),
    ("get", "knowledge:list-chunks"): READ,
    ("post", "knowledge:discard-change"): (302, 404, 404, 404),
    ("post", "knowledge:refresh-page"): (302, 404, 404, 409),
    ("post", "knowledge:unlock-document"): (302, 404, 404, 409),
    ("get", "knowledge:edit-text"): (302, 404, 404, 404),
    ("get", "knowledge:edit-questions"): (302, 404, 404, 404),
    ("get", "knowledge:export-questions"): (302, 404, 404, 404),
    ("post", "knowledge:edit-chunk"): (302, 404, 404, 409),
    ("post", "knowledge:switch-chunk"): (302, 404, 404, 409),
    ("get", "conversations:new-question"): READ,
    ("get", "conversations:jump"): READ,
    ("post", "conversations:hide-steps"): (302, 404, 302, 302),
    ("post", "conversations:start-conversation"): (302, 404, 422, 422),
    ("get", "conversations:show-conversation"): OWN,
    ("post", "conversations:ask"): OWN_ACT,
    ("post", "conversations:delete-conversation"): OWN_ACT,
    ("post", "conversations:restore-conversation"): (302, 404, 404, 404),
    ("get", "conversations:list-conversations"): READ,
    ("post", "conversations:rename-conversation"): (302, 404, 404, 422),
    ("post", "conversations:pin-conversation"): OWN_ACT,
    ("post", "conversations:archive-conversation"): OWN_ACT,
    ("get", "conversations:export-conversation"): OWN,
    ("post", "conversations:share-conversation"): OWN_ACT,
    ("post", "conversations:unshare-conversation"): OWN_ACT,
    ("get", "show-shared"): READ,  # a link for the workspace; for anyone: test_sharing.py
    ("post", "conversations:rate-turn"): OWN_ACT,
    ("get", "conversations:suggest-questions"): OWN,
    ("post", "conversations:upload-attachment"): (302, 404, 422, 422),
    ("get", "conversations:download-attachment"): OWN,
    ("post", "conversations:remove-attachment"): (302, 404, 404, 204),
    ("get", "conversations:show-turn"): OWN,
    ("get", "conversations:show-source"): OWN,
    ("get", "conversations:show-citation"): OWN_ACT,
    ("get", "widgets:list-widgets"): RUN,
    ("post", "widgets:create-widget"): (302, 404, 403, 422),
    ("get", "widgets:show-widget"): RUN,
    ("post", "widgets:change-widget"): (302, 404, 403, 422),
    ("post", "widgets:renew-secret"): RUN_ACT,
    ("post", "widgets:renew-id"): RUN_ACT,
    ("post", "widgets:delete-widget"): RUN_ACT,
    ("get", "widgets:list-transcripts"): RUN,
    ("get", "widgets:show-transcript"): RUN,
}
# In a restricted base that is not shared with her, bea finds nothing at all.
RESTRICTED = [
    ("get", "knowledge:show-knowledge-base"),
    ("get", "knowledge:show-progress"),
    ("get", "knowledge:show-document"),
    ("get", "knowledge:download-original"),
    ("get", "knowledge:show-picture"),
    ("get", "knowledge:list-jobs"),
    ("get", "knowledge:list-chunks"),
]
# Of django-allauth's routes, these and no others.
ACCOUNT_ROUTES = {
    "account_login",
    "account_logout",
    "account_signup",
    "account_inactive",
    "account_change_password",
    "account_set_password",
    "account_reset_password",
    "account_reset_password_done",
    "account_reset_password_from_key",
    "account_reset_password_from_key_done",
    "account_reauthenticate",
    "account_request_reauthentication_code",
    "account_confirm_reauthentication_code",
    "account_email_verification_sent",
    "account_confirm_email",
    "mfa_index",
    "mfa_authenticate",
    "mfa_reauthenticate",
    "mfa_activate_totp",
    "mfa_deactivate_totp",
    "mfa_view_recovery_codes",
    "mfa_generate_recovery_codes",
    "mfa_download_recovery_codes",
    "mfa_list_webauthn",
    "mfa_add_webauthn",
    "mfa_reauthenticate_webauthn",
    "mfa_remove_webauthn",
    "mfa_edit_webauthn",
    "mfa_login_webauthn",
    "openid_connect_login",
    "openid_connect_callback",
    "socialaccount_login_cancelled",
    "socialaccount_login_error",
    "socialaccount_signup",
}
WITH_ARGUMENTS = {
    "account_reset_password_from_key",
    "account_confirm_email",
    "mfa_remove_webauthn",
    "mfa_edit_webauthn",
    "openid_connect_login",
    "openid_connect_callback",
}


def our_routes(patterns, prefix=""):
    for pattern in patterns:
        if isinstance(pattern, URLPattern):
            yield f"{prefix}{pattern.name}"
        elif pattern.app_name != "admin":
            yield from our_routes(pattern.url_patterns, f"{pattern.app_name}:" if pattern.app_name else "")


def test_every_route_is_in_the_table():
    routes = set(our_routes(get_resolver().url_patterns))
    assert {route for route in routes if ":" not in route and "_" in route} - {"set_language"} == ACCOUNT_ROUTES
    # in tests/api/test_access.py, and what visitors of widgets load in tests/widgets/test_public.py
    api = {route for route in routes if route.startswith(("api:", "openai:", "widget:"))}
    assert routes - ACCOUNT_ROUTES - api == {route for _, route in EXPECTED}


def of_people(acme, ann, bea, handbook):
    """The arguments of routes about people and rights."""
    from apps.workspaces import services
    from apps.workspaces.models import Invitation, Membership, Role

    services.invite(workspace=acme, email="new@example.com", role=Role.VIEWER, actor=ann)
    department = services.create_department(workspace=acme, name="Research", actor=ann)
    key, _secret = services.create_api_key(workspace=acme, name="Key", scopes=["knowledge:read"], actor=ann)
    held = services.share(
        row=handbook, subject=services.Subject(department=department), level="read", actor=ann
    )  # of nobody
    member = {"membership_id": Membership.objects.get(user=bea).pk}
    row, group = {"kind": "knowledgebase", "row_id": handbook.pk}, {"department_id": department.pk}
    here = {
        "invite": {},
        "leave-workspace": {},
        "list-members": {},
        "list-departments": {},
        "create-department": {},
        "list-api-keys": {},
        "create-api-key": {},
        "show-audit-log": {},
        "export-audit-log": {},
        "show-limits": {},
        "set-limit": {},
        "show-settings": {},
        "change-settings": {},
        "export-workspace": {},
        "delete-workspace": {},
        "change-role": member,
        "remove-member": member,
        "transfer-workspace": member,
        "withdraw-invitation": {"invitation_id": Invitation.objects.get().pk},
        "revoke-api-key": {"key_id": key.pk},
        "show-sharing": row,
        "share": row,
        "restrict": row,
        "unshare": {**row, "share_id": held.pk},
        "edit-department": group,
        "change-department": group,
        "set-department-members": group,
        "delete-department": group,
    }
    token = {"token": "never-made"}
    anywhere = {"show-invitation": token, "accept-invitation": token, "show-account": {}, "delete-account": {}}
    anywhere |= {"home": {}, "create-workspace": {}, "dismiss-notice": {"notice_id": uuid4()}, "change-account": {}}
    found = {f"workspaces:{name}": {"slug": acme.slug, **given} for name, given in here.items()}
    return found | {f"workspaces:{name}": given for name, given in anywhere.items()}


@pytest.fixture
def arguments(acme, ann, handbook, request):
    """The arguments of each route that takes any; all name things of acme, conversations are ann's."""
    from apps.agents import editing
    from apps.conversations.models import Attachment, Citation, Conversation, Message, Share, Turn
    from apps.knowledge.models import Chunk, Document, DocumentImage, Folder, Job, MetadataField, Synonyms
    from apps.memory.models import DocumentAffinity, MemoryItem
    from apps.models.models import Budget, ModelConfig
    from apps.widgets.models import Visitor, Widget

    document = Document(
        workspace=acme, knowledge_base=handbook, name="plan.md", size_bytes=6, sha256="0" * 64, status="error_parsing"
    )
    document.file.save("original", ContentFile(b"# Plan"), save=False)
    document.save()
    key = default_storage.save("documents/picture.png", ContentFile(b"picture"))
    picture = DocumentImage.objects.create(
        document=document, generation=1, name="a.png", key=key, content_type="image/png", size_bytes=7
    )
    folder = Folder(workspace=acme, knowledge_base=handbook, name="Plans")
    folder.lineage = [folder.pk]
    folder.save()
    job = Job.objects.create(workspace=acme, knowledge_base=handbook, kind="parse", scope="x", created_by=ann)
    chunk = Chunk.objects.create(
        knowledge_base=handbook, document=document, generation=1, level=0, ordinal=0, text="# Plan", start=0, end=6
    )
    conversation = Conversation.objects.create(workspace=acme, owner=ann)
    turn = Turn.objects.create(
        conversation=conversation, number=1, client_id=str(uuid4()), status="succeeded", question="Why?"
    )
    answer = Message.objects.create(conversation=conversation, turn=turn, role="assistant", text="So.[[c1]]")
    citation = Citation.objects.create(
        message=answer, n=1, document="plan.md", document_id=document.pk, text="# Plan", heading="Part one"
    )
    attachment = Attachment(
        workspace=acme, owner=ann, name="a.txt", kind="document", media_type="text/plain", size_bytes=1
    )
    attachment.file.save("a.txt", ContentFile(b"a"), save=False)
    attachment.save(force_insert=True)
    share = Share.objects.create(conversation=conversation, turn=turn)
    model = ModelConfig.objects.create(workspace=acme, kind="chat", name="m", base_url="http://127.0.0.1:9/v1")
    budget = Budget.objects.create(workspace=acme, amount=1)
    synonyms = Synonyms.objects.create(workspace=acme, words=["notebook", "laptop"])
    item = MemoryItem.objects.create(workspace=acme, user=ann, kind="fact", text="The code is 42")
    affinity = DocumentAffinity.objects.create(workspace=acme, user=ann, document=document)
    agent = editing.create_agent(workspace=acme, values={"name": "Expert"}, actor=ann)
    version = agent.versions.get()
    widget = {"widget_id": Widget.objects.create(workspace=acme, name="Site").pk}
    visitor = Visitor.objects.create(**widget, origin="https://a.example")
    asked = Conversation.objects.create(workspace=acme, **widget, visitor_id=visitor.pk)
    base, file, talk = {"base_id": handbook.pk}, {"document_id": document.pk}, {"conversation_id": conversation.pk}
    special = {
        "knowledge:list-knowledge-bases": {},
        "knowledge:create-knowledge-base": {},
        "knowledge:create-sample": {},
        "knowledge:upload-first": {},
        "knowledge:upload-documents": base,
        "knowledge:tell-ends": {},
        "knowledge:change-folder": {"folder_id": folder.pk},
        "knowledge:delete-folder": {"folder_id": folder.pk},
        "knowledge:cancel-job": {"job_id": job.pk},
        "knowledge:retry-job": {"job_id": job.pk},
        "knowledge:restore-deleted": {"job_id": job.pk},
        "knowledge:list-chunks": file,
        "knowledge:discard-change": file,
        "knowledge:refresh-page": file,
        "knowledge:edit-text": file,
        "knowledge:edit-questions": file,
        "knowledge:export-questions": file,
        "knowledge:edit-chunk": {"chunk_id": chunk.pk},
        "knowledge:switch-chunk": {"chunk_id": chunk.pk},
        "knowledge:show-picture": {**file, "name": picture.name},
        "knowledge:show-page": {**file, "number": 1},
        "knowledge:search-documents": {},
        "knowledge:try-search": {},
        "knowledge:list-synonyms": {},
        "knowledge:add-synonyms": {},
        "knowledge:delete-synonyms": {"synonyms_id": synonyms.pk},
        "knowledge:save-profile": base,
        "models:list-models": {},
        "models:add-model": {},
        "models:show-usage": {},
        "models:export-usage": {},
        "models:list-offered": {},
        "models:find-ollama": {},
        "models:add-ollama": {},
        "models:choose-model": {},
        "models:set-budget": {},
        "models:remove-budget": {"budget_id": budget.pk},
        "memory:list-items": {},
        "memory:add-item": {},
        "memory:switch": {},
        "memory:update-item": {"item_id": item.pk},
        "memory:delete-item": {"item_id": item.pk},
        "memory:forget-document": {"affinity_id": affinity.pk},
        "agents:list-agents": {},
        "agents:create-agent": {},
        "agents:edit-agent": {"agent_id": agent.pk},
        "agents:duplicate-agent": {"agent_id": agent.pk},
        "agents:make-default": {"agent_id": agent.pk},
        "agents:delete-agent": {"agent_id": agent.pk},
        "agents:show-version": {"version_id": version.pk},
        "agents:restore-version": {"version_id": version.pk},
        "conversations:list-agent-questions": {"agent_id": agent.pk},
        "widgets:list-widgets": {},
        "widgets:create-widget": {},
        "widgets:renew-secret": widget,
        "widgets:renew-id": widget,
        "widgets:list-transcripts": widget,
        "widgets:show-transcript": {**widget, "conversation_id": asked.pk},
        "conversations:new-question": {},
        "conversations:jump": {},
        "conversations:hide-steps": {},
        "conversations:start-conversation": {},
        "conversations:ask": talk,
        "conversations:list-conversations": {},
        "conversations:upload-attachment": {},
        "conversations:download-attachment": {"attachment_id": attachment.pk},
        "conversations:remove-attachment": {"attachment_id": attachment.pk},
        "conversations:rate-turn": {"turn_id": turn.pk},
        "conversations:suggest-questions": {"turn_id": turn.pk},
        "conversations:show-turn": {"turn_id": turn.pk},
        "conversations:show-source": {"turn_id": turn.pk, "n": 1},
        "conversations:show-citation": {"citation_id": citation.pk},
    }
    by_kind = {"knowledge-base": base, "progress": base, "document": file, "original": file, "conversation": talk}
    by_kind["widget"] = widget
    for name in ("act-on-documents", "list-jobs", "create-folder", "add-page", "write-text", "write-questions"):
        special[f"knowledge:{name}"] = base
    for name in ("check-quality", "configure-chunker", "save-chunker", "list-fields", "add-field"):
        special[f"knowledge:{name}"] = base
    by_kind["model"] = {"model_id": model.pk}
    special["knowledge:move-model"] = base
    special["knowledge:show-facts"] = special["knowledge:save-facts"] = file
    field = MetadataField.objects.create(knowledge_base=handbook, key="year", type="number")
    special["knowledge:delete-field"] = {"field_id": field.pk}

    people = of_people(acme, ann, request.getfixturevalue("bea"), handbook)

    def arguments(route):
        if route == "show-shared":
            return {"token": share.token}
        if route in people:
            return people[route]
        if not route.startswith(
            ("models:", "knowledge:", "conversations:", "agents:", "memory:", "workspaces:", "widgets:")
        ):
            return {}
        kind = route.partition("-")[2]
        return {"slug": acme.slug, **(special[route] if route in special else by_kind[kind])}

    return arguments


@pytest.fixture
def visit(client, arguments, request):
    def visit(persona, method, route):
        if persona != "nobody":
            client.force_login(request.getfixturevalue(persona))
        return getattr(client, method)(reverse(route, kwargs=arguments(route)))

    return visit


@pytest.mark.parametrize(("method", "route"), EXPECTED)
@pytest.mark.parametrize("persona", PERSONAS)
def test_answers_as_the_table_says(visit, persona, method, route):
    assert visit(persona, method, route).status_code == EXPECTED[method, route][PERSONAS.index(persona)]


# More people: what they get follows from the columns above.
OWNERS_ALONE = {"workspaces:transfer-workspace", "workspaces:delete-workspace"}
OF_THE_BASE = ("knowledge:", "workspaces:show-sharing", "workspaces:share", "workspaces:restrict", "workspaces:unshare")


def of_more(persona, method, route):
    """Return the status for an admin, an operator in no workspace, a key at a page, a manager by department."""
    nobody, stranger, viewer, owner = EXPECTED[method, route]
    if persona == "key":
        return nobody
    if persona == "operator":
        return 200 if route == "show-health" else stranger
    if route.startswith(("conversations:", "memory:")) and route != "conversations:list-agent-questions":
        return viewer  # they are ann's alone
    if persona == "admin":
        if route == "workspaces:leave-workspace":
            return viewer
        return 403 if route in OWNERS_ALONE else owner
    whole = route.endswith(("create-knowledge-base", "create-sample", "upload-first", "-synonyms"))
    return owner if route.startswith(OF_THE_BASE) and not whole else viewer


@pytest.fixture
def more_people(acme, ann, handbook, client):
    from apps.workspaces import services
    from apps.workspaces.models import Role, User
    from tests.conftest import person

    def enter(persona):
        user = person(f"{persona}@example.com")
        if persona == "operator":
            User.objects.filter(pk=user.pk).update(is_staff=True, is_superuser=True)
        if persona == "key":
            services.set_membership(workspace=acme, user=user, role=Role.OWNER)
            _key, secret = services.create_api_key(workspace=acme, name="Key", scopes=["knowledge:write"], actor=user)
            client.defaults["HTTP_AUTHORIZATION"] = f"Bearer {secret}"
            return
        if persona == "admin":
            services.set_membership(workspace=acme, user=user, role=Role.ADMIN)
        if persona == "department":
            services.set_membership(workspace=acme, user=user, role=Role.VIEWER)
            group = services.create_department(workspace=acme, name="Editors", actor=ann)
            services.set_department_members(department=group, user_ids=[user.pk], actor=ann)
            subject = services.Subject(department=group)
            services.share(row=handbook, subject=subject, level="manage", actor=ann)
        client.force_login(User.objects.get(pk=user.pk))

    return enter


@pytest.mark.parametrize("persona", ["admin", "operator", "key", "department"])
def test_more_people_get_what_follows(client, arguments, more_people, persona):
    from django.db import transaction

    more_people(persona)
    wrong = {}
    for method, route in EXPECTED:
        if route == "workspaces:home":
            continue  # leads anybody who is signed in somewhere else
        with transaction.atomic():  # each visit finds everything as it was
            status = getattr(client, method)(reverse(route, kwargs=arguments(route))).status_code
            transaction.set_rollback(True)
        if status != of_more(persona, method, route):
            wrong[method, route] = (status, of_more(persona, method, route))
    assert wrong == {}


@pytest.mark.parametrize(("method", "route"), RESTRICTED)
@pytest.mark.parametrize(("level", "status"), [(None, 404), ("read", 200), ("manage", 200)])
def test_a_restricted_base_is_seen_by_those_it_is_shared_with(visit, handbook, ann, bea, level, status, method, route):
    from apps.knowledge.services import grant

    handbook.restricted = True
    handbook.save()
    if level:
        grant(knowledge_base=handbook, user=bea, level=level, actor=ann)
    assert visit("bea", method, route).status_code == status


def test_a_source_is_shown_only_while_its_document_may_be_read(visit, handbook, ann):
    from apps.workspaces.models import Membership

    assert "Plan" in visit("ann", "get", "conversations:show-source").content.decode()
    handbook.restricted = True
    handbook.save()
    Membership.objects.filter(user=ann).update(role="viewer")
    page = visit("ann", "get", "conversations:show-source").content.decode()
    assert "is not shared with you any more" in page
    assert "# Plan" not in page
    assert "Part one" not in page


@pytest.mark.parametrize(("method", "route"), [key for key in EXPECTED if key[0] == "post"])
def test_a_change_wants_a_token_of_the_page(client, arguments, ann, method, route):
    client.handler.enforce_csrf_checks = True
    client.force_login(ann)
    assert client.post(reverse(route, kwargs=arguments(route))).status_code == 403


@pytest.mark.parametrize("route", sorted(ACCOUNT_ROUTES - WITH_ARGUMENTS))
def test_signing_in_and_out_wants_a_token_of_the_page(client, ann, route):
    client.handler.enforce_csrf_checks = True
    assert client.post(reverse(route)).status_code in (403, 405)
    client.force_login(ann)
    assert client.post(reverse(route)).status_code in (403, 405)


@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example/", "\\\\evil.example", "javascript:alert(1)"]
)
def test_nobody_is_led_to_another_site(client, ann, target):
    login = client.post("/accounts/login/", {"login": ann.email, "password": "correct horse battery", "next": target})
    assert login.status_code == 302
    language = client.post("/i18n/setlang/", {"language": "en", "next": target}, headers={"referer": target})
    out = client.post("/accounts/logout/", {"next": target})
    for answer in (login, language, out):
        assert answer["Location"].startswith("/")
        assert not answer["Location"].startswith(("//", "/\\"))


def test_a_question_in_a_base_of_others_leaves_nothing(client, ann, acme, mal):
    from apps.conversations.models import Conversation
    from apps.knowledge.models import KnowledgeBase

    theirs = KnowledgeBase.objects.create(workspace=mal.workspaces.get(), name="Secret")
    client.force_login(ann)
    answer = client.post(reverse("conversations:start-conversation", args=[acme.slug]), {"text": "x", "kb": theirs.pk})
    assert answer.status_code == 404
    assert not Conversation.objects.exists()
