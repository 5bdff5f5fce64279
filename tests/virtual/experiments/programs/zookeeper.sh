#!/bin/sh
# A member of an ensemble of three, zk.0 to zk.2, with its data in memory.
set -eu
data=/dev/shm/zookeeper
mkdir -p "$data"
echo "$((TSTORM_INDEX + 1))" >"$data/myid"
cat >zoo.cfg <<END
tickTime=500
initLimit=10
syncLimit=4
dataDir=$data
clientPort=2181
admin.enableServer=false
4lw.commands.whitelist=*
server.1=zk.0:2888:3888
server.2=zk.1:2888:3888
server.3=zk.2:2888:3888
END
exec java -Xmx128m -cp /usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar -Dzookeeper.root.logger=INFO,CONSOLE \
    -Dlog4j.configuration=file:/etc/zookeeper/conf_example/log4j.properties \
    org.apache.zookeeper.server.quorum.QuorumPeerMain zoo.cfg
