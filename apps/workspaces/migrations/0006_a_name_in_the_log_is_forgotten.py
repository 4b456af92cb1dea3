from django.db import migrations

CREATE = """
CREATE OR REPLACE FUNCTION knowsphere_audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('knowsphere.erasing', true) = OLD.workspace_id::text THEN
        RETURN OLD;
    END IF;
    IF TG_OP = 'UPDATE' AND current_setting('knowsphere.forgetting', true) = OLD.target_name
        AND OLD.target_name <> '' AND NEW.target_name = ''
        AND to_jsonb(NEW) - 'target_name' = to_jsonb(OLD) - 'target_name' THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'the audit log is append-only' USING ERRCODE = 'insufficient_privilege';
END $$;
"""
BEFORE = """
CREATE OR REPLACE FUNCTION knowsphere_audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('knowsphere.erasing', true) = OLD.workspace_id::text THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'the audit log is append-only' USING ERRCODE = 'insufficient_privilege';
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("workspaces", "0005_notices_and_keys_of_keys")]

    operations = [migrations.RunSQL(CREATE, BEFORE)]
