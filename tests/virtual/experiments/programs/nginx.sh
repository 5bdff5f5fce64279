#!/bin/sh
# nginx with a page of its own and its access log on standard output.
set -eu
mkdir -p pages
seq 1000 >pages/index.html
cat >nginx.conf <<END
daemon off;
worker_processes 2;
user nobody nogroup;
pid nginx.pid;
error_log stderr info;
events { worker_connections 64; }
http {
    log_format timed '\$time_iso8601 \$msec \$remote_addr:\$remote_port \$status \$request_time \$request_id';
    access_log /dev/stdout timed;
    client_body_temp_path tmp; proxy_temp_path tmp; fastcgi_temp_path tmp; uwsgi_temp_path tmp;
    scgi_temp_path tmp;
    server { listen 8080; root pages; }
}
END
exec nginx -p "$PWD" -c nginx.conf -e stderr
