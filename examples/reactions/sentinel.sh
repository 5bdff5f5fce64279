#!/bin/sh
# Starts a Sentinel. It rewrites its configuration, so each instance has one in its working directory.
cat >sentinel.conf <<END
sentinel resolve-hostnames yes
sentinel announce-hostnames yes
sentinel announce-ip $TSTORM_INSTANCE
sentinel monitor shop redis.0 6379 2
sentinel down-after-milliseconds shop 2000
sentinel failover-timeout shop 4000
END
exec redis-sentinel sentinel.conf
