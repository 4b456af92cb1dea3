"""Static files as production serves them."""

import re

from django.core.management import call_command

from apps.common.staticfiles import HashedStaticFiles


def test_modules_import_each_other_by_their_hashed_names(tmp_path, settings):
    settings.STATIC_ROOT = tmp_path
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": "apps.common.staticfiles.HashedStaticFiles"}}
    call_command("collectstatic", interactive=False, verbosity=0)
    storage = HashedStaticFiles(location=tmp_path, base_url="/static/")
    script = (tmp_path / storage.stored_name("js/thread.js")).read_text()
    names = set(re.findall(r'from "\./(.+?)"', script))
    assert {name.partition(".")[0] for name in names} >= {"app", "panel", "socket", "turn"}
    assert all(re.fullmatch(r"\w+\.[0-9a-f]{12}\.js", name) and (tmp_path / "js" / name).exists() for name in names)
