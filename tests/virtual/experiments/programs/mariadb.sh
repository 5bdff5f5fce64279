#!/bin/sh
# mariadb.sh NUMBER [PRIMARY]: MariaDB with its data in memory; with PRIMARY a replica of it.
set -eu
cd /dev/shm
mariadb-install-db --user=root --datadir=/dev/shm/data --auth-root-authentication-method=normal --skip-test-db >install.log
if [ $# -eq 1 ]; then
    cat >start.sql <<SQL
create user repl identified by 'r'; grant replication slave on *.* to repl;
create user app identified by 'a'; grant all on *.* to app;
create database d; create table d.t (n int primary key, at timestamp(6), id varchar(40));
SQL
else
    cat >start.sql <<SQL
change master to master_host='$2', master_user='repl', master_password='r', master_use_gtid=slave_pos,
    master_connect_retry=1, master_heartbeat_period=1;
set global slave_net_timeout=4;
start slave;
SQL
fi
tr '\n' ' ' <start.sql | sed 's/; /;\n/g' >init.sql
exec mariadbd --user=root --datadir=/dev/shm/data --socket=/dev/shm/socket --pid-file=/dev/shm/pid \
    --bind-address='*' --server-id="$1" --log-bin --init-file=/dev/shm/init.sql
