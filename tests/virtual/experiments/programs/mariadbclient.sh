#!/bin/sh
# Writes a row each half second, and counts what each server has meanwhile and at the end.
set -eu
ask() {
    timeout 2 mariadb --host="$1" --user=app --password=a --batch --skip-column-names --execute="$2"
}
until ask primary.0 'select version()' && ask replica.0 'select 1' && ask replica.1 'select 1'; do
    sleep 0.5
done
n=0
while [ $n -lt 24 ]; do
    n=$((n + 1))
    ask primary.0 "insert into d.t values ($n, now(6), uuid())" || echo "lost $n"
    if [ $((n % 8)) -eq 0 ]; then
        for host in primary.0 replica.0 replica.1; do
            echo "$host has $(ask $host 'select count(*), max(at) from d.t' || echo gone)"
        done
    fi
    sleep 0.5
done
sleep 5
for host in primary.0 replica.0 replica.1; do
    echo "$host ends with $(ask $host 'select count(*), max(at), md5(group_concat(id order by n)) from d.t')"
done
