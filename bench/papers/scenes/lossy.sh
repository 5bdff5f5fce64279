#!/bin/sh
# Transactions of pgbench that hardly wait for each other (-N: update, select, insert) with more and
# more clients: lossy.sh SECONDS CLIENTS... A thread for each client, so that all of them connect at
# once. The seconds count from before that: where lost packets took all of them, pgbench has no
# figure, and once more is tried.
set -u
seconds=$1
shift
for clients in "$@"; do
    for _ in 1 2 3; do
        said=$(/usr/lib/postgresql/15/bin/pgbench -n -N -j "$clients" -c "$clients" -T "$seconds")
        case $said in *"tps = "*) break ;; esac
    done
    echo "$said"
done
