#!/bin/bash
# Asks for /data again and again, each time by a new curl over a new connection, for so many seconds:
# curl.sh HOST SECONDS. A line for each answer: when it was there (epoch seconds), its bytes. The name
# is looked up once, so that what is measured is the network and not each curl's reading of files.
export LC_ALL=C
read -r host _ < <(getent ahostsv4 "$1")
end=$((SECONDS + $2))
while ((SECONDS < end)); do
    size=$(curl --silent --output /dev/null --write-out '%{size_download}' "http://$host:8080/data") \
        && echo "$EPOCHREALTIME $size"
done
exit 0
