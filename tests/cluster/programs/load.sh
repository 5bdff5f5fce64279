#!/bin/sh
# Fetches the page 40 times at a time from four clients; says what came of it, and how fast.
while :; do
    ab -q -n 40 -c 4 http://web.0/page 2>&1 |
        sed -n 's/^Complete requests: */complete /p; s/^Failed requests: */failed /p; s/^Transfer rate: *\([0-9.]*\).*/kbytes_per_second \1/p'
done
