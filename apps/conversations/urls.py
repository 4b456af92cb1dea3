"""Routes of conversations, inside a workspace."""

from django.urls import path

from apps.conversations import views

app_name = "conversations"
CONVERSATION, TURN = "conversations/<uuid:conversation_id>/", "turns/<uuid:turn_id>/"
urlpatterns = [
    path("", views.new_question, name="new-question"),
    path("conversations/", views.start_conversation, name="start-conversation"),
    path(CONVERSATION, views.show_conversation, name="show-conversation"),
    path(f"{CONVERSATION}ask/", views.ask, name="ask"),
    path(f"{CONVERSATION}delete/", views.delete_conversation, name="delete-conversation"),
    path(f"{CONVERSATION}restore/", views.restore_conversation, name="restore-conversation"),
    path(TURN, views.show_turn, name="show-turn"),
    path(f"{TURN}sources/<int:n>/", views.show_source, name="show-source"),
    path("citations/<uuid:citation_id>/", views.show_citation, name="show-citation"),
]
