#!/bin/sh
# A member of a cluster of three, nats.0 to nats.2.
exec nats-server --addr 0.0.0.0 --port 4222 --server_name "$TSTORM_INSTANCE" --cluster_name storm \
    --cluster nats://0.0.0.0:6222 --routes nats://nats.0:6222,nats://nats.1:6222,nats://nats.2:6222 \
    --debug
