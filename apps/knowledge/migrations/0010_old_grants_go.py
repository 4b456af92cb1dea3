from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("knowledge", "0009_copy_shares")]

    operations = [migrations.DeleteModel(name="KnowledgeBaseUserPermission")]
