#!/bin/sh
# A web server (nginx) with one file, /data, of so many bytes, in a folder of its own: web.sh BYTES
set -eu
conf=$(dirname "$(readlink -f "$0")")/nginx.conf
dir=$(mktemp -d)
mkdir "$dir/pages"
truncate -s "$1" "$dir/pages/data"
exec nginx -p "$dir" -c "$conf" -e stderr
