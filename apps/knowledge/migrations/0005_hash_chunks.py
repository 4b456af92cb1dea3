from django.db import migrations

# One statement a few thousand documents would be kinder to a large table; the product is younger than such tables.
FILL = """
UPDATE knowledge_chunk SET content_hash = md5(text)::uuid, root_id = parent_id WHERE content_hash IS NULL;
"""


class Migration(migrations.Migration):
    dependencies = [("knowledge", "0004_documents_in_order")]

    operations = [migrations.RunSQL(FILL, migrations.RunSQL.noop)]
