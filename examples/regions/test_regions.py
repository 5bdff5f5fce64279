"""A store in three regions must have a leader that it keeps, and take writes, also without one
member. `pytest` tests store.tdl; `pytest --store hasty.tdl` a configuration that is wrong
(README.md). Needs the Debian packages etcd-server and etcd-client.
"""

import re

MEMBERS = ("etcd.0", "etcd.1", "etcd.2")


def terms(run, what):
    """The terms at which members became this, by the logs of etcd."""
    logs = "\n".join(map(run.log, MEMBERS))
    return sorted(int(term) for term in re.findall(rf"became {what} at term (\d+)", logs))


def writes(run, client):
    """How many were acknowledged."""
    return run.log(client).splitlines().count("OK")


def assert_led(run, leaders):
    """By so many leaders, one after the other."""
    near = run.series(("etcd.0", "etcd.1"), "rtt").median() // 10**6
    stood, led = terms(run, "candidate"), terms(run, "leader")
    assert len(led) == leaders, (
        f"{len(led)} leaders after {len(stood)} candidacies: the round trip between the nearest two"
        f" regions takes {near} ms, and who waits for less does not hear that it was elected"
    )


def test_it_has_a_leader_and_keeps_it(tstorm, store):
    run = tstorm.run(store, until="5s").finish()
    assert_led(run, 1)
    assert writes(run, "client.2") > 0, "no client in Asia could write"


def test_it_goes_on_without_a_member(tstorm, store):
    with tstorm.run(store, time="real") as experiment:
        assert experiment.wait_for("crash")["target"] == "etcd.0"
        experiment.wait_until("10s")
        answer = experiment.exec("client.1", ["etcdctl", "put", "key", "after the crash"])
    assert answer.stdout == "OK\n", f"no write 5 s after the crash: {answer.stderr}"
