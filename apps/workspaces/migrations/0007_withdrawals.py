from django.db import migrations

from apps.workspaces.withdrawals import FUNCTION, NO_FUNCTION, told

TABLES = {
    "django_session": "",
    "workspaces_user": "is_active, password",
    "workspaces_membership": "role, support_until, user_id, workspace_id",
    "workspaces_department": "lineage",
    "workspaces_departmentmember": "department_id, membership_id",
    "workspaces_apikey": "scopes, expires_at, revoked_at",
}


class Migration(migrations.Migration):
    dependencies = [("workspaces", "0006_a_name_in_the_log_is_forgotten"), ("sessions", "0001_initial")]

    operations = [migrations.RunSQL(FUNCTION, NO_FUNCTION), *told(TABLES)]
