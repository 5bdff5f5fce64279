#!/bin/sh
# pgbench with more and more clients: geo.sh SECONDS CLIENTS... for updates, then for reads; with
# SECONDS 0: updates by 4 clients, and how long they took each second, until it is killed.
set -u
here=$(dirname "$(readlink -f "$0")")
bin=/usr/lib/postgresql/15/bin
seconds=$1
shift
if [ "$seconds" = 0 ]; then
    exec $bin/pgbench -n -f "$here/update.sql" -c 4 -T 10000 -P 1 --progress-timestamp 2>&1
fi
for clients in "$@"; do
    $bin/pgbench -n -f "$here/update.sql" -c "$clients" -T "$seconds" -P 1
done
for clients in "$@"; do
    $bin/pgbench -n -S -c "$clients" -T "$seconds" -P 1
done
