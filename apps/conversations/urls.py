"""Routes of conversations, inside a workspace."""

from django.urls import path

from apps.conversations.views import answers, asked, attachments, jumping, keeping, sharing, threads

app_name = "conversations"
CONVERSATION, TURN = "conversations/<uuid:conversation_id>/", "turns/<uuid:turn_id>/"
urlpatterns = [
    path("", threads.new_question, name="new-question"),
    path("first-steps/hide/", threads.hide_steps, name="hide-steps"),
    path("jump/", jumping.jump, name="jump"),
    path("conversations/", threads.start_conversation, name="start-conversation"),
    path("conversations/all/", keeping.list_conversations, name="list-conversations"),
    path(CONVERSATION, threads.show_conversation, name="show-conversation"),
    path(f"{CONVERSATION}ask/", threads.ask, name="ask"),
    path(f"{CONVERSATION}rename/", keeping.rename_conversation, name="rename-conversation"),
    path(f"{CONVERSATION}pin/", keeping.pin_conversation, name="pin-conversation"),
    path(f"{CONVERSATION}archive/", keeping.archive_conversation, name="archive-conversation"),
    path(f"{CONVERSATION}delete/", keeping.delete_conversation, name="delete-conversation"),
    path(f"{CONVERSATION}restore/", keeping.restore_conversation, name="restore-conversation"),
    path(f"{CONVERSATION}export/", keeping.export_conversation, name="export-conversation"),
    path(f"{CONVERSATION}share/", sharing.share_conversation, name="share-conversation"),
    path(f"{CONVERSATION}unshare/", sharing.unshare_conversation, name="unshare-conversation"),
    path(TURN, threads.show_turn, name="show-turn"),
    path(f"{TURN}rate/", answers.rate_turn, name="rate-turn"),
    path(f"{TURN}suggestions/", answers.suggest_questions, name="suggest-questions"),
    path(f"{TURN}sources/<int:n>/", threads.show_source, name="show-source"),
    path("citations/<uuid:citation_id>/", threads.show_citation, name="show-citation"),
    path("agents/<uuid:agent_id>/questions/", asked.list_agent_questions, name="list-agent-questions"),
    path("attachments/", attachments.upload_attachment, name="upload-attachment"),
    path("attachments/<uuid:attachment_id>/", attachments.download_attachment, name="download-attachment"),
    path("attachments/<uuid:attachment_id>/remove/", attachments.remove_attachment, name="remove-attachment"),
]
