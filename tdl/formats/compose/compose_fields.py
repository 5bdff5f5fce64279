"""What becomes of each field of a Compose file. docs/from-compose.md has the same as a table.

CARRIED is read by compose_service and compose_translation. SILENT changes nothing of what programs
see or do. LOST is a warning: a program may do more or less than it could, or somebody expects what
is not there. WRONG is an error: the experiment would be about something else. Of LOST and WRONG the
text says what is so instead.
"""

from __future__ import annotations

CARRIED = frozenset(
    (
        *("image", "build", "command", "entrypoint", "environment", "env_file"),
        *("working_dir", "user", "volumes", "tmpfs", "configs", "secrets", "healthcheck"),
        *("depends_on", "restart", "deploy", "scale", "networks", "network_mode", "ports"),
        *("expose", "extra_hosts", "sysctls", "profiles", "cpus", "mem_limit", "stop_signal"),
        *("stop_grace_period", "hostname", "container_name", "links", "extends", "pid"),
        *("ipc",),
    )
)
SILENT = frozenset(
    (
        *("labels", "label_file", "annotations", "attach", "logging", "develop"),
        *("pull_policy", "pull_refresh_after", "tty", "stdin_open", "init"),
    )
)
_NO_ENGINE = "no container engine takes part"
_FEWER = "an instance has the capabilities that the run has: all as root, else over itself only"
LOST = {
    "platform": "the image for this machine is taken",
    "read_only": "an instance may write to its own layer over the image",
    "privileged": _FEWER,
    "cap_add": _FEWER,
    "cap_drop": _FEWER,
    "security_opt": "instances have no seccomp, AppArmor or SELinux profile",
    "ulimits": "limits are those of the process that runs tstorm",
    "shm_size": "/dev/shm has the kernel's default size",
    "group_add": "a program has the groups of its user",
    "dns": "there is no resolver: names are in /etc/hosts",
    "dns_search": "there is no resolver: names are in /etc/hosts",
    "dns_opt": "there is no resolver: names are in /etc/hosts",
    "domainname": "a host name has no domain",
    "mac_address": "addresses are the experiment's",
    "pids_limit": "the number of processes has no limit of its own",
    "mem_reservation": "only the limit is carried over",
    "memswap_limit": "swap has no limit of its own",
    "mem_swappiness": "that is the machine's",
    "oom_kill_disable": "that is the machine's",
    "oom_score_adj": "that is the machine's",
    "cpu_shares": "only cpus is carried over",
    "cpu_count": "only cpus is carried over",
    "cpu_percent": "only cpus is carried over",
    "cpu_period": "only cpus is carried over",
    "cpu_quota": "only cpus is carried over",
    "cpu_rt_period": "only cpus is carried over",
    "cpu_rt_runtime": "only cpus is carried over",
    "cpuset": "instances share the machine's processors",
    "blkio_config": "the disk is not shaped",
    "storage_opt": "the disk has no limit",
    "cgroup": "control groups are the run's",
    "cgroup_parent": "control groups are the run's",
    "device_cgroup_rules": "devices are those that every container has",
    "isolation": _NO_ENGINE,
    "runtime": _NO_ENGINE,
    "credential_spec": _NO_ENGINE,
    "userns_mode": "user ids are those of docs/images.md",
    "uts": "each instance has a host name of its own",
}
WRONG = {
    "devices": "an instance has no other devices than null, zero, full, random, urandom and tty",
    "gpus": "an instance has no GPU",
    "external_links": "containers outside of the experiment cannot be reached",
    "volumes_from": "instances have file systems of their own",
    "provider": _NO_ENGINE,
    "models": _NO_ENGINE,
    "post_start": "nothing is run in a container beside its program; setup= is a command line",
    "pre_stop": "nothing is run in a container beside its program",
    "use_api_socket": _NO_ENGINE,
}
SERVICE = CARRIED | SILENT | LOST.keys() | WRONG.keys()
TOP = frozenset(("services", "networks", "volumes", "configs", "secrets", "name", "version"))
TOP_WRONG = {
    "include": 'name the files together: include "a.yml" "b.yml"',
    "models": _NO_ENGINE,
}
# Of `healthcheck` and of `deploy`.
CHECK = frozenset(
    (
        *("test", "interval", "timeout", "retries", "start_period", "start_interval"),
        *("disable",),
    )
)
DEPLOY_SILENT = frozenset(
    (*("labels", "placement", "update_config", "rollback_config", "endpoint_mode"),)
)
DEPLOY = DEPLOY_SILENT | {"replicas", "resources", "restart_policy", "mode"}
OWN = "x-tstorm"  # properties of the language for a service
