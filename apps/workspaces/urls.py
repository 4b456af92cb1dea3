"""Routes of workspaces."""

from django.urls import path

from apps.workspaces.views import account, audit, departments, home, keys, people, settings, sharing

app_name = "workspaces"
urlpatterns = [
    path("", home.home, name="home"),
    path("new/", home.create_workspace, name="create-workspace"),
    path("account/", account.show_account, name="show-account"),
    path("account/change/", account.change_account, name="change-account"),
    path("account/delete/", account.delete_account, name="delete-account"),
    path("account/notices/<uuid:notice_id>/dismiss/", account.dismiss_notice, name="dismiss-notice"),
    path("invitations/<str:token>/", people.show_invitation, name="show-invitation"),
    path("invitations/<str:token>/accept/", people.accept_invitation, name="accept-invitation"),
    path("<slug:slug>/members/", people.list_members, name="list-members"),
    path("<slug:slug>/members/invite/", people.invite, name="invite"),
    path("<slug:slug>/members/leave/", people.leave_workspace, name="leave-workspace"),
    path("<slug:slug>/members/<uuid:membership_id>/role/", people.change_role, name="change-role"),
    path("<slug:slug>/members/<uuid:membership_id>/remove/", people.remove_member, name="remove-member"),
    path("<slug:slug>/members/<uuid:membership_id>/transfer/", people.transfer_workspace, name="transfer-workspace"),
    path(
        "<slug:slug>/invitations/<uuid:invitation_id>/withdraw/",
        people.withdraw_invitation,
        name="withdraw-invitation",
    ),
    path("<slug:slug>/departments/", departments.list_departments, name="list-departments"),
    path("<slug:slug>/departments/new/", departments.create_department, name="create-department"),
    path("<slug:slug>/departments/<uuid:department_id>/", departments.edit_department, name="edit-department"),
    path(
        "<slug:slug>/departments/<uuid:department_id>/change/", departments.change_department, name="change-department"
    ),
    path(
        "<slug:slug>/departments/<uuid:department_id>/people/",
        departments.set_department_members,
        name="set-department-members",
    ),
    path(
        "<slug:slug>/departments/<uuid:department_id>/delete/", departments.delete_department, name="delete-department"
    ),
    path("<slug:slug>/api-keys/", keys.list_api_keys, name="list-api-keys"),
    path("<slug:slug>/api-keys/new/", keys.create_api_key, name="create-api-key"),
    path("<slug:slug>/api-keys/<uuid:key_id>/revoke/", keys.revoke_api_key, name="revoke-api-key"),
    path("<slug:slug>/sharing/<slug:kind>/<uuid:row_id>/", sharing.show_sharing, name="show-sharing"),
    path("<slug:slug>/sharing/<slug:kind>/<uuid:row_id>/share/", sharing.share, name="share"),
    path("<slug:slug>/sharing/<slug:kind>/<uuid:row_id>/restrict/", sharing.restrict, name="restrict"),
    path("<slug:slug>/sharing/<slug:kind>/<uuid:row_id>/<uuid:share_id>/withdraw/", sharing.unshare, name="unshare"),
    path("<slug:slug>/audit-log/", audit.show_audit_log, name="show-audit-log"),
    path("<slug:slug>/audit-log/export/", audit.export_audit_log, name="export-audit-log"),
    path("<slug:slug>/limits/", settings.show_limits, name="show-limits"),
    path("<slug:slug>/limits/set/", settings.set_limit, name="set-limit"),
    path("<slug:slug>/settings/", settings.show_settings, name="show-settings"),
    path("<slug:slug>/settings/change/", settings.change_settings, name="change-settings"),
    path("<slug:slug>/settings/export/", settings.export_workspace, name="export-workspace"),
    path("<slug:slug>/settings/delete/", settings.delete_workspace, name="delete-workspace"),
]
