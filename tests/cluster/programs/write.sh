#!/bin/sh
# Writes 1, 2, 3 … to the primary and says what became of each; when it leaves, what both have.
leaving=
trap 'leaving=yes' TERM
number=0
while [ -z "$leaving" ]; do
    number=$((number + 1))
    answer=$(timeout 1 redis-cli -h primary.0 set number $number 2>&1)
    if [ "$answer" = OK ]; then echo "written $number"; else echo "refused $number"; fi
    sleep 0.1
done
echo "primary $(timeout 1 redis-cli -h primary.0 get number)"
echo "replica $(timeout 1 redis-cli -h replica.0 get number)"
