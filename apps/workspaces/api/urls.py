"""Addresses of people and workspaces in the API."""

from django.urls import path

from apps.workspaces.api import audit, departments, keys, people, workspaces

ONE = "workspaces/<uuid:workspace_id>/"
MEMBER = f"{ONE}members/<uuid:member_id>/"
urlpatterns = [
    path("workspaces/", workspaces.Workspaces.as_view(), name="workspaces"),
    path(ONE, workspaces.OneWorkspace.as_view(), name="workspace"),
    path(f"{ONE}quotas/", workspaces.Quotas.as_view(), name="quotas"),
    path(f"{ONE}members/", people.Members.as_view(), name="members"),
    path(MEMBER, people.OneMember.as_view(), name="member"),
    path(f"{MEMBER}transfer/", people.TransferWorkspace.as_view(), name="transfer-workspace"),
    path(f"{ONE}invitations/", people.Invitations.as_view(), name="invitations"),
    path(f"{ONE}invitations/<uuid:invitation_id>/", people.OneInvitation.as_view(), name="invitation"),
    path(f"{ONE}departments/", departments.Departments.as_view(), name="departments"),
    path(f"{ONE}departments/<uuid:department_id>/", departments.OneDepartment.as_view(), name="department"),
    path(f"{ONE}api-keys/", keys.ApiKeys.as_view(), name="api-keys"),
    path(f"{ONE}api-keys/<uuid:key_id>/", keys.OneApiKey.as_view(), name="api-key"),
    path("audit-events/", audit.AuditEvents.as_view(), name="audit-events"),
    path("audit-events/export/", audit.ExportAuditEvents.as_view(), name="export-audit-events"),
    path("audit-events/<uuid:event_id>/", audit.OneAuditEvent.as_view(), name="audit-event"),
]
