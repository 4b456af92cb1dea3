"""Websocket routes. Any other path is told that there is nothing, then closed."""

from channels.routing import URLRouter
from django.urls import path, re_path

from apps.conversations.consumers import ConversationConsumer, RefusingConsumer

sockets = URLRouter(
    [
        path("ws/conversations/<uuid:pk>/", ConversationConsumer.as_asgi()),
        re_path(r"", RefusingConsumer.as_asgi()),
    ]
)
