"""Addresses of conversations in the API."""

from django.urls import path

from apps.conversations.api import threads, turns

CONVERSATION, TURN = "conversations/<uuid:conversation_id>/", "turns/<uuid:turn_id>/"
urlpatterns = [
    path("conversations/", threads.Conversations.as_view(), name="conversations"),
    path(CONVERSATION, threads.OneConversation.as_view(), name="conversation"),
    path(f"{CONVERSATION}turns/", threads.TurnsOfConversation.as_view(), name="turns-of-conversation"),
    path("turns/", turns.Turns.as_view(), name="turns"),
    path(TURN, turns.OneTurn.as_view(), name="turn"),
    path(f"{TURN}events/", turns.EventsOfTurn.as_view(), name="events-of-turn"),
    path(f"{TURN}stop/", turns.StopTurn.as_view(), name="stop-turn"),
    path(f"{TURN}feedback/", turns.FeedbackOfTurn.as_view(), name="feedback-of-turn"),
    path(f"{TURN}citations/", turns.CitationsOfTurn.as_view(), name="citations-of-turn"),
    path("messages/", threads.Messages.as_view(), name="messages"),
    path("messages/<uuid:message_id>/", threads.OneMessage.as_view(), name="message"),
    path("attachments/", threads.Attachments.as_view(), name="attachments"),
    path("attachments/<uuid:attachment_id>/", threads.OneAttachment.as_view(), name="attachment"),
]
