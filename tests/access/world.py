"""One thing of every kind in acme for the access matrix, and the people who come to its doors."""

from types import SimpleNamespace
from uuid import uuid4

from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.test import Client
from django.urls import URLPattern, get_resolver, reverse

from tests.api.world import furnish

SHOP = "https://shop.example"


def routes(patterns=None, prefix="", above=()):
    """Every route of the product but the admin's: its name, and the names of its arguments."""
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        names = (*above, *pattern.pattern.converters)
        if isinstance(pattern, URLPattern):
            yield f"{prefix}{pattern.name}", names
        elif pattern.app_name != "admin":
            name = pattern.namespace or pattern.app_name
            yield from routes(pattern.url_patterns, f"{name}:" if name else "", names)


class World:
    """acme, furnished; conversations and what is remembered are ann's."""

    def __init__(self, acme, ann, bea, mal, handbook):
        self.acme, self.ann, self.bea, self.mal, self.handbook = acme, ann, bea, mal, handbook
        self.things = furnish(acme, ann, bea, handbook)
        self._knowledge()
        self._conversations()
        self._people()
        self.known = dict(routes())
        self.secret = ""

    def _knowledge(self):
        from apps.knowledge.models import Chunk, DocumentImage, Synonyms
        from apps.memory.models import DocumentAffinity

        things = self.things
        key = default_storage.save("documents/picture.png", ContentFile(b"picture"))
        DocumentImage.objects.create(
            document_id=things.document_id, generation=1, name="a.png", key=key, content_type="image/png", size_bytes=7
        )
        chunk = Chunk.objects.create(
            knowledge_base=self.handbook, document_id=things.document_id, generation=1, level=0, ordinal=0,
            text="# Plan", start=0, end=6,
        )  # fmt: skip
        affinity = DocumentAffinity.objects.create(workspace=self.acme, user=self.ann, document_id=things.document_id)
        self.more = SimpleNamespace(
            chunk_id=chunk.pk,
            affinity_id=affinity.pk,
            synonyms_id=Synonyms.objects.create(workspace=self.acme, words=["notebook", "laptop"]).pk,
            notice_id=uuid4(),
            number=1,
            name="a.png",
        )

    def _conversations(self):
        from apps.agents import editing
        from apps.conversations.models import Citation, Conversation, Share, Turn
        from apps.widgets import services, tokens

        things, more = self.things, self.more
        agent = editing.create_agent(workspace=self.acme, values={"name": "Expert"}, actor=self.ann)
        more.agent_id, more.version_id = agent.pk, agent.versions.get().pk
        citation = Citation.objects.get()
        citation.heading = "Part one"
        citation.save()
        more.citation_id, more.n = citation.pk, 1
        share = Share.objects.create(conversation_id=things.conversation_id, turn_id=things.turn_id)
        widget = services.create_widget(workspace=self.acme, actor=self.ann, name="Site", origins=[SHOP])
        self.visitor, self.token = services.open_session(widget=widget, ticket=tokens.make_ticket(widget, SHOP))
        asked = Conversation.objects.create(workspace=self.acme, widget_id=widget.pk, visitor_id=self.visitor.pk)
        Turn.objects.create(conversation=asked, number=1, client_id="v", status="succeeded", question="Where?")
        more.widget_id, more.public_id = widget.pk, widget.public_id
        self.apart = {
            "show-shared": {"token": share.token},
            "widgets:show-transcript": {"conversation_id": asked.pk},
        }

    def _people(self):
        from apps.workspaces.models import Membership

        more = self.more
        more.membership_id = Membership.objects.get(user=self.bea).pk
        more.kind, more.row_id, more.slug, more.token = "knowledgebase", self.handbook.pk, self.acme.slug, "never-made"

    def arguments(self, route):
        """Return the arguments of a route; all name things of acme."""
        given = {**vars(self.things), **vars(self.more), **self.apart.get(route, {})}
        return {name: given[name] for name in self.known[route]}

    def path(self, route, **other):
        return reverse(route, kwargs={**self.arguments(route), **other})

    def enter(self, persona, client_class=Client):
        """Return a client that comes as one of the personas; call it once for each."""
        client = client_class(raise_request_exception=False)
        if persona == "key":
            client.defaults["HTTP_AUTHORIZATION"] = f"Bearer {self.key()}"
        elif persona == "widget":
            client.defaults["HTTP_AUTHORIZATION"] = f"Bearer {self.token}"
        elif persona != "nobody":
            client.force_login(self.user(persona))
        return client

    def key(self):
        """Return the secret of ann's key, with every scope."""
        from apps.workspaces.principals import SCOPES
        from apps.workspaces.services import create_api_key

        if not self.secret:
            _key, self.secret = create_api_key(workspace=self.acme, name="all", scopes=list(SCOPES), actor=self.ann)
        return self.secret

    def user(self, persona):
        from apps.workspaces import services
        from apps.workspaces.models import Role, User
        from tests.conftest import person

        known = {"owner": self.ann, "viewer": self.bea, "other": self.mal}
        if persona in known:
            return known[persona]
        user = person(f"{persona}-{uuid4().hex[:6]}@example.com")
        if persona == "operator":
            User.objects.filter(pk=user.pk).update(is_staff=True, is_superuser=True)
        else:
            roles = {"admin": Role.ADMIN, "member": Role.MEMBER, "department": Role.VIEWER}
            services.set_membership(workspace=self.acme, user=user, role=roles[persona])
        if persona == "department":
            group = services.create_department(workspace=self.acme, name=f"Editors {user.pk}", actor=self.ann)
            services.set_department_members(department=group, user_ids=[user.pk], actor=self.ann)
            services.share(
                row=self.handbook, subject=services.Subject(department=group), level="manage", actor=self.ann
            )
        if persona == "member":
            services.share(row=self.handbook, subject=services.Subject(user=user), level="manage", actor=self.ann)
        return User.objects.get(pk=user.pk)
