#!/bin/sh
# The daemon of BIRD in an instance (Debian: apt install bird2), asked as frr.sh is: `bird.sh ospf` or
# `bird.sh bgp NUMBER ADDRESS=NUMBER...`, with configuration, socket and pid file in the instance's own directory.
set -e
here=$PWD/bird
mkdir -p "$here"
PATH=/usr/sbin:$PATH
kind=$1
shift
{
    echo "log stderr all;"
    echo "protocol device { scan time 1; }"
    echo "protocol direct { ipv4; }"
    echo "protocol kernel { ipv4 { import none; export where source != RTS_DEVICE; }; }"
    case $kind in
    ospf)
        echo "protocol ospf v2 {"
        echo "    ipv4 { import all; export none; };"
        echo "    area 0 { interface \"eth*\" { type ptp; hello 1; dead 4; }; };"
        echo "}"
        ;;
    bgp)
        number=$1
        shift
        for peer in "$@"; do
            echo "protocol bgp {"
            echo "    local as $number;"
            echo "    neighbor ${peer%=*} as ${peer#*=};"
            echo "    hold time 3;"
            echo "    keepalive time 1;"
            echo "    connect delay time 1;"
            echo "    connect retry time 1;"
            echo "    error wait time 1, 1;"
            echo "    ipv4 { import all; export all; };"
            echo "}"
        done
        ;;
    esac
} >"$here/bird.conf"
exec bird -f -c "$here/bird.conf" -s "$here/bird.ctl" -P "$here/bird.pid"
