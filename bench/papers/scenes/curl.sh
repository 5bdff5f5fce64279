#!/bin/bash
# Asks for /data again and again, each time over a new connection, for so many seconds: curl.sh HOST
# SECONDS. A line for each answer: when it was there (epoch seconds), its bytes. A curl asks 20 times
# before the next one starts, and the name is looked up once: to start a curl takes a processor for
# longer than an answer takes the link, and the network is what is measured.
export LC_ALL=C
read -r host _ < <(getent ahostsv4 "$1")
end=$((SECONDS + $2))
while ((SECONDS < end)); do
    curl --silent --output /dev/null --header 'Connection: close' \
        --write-out '%{stderr}%{http_code} %{size_download}\n' "http://$host:8080/data?[1-20]" 2>&1
done | while read -r status size; do
    [[ $status == 200 ]] && echo "$EPOCHREALTIME $size"
done
exit 0
