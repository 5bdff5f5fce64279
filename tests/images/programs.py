"""Images of real programs, packed from Debian's packages: as their own images, they start as root
and drop it, or state a USER."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.packing.debian import add_busybox, add_libraries, add_program, add_users, found
from tests.packing.layout import Packed, layer_of_folder

POSTGRES = Path("/usr/lib/postgresql/15")
_POSTGRES_SHARE = Path("/usr/share/postgresql/15")
_NGINX = """\
user web;
daemon off;
worker_processes 1;
error_log stderr;
pid /run/nginx.pid;
events { worker_connections 64; }
http {
    access_log off;
    client_body_temp_path /tmp/b; proxy_temp_path /tmp/p; fastcgi_temp_path /tmp/f;
    uwsgi_temp_path /tmp/u; scgi_temp_path /tmp/s;
    server { listen 80; location / { return 200 "served by nginx\\n"; } }
}
"""
_POSTGRES_ENTRY = """\
#!/bin/sh
set -e
if [ "$(id -u)" = 0 ]; then
    chown postgres:postgres "$PGDATA"
    chmod 700 "$PGDATA"
    exec /usr/bin/setpriv --reuid=postgres --regid=postgres --clear-groups "$0" "$@"
fi
[ -e "$PGDATA/PG_VERSION" ] || initdb --auth=trust --no-sync --username=postgres >/dev/null
echo "host all all all trust" >>"$PGDATA/pg_hba.conf"
exec "$@"
"""
_GO = """\
package main

import (
	"fmt"
	"os"
)

func main() {
	directory, _ := os.Getwd()
	fmt.Println("go", os.Getuid(), directory)
}
"""


def busybox(root: Path) -> Path:
    add_busybox(root)
    add_users(root, web=33, data=70)
    return root


def redis(root: Path) -> Packed:
    """It states a user of its own."""
    busybox(root)
    for name in ("redis-server", "redis-cli"):
        add_program(root, name)
    (root / "data").mkdir()
    config = {
        "Entrypoint": ["redis-server"],
        "Cmd": ["--protected-mode", "no", "--bind", "* -::*"],
        "User": "data",
        "WorkingDir": "/data",
        "Volumes": {"/data": {}},
        "Healthcheck": {"Test": ["CMD", "redis-cli", "ping"]},
    }
    return Packed((layer_of_folder(root, {"data": 70}),), config)


def nginx(root: Path) -> Packed:
    """Its master is root, its worker another user."""
    busybox(root)
    add_program(root, "nginx", "usr/sbin")
    (root / "etc/nginx").mkdir()
    (root / "etc/nginx/nginx.conf").write_text(_NGINX)
    (root / "var/lib/nginx").mkdir(parents=True)
    (root / "var/log/nginx").mkdir(parents=True)
    command = ["nginx", "-c", "/etc/nginx/nginx.conf"]
    config = {"Cmd": command, "StopSignal": "SIGQUIT"}
    return Packed((layer_of_folder(root),), config)


def postgres(root: Path) -> Packed:
    """Its entrypoint is a script that begins as root and goes on as postgres."""
    if not POSTGRES.is_dir():
        pytest.skip("not installed: postgresql-15")
    add_busybox(root)
    add_users(root, postgres=70)
    add_program(root, "setpriv")
    for name in ("postgres", "initdb", "psql", "pg_isready"):
        add_program(root, name, str(POSTGRES.relative_to("/")) + "/bin")
    libraries = root / POSTGRES.relative_to("/") / "lib"
    libraries.mkdir()
    for name in ("plpgsql.so", "dict_snowball.so", "euc2004_sjis2004.so"):
        shutil.copy(POSTGRES / "lib" / name, libraries)
    add_libraries(root, [POSTGRES / "lib" / "plpgsql.so"])
    shutil.copytree(_POSTGRES_SHARE, root / _POSTGRES_SHARE.relative_to("/"), symlinks=False)
    shutil.copytree("/usr/share/zoneinfo/Etc", root / "usr/share/zoneinfo/Etc")
    entry = root / "usr/bin/entry.sh"
    entry.write_text(_POSTGRES_ENTRY)
    entry.chmod(0o755)
    for folder in ("var/lib/postgresql/data", "var/run/postgresql"):
        (root / folder).mkdir(parents=True)
    owned = {"var/lib/postgresql/data": 70, "var/run/postgresql": 70}
    config = {
        "Entrypoint": ["/usr/bin/entry.sh"],
        "Cmd": ["postgres", "-c", "listen_addresses=*", "-c", "fsync=off"],
        "Env": [f"PATH={POSTGRES}/bin:/usr/bin:/bin", "PGDATA=/var/lib/postgresql/data"],
        "Volumes": {"/var/lib/postgresql/data": {}},
        "StopSignal": "SIGINT",
    }
    return Packed((layer_of_folder(root, owned),), config)


def static_go(root: Path, work: Path) -> Packed:
    """One file and nothing else."""
    go = shutil.which("go", path=f"{os.environ.get('PATH', '')}:/usr/local/go/bin")
    if go is None:
        pytest.skip("not installed: go")
    (work / "main.go").write_text(_GO)
    # Its cache is that of who runs the tests: with an empty one Go's library is compiled first.
    env = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod", "GO111MODULE": "off"}
    env["GOPATH"] = str(work / "path")
    root.mkdir(parents=True, exist_ok=True)
    argv = [go, "build", "-o", str(root / "main"), str(work / "main.go")]
    subprocess.run(argv, check=True, env=env, cwd=work)
    return Packed((layer_of_folder(root),), {"Entrypoint": ["/main"], "WorkingDir": "/made/here"})


def needed() -> None:
    """Skips the test where images cannot be packed."""
    found("busybox")
