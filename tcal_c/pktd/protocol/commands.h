/* The commands behind the table of proto.c, and what they share. Control thread. */
#ifndef PKTD_COMMANDS_H
#define PKTD_COMMANDS_H

#include "proto.h"
#include "common/words.h"

/* Answers with `ok` and returns true, or refuses and returns false. Each parses its line completely
 * before it stages anything. */
typedef bool command(struct proto *p, struct words *w, struct refusal *r);

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
command do_route;
command do_routes;

/* command_paths.c */
command do_path;
command do_usage;
command do_lease;

bool syntax(struct refusal *r, const char *usage);

/* A number of a node, port or link as the next word. */
bool take_index(struct words *w, const char *what, uint64_t limit, uint32_t *index,
                const char *usage, struct refusal *r);
bool take_end(struct words *w, const char *usage, struct refusal *r);

/* The answer `ok`; true. */
bool done(struct proto *p);

/* One KEY=VALUE of a link's or a path's properties, without the seed. */
bool link_option(struct link_config *c, const char *key, const char *value, const char *usage,
                 struct refusal *r);

#endif
