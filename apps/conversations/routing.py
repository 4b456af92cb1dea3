"""Websocket routes. ``nowhere`` is for any other path: it is told that there is nothing, then closed."""

from django.urls import path, re_path

from apps.conversations.consumers import ConversationConsumer, RefusingConsumer

routes = [path("ws/conversations/<uuid:pk>/", ConversationConsumer.as_asgi())]
nowhere = re_path(r"", RefusingConsumer.as_asgi())
