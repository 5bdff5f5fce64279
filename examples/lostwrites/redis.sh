#!/bin/sh
# Starts Redis: reachable from other instances, everything in memory, no delay before a replica's copy.
exec redis-server --protected-mode no --save '' --repl-diskless-sync-delay 0 "$@"
