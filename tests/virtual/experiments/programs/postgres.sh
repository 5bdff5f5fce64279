#!/bin/sh
# postgres.sh primary|standby: PostgreSQL with its data in memory, as a user that is not root.
set -eu
role=$1
PATH="$(find /usr/lib/postgresql -maxdepth 2 -name bin | sort | tail -n 1):$PATH"
export PATH PGDATA=/dev/shm/data HOME=/dev/shm TMPDIR=/dev/shm
cd /dev/shm

as_nobody() {
    setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
}

if [ "$role" = primary ]; then
    as_nobody initdb --username=postgres --auth=trust --no-sync --encoding=UTF8 --locale=C
    echo 'host replication all all trust' >>"$PGDATA/pg_hba.conf"
    echo 'host all all all trust' >>"$PGDATA/pg_hba.conf"
else
    until as_nobody pg_basebackup --host=primary.0 --username=postgres --pgdata="$PGDATA" \
        --write-recovery-conf --wal-method=stream; do
        sleep 0.2
    done
fi
exec setpriv --reuid=65534 --regid=65534 --clear-groups postgres -c listen_addresses='*' \
    -c unix_socket_directories=/dev/shm -c fsync=off -c log_connections=on \
    -c log_replication_commands=on -c log_line_prefix='%m [%p] ' -c max_connections=20
