from django.db import migrations

SCHEDULES = {
    "knowledge: recover and erase": ("apps.knowledge.tasks.sweep", "I", 1),
    "knowledge: files without a row": ("apps.knowledge.tasks.sweep_files", "D", None),
}


def create(apps, schema_editor):
    schedule = apps.get_model("django_q", "Schedule")
    for name, (function, kind, minutes) in SCHEDULES.items():
        schedule.objects.get_or_create(
            name=name, defaults={"func": function, "schedule_type": kind, "minutes": minutes}
        )


def delete(apps, schema_editor):
    apps.get_model("django_q", "Schedule").objects.filter(name__in=list(SCHEDULES)).delete()


class Migration(migrations.Migration):
    dependencies = [
        ("knowledge", "0003_ingestion"),
        ("django_q", "0019_alter_task_options_alter_ormq_key_alter_ormq_lock_and_more"),
    ]

    operations = [migrations.RunPython(create, delete)]
