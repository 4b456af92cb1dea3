"""The websocket of visitors."""

from django.urls import path

from apps.widgets.consumers import WidgetConsumer

routes = [path("ws/widget/<str:public_id>/", WidgetConsumer.as_asgi())]
