#!/usr/bin/env python3
"""Two sites, and a way around."""

from functools import partial

from mininet.cli import CLI
from mininet.link import TCLink
from mininet.log import info, setLogLevel
from mininet.net import Mininet
from mininet.node import CPULimitedHost, Node, OVSKernelSwitch
from mininet.topo import Topo
from mininet.util import dumpNodeConnections


class Router(Node):
    def config(self, **params):
        super().config(**params)
        self.cmd("sysctl net.ipv4.ip_forward=1")


Slow = partial(TCLink, delay="1500us")


class Sites(Topo):
    def build(self, n=3, core="20ms"):
        left = self.addSwitch("s1")
        right = self.addSwitch("s2", cls=OVSKernelSwitch, dpid="2")
        for number in range(1, n + 1):
            host = self.addHost("h%s" % number, cpu=0.5 / n, ip="10.0.0.%d/24" % number)
            side = left if number % 2 else right
            self.addLink(host, side, bw=10, delay="5ms", loss=0.5, max_queue_size=100, use_htb=True)
        info("*** two ways between the sites\n")
        self.addLink(left, right, cls=TCLink, bw=100, delay=core, jitter="1ms")
        self.addLink(left, right, cls=Slow, bw=2.5)
        router = self.addNode("r0", cls=Router)
        self.addLink(router, left, delay=300)
        self.addLink(router, right, intfName1="r0-eth7")


topos = {"sites": (lambda: Sites())}

if __name__ == "__main__":
    setLogLevel("info")
    net = Mininet(topo=Sites(n=4), link=TCLink, host=CPULimitedHost)
    net.start()
    dumpNodeConnections(net.hosts)
    CLI(net)
    net.stop()
