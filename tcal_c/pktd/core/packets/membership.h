/* What hosts tell routers of the groups that they listen to. */
#ifndef PKTD_MEMBERSHIP_H
#define PKTD_MEMBERSHIP_H

#include "packet.h"
#include "pktd/core/structures/groups.h"

typedef void membership_visit(void *context, const struct membership *said);

/* Reads a report of IGMP (versions 1 to 3) or MLD (1 and 2) and calls `visit` for what it says of
 * groups that hosts report. Nothing of one whose checksum is wrong, and of what is cut short. */
void membership_read(const struct packet_info *info, const uint8_t *frame, membership_visit *visit,
                     void *context);

#endif
