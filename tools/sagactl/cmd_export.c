/* The command export: copies definitions, cases, ended sagas with their logs, and acts into a file, page by page. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/instant.h"
#include "tools/sagactl/client.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/export/export_file.h"
#include "tools/sagactl/output.h"
#include "tools/sagactl/saga_end.h"

const char help_export[] = "sagactl export FILE [--since INSTANT|AGE|NEXT] [--resume]\n"
                           "\n"
                           "Writes what the service knows into a file, one JSON document a line: every\n"
                           "version of tools and sagas (\"kind\": \"tool\", \"definition\"), cases, ended sagas\n"
                           "with their logs, and acts. It is the namespace of the token, or that of -n. Only\n"
                           "you can read the file. An export that was cut off goes on with --resume where it\n"
                           "stopped. The last line has \"kind\": \"end\". A saga that ends while the export\n"
                           "runs may be missing; it is in the next one.\n"
                           "\n"
                           "--since takes an instant, an age such as 2d, or the \"next\" of the last line of\n"
                           "an export. The file then has what is new since: sagas that ended, cases that were\n"
                           "opened or resolved, acts, and all definitions. A document may come again, and\n"
                           "the later one holds.\n"
                           "\n"
                           "It is a copy for archives and reports, and no backup: sagad cannot read it back.\n"
                           "\n"
                           "  sagactl export shop.jsonl\n"
                           "  sagactl export shop.jsonl --resume\n"
                           "  sagactl export more.jsonl --since \"$(tail -n 1 shop.jsonl | jq -r .next)\"\n"
                           "  grep '^{\"kind\":\"saga\"' shop.jsonl | jq -c '.saga | [.id, .status]'\n";

#define TRIES_MAX 40 /* how often a request is tried that the service cannot take now */
#define AGAIN_US 500000
#define ANSWER_MS 60000
#define VERSION_MAX 1000000
#define CLOCKS_DIFFER_MS 600000 /* the next export begins so much earlier, because clocks of machines differ */
#define FEED "/v1/events?limit=100&type=saga.completed,saga.compensated,saga.abandoned,case.opened,case.resolved"

struct export
{
    struct ctl *ctl;
    struct export_file *file;
    struct arena *page; /* the arena of the page, and of what belongs to its items */
    int64_t since_ms;   /* 0: everything */
    struct slice from;  /* cursor of the feed of events; empty: its oldest event */
    bool was_answered;  /* the service is there */
    bool has_failed;    /* a request failed, and that was told */
};

static const char *const lists[EXPORT_PART_COUNT] = {[EXPORT_TOOLS] = "/v1/tools?limit=100",
                                                     [EXPORT_DEFINITIONS] = "/v1/definitions?limit=100",
                                                     [EXPORT_CASES] = "/v1/escalations?limit=100&status=all",
                                                     [EXPORT_SAGAS] =
                                                         "/v1/sagas?limit=100&status=completed,compensated,abandoned",
                                                     [EXPORT_ACTS] = "/v1/acts?limit=100"};

/* The answer is about this one item, and the others may be read. A proxy's own 404 is no problem document. */
static bool is_of_the_item(const struct answer *answer)
{
    return (answer->status == 404 || answer->status == 409 || answer->status == 500) &&
           json_type(json_member(answer->body, "type")) == JSON_STRING;
}

static int fail(struct export *export, const struct answer *answer, int code)
{
    progress_clear(export->ctl);
    if (answer->status == 0) {
        (void)fprintf(stderr, "sagactl: %s cannot be reached: %.*s\n", export->ctl->server, SLICE_ARG(answer->why));
    } else {
        (void)print_problem(export->ctl, answer->status, answer->body); /* the code is known */
    }
    (void)fprintf(stderr, "  The export is not whole. Go on with it: add --resume\n");
    export->has_failed = true;
    return code;
}

/*
 * Asks again while the service is away or has too much to do, once it has answered anything. With `is_item` a problem
 * of that item is no failure: the exit code is not EXIT_OK, and nothing was printed.
 */
static int ask(struct export *export, struct slice path, bool is_item, struct answer *answer)
{
    struct ctl *ctl = export->ctl;
    int code, tries = 0;

    ctl->silent = true;
    while ((code = client_call(ctl, "GET", path, SLICE_NONE, ANSWER_MS, export->page, answer)) == EXIT_UNREACHABLE &&
           export->was_answered && ++tries < TRIES_MAX) {
        (void)usleep(AGAIN_US);
    }
    ctl->silent = false;
    export->was_answered = export->was_answered || code == EXIT_OK;
    if (code != EXIT_OK && !(is_item && is_of_the_item(answer))) {
        return fail(export, answer, code);
    }
    return code;
}

/* The same for a list. An answer without `items` is not from sagad: it must not pass for a list of nothing. */
static int ask_list(struct export *export, struct slice path, bool is_item, struct answer *answer)
{
    int code = ask(export, path, is_item, answer);

    return code == EXIT_OK && json_type(json_member(answer->body, "items")) != JSON_ARRAY
               ? fail(export, answer, EXIT_FAILED)
               : code;
}

/* The same for a document that is about what `member` names. */
static int ask_item(struct export *export, struct slice path, const char *member, struct answer *answer)
{
    int code = ask(export, path, true, answer);

    return code == EXIT_OK && !json_member(answer->body, member).ptr ? fail(export, answer, EXIT_FAILED) : code;
}

/* --- the items of a page --- */

/* Registered versions have the numbers from 1 on. */
static int put_versions(struct export *export, enum export_part part, struct slice item)
{
    static const char *const paths[] = {[EXPORT_TOOLS] = "/v1/tools", [EXPORT_DEFINITIONS] = "/v1/definitions"};
    struct slice name = json_string(json_member(item, "name"), export->page);
    int64_t newest = 1;

    (void)json_i64(json_member(item, "version"), &newest);
    for (int64_t version = 1; version <= newest && version <= VERSION_MAX; version++) {
        struct answer answer;
        struct slice path = arena_printf(export->page, "%s/%.*s?version=%lld", paths[part],
                                         SLICE_ARG(url_escape(name, export->page)), (long long)version);
        int code = ask_item(export, path, "name", &answer);

        if (code == EXIT_OK) {
            export_file_begin(export->file, part);
            export_file_member(export->file, export_kinds[part], answer.body);
            export_file_end(export->file);
        } else if (export->has_failed) {
            return code;
        }
    }
    return EXIT_OK;
}

static int put_log(struct export *export, struct slice id)
{
    struct slice cursor = SLICE("0"), entry;
    struct answer answer;
    bool is_first = true;
    int code = EXIT_OK;

    export_file_open_array(export->file, "log");
    while (cursor.len > 0 && code == EXIT_OK) {
        code = ask_list(
            export,
            arena_printf(export->page, "/v1/sagas/%.*s/log?limit=500&cursor=%.*s", SLICE_ARG(id), SLICE_ARG(cursor)),
            true, &answer);
        cursor = SLICE("");
        if (code == EXIT_OK) {
            struct json_walk walk = json_walk(json_member(answer.body, "items"));

            while (json_next_element(&walk, &entry)) {
                export_file_element(export->file, entry, is_first);
                is_first = false;
            }
            cursor = show_member(export->ctl, answer.body, "next_cursor");
        }
    }
    export_file_close_array(export->file);
    if (code != EXIT_OK && !export->has_failed) {
        export_file_member(export->file, "problem", answer.body); /* the log ends too early: its reader must see that */
    }
    return export->has_failed ? code : EXIT_OK;
}

/* A saga that cannot be read is in the file as the list has it, with the problem. One that is gone is not: its
 * retention ended meanwhile. */
static int put_saga(struct export *export, struct slice item)
{
    struct slice id = json_string(json_member(item, "id"), export->page);
    struct answer answer;
    int code = ask_item(export, arena_printf(export->page, "/v1/sagas/%.*s", SLICE_ARG(id)), "id", &answer);

    if (export->has_failed || code == EXIT_NOT_FOUND) {
        return export->has_failed ? code : EXIT_OK;
    }
    export_file_begin(export->file, EXPORT_SAGAS);
    export_file_member(export->file, "saga", code == EXIT_OK ? answer.body : item);
    if (code == EXIT_OK) {
        code = put_log(export, id);
    } else {
        export_file_member(export->file, "problem", answer.body);
        code = EXIT_OK;
    }
    export_file_end(export->file);
    return code;
}

static int put_item(struct export *export, enum export_part part, struct slice item)
{
    switch (part) {
    case EXPORT_TOOLS:
    case EXPORT_DEFINITIONS:
        return put_versions(export, part, item);
    case EXPORT_SAGAS:
        return put_saga(export, item);
    case EXPORT_CASES:
    case EXPORT_ACTS:
        export_file_begin(export->file, part);
        export_file_member(export->file, export_kinds[part], item);
        export_file_end(export->file);
        return EXIT_OK;
    case EXPORT_PART_COUNT:
        break;
    }
    return EXIT_FAILED;
}

/* --- the feed: what has ended, or was asked, since --- */

static bool is_since(const struct export *export, struct slice event)
{
    int64_t at_ms;

    return export->from.len > 0 || !instant_parse(show_member(export->ctl, event, "time"), &at_ms) ||
           at_ms >= export->since_ms;
}

/* The case as it is now. One of another engine's release, or that is gone, is left out. */
static int put_case(struct export *export, struct slice n)
{
    struct answer answer;
    int code = ask_item(export, arena_printf(export->page, "/v1/escalations/%.*s", SLICE_ARG(n)), "n", &answer);

    if (code != EXIT_OK) {
        return export->has_failed ? code : EXIT_OK;
    }
    export_file_begin(export->file, EXPORT_CASES);
    export_file_member(export->file, export_kinds[EXPORT_CASES], answer.body);
    export_file_end(export->file);
    return EXIT_OK;
}

static int put_event(struct export *export, struct slice event)
{
    struct slice type = show_member(export->ctl, event, "type"), data = json_member(event, "data");

    if (!is_since(export, event)) {
        return EXIT_OK;
    }
    if (slice_starts_with(type, "case.")) {
        struct slice n = show_member(export->ctl, data, "n");

        return n.len > 0 ? put_case(export, n) : EXIT_OK;
    }
    return put_saga(
        export, arena_printf(export->page, "{\"id\":\"%.*s\"}", SLICE_ARG(show_member(export->ctl, event, "subject"))));
}

/* --- pages --- */

static void show_progress(const struct export *export)
{
    const int64_t *counts = export->file->counts;

    progress_show(export->ctl, "%lld definitions, %lld cases, %lld sagas, %lld acts",
                  (long long)(counts[EXPORT_TOOLS] + counts[EXPORT_DEFINITIONS]), (long long)counts[EXPORT_CASES],
                  (long long)counts[EXPORT_SAGAS], (long long)counts[EXPORT_ACTS]);
}

static const char *since_filter(const struct export *export)
{
    char since[INSTANT_TEXT_BYTES];

    if (export->since_ms == 0) {
        return "";
    }
    instant_text(export->since_ms, since);
    return arena_text(export->page, arena_printf(export->page, "&since=%s", since));
}

/* Notes where the next export begins, before anything is read. */
static int begin_next(struct export *export)
{
    char now[INSTANT_TEXT_BYTES];
    struct answer answer;
    int code = ask_list(export, SLICE("/v1/events?cursor=now"), false, &answer);

    if (code == EXIT_OK) {
        instant_text(now_ms() - CLOCKS_DIFFER_MS, now);
        export->file->next = arena_printf(&export->ctl->arena, "%s/%.*s", now,
                                          SLICE_ARG(show_member(export->ctl, answer.body, "next_cursor")));
        export_file_mark(export->file, EXPORT_TOOLS, SLICE(""));
    }
    return code;
}

static int put_page(struct export *export)
{
    enum export_part part = export->file->part;
    struct slice cursor = export->file->cursor, item;
    struct answer answer;
    bool is_feed = export->since_ms > 0 && part == EXPORT_SAGAS;

    if (export->since_ms > 0 && part == EXPORT_CASES) {
        export_file_mark(export->file, part, SLICE_NONE); /* the feed has them */
        return EXIT_OK;
    }
    cursor = is_feed && cursor.len == 0 ? export->from : cursor;
    struct slice path =
        arena_printf(export->page, "%s%s%.*s%s", is_feed ? FEED : lists[part], cursor.len ? "&cursor=" : "",
                     SLICE_ARG(url_escape(cursor, export->page)), part == EXPORT_ACTS ? since_filter(export) : "");
    int code = ask_list(export, path, false, &answer);

    if (code != EXIT_OK) {
        return code;
    }
    struct json_walk walk = json_walk(json_member(answer.body, "items"));

    while (code == EXIT_OK && json_next_element(&walk, &item)) {
        code = is_feed ? put_event(export, item) : put_item(export, part, item);
    }
    if (code == EXIT_OK) {
        struct slice next = show_member(export->ctl, answer.body, "next_cursor");
        bool is_over = is_feed ? slice_equal(next, cursor) : next.len == 0; /* the feed always has one */

        export_file_mark(export->file, part, is_over ? SLICE_NONE : next);
        show_progress(export);
    }
    return code;
}

/* "INSTANT" or "INSTANT/CURSOR". Returns false when it is neither. */
static bool since_read(struct slice text, int64_t *ms, struct slice *cursor)
{
    const char *slash = text.len ? memchr(text.ptr, '/', text.len) : NULL;
    struct slice instant = {text.ptr, slash ? (size_t)(slash - text.ptr) : text.len};

    *cursor = slash ? (struct slice){slash + 1, text.len - instant.len - 1} : SLICE("");
    *ms = 0;
    return text.len == 0 || (instant_parse(instant, ms) && *ms > 0 && (!slash || cursor->len > 0));
}

static int put_all(struct ctl *ctl, struct export_file *file)
{
    struct arena page;
    struct export export = {.ctl = ctl, .file = file, .page = &page};
    int code = EXIT_OK;

    if (!since_read(file->since, &export.since_ms, &export.from)) {
        return usage_error(ctl, "%s was not begun by this command", file->path);
    }
    arena_init(&page, 1 << 20);
    if (file->part == EXPORT_TOOLS && file->cursor.len == 0 && file->next.len == 0) {
        code = begin_next(&export);
    }
    while (code == EXIT_OK && file->part < EXPORT_PART_COUNT && !ferror(file->file)) {
        code = put_page(&export);
        arena_reset(&page);
    }
    if (code == EXIT_OK && !ferror(file->file)) {
        export_file_finish(file);
    }
    arena_fini(&page);
    progress_clear(ctl);
    return code;
}

static void print_counts(const struct export_file *file)
{
    (void)printf("%s has %lld tools, %lld definitions, %lld cases, %lld sagas and %lld acts\n", file->path,
                 (long long)file->counts[EXPORT_TOOLS], (long long)file->counts[EXPORT_DEFINITIONS],
                 (long long)file->counts[EXPORT_CASES], (long long)file->counts[EXPORT_SAGAS],
                 (long long)file->counts[EXPORT_ACTS]);
}

int cmd_export(struct ctl *ctl, int argc, char **argv)
{
    bool resume = false, helped = false;
    const char *since = NULL;
    const struct option options[] = {
        {"--resume", NULL, NULL, &resume}, {"--since", &since, NULL, NULL}, {NULL, NULL, NULL, NULL}};
    char instant[INSTANT_TEXT_BYTES];
    struct slice from;
    int64_t since_ms;
    struct arguments names;
    struct export_file file = {0};

    if (!options_read(ctl, argc, argv, options, &names, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (names.count != 1) {
        return usage_error(ctl, "export into which file? It is one argument");
    }
    if (since && duration_parse(slice_of(since), &since_ms)) {
        instant_text(now_ms() - since_ms, instant);
        since = instant;
    }
    if (since && (resume || !since[0] || !since_read(slice_of(since), &since_ms, &from))) {
        return usage_error(
            ctl, resume
                     ? "an export that goes on knows its --since; leave it out"
                     : "--since takes an instant such as 2026-11-01T00:00:00Z, an age such as 2d, or the \"next\" of "
                       "the last line of an export");
    }
    int code = resume ? export_file_resume(&file, ctl, names.items[0])
                      : export_file_new(&file, ctl, names.items[0], slice_of(since ? since : ""));

    if (code == EXIT_OK && !file.is_whole) {
        code = put_all(ctl, &file);
    }
    int closed = export_file_close(&file);

    code = code == EXIT_OK ? closed : code;
    if (code == EXIT_OK) {
        print_counts(&file);
    }
    return code;
}
