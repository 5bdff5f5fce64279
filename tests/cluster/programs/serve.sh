#!/bin/sh
# nginx in the folder where it is started, with one page of 20,000 bytes.
folder=$PWD
mkdir -p pages
head -c 20000 /dev/zero >pages/page
cat >nginx.conf <<CONF
daemon off;
user root;
pid $folder/nginx.pid;
error_log stderr;
events {}
http {
    access_log off;
    $(for kind in client_body proxy fastcgi uwsgi scgi; do echo "${kind}_temp_path $folder/$kind;"; done)
    server {
        listen 80;
        root $folder/pages;
    }
}
CONF
exec nginx -p "$folder" -c "$folder/nginx.conf" -e stderr
