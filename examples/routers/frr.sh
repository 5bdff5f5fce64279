#!/bin/sh
# Daemons of FRR in an instance: `frr.sh ospf` or `frr.sh bgp NUMBER ADDRESS=NUMBER...`, with configuration, sockets
# and pid files in the instance's own directory. They insist on a group frrvty that their user is in, which is
# what the file of groups beside this is for.
set -e
here=$PWD/frr
mkdir -p "$here"
PATH=/usr/lib/frr:$PATH
user=$(id -un)
kind=$1
shift
printf 'hostname %s\nlog stdout informational\n' "$TSTORM_INSTANCE" >"$here/zebra.conf"
{
    cat "$here/zebra.conf"
    case $kind in
    ospf)
        echo "router ospf"
        echo " ospf router-id 10.255.0.$((TSTORM_INDEX + 1))"
        echo " timers throttle spf 10 100 1000"
        echo " timers throttle lsa all 200"
        echo " timers lsa min-arrival 100"
        ip -o -4 addr show scope global | while read -r _ device _ address _; do
            echo " network $address area 0"
        done
        ip -o -4 addr show scope global | while read -r _ device _ address _; do
            echo "interface $device"
            echo " ip ospf hello-interval 1"
            echo " ip ospf dead-interval 4"
            case $address in */31 | */30) echo " ip ospf network point-to-point" ;; esac
        done
        ;;
    bgp)
        echo "router bgp $1"
        shift
        echo " no bgp ebgp-requires-policy"
        echo " timers bgp 1 3"
        for peer in "$@"; do
            echo " neighbor ${peer%=*} remote-as ${peer#*=}"
            echo " neighbor ${peer%=*} advertisement-interval 0"
            echo " neighbor ${peer%=*} timers connect 1"
        done
        echo " address-family ipv4 unicast"
        echo "  redistribute connected"
        ;;
    esac
} >"$here/${kind}d.conf"

run() {
    daemon=$1
    shift
    "$daemon" -u "$user" -g "$(id -gn)" -f "$here/$daemon.conf" -i "$here/$daemon.pid" -z "$here/zserv.api" \
        --vty_socket "$here" -A 127.0.0.1 -P 0 "$@" &
}
run zebra
while [ ! -S "$here/zserv.api" ]; do sleep 0.05; done
run "${kind}d"
wait
