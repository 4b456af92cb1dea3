"""Search with all kinds of rights in force against search without any, 200 interleaved pairs of each.

The reader is a member whose department, three levels down, was given a restricted base. A third of the
documents lie in a restricted folder, a tenth are restricted themselves, and all of these are shared with
the reader too: every check is made, and what is found is the same.
"""

import asyncio
from dataclasses import replace

from benchmarks.bench_search import FILTER_BAR, QUESTIONS, _closing, door_times
from benchmarks.report import Ratio
from benchmarks.search_world import World, fill, scratch_database


def restrict(world: World) -> World:
    """Put the rights in place; return the world of the reader."""
    from apps.knowledge.models import Document, Folder
    from apps.workspaces import services
    from apps.workspaces.models import Role, User
    from apps.workspaces.services import Subject

    base, owner = world.bases[0], world.person
    reader = User.objects.create_user("reader@example.com")
    services.set_membership(workspace=base.workspace, user=reader, role=Role.MEMBER)
    place = base.workspace
    top = services.create_department(workspace=place, name="Company", actor=owner)
    middle = services.create_department(workspace=place, name="Research", parent=top, actor=owner)
    department = services.create_department(workspace=place, name="Physics", parent=middle, actor=owner)
    services.set_department_members(department=department, user_ids=[reader.pk], actor=owner)
    services.set_restricted(row=base, restricted=True, actor=owner)
    services.share(row=base, subject=Subject(department=top), level="read", actor=owner)
    folders = []
    for number in range(50):
        folder = Folder(workspace=base.workspace, knowledge_base=base, name=f"Folder {number}", restricted=number == 0)
        folder.lineage = [folder.pk]
        folders.append(folder)
    Folder.objects.bulk_create(folders)
    services.share(row=folders[0], subject=Subject(user=reader), level="read", actor=owner)
    for number, document in enumerate(Document.objects.filter(knowledge_base=base).order_by("pk")):
        document.folder = folders[0] if number % 3 == 0 else folders[number % 50]
        document.restricted = number % 10 == 0
        document.save(update_fields=["folder", "restricted"])
        if document.restricted:
            services.share(row=document, subject=Subject(department=top), level="read", actor=owner)
    return replace(world, person=reader)


def run() -> list[Ratio]:
    """Measure and return the ratios: for an owner, and for the reader with every kind of right."""
    with scratch_database("bench_rights"):
        world = fill([10_000, 1_000, 1_000], questions=QUESTIONS)
        owner = Ratio("search, an owner's rights", *asyncio.run(_closing(door_times(world, 0))), "ms", FILTER_BAR)
        reader = asyncio.run(_closing(door_times(restrict(world), 0)))
        return [owner, Ratio("search, every kind of right", *reader, "ms", FILTER_BAR)]
