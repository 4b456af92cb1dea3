"""A format is one file and one row: calendars are there that way, and the recipe's example works as it is written."""

import io
import re
import types

from django.conf import settings

from apps.knowledge.parsers import PARSERS, content_types
from apps.knowledge.parsers.formats import Format
from apps.knowledge.parsers.sniffing import sniff_file
from tests.knowledge.test_parsers import read, refused

CALENDAR = (
    "BEGIN:VCALENDAR\r\nX-WR-CALNAME:Board\r\nBEGIN:VEVENT\r\nSUMMARY:Annual meeting\\, first\r\n part\r\n"
    "DTSTART;TZID=Europe/Berlin:20240506T090000\r\nDTEND:20240506T100000Z\r\nATTENDEE;CN=Ann:mailto:ann@x.test\r\n"
    "DESCRIPTION:Line one\\nLine two\r\nBEGIN:VALARM\r\nTRIGGER:-PT5M\r\nEND:VALARM\r\nEND:VEVENT\r\n"
    "BEGIN:VTODO\r\nSUMMARY:报税\r\nDUE;VALUE=DATE:20240601\r\nEND:VTODO\r\nEND:VCALENDAR\r\n"
)


def test_a_calendar_is_its_appointments():
    for name in ("a.ics", "a"):
        parsed = read(CALENDAR, name)
        assert parsed.markdown == (
            "# Board\n\n## Annual meeting, firstpart\n\n- Dtstart: 2024-05-06 09:00\n- Dtend: 2024-05-06 10:00 UTC\n"
            "- Attendee: ann@x.test\n\nLine one\nLine two\n\n## 报税\n\n- Due: 2024-06-01"
        )
        assert parsed.metadata == {"encoding": "utf-8", "entries": 2, "title": "Board"}
    assert refused("BEGIN:VCALENDAR\nEND:VCALENDAR\n", "a.ics") == "empty_file"


def test_the_recipe_works_as_it_is_written(monkeypatch):
    recipe = (settings.BASE_DIR / "docs/recipes/add-a-parser.md").read_text()
    code, row = (re.sub(r"^ {3}", "", block, flags=re.M) for block in re.findall(r"```python\n(.*?)```", recipe, re.S))
    found = eval(row, {"Format": Format})
    module = types.ModuleType(found.parser.rpartition(".")[0])
    exec(code, module.__dict__)
    monkeypatch.setitem(__import__("sys").modules, module.__name__, module)
    for table in ("MAGIC", "TEXT_ENDINGS", "OTHER_ENDINGS", "PROMISES"):
        monkeypatch.setattr(content_types, table, getattr(content_types, table).copy())
    monkeypatch.setattr("apps.knowledge.parsers.sniffing.PROMISES", content_types.PROMISES)
    monkeypatch.setitem(PARSERS._paths, found.content_type, found.parser)
    content_types.learn(found)
    file = io.BytesIO(b"# a comment\nname=KnowSphere\nport = 8000\n")
    assert sniff_file(file, "app.properties") == found.content_type
    file.seek(0)
    assert PARSERS.get(found.content_type)(file).markdown == (
        "| name | value |\n| --- | --- |\n| name | KnowSphere |\n| port | 8000 |"
    )
