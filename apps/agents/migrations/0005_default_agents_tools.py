"""Default agents that have the tools of before also get the new ones; whoever chose others keeps them."""

from django.db import migrations

BEFORE = {"doc_retrieval", "get_document_info", "grep_chunks", "list_chunks"}
NEW = ["web_fetch", "web_search", "write_plan"]


def add(apps, schema_editor):
    Agent = apps.get_model("agents", "Agent")
    for agent in Agent.objects.filter(is_default=True).iterator(500):
        if set(agent.tools) == BEFORE:
            agent.tools = sorted([*agent.tools, *NEW])
            agent.save(update_fields=["tools"])


class Migration(migrations.Migration):
    dependencies = [("agents", "0004_shares")]

    operations = [migrations.RunPython(add, migrations.RunPython.noop)]
