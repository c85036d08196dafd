# The service alone: no compiler, no Spark, no embedded Postgres. `docker compose up` runs it with a
# Postgres and an S3 server; docs/container.md says how to run it with others.
FROM python:3.13.16-slim-bookworm AS build

# "service,otel" adds what sends spans.
ARG EXTRAS=service
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /src
RUN python -m venv --without-pip /opt/tidegate
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY protocol protocol
COPY service service
COPY client client
COPY migrations migrations
RUN pip --python /opt/tidegate/bin/python install --constraint constraints.txt ".[${EXTRAS}]"

FROM python:3.13.16-slim-bookworm

RUN groupadd --gid 10001 tidegate \
    && useradd --uid 10001 --gid 10001 --no-create-home --shell /usr/sbin/nologin tidegate \
    && install --directory --owner 10001 --group 10001 /var/lib/tidegate
COPY --from=build /opt/tidegate /opt/tidegate

# Beyond loopback the service asks for tokens: `tidegate token create` makes one.
ENV PATH=/opt/tidegate/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    TIDEGATE_AUTH=tokens \
    TIDEGATE_DATA_DIR=/var/lib/tidegate \
    TIDEGATE_HOST=0.0.0.0 \
    TIDEGATE_PORT=8720

USER 10001:10001
WORKDIR /var/lib/tidegate
VOLUME /var/lib/tidegate
EXPOSE 8720
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=10s --start-period=60s --start-interval=2s --retries=3 \
    CMD ["env", "-u", "TIDEGATE_URL", "tidegate", "health"]
ENTRYPOINT ["tidegate"]
CMD ["serve"]
