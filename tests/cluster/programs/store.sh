#!/bin/sh
# Redis that writes every change down and finds it again when it is started again in the same folder.
exec redis-server --protected-mode no --save '' --appendonly yes --appendfsync always \
    --repl-diskless-sync-delay 0 --dir . "$@"
