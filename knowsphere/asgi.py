"""The ASGI application: HTTP, websockets, and what has to start and stop with the process."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "knowsphere.settings")
os.environ.setdefault("KNOWSPHERE_PROCESS", "web")

from django.core.asgi import get_asgi_application

http = get_asgi_application()

from channels.routing import ProtocolTypeRouter

from apps.common.lifespan import Lifespan

application = Lifespan(ProtocolTypeRouter({"http": http}), services=[])
