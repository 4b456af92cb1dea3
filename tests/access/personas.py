"""Who comes to a door in the access matrix, and the rows of its tables.

nobody is signed out, other owns another tenant, viewer sees acme, member (by name) and department (by theirs) hold
a share that lets them manage the handbook, admin and owner run acme, key sends an owner's API key, widget the token
of a visitor, and operator runs the server without being in any workspace.
"""

from collections.abc import Mapping

PERSONAS = (
    "nobody", "other", "viewer", "member", "department", "admin", "owner", "key", "widget", "operator",
)  # fmt: skip
Row = Mapping[str, int]


def row(viewer: int, owner: int, *, nobody: int = 302, other: int = 404, holder: int = 0, **more: int) -> Row:
    """Return the status of each persona at a page.

    ``holder`` is for member and department where their share counts, ``more`` for any that is an exception. An admin
    gets what the owner gets, an operator what a stranger gets; keys and tokens open no page.
    """
    assert set(more) <= set(PERSONAS), more
    holders = dict.fromkeys(("member", "department"), holder or viewer)
    shut = dict.fromkeys(("nobody", "key", "widget"), nobody)
    strangers = dict.fromkeys(("other", "operator"), other)
    return {**shut, **strangers, **holders, "viewer": viewer, "admin": owner, "owner": owner, **more}


def everybody(status: int) -> Row:
    """Return a row of what is the same for all."""
    return dict.fromkeys(PERSONAS, status)


OPEN = everybody(200)
READ = row(200, 200)  # everybody in the workspace
MANAGE = row(404, 302, holder=302)  # those who may manage the base; for others it is not there
FORM = row(404, 422, holder=422)  # the same, of a form that is sent without what it needs
WRITE = row(404, 200, holder=200)  # the same, a page
RUN = row(403, 200)  # those who own or administer the workspace
RUN_ACT = row(403, 302)
RUN_FORM = row(403, 422)
SHUT = row(404, 302)  # the same, of a row that is not there for others
SHUT_PAGE = row(404, 200)
SHUT_FORM = row(404, 422)
MEMBERS = row(403, 200, member=200)  # members and above
MEMBERS_FORM = row(403, 422, member=422)
OWN = row(404, 200, admin=404)  # the asker's alone
OWN_ACT = row(404, 302, admin=404)
OWN_FORM = row(404, 422, admin=404)
ALL_FORM = row(422, 422)  # everybody in the workspace, a form that is sent without what it needs
ALL_ACT = row(302, 302)
