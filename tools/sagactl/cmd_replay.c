/*
 * The command replay: folds the durable log again through the same state machine and compares the result with what the
 * service shows.
 *
 * Definitions and tools are fetched in the versions that saga.started pinned. For open sagas and runs they are fetched
 * when a call in the log names them. A saga that changes while it is read is read again.
 *
 * Beside the log of a run its states at rest are stored, and repeats of calls are answered from the newest of them. The
 * log's answer has their digests. The fold makes the same bytes, so that a wrong one is seen.
 */
#include <stdio.h>
#include <string.h>

#include "base/canon.h"
#include "base/map.h"
#include "core/saga/rest.h"
#include "core/saga/saga.h"
#include "tools/sagactl/client.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/output.h"
#include "tools/sagactl/saga_name.h"

#define TRIES_MAX 10

const char help_replay[] =
    "sagactl replay SAGA | --all [--since T]\n"
    "\n"
    "Fetches the durable log of a saga, folds it through the engine's own state machine and compares\n"
    "the state with the one the service shows, member by member, and for a run with the states at\n"
    "rest that are stored beside its log. --all does so for every saga. Exits 0 when all are the\n"
    "same, 1 when one differs; each difference is named.\n"
    "\n"
    "  sagactl replay 019b3c52-...\n"
    "  sagactl replay --all\n";

struct replay {
    struct ctl *ctl;
    struct map definitions; /* keyed by "name@version{tools}{sagas}" */
    struct map bodies;      /* keyed by path; values are struct slice in the arena of ctl */
    struct map compiled;    /* keyed by path; the tools of open sagas */
    struct tool_shelf shelf;
    struct definition *open, *run;
    struct slice tools, sagas; /* the pins of the saga that is being compiled */
    size_t checked, differing;
    size_t rests, rests_other; /* states at rest that were compared; that have a form which this version cannot write */
};

/* Gets a registered body by its path. Each body is fetched once. */
static bool body_of(struct replay *replay, struct slice path, struct slice *out)
{
    struct ctl *ctl = replay->ctl;
    struct slice *known = map_find(&replay->bodies, path.ptr, path.len);
    struct answer answer;

    if (!known) {
        if (client_get(ctl, path, &ctl->arena, &answer) != EXIT_OK) {
            return false;
        }
        known = arena_alloc(&ctl->arena, sizeof(*known));
        *known = json_member(answer.body, "body");
        map_put(&replay->bodies, path.ptr, path.len, known);
    }
    *out = *known;
    return known->ptr != NULL;
}

static bool find_pinned(struct replay *replay, struct slice pins, const char *kind, struct slice name,
                        struct slice *body, uint32_t *version_found)
{
    struct arena *arena = &replay->ctl->arena;
    int64_t pinned = 0;

    if (!pins.ptr || !json_i64(json_member(pins, arena_text(arena, name)), &pinned)) {
        return false;
    }
    *version_found = (uint32_t)pinned;
    return body_of(
        replay,
        arena_printf(arena, "/v1/%s/%.*s?version=%lld", kind, SLICE_ARG(url_escape(name, arena)), (long long)pinned),
        body);
}

static bool find_tool(void *context, struct slice name, uint32_t version, struct slice *body, uint32_t *version_found)
{
    struct replay *replay = context;

    (void)version; /* the saga has its own pin */
    return find_pinned(replay, replay->tools, "tools", name, body, version_found);
}

static bool find_saga(void *context, struct slice name, uint32_t version, struct slice *body, uint32_t *version_found)
{
    struct replay *replay = context;

    (void)version;
    return find_pinned(replay, replay->sagas, "definitions", name, body, version_found);
}

/* Finds a tool that a call in a log names. Each namespace has its own tools, and the token decides which one we see. */
static const struct tool *shelf_find(const struct tool_shelf *shelf, struct slice namespace, struct slice name,
                                     uint32_t version)
{
    struct replay *replay = container_of((struct tool_shelf *)(uintptr_t)shelf, struct replay, shelf);
    struct arena *arena = &replay->ctl->arena;
    struct slice path = arena_printf(arena, "/v1/tools/%.*s?version=%u", SLICE_ARG(url_escape(name, arena)), version),
                 body;
    const struct tool *tool = map_find(&replay->compiled, path.ptr, path.len);
    struct faults faults;

    (void)namespace;
    if (tool || !body_of(replay, path, &body)) {
        return tool;
    }
    faults_init(&faults, arena);
    tool = tool_compile(body, version, SLICE(""), arena, &faults);
    if (tool) {
        map_put(&replay->compiled, path.ptr, path.len, (void *)(uintptr_t)tool);
    }
    return tool;
}

/* Compiles a written definition. `sagas` is {} when it has no children. */
static const struct definition *written_definition(struct replay *replay, struct slice name, uint32_t version,
                                                   struct slice tools, struct slice sagas)
{
    struct arena *arena = &replay->ctl->arena;
    struct slice key = arena_printf(arena, "%.*s@%u%.*s%.*s", SLICE_ARG(name), version, SLICE_ARG(tools),
                                    SLICE_ARG(sagas)),
                 body;
    struct definition *definition = map_find(&replay->definitions, key.ptr, key.len);
    struct tool_source source = {find_tool, replay, find_saga};
    struct faults faults;

    if (definition) {
        return definition;
    }
    if (!body_of(replay,
                 arena_printf(arena, "/v1/definitions/%.*s?version=%u", SLICE_ARG(url_escape(name, arena)), version),
                 &body)) {
        return NULL;
    }
    faults_init(&faults, arena);
    replay->tools = arena_slice(arena, tools);
    replay->sagas = arena_slice(arena, sagas);
    definition = definition_compile(body, version, &source, SLICE(""), arena, &faults);
    if (!definition) {
        (void)fprintf(stderr, "sagactl: the definition %.*s version %u does not compile: %.*s\n", SLICE_ARG(name),
                      version, SLICE_ARG(faults.count ? faults.items[0].detail : SLICE("")));
        return NULL;
    }
    definition->shelf = &replay->shelf;
    map_put(&replay->definitions, key.ptr, key.len, definition);
    return definition;
}

static const struct definition *definition_of(struct replay *replay, const struct record *start)
{
    if (slice_is(start->saga_name, OPEN_SAGA_NAME)) {
        return replay->open;
    }
    if (slice_is(start->saga_name, RUN_SAGA_NAME)) {
        return replay->run;
    }
    return written_definition(replay, start->saga_name, start->version, start->tools,
                              start->sagas.ptr ? start->sagas : SLICE("{}"));
}

/* Returns {name: version} of the tools, one of them in another version, or of the children. */
static struct slice pins_text(const struct definition *definition, bool sagas, struct slice mended, uint32_t version,
                              struct arena *arena)
{
    uint32_t count = sagas ? definition->child_count : definition->tool_count;
    struct buffer text;
    struct json_writer w;

    buffer_init(&text, 1 << 20);
    json_writer_init(&w, &text);
    json_object_begin(&w, NULL);
    for (uint32_t i = 0; i < count; i++) {
        struct slice name = sagas ? definition->children[i]->name : definition->tools[i]->name;
        uint32_t pinned = sagas ? definition->children[i]->version : definition->tools[i]->version;

        json_write_i64(&w, arena_text(arena, name), !sagas && slice_equal(name, mended) ? version : pinned);
    }
    json_object_end(&w);
    struct slice kept = arena_slice(arena, buffer_slice(&text));

    buffer_fini(&text);
    return kept;
}

static const struct definition *shelf_mend(const struct tool_shelf *shelf, struct slice namespace,
                                           const struct definition *definition, struct slice tool, uint32_t version,
                                           struct err *err)
{
    struct replay *replay = container_of((struct tool_shelf *)(uintptr_t)shelf, struct replay, shelf);
    struct arena *arena = &replay->ctl->arena;
    const struct definition *mended = written_definition(replay, definition->name, definition->version,
                                                         pins_text(definition, false, tool, version, arena),
                                                         pins_text(definition, true, SLICE_NONE, 0, arena));

    (void)namespace;
    if (!mended) {
        (void)err_set(err, ERR_CONFLICT, "version %u of the tool %.*s cannot be used", version, SLICE_ARG(tool));
    }
    return mended;
}

/* --- one saga --- */

struct fetched {
    struct slice saga; /* the saga as the service shows it */
    struct slice *entries;
    size_t count, capacity;
    struct list rests; /* struct stored_rest, by their seq */
};

struct stored_rest { /* what the service says of a state at rest */
    struct list_link link;
    uint64_t seq;
    int64_t form;
    struct digest digest;
};

static void entries_add(struct fetched *fetched, struct slice entry, struct arena *arena)
{
    if (fetched->count == fetched->capacity) {
        size_t capacity = fetched->capacity ? fetched->capacity * 2 : 64;
        struct slice *entries = arena_array(arena, capacity, sizeof(*entries));

        if (fetched->count > 0) {
            memcpy(entries, fetched->entries, fetched->count * sizeof(*entries));
        }
        fetched->entries = entries;
        fetched->capacity = capacity;
    }
    fetched->entries[fetched->count++] = entry;
}

static bool rests_add(struct fetched *fetched, struct slice page, struct arena *arena)
{
    struct json_walk walk = json_walk(json_member(page, "rests"));
    struct slice item;

    while (json_next_element(&walk, &item)) {
        struct stored_rest *rest = arena_alloc(arena, sizeof(*rest));
        int64_t seq = 0;

        if (!json_i64(json_member(item, "seq"), &seq) || !json_i64(json_member(item, "form"), &rest->form) ||
            !digest_from_hex(json_string(json_member(item, "sha256"), arena), &rest->digest)) {
            (void)fprintf(stderr, "sagactl: the service names a state at rest that makes no sense: %.*s\n",
                          SLICE_ARG(item));
            return false;
        }
        rest->seq = (uint64_t)seq;
        list_push(&fetched->rests, &rest->link);
    }
    return true;
}

static int fetch_log(struct replay *replay, struct slice id, struct arena *arena, struct fetched *fetched)
{
    struct slice cursor = SLICE("0"), entry;

    fetched->count = 0;
    list_init(&fetched->rests);
    while (cursor.len > 0) {
        struct answer answer;
        int code = client_get(
            replay->ctl,
            arena_printf(arena, "/v1/sagas/%.*s/log?limit=500&cursor=%.*s", SLICE_ARG(id), SLICE_ARG(cursor)), arena,
            &answer);

        if (code != EXIT_OK) {
            return code;
        }
        struct json_walk walk = json_walk(json_member(answer.body, "items"));

        while (json_next_element(&walk, &entry)) {
            entries_add(fetched, entry, arena);
        }
        if (!rests_add(fetched, answer.body, arena)) {
            return EXIT_FAILED;
        }
        struct slice next = json_member(answer.body, "next_cursor");

        cursor = json_type(next) == JSON_STRING ? json_string(next, arena) : SLICE("");
    }
    return EXIT_OK;
}

/* Reads the saga before and after its log, until both are equal. Then the log belongs to that state. */
static int fetch(struct replay *replay, struct slice id, struct arena *arena, struct fetched *fetched)
{
    struct slice path = arena_printf(arena, "/v1/sagas/%.*s", SLICE_ARG(id));
    struct answer before, after;
    int code = client_get(replay->ctl, path, arena, &before);

    for (int i = 0; code == EXIT_OK && i < TRIES_MAX; i++) {
        code = fetch_log(replay, id, arena, fetched);
        if (code == EXIT_OK) {
            code = client_get(replay->ctl, path, arena, &after);
        }
        if (code == EXIT_OK && slice_equal(before.body, after.body)) {
            fetched->saga = after.body;
            return EXIT_OK;
        }
        before = after;
    }
    if (code == EXIT_OK) {
        (void)fprintf(stderr, "sagactl: %.*s does not hold still: try again when it is quieter\n", SLICE_ARG(id));
        code = EXIT_CONFLICT;
    }
    return code;
}

static bool refuse(struct slice id, size_t i, const struct err *err)
{
    (void)fprintf(stderr, "%.*s: entry %zu cannot be folded: %s%s%s\n", SLICE_ARG(id), i + 1, err->message,
                  err->detail[0] ? ": " : "", err->detail);
    return false;
}

/* Compares the state at rest that is stored after the last folded record with the one that the fold makes. */
static bool compare_rest(struct replay *replay, struct slice id, struct fetched *fetched, const struct saga *saga)
{
    struct list_link *first = list_first(&fetched->rests);
    struct stored_rest *rest = first ? container_of(first, struct stored_rest, link) : NULL;
    struct buffer bytes;
    struct digest made;
    bool is_same;

    if (!rest || rest->seq != saga->seq) {
        return true;
    }
    (void)list_pop(&fetched->rests);
    if (rest->form > 0 && rest->form != REST_FORM) {
        replay->rests_other++; /* no engine of this version believes it, either */
        return true;
    }
    replay->rests++;
    buffer_init(&bytes, REST_BYTES_MAX);
    is_same = saga_write_rest(saga, &bytes);
    made = digest_sha256(buffer_slice(&bytes));
    buffer_fini(&bytes);
    if (is_same && digest_equal(&made, &rest->digest)) {
        return true;
    }
    progress_clear(replay->ctl);
    (void)printf("%.*s: the state at rest that is stored with record %llu is not what its log folds to\n",
                 SLICE_ARG(id), (unsigned long long)rest->seq);
    return false;
}

static bool fold(struct replay *replay, struct slice id, struct fetched *fetched, struct arena *arena,
                 struct buffer *out)
{
    struct record start, record;
    struct saga_id saga_id;
    struct saga saga;
    struct err err = {0};
    const struct definition *definition;

    if (fetched->count == 0 || !uuid_parse(id, &saga_id.uuid)) {
        (void)fprintf(stderr, "%.*s: its log is empty\n", SLICE_ARG(id));
        return false;
    }
    if (record_read_start(fetched->entries[0], arena, &start, &err) != ERR_OK) {
        return refuse(id, 0, &err);
    }
    definition = definition_of(replay, &start);
    if (!definition) {
        return false;
    }
    saga_init(&saga, arena, saga_id, definition);
    for (size_t i = 0; i < fetched->count; i++) {
        /* The definition of an open saga grows with its calls. */
        if (record_read(fetched->entries[i], saga.definition, arena, &record, &err) != ERR_OK ||
            !record_check(&saga, &record, &err)) {
            return refuse(id, i, &err);
        }
        saga_apply(&saga, &record);
        if (!compare_rest(replay, id, fetched, &saga)) {
            return false;
        }
    }
    saga_write_json(&saga, out);
    return true;
}

/* Finds the first difference between two JSON texts. Both are canonical, so their members have the same order. */
static bool differ(struct slice a, struct slice b, struct slice at, struct arena *arena, struct slice *where)
{
    if (slice_equal(a, b)) {
        return false;
    }
    *where = at;
    if (json_type(a) == JSON_OBJECT && json_type(b) == JSON_OBJECT) {
        struct json_walk walk = json_walk(a);
        struct slice name, value;

        while (json_next_member(&walk, &name, &value)) {
            if (differ(value, json_member(b, arena_text(arena, name)), json_pointer_join(arena, at, name), arena,
                       where)) {
                return true;
            }
        }
    } else if (json_type(a) == JSON_ARRAY && json_type(b) == JSON_ARRAY) {
        struct json_walk walk = json_walk(a);
        struct slice value;

        for (size_t i = 0; json_next_element(&walk, &value); i++) {
            if (differ(value, json_element(b, i), arena_printf(arena, "%.*s/%zu", SLICE_ARG(at), i), arena, where)) {
                return true;
            }
        }
    }
    *where = at;
    return true;
}

static int replay_one(struct replay *replay, struct slice id)
{
    struct arena arena;
    struct buffer folded;
    struct fetched fetched = {0};
    struct slice where = SLICE_NONE;

    arena_init(&arena, 65536);
    buffer_init(&folded, 64 << 20);
    int code = fetch(replay, id, &arena, &fetched);

    if (code == EXIT_OK) {
        replay->checked++;
        code = EXIT_FAILED;
        if (fold(replay, id, &fetched, &arena, &folded)) {
            const struct slice beside = SLICE("/settled"); /* debts that were settled after the end: in no log */
            struct slice mine = canon(buffer_slice(&folded), NULL, 0, &arena),
                         theirs = canon(fetched.saga, &beside, 1, &arena);

            if (!differ(theirs, mine, SLICE(""), &arena, &where)) {
                code = EXIT_OK;
            } else {
                struct slice stored = json_at(theirs, where), made = json_at(mine, where);

                progress_clear(replay->ctl);
                (void)printf("%.*s differs at %.*s\n  stored  %.*s\n  folded  %.*s\n", SLICE_ARG(id),
                             SLICE_ARG(where.len > 0 ? where : SLICE("its members")),
                             SLICE_ARG(stored.ptr ? stored : SLICE("(absent)")),
                             SLICE_ARG(made.ptr ? made : SLICE("(absent)")));
            }
        }
        replay->differing += code != EXIT_OK;
    }
    buffer_fini(&folded);
    arena_fini(&arena);
    return code;
}

static int replay_listed(struct replay *replay, const char *since, const char *saga)
{
    struct ctl *ctl = replay->ctl;
    struct slice cursor = SLICE_NONE, item;

    do {
        struct answer answer;
        struct arena arena;

        arena_init(&arena, 65536);
        int code = client_get(ctl,
                              arena_printf(&arena, "/v1/sagas?limit=500%s%s%s%s%s%.*s", saga ? "&saga=" : "",
                                           saga ? saga : "", since ? "&since=" : "", since ? since : "",
                                           cursor.ptr ? "&cursor=" : "", SLICE_ARG(cursor.ptr ? cursor : SLICE(""))),
                              &arena, &answer);

        if (code != EXIT_OK) {
            arena_fini(&arena);
            return code;
        }
        struct json_walk walk = json_walk(json_member(answer.body, "items"));

        while (json_next_element(&walk, &item)) {
            code = replay_one(replay, json_string(json_member(item, "id"), &arena));
            if (code != EXIT_OK && code != EXIT_FAILED && code != EXIT_CONFLICT) {
                arena_fini(&arena);
                return code;
            }
            progress_show(ctl, "%zu sagas folded, %zu differ", replay->checked, replay->differing);
        }
        struct slice next = json_member(answer.body, "next_cursor");

        cursor = json_type(next) == JSON_STRING ? arena_slice(&ctl->arena, json_string(next, &arena)) : SLICE_NONE;
        arena_fini(&arena);
    } while (cursor.ptr);
    return EXIT_OK;
}

static int replay_all(struct replay *replay, const char *since)
{
    struct ctl *ctl = replay->ctl;
    int code = replay_listed(replay, since, NULL);

    if (code == EXIT_OK) {
        code = replay_listed(replay, since, RUN_SAGA_NAME); /* the list shows runs only on request */
    }
    progress_clear(ctl);
    if (code != EXIT_OK) {
        return code;
    }
    if (ctl->output == OUTPUT_DATA) {
        print_data(ctl, arena_printf(&ctl->arena, "{\"checked\":%zu,\"differing\":%zu,\"rests\":%zu}", replay->checked,
                                     replay->differing, replay->rests));
    } else {
        (void)printf("%zu sagas folded from their logs, %zu differ\n", replay->checked, replay->differing);
        if (replay->rests_other > 0) {
            (void)printf("%zu states at rest have the form of another release and were not compared\n",
                         replay->rests_other);
        }
    }
    return replay->differing ? EXIT_FAILED : EXIT_OK;
}

int cmd_replay(struct ctl *ctl, int argc, char **argv)
{
    bool all = false, helped = false;
    const char *since = NULL;
    const struct option options[] = {
        {"--all", NULL, NULL, &all}, {"--since", &since, NULL, NULL}, {NULL, NULL, NULL, NULL}};
    struct replay replay = {.ctl = ctl};
    struct arguments ids;
    int code;

    if (!options_read(ctl, argc, argv, options, &ids, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (all ? ids.count != 0 : ids.count != 1) {
        return usage_error(ctl, "which saga? one, or --all");
    }
    map_init(&replay.definitions);
    map_init(&replay.bodies);
    map_init(&replay.compiled);
    replay.shelf = (struct tool_shelf){.find = shelf_find, .mend = shelf_mend};
    replay.open = definition_open(SAGA_OPEN, &replay.shelf, &ctl->arena);
    replay.run = definition_open(SAGA_RUN, &replay.shelf, &ctl->arena);
    if (all) {
        code = replay_all(&replay, since);
    } else {
        struct slice id;

        code = saga_id_of(ctl, ids.items[0], &id);
        code = code == EXIT_OK ? replay_one(&replay, id) : code;
        if (code == EXIT_OK && ctl->output == OUTPUT_DATA) {
            print_data(ctl, arena_printf(&ctl->arena, "{\"checked\":1,\"differing\":0,\"rests\":%zu}", replay.rests));
        } else if (code == EXIT_OK) {
            (void)printf("%s: the log folds to the stored state\n", ids.items[0]);
        }
    }
    map_fini(&replay.definitions);
    map_fini(&replay.bodies);
    map_fini(&replay.compiled);
    return code;
}
