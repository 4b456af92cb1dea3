"""Writes to people, workspaces, and what rights are made of."""

from apps.workspaces.services.departments import (
    create_department,
    delete_department,
    move_department,
    rename_department,
    set_department_members,
)
from apps.workspaces.services.keys import create_api_key, principal_of_key, revoke_api_key
from apps.workspaces.services.people import create_workspace, set_membership
from apps.workspaces.services.sharing import Subject, set_restricted, share, unshare

__all__ = [
    "Subject",
    "create_api_key",
    "create_department",
    "create_workspace",
    "delete_department",
    "move_department",
    "principal_of_key",
    "rename_department",
    "revoke_api_key",
    "set_department_members",
    "set_membership",
    "set_restricted",
    "share",
    "unshare",
]
