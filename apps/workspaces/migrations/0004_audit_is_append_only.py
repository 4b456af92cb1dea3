from django.db import migrations

CREATE = """
CREATE FUNCTION knowsphere_audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('knowsphere.erasing', true) = OLD.workspace_id::text THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'the audit log is append-only' USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER audit_is_append_only BEFORE UPDATE OR DELETE ON workspaces_auditevent
    FOR EACH ROW EXECUTE FUNCTION knowsphere_audit_is_append_only();
"""
DROP = """
DROP TRIGGER audit_is_append_only ON workspaces_auditevent;
DROP FUNCTION knowsphere_audit_is_append_only();
"""


class Migration(migrations.Migration):
    dependencies = [("workspaces", "0003_invitations_audit_quotas")]

    operations = [migrations.RunSQL(CREATE, DROP)]
