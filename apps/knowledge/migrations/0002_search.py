import uuid

import pgvector.django.halfvec
from django.contrib.postgres.indexes import GinIndex, OpClass
from django.db import migrations, models

COVERING = """
ALTER TABLE knowledge_posting DROP CONSTRAINT knowledge_posting_pkey;
ALTER TABLE knowledge_posting ADD CONSTRAINT knowledge_posting_pkey
    PRIMARY KEY (knowledge_base_id, term, chunk_id) INCLUDE (document_id, weight);
"""
PLAIN = """
ALTER TABLE knowledge_posting DROP CONSTRAINT knowledge_posting_pkey;
ALTER TABLE knowledge_posting ADD CONSTRAINT knowledge_posting_pkey PRIMARY KEY (knowledge_base_id, term, chunk_id);
"""


class Migration(migrations.Migration):
    dependencies = [("knowledge", "0001_initial")]

    operations = [
        migrations.AddField("chunkvector", "passage_id", models.UUIDField(default=uuid.uuid4), preserve_default=False),
        migrations.AlterField("chunkvector", "embedding", pgvector.django.halfvec.HalfVectorField()),
        migrations.AlterField("posting", "term", models.TextField(db_collation="C")),
        migrations.RunSQL(COVERING, PLAIN),
        migrations.AddIndex(
            "chunk",
            GinIndex(
                OpClass("text", name="gin_trgm_ops"),
                condition=models.Q(("level", 0)),
                name="passage_trigrams",
            ),
        ),
    ]
