#!/bin/sh
# What the database's replica and its client need before time 0: geo-setup.sh replica|client. The
# client's last commit is confirmed by the replica, so both are up to date then.
set -eu
bin=/usr/lib/postgresql/15/bin
until $bin/pg_isready --quiet --host=frankfurt; do
    sleep 0.1
done
if [ "$1" = replica ]; then
    exec $bin/pg_basebackup -h frankfurt -U postgres -D data -R -N -c fast
fi
PGOPTIONS=--synchronous_commit=local $bin/pgbench --initialize --init-steps=dtGp
exec $bin/psql --command "create table confirmed ()"
