# shellcheck shell=bash
# The commands that need no cluster: deps, build, images. Sourced by `cluster`.

BINARIES=(kube-apiserver kube-controller-manager kube-proxy kube-scheduler kubectl kubelet)

# Used where there is no Go, or one too old for go.mod: from the Go module proxy, as Go itself
# fetches toolchains. To raise it: any later version in the proxy's list, and its sha256sum.
GO_TOOLCHAIN=go1.24.13.linux-amd64
GO_SHA256=d2b048367a3d1a748b87f756fa06df12ce3b419e1d5f2a3612acb8950d615f9f

cmd_deps() {
  need_root
  local item packages=() policy=/usr/sbin/policy-rc.d
  # A file or command that must exist, and the package that brings it. What is there is not replaced (the
  # package containerd, for example, would push out Docker's containerd.io).
  for item in etcd:etcd-server containerd:containerd ctr:containerd runc:runc iptables:iptables ip:iproute2 \
    nsenter:util-linux unshare:util-linux pgrep:procps sysctl:procps openssl:openssl curl:curl \
    python3:python3 find:findutils gcc:gcc /usr/include/stdlib.h:libc6-dev /bin/busybox:busybox-static \
    redis-server:redis-server redis-cli:redis-tools nginx:nginx-light ab:apache2-utils iperf3:iperf3; do
    command -v "${item%:*}" >/dev/null || [[ -e ${item%:*} ]] || packages+=("${item#*:}")
  done
  cni_bin >/dev/null || packages+=(containernetworking-plugins)
  [[ ! -e /bin/busybox ]] || ! ldd /bin/busybox &>/dev/null || packages+=(busybox-static)
  ((${#packages[@]})) || return 0
  apt-get update -q
  if [[ ! -e $policy ]]; then # a server that is installed is not to run here
    # shellcheck disable=SC2064  # its name as it is now
    trap "rm -f $policy" EXIT
    printf '#!/bin/sh\nexit 101\n' >$policy
    chmod +x $policy
  fi
  DEBIAN_FRONTEND=noninteractive apt-get install -yq --no-install-recommends "${packages[@]}"
}

go_needed() { sed -n 's/^go //p' "$HERE/go.mod"; }

go_suffices() { # GO: whether this is a Go of at least go.mod's version
  local version
  version=$(GOTOOLCHAIN=local "$1" env GOVERSION 2>/dev/null) || return 1
  [[ $(printf '%s\n' "$(go_needed)" "${version#go}" | sort -V | head -n 1) == "$(go_needed)" ]]
}

module_proxy() { # the first of $GOPROXY that is an address
  local address list
  IFS=',|' read -ra list <<<"${GOPROXY:-},https://proxy.golang.org"
  for address in "${list[@]}"; do
    [[ $address == http* ]] && echo "${address%/}" && return
  done
}

fetch_go() { # the pinned toolchain in CLUSTER_HOME/go, whole or not at all
  local zip=$CLUSTER_HOME/go.zip new=$CLUSTER_HOME/go.new address
  [[ $(uname -m) == x86_64 ]] || die "no Go $(go_needed) or newer is installed, and none is pinned for $(uname -m)"
  address=$(module_proxy)/golang.org/toolchain/@v/v0.0.1-$GO_TOOLCHAIN.zip
  echo "no Go $(go_needed) or newer here: fetching $address" >&2
  curl -fsS --retry 3 -o "$zip" "$address" || die "cannot fetch $address"
  sha256sum --quiet -c - <<<"$GO_SHA256  $zip" || die "$zip is not the toolchain that build.sh names"
  rm -rf "$new"
  python3 -m zipfile -e "$zip" "$new" # keeps no modes
  mv "$new/golang.org/toolchain@v0.0.1-$GO_TOOLCHAIN" "$new/go"
  chmod +x "$new"/go/bin/* "$new"/go/pkg/tool/*/*
  rm -rf "$CLUSTER_HOME/go" "$zip"
  mv "$new/go" "$CLUSTER_HOME/go"
  rm -rf "$new"
}

find_go() { # sets go
  for go in "$(command -v go || true)" "$CLUSTER_HOME/go/bin/go"; do
    [[ -n $go ]] && go_suffices "$go" && return
  done
  fetch_go
  go_suffices "$go" || die "the fetched $go does not run"
}

k8s_version() { sed -nE 's/^(require)?[[:space:]]*k8s\.io\/kubernetes (v[0-9.]+).*/\2/p' "$HERE/go.mod"; }

kwok_version() { sed -nE 's/^[[:space:]]*sigs\.k8s\.io\/kwok (v[0-9.]+).*/\1/p' "$HERE/kwok/go.mod"; }

have_kwok() { [[ -x $BIN/kwok && $("$BIN/kwok" --version) == *"$(kwok_version)"* ]]; }

have_binaries() {
  local name
  for name in "${BINARIES[@]}"; do [[ -x $BIN/$name ]] || return; done
  [[ $("$BIN/kubelet" --version) == "Kubernetes $(k8s_version)" ]]
}

refuse_sources() { # prints why the binaries could not be built; nothing if they could, or are there
  local address
  have_binaries && return
  address=$(module_proxy)/k8s.io/kubernetes/@v/$(k8s_version).info
  curl -fsS --retry 3 --max-time 60 -o /dev/null "$address" 2>&1 || true
}

version_flags() { # what a release of Kubernetes says of itself
  local version=$1 minor=${1#v1.} package setting flags="-s -w"
  for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    for setting in "gitVersion=$version" gitMajor=1 "gitMinor=${minor%%.*}" gitTreeState=clean; do
      flags+=" -X $package.$setting"
    done
  done
  echo "$flags"
}

cmd_build() {
  lock
  local version go
  version=$(k8s_version)
  if have_binaries && have_kwok; then
    echo "Kubernetes $version and kwok are in $BIN"
    return
  fi
  find_go
  # Caches below CLUSTER_HOME, unless the caller names others.
  export GOMODCACHE=${GOMODCACHE:-$CLUSTER_HOME/gomod} GOCACHE=${GOCACHE:-$CLUSTER_HOME/gocache}
  export GOTMPDIR=$CLUSTER_HOME/gotmp CGO_ENABLED=0 GOTOOLCHAIN=local
  export GOGC=${GOGC:-400} # memory for time: the compilers collect their garbage less often
  mkdir -p "$GOTMPDIR" "$BIN"
  have_binaries || build_kubernetes "$version"
  have_kwok || build_kwok
}

build_kubernetes() { # VERSION
  rm -rf "$BIN/new"
  echo "building Kubernetes $1 in $CLUSTER_HOME: minutes of all processors"
  (cd "$HERE" && GOFLAGS="-mod=readonly -buildvcs=false" "$go" build -trimpath -ldflags "$(version_flags "$1")" \
    -o "$BIN/new/" "${BINARIES[@]/#/k8s.io/kubernetes/cmd/}")
  mv "$BIN"/new/* "$BIN"
  rmdir "$BIN/new"
}

build_kwok() { # kubelets of nodes that are none; a module of its own, since it needs other libraries
  echo "building kwok $(kwok_version) in $CLUSTER_HOME"
  (cd "$HERE/kwok" && GOFLAGS="-mod=readonly -buildvcs=false" "$go" build -trimpath -ldflags "-s -w" \
    -o "$BIN/kwok" sigs.k8s.io/kwok/cmd/kwok)
}

cmd_images() (
  lock
  mkdir -p "$IMAGES"
  if [[ -s $IMAGES/pause.tar ]]; then return; fi
  work=$(mktemp -d "$CLUSTER_HOME/images-XXXXXX")
  trap 'rm -rf "$work"' EXIT
  mkdir "$work/pause"
  gcc -O2 -static -o "$work/pause/pause" "$HERE/pause.c"
  "$HERE/mkimage.py" "$PAUSE_IMAGE" "$work/pause" "$IMAGES/pause.tar" /pause
)
