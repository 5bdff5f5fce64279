# shellcheck shell=bash disable=SC2034  # the variables are for the scripts that source this file
# Paths, addresses and small helpers of the test cluster. Sourced by the other scripts, never run.

HERE=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
CLUSTER_HOME=$(realpath -m -- "${CLUSTER_HOME:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/tstorm-cluster}")
BIN=$CLUSTER_HOME/bin       # Kubernetes binaries; survives `down`, worth caching
IMAGES=$CLUSTER_HOME/images # image archives; survives `down`, worth caching
LOGS=$CLUSTER_HOME/logs     # survives `down`; rewritten by the next `up`
RUN=$CLUSTER_HOME/live      # everything that belongs to a running cluster; `down` deletes it

export CLUSTER_HOME KUBECACHEDIR=$RUN/kubectl-cache
export GOGC=400 # memory for processor time, of which the tests beside it have too little
umask 022

# Every network namespace, link and cgroup of the cluster has the prefix tsc-.
CP=tsc-cp                # namespace of the control plane and of the bridge
BRIDGE=tsc-br0           # the bridge, inside $CP
HOST_LINK=tsc-host       # the only link in the root namespace: the host's port on the bridge
SUBNET=10.99.0           # /24: .1 host, .2 control plane, .10 and up nodes
HOST_IP=$SUBNET.1
CP_IP=$SUBNET.2
POD_NET=10.244           # /16: node I has $POD_NET.I.0/24
SERVICE_CIDR=10.96.0.0/16
SERVER=https://$CP_IP:6443
MAX_NODES=64

PAUSE_IMAGE=tsc.local/pause:1

# Directories that every node overlays with its own (kubelet, CNI results, container logs).
NODE_DIRS=(/var/lib/kubelet /var/lib/cni /var/log/pods /var/log/containers)

# A node's containerd, as seen from inside the node's mount namespace.
CRI_SOCKET=/run/containerd/containerd.sock

node_name() { echo "tsc-n$1"; }
node_ip() { echo "$SUBNET.$((10 + $1))"; }

# Directory of the CNI plugins: Debian's, or the one that most other packages use.
cni_bin() {
  local dir
  for dir in /usr/lib/cni /opt/cni/bin; do
    [[ -x $dir/bridge && -x $dir/host-local && -x $dir/loopback && -x $dir/portmap ]] && echo "$dir" && return
  done
  return 1
}

die() {
  echo "cluster: $*" >&2
  exit 1
}

need_root() { ((EUID == 0)) || die "this needs root"; }

lock() { # one command at a time; the descriptor is closed in everything that stays running
  mkdir -p "$CLUSTER_HOME"
  exec 9>"$CLUSTER_HOME/lock"
  flock -w 10 9 || die "another cluster command is at work in $CLUSTER_HOME"
}

# wait_http URL SECONDS PID: until URL answers with success; fails early if process PID has ended.
wait_http() {
  local deadline=$((SECONDS + $2))
  until curl -fsS --max-time 2 --noproxy '*' --cacert "$RUN/pki/ca.crt" -o /dev/null "$1" 2>/dev/null; do
    ((SECONDS < deadline)) && [[ -d /proc/$3 ]] || return 1
    sleep 0.1
  done
}
