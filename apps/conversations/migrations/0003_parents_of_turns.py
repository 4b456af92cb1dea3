"""Conversations so far are one branch: each turn follows the one before it."""

from django.db import migrations

FORWARD = """
    UPDATE conversations_turn t SET parent_id = (
        SELECT p.id FROM conversations_turn p
        WHERE p.conversation_id = t.conversation_id AND p.number < t.number ORDER BY p.number DESC LIMIT 1
    )
    WHERE parent_id IS NULL AND number > 1
"""


class Migration(migrations.Migration):
    dependencies = [("conversations", "0002_branches_shares_attachments_feedback")]

    operations = [migrations.RunSQL(FORWARD, migrations.RunSQL.noop)]
