from django.db import migrations

BATCH = 1000


def copy(apps, schema_editor):
    """Take over the grants to persons, once each: where somebody held both, "manage" says it all."""
    old = apps.get_model("knowledge", "KnowledgeBaseUserPermission")
    new = apps.get_model("knowledge", "KnowledgeBaseShare")
    held = {}
    for row in old.objects.order_by("permission__codename", "-pk").values_list(
        "content_object_id", "user_id", "permission_id"
    ):
        held.setdefault(row[:2], row[2])  # "manage_…" sorts before "read_…"
    new.objects.bulk_create(
        [
            new(content_object_id=base, user_id=user, permission_id=permission)
            for (base, user), permission in held.items()
        ],
        batch_size=BATCH,
    )


class Migration(migrations.Migration):
    dependencies = [("knowledge", "0008_shares")]

    operations = [migrations.RunPython(copy, migrations.RunPython.noop)]
