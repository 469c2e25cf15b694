/* See books.h. The rules of the shop: what it refuses, how it answers a repeated key, and what undoes what. */
#include "books.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/json.h"

static const struct {
    const char *name, *prefix;
} entry_texts[ENTRY_KIND_COUNT] = {
#define X(id, name, prefix) [id] = {name, prefix},
    ENTRY_MAP(X)
#undef X
};

static const char *const route_names[ROUTE_COUNT] = {
#define X(id, name) [id] = name,
    ROUTE_MAP(X)
#undef X
};

#define SHOP_TAG_TEXT_BYTES (64 * 1024)

struct thing {
    enum entry_kind kind;
    struct slice id, key;
    int64_t units;  /* the quantity or the amount */
    bool undone;    /* released or refunded */
    uint32_t times; /* entries made under this key; more than 1 only with --ignore-keys */
    int64_t made_ms;
    struct digest body;
    struct slice tag;    /* the text of an ENTRY_TAG */
    struct tally *tally; /* the tally of its request; NULL when the request was not named */
};

struct tally { /* what happened for one request */
    struct slice request;
    int64_t done[ENTRY_KIND_COUNT], undone[ENTRY_KIND_COUNT]; /* counts by the kind of the thing */
};

const char *entry_kind_name(enum entry_kind kind)
{
    CHECK(kind < ENTRY_KIND_COUNT);
    return entry_texts[kind].name;
}

bool entry_kind_parse(struct slice name, enum entry_kind *out)
{
    for (int i = 0; i < ENTRY_KIND_COUNT; i++) {
        if (slice_is(name, entry_texts[i].name)) {
            *out = (enum entry_kind)i;
            return true;
        }
    }
    return false;
}

const char *route_name(enum route route)
{
    CHECK(route < ROUTE_COUNT);
    return route_names[route];
}

void books_init(struct books *books, bool ignore_keys)
{
    *books = (struct books){.ignore_keys = ignore_keys};
    arena_init(&books->arena, 64 * 1024);
    map_init(&books->by_id);
    map_init(&books->by_key);
    map_init(&books->by_tag);
    map_init(&books->by_request);
}

void books_fini(struct books *books)
{
    map_fini(&books->by_tag);
    map_fini(&books->by_request);
    map_fini(&books->by_id);
    map_fini(&books->by_key);
    arena_fini(&books->arena);
}

static void answer_problem(struct books_answer *answer, struct arena *arena, unsigned status, const char *error,
                           const char *detail)
{
    answer->status = status;
    answer->effect = false;
    answer->body = arena_printf(arena, "{\"error\":\"%s\",\"detail\":\"%s\"}", error, detail);
}

static void answer_thing(struct books_answer *answer, struct arena *arena, unsigned status, const struct thing *thing)
{
    answer->status = status;
    answer->effect = false;
    answer->kind = thing->kind;
    (void)snprintf(answer->id, sizeof(answer->id), "%.*s", SLICE_ARG(thing->id)); /* our own ids are short */
    answer->body = arena_printf(arena, "{\"id\":\"%.*s\",\"status\":\"%s\",\"times\":%u}", SLICE_ARG(thing->id),
                                thing->undone ? "undone" : "standing", thing->times);
}

static void answer_effect(const struct books *books, struct books_answer *answer, struct arena *arena, unsigned status,
                          enum entry_kind kind)
{
    answer->status = status;
    answer->effect = true;
    answer->kind = kind;
    (void)snprintf(answer->id, sizeof(answer->id), "%s-%llu", entry_texts[kind].prefix,
                   (unsigned long long)books->entries + 1);
    answer->body = arena_printf(arena, "{\"id\":\"%s\"}", answer->id);
}

static const struct thing *books_find(const struct books *books, const struct books_request *request)
{
    const struct map *map = request->target_is_key ? &books->by_key : &books->by_id;
    const struct thing *thing = map_find(map, request->target.ptr, request->target.len);

    return thing && thing->kind == request->kind ? thing : NULL;
}

/* Reads a text member that must be there; "" counts as missing. */
static struct slice text_member(struct slice body, const char *name, struct arena *arena)
{
    struct slice text = json_string(json_member(body, name), arena);

    return text.len > 0 ? text : SLICE_NONE;
}

/* Can this shop serve the body at all? Returns false after it has filled the answer. */
static bool order_is_acceptable(const struct books *books, const struct books_request *request, struct arena *arena,
                                struct books_answer *answer)
{
    struct slice text;
    int64_t number;

    switch (request->kind) {
    case ENTRY_RESERVATION:
        text = text_member(request->body, "sku", arena);
        if (!text.ptr || !json_i64(json_member(request->body, "qty"), &number) || number <= 0) {
            answer_problem(answer, arena, 422, "bad_reservation", "sku must be a text and qty a whole number over 0");
            return false;
        }
        if (slice_is(text, "none")) {
            answer_problem(answer, arena, 422, "out_of_stock", "none of these are left");
            return false;
        }
        return true;
    case ENTRY_CHARGE:
        text = text_member(request->body, "customer", arena);
        if (!text.ptr || !json_i64(json_member(request->body, "amount"), &number) || number <= 0) {
            answer_problem(answer, arena, 422, "bad_charge",
                           "customer must be a text and amount a whole number over 0");
            return false;
        }
        if (slice_is(text, "declined")) {
            answer_problem(answer, arena, 402, "declined", "the card was declined");
            return false;
        }
        return true;
    case ENTRY_REFUND: {
        const struct thing *charge;

        text = text_member(request->body, "charge_id", arena);
        charge = text.ptr ? map_find(&books->by_id, text.ptr, text.len) : NULL;
        if (!charge || charge->kind != ENTRY_CHARGE) {
            answer_problem(answer, arena, 404, "no_such_charge", "charge_id names no charge of this shop");
            return false;
        }
        answer->request = charge->tally ? charge->tally->request : SLICE_NONE;
        if (charge->undone && !books->ignore_keys) {
            answer_problem(answer, arena, 422, "already_refunded", "this charge was refunded under another key");
            return false;
        }
        return true;
    }
    case ENTRY_MAIL:
        text = text_member(request->body, "to", arena);
        if (!text.ptr || !text_member(request->body, "subject", arena).ptr) {
            answer_problem(answer, arena, 422, "bad_mail", "to and subject must be texts");
            return false;
        }
        if (slice_starts_with(text, "bounce@")) {
            answer_problem(answer, arena, 422, "bounced", "there is no such mailbox");
            return false;
        }
        return true;
    case ENTRY_NONE:
    case ENTRY_RELEASE:
    case ENTRY_TAG:
    case ENTRY_UNTAG:
    case ENTRY_VOID:
    case ENTRY_KIND_COUNT:
        break;
    }
    UNREACHABLE();
}

/* the same bytes as the first time */
static const struct thing *books_before(const struct books *books, struct slice key)
{
    const struct thing *thing = key.ptr && !books->ignore_keys ? map_find(&books->by_key, key.ptr, key.len) : NULL;

    return thing && books->forget_ms > 0 && books->now_ms - thing->made_ms >= books->forget_ms ? NULL : thing;
}

static void decide_create(const struct books *books, const struct books_request *request, struct arena *arena,
                          struct books_answer *answer)
{
    const struct thing *before = books_before(books, request->key);

    if (before) {
        struct digest body = digest_sha256(request->body);

        if (before->kind == ENTRY_VOID) {
            answer_problem(answer, arena, 410, "called_off", "this key was called off before it came");
            return;
        }
        if (before->kind != request->kind || !digest_equal(&before->body, &body)) {
            answer_problem(answer, arena, 422, "other_request_under_this_key",
                           "this key came with another request before");
            return;
        }
        answer_thing(answer, arena, 201, before);
        answer->body = arena_printf(arena, "{\"id\":\"%.*s\"}",
                                    SLICE_ARG(before->id)); /* Decides a tag, which is a state and not an event: setting
                                                               it twice, or removing a missing one, changes nothing. */
        return;
    }
    if (order_is_acceptable(books, request, arena, answer)) {
        answer_effect(books, answer, arena, 201, request->kind);
    }
}

static void decide_release(const struct books *books, const struct books_request *request, struct arena *arena,
                           struct books_answer *answer)
{
    const struct thing *thing = books_find(books, request);

    if (thing && thing->undone) {
        answer_thing(answer, arena, 200, thing);
    } else if (thing) {
        answer_effect(books, answer, arena, 200, request->kind == ENTRY_CHARGE ? ENTRY_REFUND : ENTRY_RELEASE);
        answer->request = thing->tally ? thing->tally->request : SLICE_NONE;
    } else if (!request->target_is_key) {
        answer_problem(answer, arena, 404, "no_such_thing", "this shop never gave out that id");
    } else if (books->ignore_voids || map_find(&books->by_key, request->target.ptr, request->target.len)) {
        answer->status = 200;
        answer->body = SLICE("{\"status\":\"called off\"}");
    } else {
        answer_effect(books, answer, arena, 200, ENTRY_VOID);
    }
}

static const struct thing *books_tag(const struct books *books, struct slice name)
{
    const struct thing *thing = map_find(&books->by_tag, name.ptr, name.len);

    return thing && !thing->undone ? thing : NULL;
}

/* Decides a read. Its answer is about the shop, never about the request that asks. */
static void decide_tag(const struct books *books, const struct books_request *request, struct arena *arena,
                       struct books_answer *answer)
{
    const struct thing *thing = books_tag(books, request->target);
    struct slice text = text_member(request->body, "tag", arena);

    if (!text.ptr) {
        answer_problem(answer, arena, 422, "bad_tag", "tag must be a text");
    } else if (thing && slice_equal(thing->tag, text)) {
        answer_thing(answer, arena, 200, thing);
    } else {
        answer_effect(books, answer, arena, 200, ENTRY_TAG);
    }
}

static void decide_untag(const struct books *books, const struct books_request *request, struct arena *arena,
                         struct books_answer *answer)
{
    const struct thing *thing = books_tag(books, request->target);

    if (thing) {
        answer_effect(books, answer, arena, 200, ENTRY_UNTAG);
        answer->request = thing->tally ? thing->tally->request : SLICE_NONE;
    } else {
        answer_problem(answer, arena, 404, "absent", "there is no tag of this name");
    }
}

/* Adds a thing under its id and, if it came with one, its key. */
static void decide_read(const struct books *books, const struct books_request *request, struct arena *arena,
                        struct books_answer *answer)
{
    const struct tally *tally = map_find(&books->by_request, request->target.ptr, request->target.len);
    struct json_writer w;
    struct buffer out;

    buffer_init(&out, 4096);
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    if (request->route == ROUTE_SHIPMENTS) {
        json_write_slice(&w, "shipment", request->target);
        json_write_i64(&w, "position", (int64_t)request->number);
    } else if (request->route == ROUTE_PRICES) {
        json_write_slice(&w, "sku", request->target);
        json_write_i64(&w, "amount", 10 * (int64_t)request->target.len);
    } else {
        json_write_slice(&w, "request", request->target);
        for (int kind = ENTRY_NONE + 1; kind < ENTRY_KIND_COUNT; kind++) {
            if (kind == ENTRY_RESERVATION || kind == ENTRY_CHARGE || kind == ENTRY_MAIL || kind == ENTRY_TAG) {
                json_object_begin(&w, entry_kind_name((enum entry_kind)kind));
                json_write_i64(&w, "done", tally ? tally->done[kind] : 0);
                json_write_i64(&w, "undone", tally ? tally->undone[kind] : 0);
                json_object_end(&w);
            }
        }
    }
    json_object_end(&w);
    answer->status = 200;
    answer->body = arena_slice(arena, buffer_slice(&out));
    buffer_fini(&out);
}

static void decide_probe(const struct books *books, const struct books_request *request, struct arena *arena,
                         struct books_answer *answer)
{
    const struct thing *thing =
        request->kind == ENTRY_TAG ? books_tag(books, request->target) : books_find(books, request);

    if (request->target_is_key && books->no_status) {
        answer_problem(answer, arena, 405, "no_status_read", "this shop does not tell what became of a key");
    } else if (thing) {
        answer_thing(answer, arena, 200, thing);
        if (request->kind == ENTRY_TAG) {
            struct buffer text;

            buffer_init(&text, SHOP_TAG_TEXT_BYTES);
            json_put_string(&text, thing->tag);
            answer->body = arena_printf(arena, "{\"id\":\"%.*s\",\"tag\":%.*s}", SLICE_ARG(thing->id),
                                        SLICE_ARG(buffer_slice(&text)));
            buffer_fini(&text);
        }
    } else {
        answer_problem(answer, arena, 404, "absent", "nothing of this name is known");
    }
}

void books_decide(const struct books *books, const struct books_request *request, struct arena *arena,
                  struct books_answer *answer)
{
    *answer = (struct books_answer){.kind = ENTRY_NONE};
    answer->request = json_string(json_member(request->body, "request"), arena);
    switch (request->route) {
    case ROUTE_RESERVATIONS:
    case ROUTE_CHARGES:
    case ROUTE_MAILS:
        decide_create(books, request, arena, answer);
        return;
    case ROUTE_REFUNDS:
        if (request->kind == ENTRY_CHARGE) {
            decide_release(books, request, arena, answer);
        } else {
            decide_create(books, request, arena, answer);
        }
        return;
    case ROUTE_RELEASES:
        decide_release(books, request, arena, answer);
        return;
    case ROUTE_TAGS:
        decide_tag(books, request, arena, answer);
        return;
    case ROUTE_UNTAGS:
        decide_untag(books, request, arena, answer);
        return;
    case ROUTE_PROBES:
        decide_probe(books, request, arena, answer);
        return;
    case ROUTE_SHIPMENTS:
    case ROUTE_PRICES:
    case ROUTE_REQUESTS:
        decide_read(books, request, arena, answer);
        return;
    case ROUTE_COUNT:
        break;
    }
    UNREACHABLE();
}

static struct tally *books_tally(struct books *books, struct slice body)
{
    struct tally *tally;
    struct arena arena;
    struct slice request;

    arena_init(&arena, 512);
    request = json_string(json_member(body, "request"), &arena);
    tally = request.len > 0 ? map_find(&books->by_request, request.ptr, request.len) : NULL;
    if (request.len > 0 && !tally) {
        tally = arena_alloc(&books->arena, sizeof(*tally));
        *tally = (struct tally){.request = arena_slice(&books->arena, request)};
        map_put(&books->by_request, tally->request.ptr, tally->request.len, tally);
    }
    arena_fini(&arena);
    return tally;
}

static void thing_undo(struct thing *thing)
{
    thing->undone = true;
    if (thing->tally) {
        thing->tally->undone[thing->kind]++;
    }
}

/* decide_create() has checked it */
static struct thing *books_add(struct books *books, enum entry_kind kind, struct slice id, struct slice key,
                               int64_t units, struct slice body)
{
    struct thing *first = key.len > 0 ? map_find(&books->by_key, key.ptr, key.len) : NULL;
    struct thing *thing = arena_alloc(&books->arena, sizeof(*thing));

    *thing = (struct thing){.kind = kind,
                            .id = arena_slice(&books->arena, id),
                            .units = units,
                            .times = 1,
                            .made_ms = books->now_ms,
                            .body = digest_sha256(body),
                            .tally = books_tally(books, body)};
    if (thing->tally) {
        thing->tally->done[kind]++;
    }
    map_put(&books->by_id, thing->id.ptr, thing->id.len, thing);
    if (first) {
        first->times++;
    } else if (key.len > 0) {
        thing->key = arena_slice(&books->arena, key);
        map_put(&books->by_key, thing->key.ptr, thing->key.len, thing);
    }
    return thing;
}

static void books_add_tag(struct books *books, struct slice id, struct slice name, struct slice body)
{
    struct thing *thing = books_add(books, ENTRY_TAG, id, SLICE_NONE, 0, body);

    thing->key = arena_slice(&books->arena, name);
    thing->tag = arena_slice(&books->arena, json_string(json_member(body, "tag"), &books->arena));
    map_put(&books->by_tag, thing->key.ptr, thing->key.len, thing);
}

void books_apply(struct books *books, enum entry_kind kind, struct slice id, struct slice key, struct slice target,
                 struct slice body)
{
    struct thing *thing;
    int64_t units = 0;

    books->entries++;
    switch (kind) {
    case ENTRY_RESERVATION:
        (void)json_i64(json_member(body, "qty"), &units); /* only a tag gets more fields */
        books->sum.reserved++;
        books->sum.reserved_units += units;
        books->sum.standing_units += units;
        (void)books_add(books, kind, id, key, units, body); /* DELETE of the charge itself */
        return;
    case ENTRY_CHARGE:
        (void)json_i64(json_member(body, "amount"), &units);
        books->sum.charges++;
        books->sum.charged += units;
        (void)books_add(books, kind, id, key, units, body);
        return;
    case ENTRY_REFUND: {
        struct arena arena;
        struct slice charge;

        arena_init(&arena, 512);
        charge = json_string(json_member(body, "charge_id"), &arena);
        charge = charge.ptr ? charge : target; /* DELETE of the charge itself */
        thing = charge.ptr ? map_find(&books->by_id, charge.ptr, charge.len) : NULL;
        if (!thing && charge.ptr) {
            thing = map_find(&books->by_key, charge.ptr, charge.len);
        }
        arena_fini(&arena);
        if (thing) {
            thing_undo(thing);
            units = thing->units;
        }
        books->sum.refunds++;
        books->sum.refunded += units;
        (void)books_add(books, kind, id, key, units, body);
        return;
    }
    case ENTRY_MAIL:
        books->sum.mails++;
        (void)books_add(books, kind, id, key, 0, body);
        return;
    case ENTRY_RELEASE:
        thing = map_find(&books->by_id, target.ptr, target.len);
        if (!thing) {
            thing = map_find(&books->by_key, target.ptr, target.len);
        }
        if (thing && !thing->undone) {
            thing_undo(thing);
            books->sum.released++;
            books->sum.standing_units -= thing->units;
        }
        return;
    case ENTRY_TAG:
        books->sum.tags++;
        books_add_tag(books, id, target, body);
        return;
    case ENTRY_UNTAG:
        thing = map_find(&books->by_tag, target.ptr, target.len);
        if (thing && !thing->undone) {
            thing_undo(thing);
            books->sum.tags--;
        }
        return;
    case ENTRY_VOID:
        books->sum.voided++;
        (void)books_add(books, kind, id, target, 0, body);
        return;
    case ENTRY_NONE:
    case ENTRY_KIND_COUNT:
        break;
    }
    UNREACHABLE();
}

void books_write_summary(const struct books *books, struct buffer *out)
{
    struct json_writer w;

    json_writer_init(&w, out);
    json_object_begin(&w, NULL);
    json_object_begin(&w, "reservations");
    json_write_i64(&w, "made", books->sum.reserved);
    json_write_i64(&w, "released", books->sum.released);
    json_write_i64(&w, "standing", books->sum.reserved - books->sum.released);
    json_write_i64(&w, "standing_units", books->sum.standing_units);
    json_write_i64(&w, "called_off", books->sum.voided);
    json_object_end(&w);
    json_object_begin(&w, "charges");
    json_write_i64(&w, "made", books->sum.charges);
    json_write_i64(&w, "refunds", books->sum.refunds);
    json_write_i64(&w, "charged", books->sum.charged);
    json_write_i64(&w, "refunded", books->sum.refunded);
    json_write_i64(&w, "net", books->sum.charged - books->sum.refunded);
    json_object_end(&w);
    json_object_begin(&w, "mails");
    json_write_i64(&w, "sent", books->sum.mails);
    json_object_end(&w);
    json_object_begin(&w, "tags");
    json_write_i64(&w, "standing", books->sum.tags);
    json_object_end(&w);
    json_write_i64(&w, "effects", (int64_t)books->entries);
    json_object_end(&w);
}
