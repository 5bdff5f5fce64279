/* Tables of flows of links, and the memory in which links count their flows. */
#include "stage.h"

#include "common/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_LIMIT (64u * FLOW_ROWS)

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

static bool take_part(char **text, uint64_t limit, uint64_t *to) {
    const char *word = strsep(text, ":");
    return word && word_number(word, limit, to) && *to != 0;
}

/* FLOWS:BPS:BYTES */
static bool take_row(char *text, struct flow_rate *row) {
    return take_part(&text, UINT16_MAX, &row->flows) &&
           take_part(&text, RATE_LIMIT_BPS, &row->rate_bps) &&
           take_part(&text, QUEUE_LIMIT_BYTES, &row->queue_bytes) && !text;
}

bool flow_rates_parse(const char *text, struct flow_rates *rates) {
    char copy[TEXT_LIMIT];
    char *rest = copy;
    uint64_t before = 1;
    *rates = (struct flow_rates){0};
    if (strcmp(text, "0") == 0) {
        return true;
    }
    if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy) {
        return false;
    }
    for (char *word; (word = strsep(&rest, ";")); rates->count++) {
        struct flow_rate *row = &rates->row[rates->count];
        if (rates->count == FLOW_ROWS || !take_row(word, row) || row->flows <= before) {
            return false;
        }
        before = row->flows;
    }
    return true;
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
