/* Requests about grants: make, find, list and revoke them. What a grant allows is the API's affair. */
#include "run/request/act.h"

#include "base/log.h"
#include "run/query/walk.h"
#include "store/grants.h"

#define LIMIT_DEFAULT 50

struct granting { /* lies in the arena of its work */
    struct work *work;
    struct grant_put put;
    struct grant_read found;
    struct grant_list list;
    struct grant_revoke revoke;
    size_t limit;
};

static struct granting *granting_new(struct work *work)
{
    struct granting *granting = arena_alloc(&work->arena, sizeof(*granting));

    granting->work = work;
    return granting;
}

/* Hands the rows to whoever asked, if that one is still there. */
static void give(struct work *work, const struct grant_row *rows, size_t count)
{
    struct engine_request *request = work->request;
    struct engine_grant *grants;

    if (!request) {
        return;
    }
    grants = arena_array(request->arena, count + 1, sizeof(*grants));
    for (size_t i = 0; i < count; i++) {
        grants[i] = (struct engine_grant){.id = rows[i].id,
                                          .secret = rows[i].secret,
                                          .namespace = arena_slice(request->arena, rows[i].namespace),
                                          .body = arena_slice(request->arena, rows[i].body),
                                          .revocation = arena_slice(request->arena, rows[i].revocation),
                                          .made_ms = rows[i].made_ms,
                                          .expires_ms = rows[i].expires_ms,
                                          .revoked_ms = rows[i].revoked_ms};
    }
    request->grants = grants;
    request->grant_count = count;
}

static void log_grant(const char *event, const struct work *work, const struct uuid *id)
{
    char text[UUID_TEXT_BYTES];

    uuid_text(id, text);
    log_info(event, LOG_TEXT("grant", text), LOG_SLICE("namespace", work->namespace), LOG_SLICE("actor", work->actor));
}

/* The act says whom the grant is for. */
static struct slice act_of_grant(struct work *work, const char *verb, const struct uuid *id, struct slice detail)
{
    char text[UUID_TEXT_BYTES];
    struct person_act *act;

    uuid_text(id, text);
    act = act_new(work, verb, "grant", arena_slice(&work->arena, slice_of(text)), SLICE_NONE);
    if (act) {
        act->detail = detail;
    }
    return act_of_work(work);
}

/* --- make --- */

static void on_put(struct store_read *read)
{
    struct granting *granting = read->context;
    struct work *work = granting->work;
    const struct grant_put *put = &granting->put;

    if (read->code == ERR_NOT_FOUND) {
        work_fail(work, ERR_NOT_FOUND, "there is no saga with this id that has not ended", NULL);
        return;
    }
    if (work_read_failed(work, read)) {
        return;
    }
    const struct grant_row row = {.id = put->id,
                                  .namespace = put->namespace,
                                  .body = put->body,
                                  .revocation = SLICE_NONE,
                                  .made_ms = put->made_ms,
                                  .expires_ms = put->expires_ms};

    log_grant("grant_made", work, &put->id);
    give(work, &row, 1);
    work_done(work, ERR_OK, NULL);
}

void engine_put_grant(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);
    struct granting *granting;

    if (work_refused(work)) {
        return;
    }
    granting = granting_new(work);
    granting->put = (struct grant_put){.read = {.arena = &work->arena, .done = on_put, .context = granting},
                                       .id = request->in.grant.id,
                                       .secret = request->in.grant.secret,
                                       .namespace = work->namespace,
                                       .body = arena_slice(&work->arena, request->in.grant.body),
                                       .expires_ms = request->in.grant.expires_ms,
                                       .saga = request->in.grant.saga,
                                       .act = act_of_grant(work, "grant", &request->in.grant.id,
                                                           arena_slice(&work->arena, request->in.grant.purpose))};
    store_grant_put(engine->store, &granting->put);
}

/* --- find --- */

static void on_found(struct store_read *read)
{
    struct granting *granting = read->context;
    struct work *work = granting->work;

    if (read->code == ERR_OK) {
        give(work, granting->found.rows, granting->found.count);
    }
    work_done(work, read->code, &read->err);
}

void engine_find_grants(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);
    struct granting *granting;

    if (work_refused(work)) {
        return;
    }
    granting = granting_new(work);
    granting->found = (struct grant_read){.read = {.arena = &work->arena, .done = on_found, .context = granting},
                                          .ids = arena_dup(&work->arena, request->in.grant.ids,
                                                           request->in.grant.id_count * sizeof(*request->in.grant.ids)),
                                          .id_count = request->in.grant.id_count};
    store_grant_read(engine->store, &granting->found);
}

/* --- list --- */

static void on_list(struct store_read *read)
{
    struct granting *granting = read->context;
    struct work *work = granting->work;
    const struct grant_list *list = &granting->list;

    if (work_read_failed(work, read)) {
        return;
    }
    give(work, list->rows, list->count < granting->limit ? list->count : granting->limit);
    if (list->count > granting->limit) {
        char text[UUID_TEXT_BYTES];

        uuid_text(&list->rows[granting->limit - 1].id, text);
        work_next_cursor(work, slice_of(text));
    }
    work_done(work, ERR_OK, NULL);
}

void engine_list_grants(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);
    struct granting *granting;
    struct uuid before = {{0}};

    if (work_refused(work)) {
        return;
    }
    if (request->in.grant.cursor.ptr && (!uuid_parse(request->in.grant.cursor, &before) || uuid_is_nil(&before))) {
        work_bad_cursor(work);
        return;
    }
    granting = granting_new(work);
    granting->limit = request->in.grant.limit ? request->in.grant.limit : LIMIT_DEFAULT;
    granting->list = (struct grant_list){.read = {.arena = &work->arena, .done = on_list, .context = granting},
                                         .namespace = work->namespace,
                                         .before = before,
                                         .with_ended = request->in.grant.with_ended,
                                         .limit = granting->limit + 1};
    store_grant_list(engine->store, &granting->list);
}

/* --- revoke --- */

static void on_revoked(struct store_read *read)
{
    struct granting *granting = read->context;
    struct work *work = granting->work;

    if (read->code == ERR_NOT_FOUND) {
        if (granting->revoke.issuer_token.ptr) {
            work_fail(work, ERR_NOT_FOUND, "this token has made no grant with this id",
                      "a token of the role operator revokes the grants of others, too");
        } else {
            work_fail(work, ERR_NOT_FOUND, "there is no grant with this id", "`sagactl grants --all` lists them");
        }
        return;
    }
    if (work_read_failed(work, read)) {
        return;
    }
    log_grant("grant_revoked", work, &granting->revoke.id);
    give(work, granting->revoke.row, 1);
    work_done(work, ERR_OK, NULL);
}

void engine_revoke_grant(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);
    struct granting *granting;

    if (work_refused(work)) {
        return;
    }
    granting = granting_new(work);
    granting->revoke = (struct grant_revoke){.read = {.arena = &work->arena, .done = on_revoked, .context = granting},
                                             .id = request->in.grant.id,
                                             .namespace = work->namespace,
                                             .revocation = work_signature(work, SLICE_NONE),
                                             .issuer_token = arena_slice(&work->arena, request->in.grant.issuer_token),
                                             .act = act_of_grant(work, "revoke", &request->in.grant.id, SLICE_NONE)};
    store_grant_revoke(engine->store, &granting->revoke);
}
