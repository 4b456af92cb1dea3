"""Every address of the API and who may reach it. One without a row fails the build until someone decides.

All rows name things of acme (``tests/access/world.py``), and what is remembered and asked there is the owner's. The
handbook is shared with member and department, who may manage it; the key is the owner's, with every scope.
"""

from tests.access.personas import Row, row


def api(viewer: int, owner: int, **more: int) -> Row:
    """Return the status of each persona at an address: a key gets what its owner gets, a visitor's token nothing."""
    return row(viewer, owner, **{"nobody": 401, "key": owner, **more})


def base(status: int) -> Row:
    """Return the row of what those may do who manage the base; for others it is not there."""
    return api(404, status, holder=status)


def shut(status: int) -> Row:
    """Return the row of what owners and admins may do; for others it is not there."""
    return api(404, status)


def run(status: int) -> Row:
    """Return the row of what owners and admins may do; others in the workspace are told that they may not."""
    return api(403, status)


def own(status: int) -> Row:
    """Return the row of what is the asker's alone."""
    return api(404, status, admin=404)


LIST = api(200, 200, other=200)  # everybody's own, which may be nothing
READ = api(200, 200)  # everybody in the workspace
MEMBERS = api(403, 201, member=201, other=201, operator=404)  # members and above, in a workspace of theirs
IN_OWN = {"other": 201, "operator": 404}  # who names no workspace means their only one; an operator has none
ALL = api(201, 201, **IN_OWN)

WORKSPACES = {
    ("GET", "workspaces"): LIST,
    ("POST", "workspaces"): api(201, 201, other=201, operator=201, key=403),  # a key is of one workspace
    ("GET", "workspace"): READ,
    ("PATCH", "workspace"): run(200),
    ("DELETE", "workspace"): api(403, 204, admin=403),
    ("GET", "quotas"): READ,
    ("POST", "quotas"): run(200),
    ("GET", "members"): READ,
    ("GET", "member"): READ,
    ("PATCH", "member"): shut(200),
    ("DELETE", "member"): api(204, 204, holder=404),  # the viewer's own: she leaves
    ("POST", "transfer-workspace"): api(404, 200, admin=403),
    ("GET", "invitations"): READ,  # of workspaces that one runs: for others an empty list
    ("POST", "invitations"): run(201),
    ("GET", "invitation"): shut(200),
    ("DELETE", "invitation"): shut(200),
    ("GET", "audit-events"): LIST,
    ("GET", "audit-event"): shut(200),
    ("GET", "export-audit-events"): api(403, 200, other=200, operator=404),
    ("GET", "departments"): READ,
    ("POST", "departments"): run(201),
    ("GET", "department"): READ,
    ("PATCH", "department"): shut(200),
    ("DELETE", "department"): shut(204),
    ("GET", "api-keys"): READ,
    ("POST", "api-keys"): api(201, 201),
    ("GET", "api-key"): shut(200),
    ("DELETE", "api-key"): shut(200),
}
KNOWLEDGE = {
    ("GET", "knowledge-bases"): LIST,
    ("POST", "knowledge-bases"): MEMBERS,
    ("GET", "knowledge-base"): READ,
    ("PATCH", "knowledge-base"): base(200),
    ("DELETE", "knowledge-base"): base(204),
    ("GET", "documents-of-base"): READ,
    ("POST", "documents-of-base"): base(422),
    ("GET", "changed-passages"): base(200),
    ("POST", "search-base"): api(422, 422),
    ("GET", "shares-of-base"): base(200),
    ("POST", "shares-of-base"): base(201),
    ("DELETE", "share-of-base"): base(204),
    ("GET", "documents"): LIST,
    ("GET", "document"): READ,
    ("PATCH", "document"): base(200),
    ("DELETE", "document"): base(204),
    ("GET", "shares-of-document"): base(200),
    ("POST", "shares-of-document"): base(201),
    ("DELETE", "share-of-document"): api(404, 404),
    ("GET", "shares-of-folder"): base(200),
    ("POST", "shares-of-folder"): base(201),
    ("DELETE", "share-of-folder"): api(404, 404),
    ("POST", "parse-document"): base(202),
    ("POST", "index-document"): base(409),
    ("POST", "cancel-document"): base(409),
    ("GET", "content-of-document"): READ,
    ("GET", "chunks-of-document"): READ,
    ("GET", "chunks"): LIST,
    ("GET", "chunk"): READ,
    ("GET", "folders-of-base"): READ,
    ("POST", "folders-of-base"): base(201),
    ("GET", "fields-of-base"): READ,
    ("POST", "fields-of-base"): base(201),
    ("GET", "field"): READ,
    ("DELETE", "field"): base(204),
    ("POST", "model-of-base"): base(202),
    ("DELETE", "model-of-base"): base(204),
    ("GET", "folder"): READ,
    ("PATCH", "folder"): base(200),
    ("DELETE", "folder"): base(202),
    ("POST", "jobs-of-base"): base(201),
    ("GET", "jobs"): LIST,
    ("GET", "job"): base(200),
    ("POST", "cancel-job"): base(202),
    ("POST", "retry-job"): base(422),
}
MODELS = {
    ("GET", "models"): LIST,
    ("POST", "models"): api(403, 201, **IN_OWN),
    ("GET", "model"): READ,
    ("PATCH", "model"): shut(200),
    ("DELETE", "model"): shut(204),
    ("POST", "test-model"): shut(200),
    ("GET", "shares-of-model"): shut(200),
    ("POST", "shares-of-model"): shut(201),
    ("DELETE", "share-of-model"): api(404, 404),
    ("GET", "usage"): api(403, 200, other=200, operator=404),
    ("GET", "budgets"): LIST,
    ("POST", "budgets"): api(403, 201, **IN_OWN),
    ("GET", "budget"): shut(200),
    ("DELETE", "budget"): shut(204),
}
EVALS = {
    ("GET", "datasets"): LIST,
    ("POST", "datasets"): MEMBERS,
    ("GET", "dataset"): READ,
    ("PATCH", "dataset"): shut(200),
    ("DELETE", "dataset"): shut(204),
    ("GET", "cases"): READ,
    ("POST", "cases"): shut(201),
    ("GET", "case"): READ,
    ("DELETE", "case"): shut(204),
    ("GET", "shares-of-dataset"): shut(200),
    ("POST", "shares-of-dataset"): shut(201),
    ("DELETE", "share-of-dataset"): api(404, 404),
}
WIDGETS = {
    ("GET", "widgets"): LIST,
    ("POST", "widgets"): api(403, 201, **IN_OWN),
    ("GET", "widget"): shut(200),
    ("PATCH", "widget"): shut(200),
    ("DELETE", "widget"): shut(204),
    ("POST", "renew-widget"): shut(200),
    ("POST", "renew-widget-secret"): shut(201),
}
MEMORY = {
    ("GET", "memory-items"): LIST,
    ("POST", "memory-items"): ALL,
    ("GET", "memory-item"): own(200),
    ("PATCH", "memory-item"): own(200),
    ("DELETE", "memory-item"): own(204),
}
AGENTS = {
    ("GET", "agents"): LIST,
    ("POST", "agents"): MEMBERS,
    ("GET", "agent"): READ,
    ("PATCH", "agent"): shut(200),
    ("DELETE", "agent"): shut(409),  # the one that answers where none is chosen
    ("GET", "shares-of-agent"): shut(200),
    ("POST", "shares-of-agent"): shut(201),
    ("DELETE", "share-of-agent"): api(404, 404),
}
CONVERSATIONS = {
    ("GET", "conversations"): LIST,
    ("POST", "conversations"): ALL,
    ("GET", "conversation"): own(200),
    ("PATCH", "conversation"): own(200),
    ("DELETE", "conversation"): own(204),
    ("GET", "turns-of-conversation"): own(200),
    ("POST", "turns-of-conversation"): own(422),
    ("GET", "turns"): LIST,
    ("GET", "turn"): own(200),
    ("GET", "events-of-turn"): own(200),
    ("POST", "stop-turn"): own(202),
    ("POST", "feedback-of-turn"): own(200),
    ("DELETE", "feedback-of-turn"): own(204),
    ("GET", "citations-of-turn"): own(200),
    ("GET", "messages"): LIST,
    ("GET", "message"): own(200),
    ("GET", "attachments"): LIST,
    ("POST", "attachments"): api(422, 422, other=422),
    ("GET", "attachment"): own(200),
    ("DELETE", "attachment"): own(204),
}
TABLE = {**WORKSPACES, **KNOWLEDGE, **MODELS, **EVALS, **WIDGETS, **MEMORY, **AGENTS, **CONVERSATIONS}
OPENAI = {
    ("GET", "models"): api(200, 200, other=200, operator=404),  # of the caller's workspace
    ("GET", "model"): READ,
    ("POST", "chat-completions"): api(422, 422, other=422),
}
