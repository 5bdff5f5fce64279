#!/bin/sh
# Starts a Redis in memory. The first is the primary, the others begin as its replicas; each has the
# name that the others know it by.
set -- --protected-mode no --save '' --repl-diskless-sync-delay 0 --replica-announce-ip "$TSTORM_INSTANCE"
[ "$TSTORM_INSTANCE" = redis.0 ] || set -- "$@" --replicaof redis.0 6379
exec redis-server "$@"
