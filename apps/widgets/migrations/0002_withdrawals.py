from django.db import migrations

from apps.workspaces.withdrawals import told


class Migration(migrations.Migration):
    dependencies = [("widgets", "0001_initial"), ("workspaces", "0007_withdrawals")]

    operations = told({"widgets_widget": "enabled, origins, agent_id", "widgets_visitor": "origin"})
