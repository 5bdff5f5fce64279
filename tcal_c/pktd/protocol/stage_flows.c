/* Tables of flows of links, and the memory in which links count their flows. */
#include "stage.h"

#include <stdlib.h>

void stage_free_flows(struct stage *s) {
    for (uint32_t link = 0; link < s->link_end; link++) {
        free(s->link[link].flows);
    }
    while (s->tables) {
        struct staged_table *table = s->tables;
        s->tables = table->next;
        free(table);
    }
}

bool stage_flow_rates(struct stage *s, const char *text, struct link_config *config,
                      struct refusal *r) {
    struct flow_rates rates;
    config->fields |= LINK_FLOWS;
    config->flow_rates = NULL;
    if (!flow_rates_parse(text, &rates)) {
        return refuse(r, "range", "flows '%.32s' is no table of up to %u rows FLOWS:BPS:BYTES",
                      text, FLOW_ROWS);
    }
    if (rates.count == 0) {
        return true;
    }
    struct staged_table *table = malloc(sizeof *table);
    if (!table) {
        return stage_no_memory(r);
    }
    *table = (struct staged_table){s->tables, rates};
    s->tables = table;
    config->flow_rates = &table->rates;
    return true;
}

bool stage_room_for_flows(struct stage *s, uint32_t link, struct link_config *config) {
    struct staged_link *known = &s->link[link];
    if (config->flow_rates && !known->flows) {
        known->flows = calloc(1, sizeof *known->flows);
    }
    config->flows = known->flows;
    return known->flows || !config->flow_rates;
}
