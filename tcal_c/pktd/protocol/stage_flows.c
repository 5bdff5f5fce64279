/* Tables of flows of links, necks, and the memory in which links count their flows. */
#include "stage.h"

#include "common/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_LIMIT (64u * FLOW_ROWS)

void stage_free_flows(struct stage *s) {
    for (uint32_t link = 0; link < s->link_end; link++) {
        free(s->link[link].neck ? NULL : s->link[link].flows);
        free(s->link[link].share);
    }
    for (uint32_t neck = 1; neck <= s->neck_count; neck++) {
        free(s->neck[neck].flows);
    }
    free(s->neck);
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

bool stage_name_neck(struct stage *s, const char *name, struct link_config *config,
                     struct refusal *r) {
    config->fields |= LINK_NECK;
    config->neck = 0;
    if (strcmp(name, "0") == 0) {
        return true;
    }
    size_t length = strlen(name);
    if (length == 0 || length > NECK_NAME_LIMIT) {
        return refuse(r, "range", "neck '%.80s' is no name of up to %u characters", name,
                      NECK_NAME_LIMIT);
    }
    uint32_t number = 1;
    while (number <= s->neck_count && strcmp(s->neck[number].name, name) != 0) {
        number++;
    }
    if (number > NECK_LIMIT) {
        return refuse(r, "limit", "there are %u necks already", NECK_LIMIT);
    }
    if (!stage_room_for_number((void **)&s->neck, &s->neck_room, number, sizeof *s->neck)) {
        return stage_no_memory(r);
    }
    if (number > s->neck_count) {
        s->neck_count = number;
        memcpy(s->neck[number].name, name, length + 1);
    }
    config->neck = number;
    return true;
}

/* Of this neck; NULL without memory. */
static struct flows *flows_of_neck(struct staged_neck *neck) {
    if (!neck->flows) {
        neck->flows = calloc(1, sizeof *neck->flows);
    }
    if (neck->flows) {
        neck->flows->is_neck = true;
    }
    return neck->flows;
}

bool stage_room_for_flows(struct stage *s, uint32_t link, struct link_config *config) {
    struct staged_link *known = &s->link[link];
    uint32_t neck = known->declared ? known->neck : config->neck;
    if (neck != known->neck) { /* what it was in what has been taken back */
        free(known->neck ? NULL : known->flows);
        known->flows = NULL;
    }
    if (neck) {
        known->flows = flows_of_neck(&s->neck[neck]);
    } else if (config->flow_rates && !known->flows) {
        known->flows = calloc(1, sizeof *known->flows);
    }
    bool needed = neck || config->flow_rates;
    if (needed && !known->share) {
        known->share = calloc(1, sizeof *known->share);
    }
    known->neck = neck;
    config->flows = known->share ? known->flows : NULL;
    config->share = known->share;
    return config->flows || !needed;
}

bool stage_check_neck(const struct stage *s, uint32_t link, const struct link_config *config,
                      bool declares, struct refusal *r) {
    const struct staged_link *known = link < s->link_end ? &s->link[link] : NULL;
    bool is_new = !known || !known->declared;
    uint32_t neck = is_new ? config->neck : known->neck;
    if (config->fields & LINK_NECK && config->neck != neck) {
        return refuse(r, "conflict", "link %u: which neck it is cannot change", link);
    }
    if (!neck) {
        return true;
    }
    if (declares || config->fields & LINK_RATE) {
        if (config->rate_bps == 0) {
            return refuse(r, "range", "link %u: no neck is unlimited", link);
        }
    }
    return !(config->trace || config->packets || config->aqm.kind) ||
           refuse(r, "conflict", "link %u: the queue of a neck has no trace, pkts or aqm", link);
}

const struct flow_share *stage_share(const struct stage *s, uint32_t link) {
    return s->link[link].share;
}

const struct flows *stage_neck(const struct stage *s, uint32_t link) {
    return s->link[link].neck ? s->link[link].flows : NULL;
}
