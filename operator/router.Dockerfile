# The router of a pool: nginx, the front that users reach, and smg behind it. One image, two containers.
#
#   docker build --tag kvfence-router:VERSION --file operator/router.Dockerfile operator
#
# BASE is Debian with python3 (3.9 or newer) and pip. What is installed is what router-requirements.txt names, by hash.
ARG BASE=python:3.12-slim

FROM ${BASE} AS packages
COPY router-requirements.txt /
RUN python3 -m pip install --no-cache-dir --no-deps --require-hashes --target /opt/smg -r /router-requirements.txt

FROM ${BASE}
RUN apt-get update -q \
    && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends nginx-light \
    && rm -rf /var/lib/apt/lists/*
COPY --from=packages --chown=0:0 /opt/smg /opt/smg
ENV PATH=/opt/smg/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin PYTHONPATH=/opt/smg PYTHONUNBUFFERED=1
USER 65532:65532
CMD ["smg", "--help"]
