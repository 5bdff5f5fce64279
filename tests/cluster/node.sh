#!/usr/bin/env bash
# node.sh INDEX: one Kubernetes node: containerd, kubelet and kube-proxy.
# Started by `cluster up` as pid 1 of its own pid, mount and uts namespaces inside the network namespace
# tsc-nINDEX. Ends, and takes every pod with it, as soon as one of the three ends.
set -euo pipefail
# shellcheck source=lib.sh
. "$(dirname -- "$(readlink -f -- "$0")")/lib.sh"

index=$1
node=$(node_name "$index")
ip=$(node_ip "$index")
state=$RUN/nodes/$node
mkdir -p "$state/cni"
cp -L /etc/resolv.conf "$state/resolv.conf" # it may be a link into /run, which is covered below

hostname "$node"
sysctl -qw net.ipv4.ip_forward=1 # pods are routed through their node

# Shared inside this mount namespace only, so that pods may use mountPropagation.
mount --make-rshared /
# The node's own /run (sockets, /run/netns of the pods, xtables lock) and writable directories.
mount -t tmpfs tmpfs /run
mkdir -p /run/netns /run/lock
for dir in "${NODE_DIRS[@]}"; do
  mkdir -p "$state/root$dir"
  mount --bind "$state/root$dir" "$dir"
done

# ipMasq stays off: pods see each other's real address, also from node to node.
cat >"$state/cni/10-bridge.conflist" <<K
{"cniVersion": "1.0.0", "name": "tsc", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": "$POD_NET.$index.0/24"}]],
            "routes": [{"dst": "0.0.0.0/0"}], "dataDir": "$state/cni-data"}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
K

# restrict_oom_score_adj: without CAP_SYS_RESOURCE (sandboxes, some CI machines) no process may lower its
#   oom_score_adj, and the pause container asks for -998.
# SystemdCgroup = false: cgroups are made directly, so the host needs no systemd.
cat >"$state/containerd.toml" <<K
version = 2
root = "$state/containerd"
state = "/run/containerd"
[grpc]
  address = "$CRI_SOCKET"
[plugins."io.containerd.internal.v1.opt"]
  path = "$state/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "$PAUSE_IMAGE"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$(cni_bin)"
    conf_dir = "$state/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
K

# cgroupRoot: every pod of this node lives below the cgroup of the node's name.
# failCgroupV1: on hosts with the v1 hierarchies mounted (hybrid) kubelet must not refuse to start.
# maxOpenFiles: the default of 1000000 needs CAP_SYS_RESOURCE where the hard limit is lower.
# localStorageCapacityIsolation, imageGC, evictionHard: all nodes share one disk that is not theirs to guard.
# volumePluginDir: the default is a directory of the host.
cat >"$state/kubelet.yaml" <<K
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: "$RUN/pki/ca.crt"}}
authorization: {mode: Webhook}
containerRuntimeEndpoint: unix://$CRI_SOCKET
cgroupDriver: cgroupfs
cgroupRoot: /$node
failCgroupV1: false
failSwapOn: false
maxOpenFiles: 20000
localStorageCapacityIsolation: false
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
evictionHard: {memory.available: 50Mi, nodefs.available: 1%, imagefs.available: 1%, nodefs.inodesFree: 1%}
volumePluginDir: $state/volume-plugins
clusterDomain: cluster.local
clusterDNS: [${SERVICE_CIDR%.0/*}.10]
resolvConf: $state/resolv.conf
syncFrequency: 10s
nodeStatusUpdateFrequency: 5s
K

# conntrack: all zero leaves the kernel's values; nf_conntrack_max belongs to the host's network namespace.
cat >"$state/proxy.yaml" <<K
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
hostnameOverride: $node
clientConnection: {kubeconfig: "$RUN/pki/proxy.kubeconfig"}
clusterCIDR: $POD_NET.0.0/16
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
K

containerd -c "$state/containerd.toml" >"$LOGS/$node.containerd.log" 2>&1 &
containerd=$!
for _ in {1..300}; do
  ctr -a "$CRI_SOCKET" version >/dev/null 2>&1 && break
  [[ -d /proc/$containerd ]] || die "containerd ended, see $LOGS/$node.containerd.log"
  sleep 0.1
done
ctr -a "$CRI_SOCKET" -n k8s.io images import "$IMAGES/pause.tar" >/dev/null

"$BIN/kubelet" --config="$state/kubelet.yaml" --kubeconfig="$RUN/pki/$node.kubeconfig" --hostname-override="$node" \
  --node-ip="$ip" --root-dir=/var/lib/kubelet --cert-dir=/var/lib/kubelet/pki >"$LOGS/$node.kubelet.log" 2>&1 &
kubelet=$!

# kube-proxy looks its node up when it starts and waits long between tries, so start it when the node exists.
for _ in {1..600}; do
  "$BIN/kubectl" --kubeconfig="$RUN/pki/$node.kubeconfig" get node "$node" >/dev/null 2>&1 && break
  [[ -d /proc/$kubelet ]] || die "kubelet ended, see $LOGS/$node.kubelet.log"
  sleep 0.2
done
"$BIN/kube-proxy" --config="$state/proxy.yaml" >"$LOGS/$node.kube-proxy.log" 2>&1 &
proxy=$!

status=0
wait -n -p ended "$containerd" "$kubelet" "$proxy" || status=$?
declare -A name=([$containerd]=containerd [$kubelet]=kubelet [$proxy]=kube-proxy)
die "${name[$ended]} of $node ended with status $status, see its log in $LOGS"
