#!/bin/sh
case $TSTORM_INDEX in
0) ip route add 10.2.0.0/24 via 10.0.0.2 ;;
1) ip route add 10.1.0.0/24 via 10.0.0.1 ;;
esac
exec sleep infinity
