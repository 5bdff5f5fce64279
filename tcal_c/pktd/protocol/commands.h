/* The commands behind the table of proto.c, and what they share. Control thread. */
#ifndef PKTD_COMMANDS_H
#define PKTD_COMMANDS_H

#include "proto.h"

/* command_ports.c */
command do_open;
command do_close;
command do_attach;
command do_detach;
command do_ports;

/* command_links.c */
command do_node;
command do_bind;
command do_unbind;
command do_link;
command do_set;
command do_group;
command do_route;
command do_routes;

/* command_traces.c */
command do_trace;
command do_steps;

/* command_delays.c */
command do_delays;

/* command_paths.c */
command do_path;
command do_usage;

/* command_burden.c */
command do_burden;

/* command_record.c */
command do_await;
command do_epoch;
command do_digests;
command do_capture;
command do_captures;

/* One KEY=VALUE of a link's or a path's properties, without the seed. */
bool link_option(struct proto *p, struct link_config *c, const char *key, const char *value,
                 const char *usage, struct refusal *r);

/* aqm_text.c: the value of a link's `aqm`. */
bool take_aqm(struct aqm_config *c, const char *value, struct refusal *r);

#endif
