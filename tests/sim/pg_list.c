/* Sagas in lists and in numbers: lists have the newest first, and counts are by status. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "core/definition/definition.h"
#include "tests/sim/pg_statements.h"

static void put_saga_columns(struct pg_call *call, const struct row_saga *saga)
{
    put_uuid(call, &saga->id);
    put_bytes(call, saga->namespace);
    put_bytes(call, saga->name);
    put_int(call, saga->version);
    put_bytes(call, saga->status);
    put_bytes(call, saga->tags);
    put_bytes(call, saga->business_id);
    put_time_ms(call, saga->created_ms);
    put_time_ms(call, saga->updated_ms);
    if (saga->has_ended) {
        put_time_ms(call, saga->ended_ms);
    } else {
        put_null(call);
    }
}

void pg_put_saga(struct pg_call *call, const struct row_saga *saga)
{
    put_saga_columns(call, saga);
    put_row_end(call);
}

/*
 * Calls `visit` for each saga that lists of unfinished sagas look at: those of a shard from its bound on, and those
 * before it that are in due (parked) or awake.
 */
enum part { PART_NEWEST, PART_PARKED, PART_AWAKE }; /* where a saga was met */

struct walk {
    struct pg_call *call;
    bool with_older;
    struct uuid (*bound)(struct walk *walk,
                         const struct row_shard *shard); /* the bound of the newer sagas of a shard */
    void (*visit)(struct walk *walk, const struct row_saga *saga, enum part part);
    void *context;
};

static const struct uuid nil = {{0}};

static bool is_parked(struct pg_call *call, int64_t shard, struct uuid saga)
{
    const struct row_due *due = pg_see(call, pg_find(call, PG_DUE, &(struct row_due){.shard = shard, .saga = saga}));

    return due && !due->is_forget;
}

static void walk_older(struct walk *walk, int64_t shard, const struct uuid *bound)
{
    struct pg_call *call = walk->call;

    for (struct pg_row *row = pg_first(call, PG_DUE, &(struct row_due){.shard = shard}); row;
         row = pg_next(call, PG_DUE, row)) {
        const struct row_due *due = pg_see(call, row);
        const struct row_saga *saga;

        if (due && due->shard != shard) {
            break;
        }
        saga = due && !due->is_forget && uuid_compare(&due->saga, bound) < 0 ? pg_saga(call, shard, due->saga) : NULL;
        if (saga) {
            walk->visit(walk, saga, PART_PARKED);
        }
    }
    for (struct pg_row *row = pg_first(call, PG_AWAKE, &(struct row_awake){.shard = shard}); row;
         row = pg_next(call, PG_AWAKE, row)) {
        const struct row_awake *awake = pg_see(call, row);
        const struct row_saga *saga;

        if (awake && awake->shard != shard) {
            break;
        }
        saga = awake && uuid_compare(&awake->saga, bound) < 0 && !is_parked(call, shard, awake->saga)
                   ? pg_saga(call, shard, awake->saga)
                   : NULL;
        if (saga) {
            walk->visit(walk, saga, PART_AWAKE);
        }
    }
}

static void walk_shards(struct walk *walk)
{
    struct pg_call *call = walk->call;
    struct pg_row *row = pg_first(call, PG_SHARD, &(struct row_shard){.shard = INT16_MIN});

    for (; row; row = pg_next(call, PG_SHARD, row)) {
        const struct row_shard *shard = pg_see(call, row);
        struct uuid bound = shard ? walk->bound(walk, shard) : nil;
        struct pg_row *at =
            shard ? pg_first(call, PG_SAGA, &(struct row_saga){.shard = shard->shard, .id = bound}) : NULL;

        for (; at; at = pg_next(call, PG_SAGA, at)) {
            const struct row_saga *saga = pg_see(call, at);

            if (saga && saga->shard != shard->shard) {
                break;
            }
            if (saga) {
                walk->visit(walk, saga, PART_NEWEST);
            }
        }
        if (shard && walk->with_older) {
            walk_older(walk, shard->shard, &bound);
        }
    }
}

/* --- groups --- */

struct group {
    struct slice name;
    int64_t version, count;
};

struct groups {
    struct group items[256];
    size_t count;
};

static void count_one(struct groups *groups, struct slice name, int64_t version)
{
    size_t i = 0;

    while (i < groups->count && (groups->items[i].version != version || !slice_equal(groups->items[i].name, name))) {
        i++;
    }
    CHECK(i < sizeof(groups->items) / sizeof(groups->items[0]));
    if (i == groups->count) {
        groups->items[groups->count++] = (struct group){name, version, 0};
    }
    groups->items[i].count++;
}

/* --- the list --- */

struct found {
    const struct row_saga *saga;
    bool fits, is_edge;
};

struct saga_list {
    struct found *found;
    size_t count, capacity;
    size_t own;    /* of the shard and table being looked through: begin here */
    int64_t shard; /* that one */
    enum part part;
};

static struct uuid list_bound(struct walk *walk, const struct row_shard *shard)
{
    return arg_int(walk->call, 3) && shard->has_low ? pg_id_floor(shard->low_ms) : nil;
}

struct slice pg_tag_of(struct pg_call *call, struct slice tags, struct slice name)
{
    struct json_walk walk = json_walk(tags);
    struct slice name_raw, value;

    while (json_next_member(&walk, &name_raw, &value)) {
        struct slice own = json_string((struct slice){name_raw.ptr - 1, name_raw.len + 2}, call->arena);

        if (slice_equal(own, name)) {
            return json_type(value) == JSON_STRING ? json_string(value, call->arena)
                   : json_type(value) == JSON_NULL ? SLICE_NONE
                                                   : value;
        }
    }
    return SLICE_NONE;
}

/* saga.tags @> wanted: objects of texts */
static bool holds_tags(struct pg_call *call, const struct row_saga *saga, struct slice wanted)
{
    struct json_walk walk = json_walk(wanted);
    struct slice name, value;

    while (json_next_member(&walk, &name, &value)) {
        struct slice own = pg_tag_of(call, saga->tags, name);

        if (!own.ptr || !slice_equal(own, json_string(value, call->arena))) {
            return false;
        }
    }
    return true;
}

bool pg_has_tags(struct pg_call *call, const struct row_saga *saga, int arg)
{
    size_t count = arg_count(call, arg);

    for (size_t i = 0; i < count && saga && saga->tags.ptr; i++) {
        if (holds_tags(call, saga, item_bytes(call, arg, i))) {
            return true;
        }
    }
    return count == 0;
}

bool pg_is_one_of(struct pg_call *call, int arg, struct slice value)
{
    size_t count = arg_count(call, arg);

    for (size_t i = 0; i < count; i++) {
        if (slice_equal(item_bytes(call, arg, i), value.ptr ? value : SLICE(""))) {
            return true;
        }
    }
    return count == 0;
}

static bool list_has(struct pg_call *call, const struct row_saga *saga)
{
    struct uuid before = arg_uuid(call, 0), from = arg_uuid(call, 1);

    return uuid_compare(&saga->id, &before) < 0 && uuid_compare(&saga->id, &from) >= 0 &&
           slice_equal(saga->namespace, arg_bytes(call, 2));
}

static bool has_version(struct pg_call *call, int64_t version)
{
    size_t count = arg_count(call, 8);

    for (size_t i = 0; i < count; i++) {
        if (item_int(call, 8, i) == version) {
            return true;
        }
    }
    return count == 0;
}

static bool begins_so(struct slice text, struct slice prefix)
{
    return prefix.len == 0 || (text.len >= prefix.len && memcmp(text.ptr, prefix.ptr, prefix.len) == 0);
}

static bool list_fits(struct pg_call *call, const struct row_saga *saga)
{
    bool wants_person =
        arg_count(call, 4) > 0 && (slice_is(saga->status, "paused") || slice_is(saga->status, "escalated"));

    return (!arg_int(call, 3) || !saga->has_ended) &&
           (!arg_int(call, 7) || !slice_is(saga->name, RUN_SAGA_NAME) || wants_person) &&
           pg_is_one_of(call, 4, saga->status) && pg_is_one_of(call, 5, saga->name) && pg_has_tags(call, saga, 6) &&
           has_version(call, saga->version) && begins_so(saga->business_id, arg_bytes(call, 9));
}

static int by_id_down(const void *a, const void *b)
{
    const struct found *x = a, *y = b;

    return uuid_compare(&y->saga->id, &x->saga->id);
}

/* Of one table of one shard so many are looked at; those that fit stay, and the last. */
static void list_close_part(struct saga_list *list, struct pg_call *call)
{
    size_t kept = list->own, looked = list->count - list->own;
    int64_t most = arg_int(call, 11);

    if (looked > 0) {
        qsort(list->found + list->own, looked, sizeof(*list->found), by_id_down);
    }
    for (size_t i = 0; i < looked && (int64_t)i < most; i++) {
        struct found *found = &list->found[list->own + i];

        found->is_edge = (int64_t)i + 1 == most;
        if (found->fits || found->is_edge) {
            list->found[kept++] = *found;
        }
    }
    list->own = list->count = kept;
}

static void list_add(struct saga_list *list, struct pg_call *call, const struct row_saga *saga)
{
    if (list->count == list->capacity) {
        struct found *larger;

        list->capacity = list->capacity ? 4 * list->capacity : 64;
        larger = arena_array(call->arena, list->capacity, sizeof(*larger));
        if (list->count > 0) {
            memcpy(larger, list->found, list->count * sizeof(*larger));
        }
        list->found = larger;
    }
    list->found[list->count++] = (struct found){.saga = saga, .fits = list_fits(call, saga)};
}

static void list_visit(struct walk *walk, const struct row_saga *saga, enum part part)
{
    struct saga_list *list = walk->context;

    if (saga->shard != list->shard || part != list->part) {
        list_close_part(list, walk->call);
        list->shard = saga->shard;
        list->part = part;
    }
    if (list_has(walk->call, saga)) {
        list_add(list, walk->call, saga);
    }
}

static void put_list(struct pg_call *call, struct saga_list *list)
{
    int64_t limit = arg_int(call, 10);

    if (list->count > 0) {
        qsort(list->found, list->count, sizeof(*list->found), by_id_down);
    }
    for (size_t i = 0; i < list->count && (int64_t)i < limit; i++) {
        put_saga_columns(call, list->found[i].saga);
        put_int(call, list->found[i].fits);
        put_int(call, list->found[i].is_edge);
        put_row_end(call);
    }
}

enum pg_progress pg_statement_saga_list(struct pg_call *call)
{
    struct saga_list list = {.shard = INT64_MIN};
    struct walk walk = {call, arg_int(call, 3) != 0, list_bound, list_visit, &list};

    walk_shards(&walk);
    list_close_part(&list, call);
    put_list(call, &list);
    return PG_DONE;
}

static const struct found *last_edge(const struct saga_list *list)
{
    const struct found *last = NULL;

    for (size_t i = 0; i < list->count; i++) {
        if (list->found[i].is_edge && (!last || by_id_down(&list->found[i], last) < 0)) {
            last = &list->found[i];
        }
    }
    return last;
}

static void put_sum(struct pg_call *call, struct slice status, int64_t count, const struct found *edge)
{
    if (status.ptr) {
        put_bytes(call, status);
    } else {
        put_null(call);
    }
    put_int(call, count);
    if (edge) {
        put_uuid(call, &edge->saga->id);
    } else {
        put_null(call);
    }
    put_row_end(call);
}

enum pg_progress pg_statement_saga_sum(struct pg_call *call)
{
    struct saga_list list = {.shard = INT64_MIN};
    struct walk walk = {call, arg_int(call, 3) != 0, list_bound, list_visit, &list};
    struct groups *groups = arena_alloc(call->arena, sizeof(*groups));
    const struct found *edge;

    walk_shards(&walk);
    list_close_part(&list, call);
    edge = last_edge(&list);
    for (size_t i = 0; i < list.count; i++) {
        if (list.found[i].fits && (!edge || by_id_down(&list.found[i], edge) <= 0)) {
            count_one(groups, list.found[i].saga->status, 0);
        }
    }
    for (size_t i = 0; i < groups->count; i++) {
        put_sum(call, groups->items[i].name, groups->items[i].count, edge);
    }
    put_sum(call, SLICE_NONE, 0, edge);
    return PG_DONE;
}

static void looked_visit(struct walk *walk, const struct row_saga *saga, enum part part)
{
    (void)part;
    *(int64_t *)walk->context += list_has(walk->call, saga);
}

enum pg_progress pg_statement_saga_looked(struct pg_call *call)
{
    int64_t count = 0;
    struct walk walk = {call, arg_int(call, 3) != 0, list_bound, looked_visit, &count};

    walk_shards(&walk);
    put_int(call, count);
    return end_with_row(call);
}

enum pg_progress pg_statement_saga_list_of_id(struct pg_call *call)
{
    struct saga_list list = {0};

    for (size_t i = 0; i < arg_count(call, 11); i++) {
        const struct row_saga *saga = pg_saga_of_business(call, item_int(call, 11, i), item_bytes(call, 12, i));

        if (saga && list_has(call, saga) && list_fits(call, saga)) {
            list_add(&list, call, saga);
        }
    }
    put_list(call, &list);
    return PG_DONE;
}

/* --- numbers --- */

struct saga_count {
    struct groups groups;
    struct uuid since;
};

/* Counts the sagas of a shard. `id` becomes the saga that has `before` sagas in front of it, and stays unchanged when
 * there is none. */
static int64_t count_shard(struct pg_call *call, int64_t shard, int64_t before, struct uuid *id)
{
    struct pg_row *row = pg_first(call, PG_SAGA, &(struct row_saga){.shard = shard, .id = nil});
    int64_t count = 0;

    for (; row; row = pg_next(call, PG_SAGA, row)) {
        const struct row_saga *saga = pg_see(call, row);

        if (saga && saga->shard != shard) {
            break;
        }
        if (saga && count == before) {
            *id = saga->id;
        }
        count += saga ? 1 : 0;
    }
    return count;
}

/* Returns the saga behind the `newest` newest ones of a shard; nil when there are no more. */
static struct uuid behind_newest(struct pg_call *call, int64_t shard, int64_t newest)
{
    struct uuid id = nil;

    (void)count_shard(call, shard, count_shard(call, shard, -1, &id) - 1 - newest, &id);
    return id;
}

static void count_since(struct pg_call *call, struct saga_count *count)
{
    struct pg_row *row = pg_first(call, PG_SHARD, &(struct row_shard){.shard = INT16_MIN});

    count->since = arg_uuid(call, 2);
    for (; row; row = pg_next(call, PG_SHARD, row)) {
        const struct row_shard *shard = pg_see(call, row);
        struct uuid id = shard ? behind_newest(call, shard->shard, arg_int(call, 1)) : nil;

        if (uuid_compare(&id, &count->since) > 0) {
            count->since = id;
        }
    }
}

static struct uuid count_bound(struct walk *walk, const struct row_shard *shard)
{
    const struct saga_count *count = walk->context;
    struct uuid low = shard->has_low ? pg_id_floor(shard->low_ms) : nil;

    return uuid_compare(&low, &count->since) < 0 ? low : count->since;
}

static void count_visit(struct walk *walk, const struct row_saga *saga, enum part part)
{
    struct saga_count *count = walk->context;

    if (!slice_equal(saga->namespace, arg_bytes(walk->call, 0)) || slice_is(saga->name, RUN_SAGA_NAME)) {
        return;
    }
    if (!saga->has_ended || (part == PART_NEWEST && uuid_compare(&saga->id, &count->since) >= 0)) {
        count_one(&count->groups, saga->status, 0);
    }
}

enum pg_progress pg_statement_saga_count(struct pg_call *call)
{
    struct saga_count *count = arena_alloc(call->arena, sizeof(*count));
    struct walk walk = {call, true, count_bound, count_visit, count};

    count_since(call, count);
    walk_shards(&walk);
    for (size_t i = 0; i < count->groups.count; i++) {
        put_bytes(call, count->groups.items[i].name);
        put_int(call, count->groups.items[i].count);
        put_uuid(call, &count->since);
        put_row_end(call);
    }
    if (count->groups.count == 0) {
        put_null(call);
        put_null(call);
        put_uuid(call, &count->since);
        put_row_end(call);
    }
    return PG_DONE;
}

static struct uuid version_bound(struct walk *walk, const struct row_shard *shard)
{
    (void)walk;
    return shard->has_low ? pg_id_floor(shard->low_ms) : nil;
}

static void version_visit(struct walk *walk, const struct row_saga *saga, enum part part)
{
    (void)part;
    if (slice_equal(saga->namespace, arg_bytes(walk->call, 0)) && !saga->has_ended &&
        !slice_is(saga->name, OPEN_SAGA_NAME) && !slice_is(saga->name, RUN_SAGA_NAME)) {
        count_one(walk->context, saga->name, saga->version);
    }
}

static int by_name_and_version(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    int order = slice_compare(x->name, y->name);

    return order != 0 ? order : x->version < y->version ? -1 : x->version > y->version;
}

enum pg_progress pg_statement_version_count(struct pg_call *call)
{
    struct groups *groups = arena_alloc(call->arena, sizeof(*groups));
    struct walk walk = {call, true, version_bound, version_visit, groups};

    walk_shards(&walk);
    qsort(groups->items, groups->count, sizeof(groups->items[0]), by_name_and_version);
    for (size_t i = 0; i < groups->count; i++) {
        put_bytes(call, groups->items[i].name);
        put_int(call, groups->items[i].version);
        put_int(call, groups->items[i].count);
        put_row_end(call);
    }
    return PG_DONE;
}
