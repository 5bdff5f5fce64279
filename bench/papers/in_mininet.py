"""Two hosts of Mininet and a link between them: `in_mininet.py MBPS ADDRESS ADDRESS`.

The link is Mininet's own (TCLink with `bw`, which is htb at either end), as its users make it;
there is no switch and no controller. Output: one line, a JSON list of the two hosts' processes,
whose network namespaces they are. Ends when its input does. For the Python of Debian, where the
package mininet is; mininet_ends.py starts it, as root and in namespaces of its own.
"""

from __future__ import annotations

import importlib
import json
import sys


def main() -> int:
    mbps, *addresses = sys.argv[1:]
    try:
        node, link = (importlib.import_module(f"mininet.{name}") for name in ("node", "link"))
    except ImportError:
        print("Mininet is not installed (Debian: apt-get install mininet)", file=sys.stderr)
        return 1
    hosts = [node.Node(name) for name in ("h1", "h2")]
    link.TCLink(*hosts, params1={"bw": float(mbps)}, params2={"bw": float(mbps)})
    for host, address in zip(hosts, addresses, strict=True):
        host.setIP(address, prefixLen=16, intf=host.defaultIntf())
    print(json.dumps([host.pid for host in hosts]), flush=True)
    sys.stdin.read()
    for host in hosts:
        host.terminate()
    return 0


if __name__ == "__main__":
    sys.exit(main())
