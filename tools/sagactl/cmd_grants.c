/* The command grants: tokens for one agent, for one run or one saga. */
#include <stdio.h>
#include <string.h>

#include "base/instant.h"
#include "tools/sagactl/client.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/output.h"
#include "tools/sagactl/query.h"
#include "tools/sagactl/saga_name.h"

const char help_grants[] = "sagactl grants [list] [--all] [--limit N] [--cursor C]\n"
                           "sagactl grants new (--run NAME | --saga SAGA) [--tool NAME]...\n"
                           "                   [--scope TEXT] [--turn TEXT] [--expires 1h|INSTANT]\n"
                           "sagactl grants revoke ID...\n"
                           "\n"
                           "A grant is a token for one agent: it is good at /mcp only, for calls of one run or one\n"
                           "open saga. A host that takes an address and no token gets the address with the token\n"
                           "in it. Both are shown once. --tool, which may be repeated, leaves only these tools.\n"
                           "\n"
                           "A grant lasts 24 hours where --expires says nothing else, never longer than the token\n"
                           "that makes it, and ends with that token. A revoked grant is refused at once. --all\n"
                           "lists those that ended in the last 7 days, too.\n"
                           "\n"
                           "  sagactl grants new --run chat-4711 --tool payments.charge --expires 1h\n"
                           "  sagactl grants revoke 019b3c52-0000-7000-8000-00000000ffff\n";

struct given {
    const char *run, *saga, *scope, *turn, *expires, *limit, *cursor;
    struct option_values tools;
    bool all;
};

/* --- what is shown --- */

static struct slice purpose_of(struct ctl *ctl, struct slice grant)
{
    struct slice run = show_member(ctl, grant, "run"), saga = show_member(ctl, grant, "saga");

    return json_type(json_member(grant, "saga")) == JSON_STRING
               ? arena_printf(&ctl->arena, "saga %.*s", SLICE_ARG(saga))
               : arena_printf(&ctl->arena, "run %.*s", SLICE_ARG(run));
}

static struct slice tools_of(struct ctl *ctl, struct slice grant)
{
    struct json_walk walk = json_walk(json_member(grant, "tools"));
    struct slice item, text = SLICE("");

    if (json_type(json_member(grant, "tools")) != JSON_ARRAY) {
        return SLICE("all");
    }
    while (json_next_element(&walk, &item)) {
        text = arena_printf(&ctl->arena, "%.*s%s%.*s", SLICE_ARG(text), text.len ? " " : "",
                            SLICE_ARG(show_value(ctl, item)));
    }
    return text;
}

static enum colour state_colour(struct slice status)
{
    return slice_is(status, "in-force") ? COLOUR_GREEN : COLOUR_DIM;
}

static void print_many(struct ctl *ctl, struct slice answer)
{
    static const char *const titles[] = {"ID", "STATUS", "FOR", "TOOLS", "BY", "AGE", "EXPIRES", NULL};
    struct json_walk walk = json_walk(json_member(answer, "items"));
    struct table table;
    struct slice item;

    table_init(&table, ctl, titles);
    table.flexible = BIT(2) | BIT(3) | BIT(4);
    while (json_next_element(&walk, &item)) {
        struct cell *row = table_row(&table);

        row[0].text = show_member(ctl, item, "id");
        row[1].text = show_member(ctl, item, "status");
        row[1].colour = state_colour(row[1].text);
        row[2].text = purpose_of(ctl, item);
        row[3].text = tools_of(ctl, item);
        row[4].text = show_member(ctl, item, "issuer");
        row[5].text = show_age(ctl, item, "made_at");
        row[6].text = show_member(ctl, item, "expires_at");
    }
    table_print(&table, 0);
    print_more(ctl, answer);
}

static int list(struct ctl *ctl, const struct given *given)
{
    struct answer answer;
    struct buffer path;

    buffer_init(&path, 65536);
    buffer_printf(&path, "/v1/grants?limit=%s%s", given->limit ? given->limit : "50", given->all ? "&all=true" : "");
    int code = query_put(ctl, &path, "cursor", given->cursor)
                   ? client_get(ctl, arena_slice(&ctl->arena, buffer_slice(&path)), &ctl->arena, &answer)
                   : EXIT_USAGE;

    buffer_fini(&path);
    if (code == EXIT_OK && !print_items(ctl, answer.body, "id")) {
        print_many(ctl, answer.body);
    }
    return code;
}

/* The secret is data, so that a program can take it; the sentence about it is for people. */
static void print_new(struct ctl *ctl, struct slice grant)
{
    struct slice token = show_member(ctl, grant, "token"), url = show_member(ctl, grant, "url");

    if (ctl->output == OUTPUT_DATA) {
        print_data(ctl, grant);
    } else if (ctl->output == OUTPUT_NAME) {
        (void)printf("%.*s\n", SLICE_ARG(token));
    } else {
        (void)printf("grant    %.*s, %.*s, until %.*s\ntoken    %.*s\naddress  %s%.*s\n",
                     SLICE_ARG(show_member(ctl, grant, "id")), SLICE_ARG(purpose_of(ctl, grant)),
                     SLICE_ARG(show_member(ctl, grant, "expires_at")), SLICE_ARG(token), ctl->server, SLICE_ARG(url));
        (void)fprintf(stderr, "The token, and the address that has it, are shown this once.\n");
    }
}

/* --- what is done --- */

static bool put_expiry(struct ctl *ctl, struct json_writer *w, const char *expires)
{
    char instant[INSTANT_TEXT_BYTES];
    int64_t ms;

    if (!expires) {
        return true;
    }
    if (!read_until(expires, &ms)) {
        (void)usage_error(ctl, "--expires is a duration such as 1h, or an instant, not \"%s\"", expires);
        return false;
    }
    instant_text(ms, instant);
    json_write_text(w, "expires_at", instant);
    return true;
}

static int make(struct ctl *ctl, const struct given *given)
{
    struct slice saga = SLICE_NONE;
    struct answer answer;
    struct json_writer w;
    struct buffer body;
    int code = EXIT_OK;

    if (!given->run == !given->saga) {
        return usage_error(ctl, "say what it is for with --run or --saga");
    }
    if (given->saga && (code = saga_id_of(ctl, given->saga, &saga)) != EXIT_OK) {
        return code;
    }
    buffer_init(&body, 65536);
    json_writer_init(&w, &body);
    json_object_begin(&w, NULL);
    body_put(&w, "run", given->run);
    if (saga.ptr) {
        json_write_slice(&w, "saga", saga);
    }
    if (given->tools.count > 0) {
        json_array_begin(&w, "tools");
        for (size_t i = 0; i < given->tools.count; i++) {
            json_write_text(&w, NULL, given->tools.items[i]);
        }
        json_array_end(&w);
    }
    body_put(&w, "scope", given->scope);
    body_put(&w, "turn", given->turn);
    if (!put_expiry(ctl, &w, given->expires)) {
        code = EXIT_USAGE;
    }
    json_object_end(&w);
    if (code == EXIT_OK && body.overflow) {
        code = usage_error(ctl, "what was given is longer than a grant may be");
    }
    if (code == EXIT_OK) {
        code = client_call(ctl, "POST", SLICE("/v1/grants"), buffer_slice(&body), 30000, &ctl->arena, &answer);
    }
    buffer_fini(&body);
    if (code == EXIT_OK) {
        print_new(ctl, answer.body);
    }
    return code;
}

static int end_one(struct ctl *ctl, const char *id)
{
    struct slice path = arena_printf(&ctl->arena, "/v1/grants/%.*s", SLICE_ARG(url_escape(slice_of(id), &ctl->arena)));
    struct answer answer;
    int code = client_call(ctl, "DELETE", path, SLICE_NONE, 30000, &ctl->arena, &answer);

    if (code == EXIT_OK && ctl->output == OUTPUT_DATA) {
        print_data(ctl, answer.body);
    } else if (code == EXIT_OK) {
        (void)printf("%s%s\n", ctl->output == OUTPUT_NAME ? "" : "revoked the grant ", id);
    }
    return code;
}

int cmd_grants(struct ctl *ctl, int argc, char **argv)
{
    struct given given = {0};
    const struct option options[] = {
        {"--run", &given.run, NULL, NULL},       {"--saga", &given.saga, NULL, NULL},
        {"--tool", NULL, &given.tools, NULL},    {"--scope", &given.scope, NULL, NULL},
        {"--turn", &given.turn, NULL, NULL},     {"--expires", &given.expires, NULL, NULL},
        {"--all", NULL, NULL, &given.all},       {"--limit", &given.limit, NULL, NULL},
        {"--cursor", &given.cursor, NULL, NULL}, {NULL, NULL, NULL, NULL},
    };
    struct arguments words;
    bool helped = false;
    int first = EXIT_OK;

    if (!options_read(ctl, argc, argv, options, &words, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (words.count == 0 || (words.count == 1 && strcmp(words.items[0], "list") == 0)) {
        return list(ctl, &given);
    }
    if (strcmp(words.items[0], "new") == 0) {
        return words.count == 1 ? make(ctl, &given) : usage_error(ctl, "grants new takes options only");
    }
    if (strcmp(words.items[0], "revoke") != 0) {
        return usage_error(ctl, "grants has no verb \"%s\"", words.items[0]);
    }
    if (words.count == 1) {
        return usage_error(ctl, "which grant? `sagactl grants` lists them");
    }
    for (size_t i = 1; i < words.count; i++) {
        int code = end_one(ctl, words.items[i]);

        first = first == EXIT_OK ? code : first;
    }
    return first;
}
