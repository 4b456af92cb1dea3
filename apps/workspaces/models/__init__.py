"""People, the workspaces they share, and what rights are made of."""

from apps.workspaces.models.audit import AuditEvent
from apps.workspaces.models.departments import Department, DepartmentMember
from apps.workspaces.models.invitations import Invitation
from apps.workspaces.models.keys import ApiKey
from apps.workspaces.models.notices import Notice
from apps.workspaces.models.people import Membership, Role, User, Workspace
from apps.workspaces.models.quotas import Quota
from apps.workspaces.models.shares import Share

__all__ = [
    "ApiKey",
    "AuditEvent",
    "Department",
    "DepartmentMember",
    "Invitation",
    "Membership",
    "Notice",
    "Quota",
    "Role",
    "Share",
    "User",
    "Workspace",
]
