# The image of agent and coordinator, for who has a container engine; the same files as those of
# `tstorm image build` on such a machine, which makes them here:
#   docker build --tag docker.io/thunderstorm/tstorm:0.1.0 .
FROM debian:bookworm-slim AS build
RUN apt-get update && \
    apt-get install --yes --no-install-recommends gcc libc6-dev python3 python3-venv
COPY pyproject.toml setup.py README.md LICENSE /source/
COPY tdl /source/tdl
COPY compiler /source/compiler
COPY manifests /source/manifests
COPY runtime /source/runtime
COPY tcal_c /source/tcal_c
COPY tstorm /source/tstorm
RUN python3 -m venv /installed && /installed/bin/pip install /source && \
    /installed/bin/tstorm image build --unpacked --output /image

FROM scratch
COPY --from=build /image /
ENV PATH=/usr/bin PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=/usr/lib/thunderstorm
ENTRYPOINT ["/usr/bin/tstorm-agent"]
