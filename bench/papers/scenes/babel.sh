#!/bin/sh
# babel.sh PINGS: babeld on every device of a router, with hellos each second, and PINGS beside it.
pings=$1
number=$((${TSTORM_MACHINE##*.} + 1))
ip -6 address add "fd00::$(printf %x $number)/128" dev lo
cd /sys/class/net || exit 1
set -- eth*
cd "$OLDPWD" || exit 1
babeld -I "$PWD/babeld.pid" -S "$PWD/babeld.state" -C "default type wired hello-interval 1" \
    -C "redistribute local ip fd00::/16" -C "redistribute local deny" "$@" &
exec "$pings"
