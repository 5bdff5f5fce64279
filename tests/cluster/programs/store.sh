#!/bin/sh
# Redis that writes every change down and finds it again when it is started again in the same folder.
# A replica that hears nothing for three seconds connects again.
exec redis-server --protected-mode no --save '' --appendonly yes --appendfsync always \
    --repl-diskless-sync-delay 0 --repl-ping-replica-period 1 --repl-timeout 3 --dir . "$@"
