from django.db import migrations

from apps.workspaces.withdrawals import told


class Migration(migrations.Migration):
    dependencies = [("conversations", "0004_visitors"), ("workspaces", "0007_withdrawals")]

    operations = told({"conversations_conversation": "owner_id, deleted_at"})
