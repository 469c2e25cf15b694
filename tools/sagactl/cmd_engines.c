/* The command engines: which engines run, and which shards each of them owns. */
#include <stdio.h>

#include "tools/sagactl/client.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/output.h"

const char help_engines[] =
    "sagactl engines\n"
    "\n"
    "Lists the engines on this database: version, how many shards each holds and which, the epochs\n"
    "of these, how much of its lease is left, and how far it lags: appends that wait to become\n"
    "durable, sagas at rest whose time has come, inputs from other engines.\n"
    "Each lives up to its share; an engine that came or left moves shards within a lease. STATE is\n"
    "alive, leaving (it gives its shards up), or expired (it is gone, or cannot reach the database;\n"
    "forgotten after an hour). Shards that nobody holds right now are told below the table.\n"
    "\n"
    "  sagactl engines\n"
    "  sagactl engines -o json | jq '.items[] | {name, shards: (.shards | length)}'\n";

/* Returns ranges of shards: "0-21 40 42-63". */
static struct slice ranges_of(struct ctl *ctl, struct slice shards)
{
    struct json_walk walk = json_walk(shards);
    struct slice element, text = SLICE("");
    int64_t first = -1, last = -1, shard;
    bool more = json_type(shards) == JSON_ARRAY;

    while (more) {
        more = json_next_element(&walk, &element);
        if (!more) {
            shard = -1;
        } else if (!json_i64(element, &shard)) {
            continue;
        }
        if (first >= 0 && more && shard == last + 1) {
            last = shard;
            continue;
        }
        if (first >= 0) {
            text = last > first ? arena_printf(&ctl->arena, "%.*s%s%lld-%lld", SLICE_ARG(text), text.len ? " " : "",
                                               (long long)first, (long long)last)
                                : arena_printf(&ctl->arena, "%.*s%s%lld", SLICE_ARG(text), text.len ? " " : "",
                                               (long long)first);
        }
        first = last = shard;
    }
    return text;
}

static int64_t number_of(struct slice object, const char *name)
{
    int64_t value = 0;

    return json_i64(json_member(object, name), &value) ? value : 0;
}

static struct slice epochs_of(struct ctl *ctl, struct slice engine)
{
    int64_t low = number_of(engine, "epoch_min"), high = number_of(engine, "epoch_max");

    return high == 0     ? SLICE("")
           : low == high ? arena_printf(&ctl->arena, "%lld", (long long)low)
                         : arena_printf(&ctl->arena, "%lld-%lld", (long long)low, (long long)high);
}

static struct slice lags_of(struct ctl *ctl, struct slice engine)
{
    struct slice lags = json_member(engine, "lags");

    return arena_printf(&ctl->arena, "%.*s, %.*s, %lld", SLICE_ARG(show_duration(ctl, number_of(lags, "append_ms"))),
                        SLICE_ARG(show_duration(ctl, number_of(lags, "due_ms"))),
                        (long long)number_of(lags, "inbox_rows"));
}

static void print_engines(struct ctl *ctl, struct slice answer)
{
    static const char *const titles[] = {
        "ENGINE", "VERSION", "STATE", "SHARDS", "EPOCHS", "LEASE LEFT", "APPENDS, DUE, INBOX", "WHICH", NULL};
    struct json_walk walk = json_walk(json_member(answer, "items"));
    struct slice engine, unowned = ranges_of(ctl, json_member(answer, "unowned"));
    struct table table;

    table_init(&table, ctl, titles);
    table.flexible = BIT(0) | BIT(7);
    table.optional = BIT(1) | BIT(4) | BIT(7);
    while (json_next_element(&walk, &engine)) {
        struct cell *row = table_row(&table);
        struct slice state = show_member(ctl, engine, "state");
        bool standby = slice_is(json_trim(json_member(engine, "standby")), "true");

        row[0] = (struct cell){show_member(ctl, engine, "name"), COLOUR_NONE};
        row[1] = (struct cell){show_member(ctl, engine, "version"), COLOUR_NONE};
        row[2] = (struct cell){standby ? arena_printf(&ctl->arena, "%.*s, standby", SLICE_ARG(state)) : state,
                               slice_is(state, "alive")     ? COLOUR_GREEN
                               : slice_is(state, "leaving") ? COLOUR_YELLOW
                                                            : COLOUR_RED};
        row[3] =
            (struct cell){arena_printf(&ctl->arena, "%zu", json_count(json_member(engine, "shards"))), COLOUR_NONE};
        row[4] = (struct cell){epochs_of(ctl, engine), COLOUR_NONE};
        row[5] = (struct cell){
            number_of(engine, "lease_left_ms") > 0 ? show_duration(ctl, number_of(engine, "lease_left_ms")) : SLICE(""),
            COLOUR_NONE};
        row[6] = (struct cell){lags_of(ctl, engine), COLOUR_NONE};
        row[7] = (struct cell){ranges_of(ctl, json_member(engine, "shards")), COLOUR_DIM};
    }
    table_print(&table, 0);
    if (unowned.len > 0) {
        (void)printf("%snobody holds the shards %.*s%s\n", colour_on(ctl, COLOUR_YELLOW), SLICE_ARG(unowned),
                     colour_off(ctl, COLOUR_YELLOW));
    }
}

int cmd_engines(struct ctl *ctl, int argc, char **argv)
{
    struct arguments none;
    struct answer answer;
    bool helped = false;

    if (!options_read(ctl, argc, argv, NULL, &none, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (none.count > 0) {
        return usage_error(ctl, "engines takes no arguments");
    }
    int code = client_get(ctl, SLICE("/v1/engines"), &ctl->arena, &answer);

    if (code == EXIT_OK && !print_items(ctl, answer.body, "name")) {
        print_engines(ctl, answer.body);
    }
    return code;
}
