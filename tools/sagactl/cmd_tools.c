/* The command tools: lists the registered tools with their health, so that one look shows which tool needs
 * attention. */
#include <stdio.h>
#include <stdlib.h>

#include "tools/sagactl/client.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/namespaces.h"
#include "tools/sagactl/output.h"

/* Beyond these values a person should look. The alert rules in tools/alerts begin at the same values. */
#define RETRIES_PERCENT_MANY 20
#define UNKNOWN_MS_OLD (INT64_C(15) * 60 * 1000)

const char help_tools[] =
    "sagactl tools [NAME] [--version N] [--limit N] [--cursor C]\n"
    "\n"
    "Lists the registered tools, newest version of each, with their health, those with\n"
    "trouble first, or prints one as it was registered.\n"
    "\n"
    "  NEW         operations that calls and steps began\n"
    "  DUPLICATES  repeats of a call that began nothing\n"
    "  RETRIES     calls that were not the first of their operation, of all calls\n"
    "  UNKNOWN     operations of which nobody can say yet whether they happened, and the age of the\n"
    "              oldest\n"
    "  BREAKER     closed, open or half_open, where the tool has one\n"
    "  NOTES       arguments that drifted, loops that were stopped, calls that a guard refused\n"
    "\n"
    "Figures are of the engine that answers, since its start; /metrics of all engines sums them up.\n"
    "Coloured is what a person should look at.\n"
    "\n"
    "  sagactl tools\n"
    "  sagactl tools -o json | jq '.items[] | select(.health.unknown_open > 0)'\n"
    "  sagactl tools payments.charge --version 2\n";

static int64_t number_of(struct slice object, const char *name)
{
    int64_t number = 0;

    return json_i64(json_member(object, name), &number) ? number : 0;
}

static struct slice health_of(struct slice stats, struct slice name)
{
    struct json_walk walk = json_walk(json_member(stats, "tools"));
    struct slice tool;

    while (json_type(json_member(stats, "tools")) == JSON_ARRAY && json_next_element(&walk, &tool)) {
        if (slice_equal(json_member(tool, "name"), name)) { /* one writer wrote both as JSON */
            return tool;
        }
    }
    return SLICE_NONE;
}

/* Returns "keyed", or "once, keyed" when the arguments decide the class. */
static struct slice class_of(struct ctl *ctl, struct slice body)
{
    struct slice effect = json_member(body, "effect");

    if (json_type(effect) == JSON_OBJECT) {
        return arena_printf(&ctl->arena, "%.*s, %.*s", SLICE_ARG(show_member(ctl, effect, "then")),
                            SLICE_ARG(show_member(ctl, effect, "else")));
    }
    return show_value(ctl, effect);
}

static int64_t duplicates_of(struct slice health)
{
    struct slice duplicates = json_member(health, "duplicates"), name, value;
    struct json_walk walk = json_walk(duplicates);
    int64_t sum = 0;

    while (json_type(duplicates) == JSON_OBJECT && json_next_member(&walk, &name, &value)) {
        int64_t number = 0;

        sum += json_i64(value, &number) ? number : 0;
    }
    return sum;
}

static struct slice percent(struct ctl *ctl, int64_t part, int64_t whole)
{
    return whole > 0 ? arena_printf(&ctl->arena, "%lld (%lld %%)", (long long)part, (long long)(part * 100 / whole))
                     : arena_printf(&ctl->arena, "%lld", (long long)part);
}

/* Returns the person who keeps the breaker of the tool open, {actor, at, note}; SLICE_NONE: nobody does. */
static struct slice opener_of(struct ctl *ctl, struct slice stats, struct slice name)
{
    struct slice guards = json_member(stats, "guards"), guard;
    struct json_walk walk = json_walk(guards);

    while (json_type(guards) == JSON_ARRAY && json_next_element(&walk, &guard)) {
        struct slice by = json_member(guard, "opened_by");

        if (slice_equal(show_member(ctl, guard, "tool"), name) && json_type(by) == JSON_OBJECT) {
            return by;
        }
    }
    return SLICE_NONE;
}

static void put_notes(struct ctl *ctl, struct slice health, struct slice opener, struct cell *cell)
{
    static const struct {
        const char *member, *says;
        bool looks; /* true when a person should look */
    } notes[] = {
        {"drift", "drifted", false},
        {"loop_trips", "loops", true},
        {"budget_refusals", "no budget", true},
        {"rate_refusals", "over the rate", false},
        {"breaker_refusals", "breaker", false},
    };
    struct buffer text;

    buffer_init(&text, 65536);
    if (opener.ptr) {
        buffer_printf(&text, "opened by %.*s: %.*s", SLICE_ARG(show_member(ctl, opener, "actor")),
                      SLICE_ARG(show_member(ctl, opener, "note")));
        cell->colour = COLOUR_YELLOW;
    }
    for (size_t i = 0; i < COUNT_OF(notes); i++) {
        int64_t number = number_of(health, notes[i].member);

        if (number > 0) {
            buffer_printf(&text, "%s%s %lld", text.len ? ", " : "", notes[i].says, (long long)number);
            cell->colour = notes[i].looks ? COLOUR_YELLOW : cell->colour;
        }
    }
    cell->text = text.len ? arena_slice(&ctl->arena, buffer_slice(&text)) : SLICE("");
    buffer_fini(&text);
}

/* Returns the worst breaker of the tool's endpoints, which all engines share; "closed" when none is open. */
static struct slice breaker_of(struct ctl *ctl, struct slice stats, struct slice name)
{
    struct slice guards = json_member(stats, "guards"), guard, worst = SLICE("closed");
    struct json_walk walk = json_walk(guards);

    while (json_type(guards) == JSON_ARRAY && json_next_element(&walk, &guard)) {
        struct slice state = show_member(ctl, guard, "breaker");

        if (slice_equal(show_member(ctl, guard, "tool"), name) && !slice_is(state, "closed") &&
            !slice_is(worst, "open")) {
            worst = state;
        }
    }
    return worst;
}

/* Writes the health of a tool. `breaker` is empty when the tool has none, `opener` when no person keeps it open. */
static void put_health(struct ctl *ctl, struct slice health, struct slice breaker, struct slice opener,
                       struct cell *row)
{
    int64_t calls = number_of(health, "calls"), retries = number_of(health, "retries");
    int64_t created = number_of(health, "operations"), duplicates = duplicates_of(health);
    int64_t unknown = number_of(health, "unknown_open"), oldest_ms = number_of(health, "unknown_oldest_ms");

    row[0].text = arena_printf(&ctl->arena, "%lld", (long long)created);
    row[1].text = percent(ctl, duplicates, created + duplicates);
    row[2].text = percent(ctl, retries, calls);
    row[2].colour = calls > 0 && retries * 100 > calls * RETRIES_PERCENT_MANY ? COLOUR_YELLOW : COLOUR_NONE;
    row[3].text = unknown > 0 ? arena_printf(&ctl->arena, "%lld, %.*s", (long long)unknown,
                                             SLICE_ARG(show_duration(ctl, oldest_ms)))
                              : SLICE("0");
    row[3].colour = unknown == 0 ? COLOUR_NONE : oldest_ms > UNKNOWN_MS_OLD ? COLOUR_RED : COLOUR_YELLOW;
    row[4].text = breaker;
    row[4].colour = slice_is(breaker, "open")        ? COLOUR_RED
                    : slice_is(breaker, "half_open") ? COLOUR_YELLOW
                                                     : COLOUR_DIM;
    put_notes(ctl, health, opener, &row[5]);
}

/* Reads the body for the class, which lists leave out. This costs one request for each tool. */
static int read_body(struct ctl *ctl, struct slice item, struct slice *body)
{
    struct slice name = show_member(ctl, item, "name");
    struct answer answer;
    int code =
        client_get(ctl,
                   arena_printf(&ctl->arena, "/v1/tools/%.*s?version=%.*s", SLICE_ARG(url_escape(name, &ctl->arena)),
                                SLICE_ARG(show_member(ctl, item, "version"))),
                   &ctl->arena, &answer);

    *body = code == EXIT_OK ? json_member(answer.body, "body") : SLICE_NONE;
    return code;
}

struct listed_tool {
    struct slice item, health;
    size_t at; /* in the list */
};

static int by_trouble(const void *left, const void *right)
{
    static const char *const members[] = {"unknown_open", "unknown", "failed", "loop_trips", "budget_refusals"};
    const struct listed_tool *a = left, *b = right;

    for (size_t i = 0; i < COUNT_OF(members); i++) {
        int64_t of_a = number_of(a->health, members[i]), of_b = number_of(b->health, members[i]);

        if (of_a != of_b) {
            return of_a > of_b ? -1 : 1;
        }
    }
    return a->at < b->at ? -1 : 1;
}

/* Sorts tools with trouble first; the others keep the order of the service. */
static size_t sort_tools(struct ctl *ctl, struct slice list, struct slice stats, struct listed_tool **tools)
{
    struct json_walk walk = json_walk(json_member(list, "items"));
    size_t count = 0;
    struct slice item;

    *tools = arena_array(&ctl->arena, json_count(json_member(list, "items")) + 1, sizeof(**tools));
    while (json_next_element(&walk, &item)) {
        (*tools)[count] = (struct listed_tool){item, health_of(stats, json_member(item, "name")), count};
        count++;
    }
    qsort(*tools, count, sizeof(**tools), by_trouble);
    return count;
}

/* What is asked of each namespace, and where the answers go. */
struct listing {
    struct slice path;
    struct table table;
    struct buffer json;
    struct json_writer writer;
    size_t done;
    struct slice cursor; /* JSON: where one namespace goes on */
};

static int add_rows(struct ctl *ctl, struct listing *listing, struct slice list, struct slice stats)
{
    struct listed_tool *tools;
    size_t count = sort_tools(ctl, list, stats, &tools);

    for (size_t i = 0; i < count; i++) {
        struct cell *row = table_row(&listing->table);
        struct slice item = tools[i].item, body;
        int code = read_body(ctl, item, &body);

        if (code != EXIT_OK) {
            return code;
        }
        if (++listing->done % 50 == 0) {
            progress_show(ctl, "%zu tools", listing->done);
        }
        row[0].text = show_member(ctl, item, "name");
        row[1].text = show_member(ctl, item, "version");
        row[2].text = class_of(ctl, body);
        put_health(ctl, tools[i].health,
                   json_member(body, "breaker").ptr ? breaker_of(ctl, stats, row[0].text) : SLICE(""),
                   json_member(body, "breaker").ptr ? opener_of(ctl, stats, row[0].text) : SLICE_NONE, &row[3]);
        if (ctl->all_namespaces) {
            row[listing->table.columns - 1].text = slice_of(ctl->namespace);
        }
    }
    return EXIT_OK;
}

/* Writes the items of the service, each with `health`, which is null for a tool that was not called yet. */
static void add_items(struct ctl *ctl, struct json_writer *w, struct slice list, struct slice stats)
{
    struct json_walk walk = json_walk(json_member(list, "items"));
    struct slice item, name, value;

    while (json_next_element(&walk, &item)) {
        struct json_walk members = json_walk(item);
        struct slice health = health_of(stats, json_member(item, "name"));
        char plain[64];

        json_object_begin(w, NULL);
        if (ctl->all_namespaces) {
            json_write_text(w, "namespace", ctl->namespace);
        }
        while (json_next_member(&members, &name, &value)) {
            (void)snprintf(plain, sizeof(plain), "%.*s", SLICE_ARG(name));
            json_write_raw(w, plain, value);
        }
        json_write_raw(w, "health", health.ptr ? health : SLICE("null"));
        json_object_end(w);
    }
}

static int add_namespace(struct ctl *ctl, struct slice namespace, void *context)
{
    struct listing *listing = context;
    struct answer list, stats;
    int code = client_get(ctl, listing->path, &ctl->arena, &list);

    if (code != EXIT_OK) {
        return code;
    }
    listing->cursor = json_member(list.body, "next_cursor");
    if (ctl->output == OUTPUT_NAME) {
        (void)print_items(ctl, list.body, "name");
    } else {
        code = client_get(ctl, SLICE("/v1/stats"), &ctl->arena, &stats);
    }
    if (code == EXIT_OK && ctl->output == OUTPUT_DATA) {
        add_items(ctl, &listing->writer, list.body, stats.body);
    } else if (code == EXIT_OK && ctl->output != OUTPUT_NAME) {
        code = add_rows(ctl, listing, list.body, stats.body);
    }
    if (code == EXIT_OK && ctl->output != OUTPUT_DATA && !namespace.ptr) {
        print_more(ctl, list.body);
    }
    return code;
}

static int list_tools(struct ctl *ctl, struct slice path)
{
    static const char *const titles[] = {"NAME",    "VERSION", "CLASS",   "NEW",   "DUPLICATES",
                                         "RETRIES", "UNKNOWN", "BREAKER", "NOTES", NULL};
    struct listing listing = {.path = path};
    int code;

    table_init_of_namespaces(&listing.table, ctl, titles);
    listing.table.flexible = BIT(0) | BIT(2) | BIT(8);
    listing.table.optional = BIT(1);
    buffer_init(&listing.json, 64 << 20);
    json_writer_init(&listing.writer, &listing.json);
    json_object_begin(&listing.writer, NULL);
    json_array_begin(&listing.writer, "items");
    code = namespaces_each(ctl, add_namespace, &listing);
    progress_clear(ctl);
    json_array_end(&listing.writer);
    json_write_raw(&listing.writer, "next_cursor",
                   listing.cursor.ptr && !ctl->all_namespaces ? listing.cursor : SLICE("null"));
    json_object_end(&listing.writer);
    if (code == EXIT_OK && ctl->output == OUTPUT_DATA) {
        print_data(ctl, buffer_slice(&listing.json));
    } else if (code == EXIT_OK && ctl->output != OUTPUT_NAME) {
        table_print(&listing.table, 0);
    }
    buffer_fini(&listing.json);
    return code;
}

int cmd_tools(struct ctl *ctl, int argc, char **argv)
{
    const char *version = NULL, *limit = "500", *cursor = NULL;
    const struct option options[] = {{"--version", &version, NULL, NULL},
                                     {"--limit", &limit, NULL, NULL},
                                     {"--cursor", &cursor, NULL, NULL},
                                     {NULL, NULL, NULL, NULL}};
    struct arguments names;
    bool helped = false;

    if (!options_read(ctl, argc, argv, options, &names, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (names.count > 1) {
        return usage_error(ctl, "one name at most");
    }
    if (ctl->all_namespaces && (names.count == 1 || cursor)) {
        return usage_error(ctl, "a name and a cursor are of one namespace: name it with -n");
    }
    if (names.count == 1) {
        return show_definition(ctl, "/v1/tools", names.items[0], version);
    }
    return list_tools(ctl, arena_printf(&ctl->arena, "/v1/tools?limit=%s%s%s", limit, cursor ? "&cursor=" : "",
                                        cursor ? cursor : ""));
}
