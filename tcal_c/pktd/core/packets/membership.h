/* What hosts tell routers of the groups that they listen to. */
#ifndef PKTD_MEMBERSHIP_H
#define PKTD_MEMBERSHIP_H

#include "common/addr.h"
#include "packet.h"

/* The sender listens to the group from now on, or no longer. */
typedef void membership_visit(void *context, const struct addr *group, bool listens);

/* Reads a report of IGMP (versions 1 to 3) or MLD (1 and 2) and calls `visit` for what it says of
 * groups that hosts report. Nothing of one whose checksum is wrong or that is cut short; sources
 * are not told apart: who listens to some of a group listens to it. */
void membership_read(const struct packet_info *info, const uint8_t *frame, membership_visit *visit,
                     void *context);

#endif
