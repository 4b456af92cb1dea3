from django.db import migrations

from apps.workspaces.withdrawals import told

SHARE = "permission_id, user_id, department_id, role, widget_id, content_object_id"
TABLES = {
    "knowledge_knowledgebase": "restricted, deleted_at",
    "knowledge_folder": "restricted, lineage, deleted_at",
    "knowledge_document": "restricted, folder_id, knowledge_base_id, deleted_at",
    "knowledge_knowledgebaseshare": SHARE,
    "knowledge_foldershare": SHARE,
    "knowledge_documentshare": SHARE,
}


class Migration(migrations.Migration):
    dependencies = [("knowledge", "0015_staged_signs"), ("workspaces", "0007_withdrawals")]

    operations = told(TABLES)
