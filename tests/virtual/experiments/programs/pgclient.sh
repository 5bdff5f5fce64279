#!/bin/sh
# Fills the primary, loads it with four connections, and counts what the standby has.
set -eu
PATH="$(find /usr/lib/postgresql -maxdepth 2 -name bin | sort | tail -n 1):$PATH"
export PGUSER=postgres
until pg_isready --host=primary.0 && pg_isready --host=standby.0; do
    sleep 0.2
done
pgbench --host=primary.0 --initialize --scale=1 postgres
pgbench --host=primary.0 --client=4 --time=6 --progress=1 postgres
for host in primary.0 standby.0; do
    psql --host=$host --command='select count(*), sum(delta), max(mtime) from pgbench_history' postgres
done
psql --host=primary.0 --command='select gen_random_uuid(), random(), now(), pg_current_wal_lsn()' postgres
