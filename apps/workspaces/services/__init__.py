"""Writes to people, workspaces, and what rights are made of."""

from apps.workspaces.services.departments import (
    create_department,
    delete_department,
    move_department,
    rename_department,
    set_department_members,
)
from apps.workspaces.services.ending import delete_person, delete_workspace
from apps.workspaces.services.invitations import accept, invite, withdraw_invitation
from apps.workspaces.services.keys import create_api_key, principal_of_key, revoke_api_key
from apps.workspaces.services.notices import delete_notice, save_notice
from apps.workspaces.services.people import (
    begin_support,
    change_person,
    change_role,
    change_workspace,
    create_workspace,
    end_ways_in,
    leave_workspace,
    remove_member,
    remove_second_steps,
    set_active,
    set_membership,
    transfer_workspace,
)
from apps.workspaces.services.sharing import Subject, set_restricted, share, unshare

__all__ = [
    "Subject",
    "accept",
    "begin_support",
    "change_person",
    "change_role",
    "change_workspace",
    "create_api_key",
    "create_department",
    "create_workspace",
    "delete_department",
    "delete_notice",
    "delete_person",
    "delete_workspace",
    "end_ways_in",
    "invite",
    "leave_workspace",
    "move_department",
    "principal_of_key",
    "remove_member",
    "remove_second_steps",
    "rename_department",
    "revoke_api_key",
    "save_notice",
    "set_active",
    "set_department_members",
    "set_membership",
    "set_restricted",
    "share",
    "transfer_workspace",
    "unshare",
    "withdraw_invitation",
]
