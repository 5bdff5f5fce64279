# shellcheck shell=bash
# What the cluster does to the host, and undoes: processes in namespaces, network, cgroups, sysctls.
# Sourced by `cluster`.

### processes

start_time() { # PID: its start time, which tells it from a later process with the same pid; fails if it ended
  local stat fields
  read -r stat 2>/dev/null <"/proc/$1/stat" || return 1
  read -ra fields <<<"${stat##*) }"
  [[ ${fields[0]} != [ZX] ]] && echo "${fields[19]}"
}

alive() { # NAME: whether the recorded process of that name runs; sets pid
  local recorded
  pid=
  [[ -s $RUN/$1.pid ]] && read -r pid recorded <"$RUN/$1.pid" &&
    [[ -n $recorded && $(start_time "$pid") == "$recorded" ]]
}

all_dead() { # whether processes are recorded and none of them runs: the machine was stopped, or all were killed
  local file name pid
  compgen -G "$RUN/*.pid" >/dev/null || return 1
  for file in "$RUN"/*.pid; do
    name=${file##*/}
    ! alive "${name%.pid}" || return 1
  done
}

spawn() { # NAME NETNS COMMAND...: run COMMAND in NETNS as pid 1 of its own pid, mount and uts namespaces
  local name=$1 netns=$2
  shift 2
  NO_PROXY='*' no_proxy='*' setsid nsenter --net="/run/netns/$netns" \
    unshare --mount --propagation private --uts --pid --fork --kill-child --mount-proc "$@" \
    </dev/null >"$LOGS/$name.log" 2>&1 9>&- &
  echo "$! $(start_time $!)" >"$RUN/$name.pid"
}

stop() { # NAME
  local pid child
  for _ in {1..200}; do
    alive "$1" || { rm -f "$RUN/$1.pid" && return; }
    # Killing pid 1 of a pid namespace kills all of it; the recorded unshare ends when all of it is gone.
    child=$(pgrep -P "$pid") || child=$pid
    kill -KILL "$child" 2>/dev/null || true
    sleep 0.05
  done
  die "process $pid ($1) does not end"
}

### network

add_netns() { [[ -e /run/netns/$1 ]] || ip netns add "$1"; }

check_owner() { # the cluster that runs, if any, must be that of this CLUSTER_HOME
  local owner=/sys/class/net/$HOST_LINK/ifalias
  [[ -e $owner ]] && owner=$(<"$owner") || return 0
  [[ -z $owner || $owner == "$CLUSTER_HOME" ]] ||
    die "a cluster of CLUSTER_HOME=$owner is up; only one can run on a machine"
}

add_network() { # COUNT: bridge, the host's port on it, and the namespaces of COUNT nodes
  local i j node routes
  mountpoint -q /run/netns || touch "$RUN/netns-mount-is-ours"
  add_netns "$CP"
  if ! ip -n "$CP" link show "$BRIDGE" &>/dev/null; then
    ip -n "$CP" link set lo up
    ip -n "$CP" link add "$BRIDGE" type bridge
    ip -n "$CP" addr add "$CP_IP/24" dev "$BRIDGE"
    ip -n "$CP" link set "$BRIDGE" up
  fi
  if ! ip link show "$HOST_LINK" &>/dev/null; then
    [[ -z $(ip -4 route show "$SUBNET.0/24") ]] || die "this host already uses $SUBNET.0/24"
    ip link add "$HOST_LINK" type veth peer name tsc-hostport netns "$CP"
    ip link set "$HOST_LINK" alias "$CLUSTER_HOME"
    ip -n "$CP" link set tsc-hostport master "$BRIDGE" up
    ip addr add "$HOST_IP/24" dev "$HOST_LINK"
    ip link set "$HOST_LINK" up
  fi
  for ((i = 0; i < $1; i++)); do
    node=$(node_name "$i")
    add_netns "$node"
    ip -n "$node" link show eth0 &>/dev/null && continue
    ip -n "$CP" link add "tsc-port$i" type veth peer name eth0 netns "$node"
    ip -n "$CP" link set "tsc-port$i" master "$BRIDGE" up
    ip -n "$node" addr add "$(node_ip "$i")/24" dev eth0
    ip -n "$node" link set lo up
    ip -n "$node" link set eth0 up
    ip -n "$node" route add default via "$CP_IP"
  done
  # Each node's pod network is routed through that node, from the control plane and from every other node.
  for ((i = -1; i < $1; i++)); do
    routes=
    for ((j = 0; j < $1; j++)); do
      ((i == j)) || routes+="route replace $POD_NET.$j.0/24 via $(node_ip "$j")"$'\n'
    done
    node=$CP
    ((i < 0)) || node=$(node_name "$i")
    ip -n "$node" -batch - <<<"$routes"
  done
}

remove_network() {
  local netns
  for netns in /run/netns/tsc-*; do
    [[ -e $netns ]] || continue
    netns=${netns##*/}
    [[ -z $(ip netns pids "$netns") ]] ||
      die "namespace $netns is in use by process(es) $(ip netns pids "$netns" | xargs): end them and repeat"
    ip netns del "$netns"
  done
  # Went with the namespace of its other end, or is about to.
  ip link del "$HOST_LINK" 2>/dev/null || [[ ! -e /sys/class/net/$HOST_LINK ]] || ip link del "$HOST_LINK"
  if [[ -e $RUN/netns-mount-is-ours ]] && mountpoint -q /run/netns && [[ -z $(ls -A /run/netns) ]]; then
    umount /run/netns && rmdir /run/netns # made by the first `ip netns add` on this machine
  fi
}

### what kubelet and the container runtime share with the host

cgroup_roots() { # every mounted hierarchy: one per controller with cgroup v1, plus the one of cgroup v2
  awk '{ for (i = 7; $i != "-"; i++); if ($(i + 1) ~ /^cgroup2?$/) print $5 }' /proc/self/mountinfo | sort -u
}

add_cgroup() { # NAME: kubelet requires its cgroupRoot to exist in every hierarchy
  local root file controller
  while read -r root; do
    mkdir -p "$root/$1" || die "cannot make cgroups in $root"
    for file in cpuset.cpus cpuset.mems; do # v1: empty in a new cgroup, and no process may enter it so
      [[ ! -e $root/cpuset.sched_load_balance ]] || cat "$root/$file" >"$root/$1/$file"
    done
    [[ -e $root/cgroup.controllers ]] || continue
    for controller in $(<"$root/cgroup.controllers"); do # v2: hand the controllers down
      echo "+$controller" >"$root/cgroup.subtree_control"
    done
  done < <(cgroup_roots)
}

remove_cgroups() {
  local dirs
  for _ in {1..100}; do
    mapfile -t dirs < <(cgroup_roots | sed 's|$|/|' | xargs -I{} find {} -maxdepth 1 -type d -name 'tsc-*')
    ((${#dirs[@]})) || return 0
    find "${dirs[@]}" -depth -type d -exec rmdir {} + 2>/dev/null && continue
    sleep 0.05
  done
  die "cannot remove the cgroups ${dirs[*]}"
}

make_room() { # containerd cannot keep its overlays on an overlay (a container's root): memory then
  if [[ $(stat -f -c %T "$RUN") == overlayfs ]]; then mount -t tmpfs tsc-live "$RUN"; fi
}

# Settings of the whole machine that kubelet changes, whatever namespaces it runs in.
KUBELET_SYSCTLS=(vm.overcommit_memory vm.panic_on_oom kernel.panic kernel.panic_on_oops
  kernel.keys.root_maxkeys kernel.keys.root_maxbytes)

save_host() { # what `down` puts back
  local dir
  if [[ ! -e $RUN/sysctl.conf ]]; then
    sysctl -e "${KUBELET_SYSCTLS[@]}" >"$RUN/sysctl.conf.new"
    mv "$RUN/sysctl.conf.new" "$RUN/sysctl.conf"
  fi
  for dir in "${NODE_DIRS[@]}"; do # mount points for the nodes' own directories
    [[ -d $dir ]] && continue
    echo "$dir" >>"$RUN/made-dirs"
    mkdir -p "$dir"
  done
}

restore_host() {
  local dir
  [[ ! -e $RUN/sysctl.conf ]] || sysctl -q -p "$RUN/sysctl.conf"
  [[ ! -e $RUN/made-dirs ]] || while read -r dir; do
    [[ ! -d $dir ]] || rmdir "$dir" || die "$dir was made by the cluster but is not empty"
  done <"$RUN/made-dirs"
}

