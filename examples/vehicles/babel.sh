#!/bin/sh
# babel.sh: Babel as it is installed (Debian: apt install babeld) on the one radio of a car, with a hello each second to all
# who hear it. The car has an address that others learn by it; car 0 pings that of car 3 once there is a way.
ip -6 address add "fd00::$TSTORM_INDEX/128" dev lo
babeld -I "$PWD/babeld.pid" -S "$PWD/babeld.state" -C "default type wireless hello-interval 1" \
    -C "redistribute local ip fd00::/16 allow" -C "redistribute local deny" eth0 &
if [ "$TSTORM_INDEX" = 0 ]; then
    until ping -c 1 -W 1 fd00::3 > /dev/null 2>&1; do sleep 0.5; done
    ping -D -i 0.5 fd00::3
fi
wait
