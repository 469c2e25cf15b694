/* Finds a saga by the name of its definition and its business id, which is unique in a namespace. */
#include "run/request/work.h"

#include "store/business.h"

struct finding { /* a finding, in the arena of its work */
    struct work *work;
    struct find_saga find;
};

static void on_found(struct store_read *read)
{
    struct finding *finding = read->context;
    struct work *work = finding->work;

    if (read->code == ERR_NOT_FOUND) {
        work_fail(work, ERR_NOT_FOUND, "there is no saga of this name with this business id",
                  "`sagactl list --id` looks for a business id under every name");
    } else if (!work_read_failed(work, read)) {
        if (work->request) {
            work->request->saga = finding->find.id;
        }
        work_done(work, ERR_OK, NULL);
    }
}

void engine_find_saga(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);

    if (work_refused(work)) {
        return;
    }
    struct finding *finding = arena_alloc(&work->arena, sizeof(*finding));
    struct digest digest = business_digest(request->namespace, request->in.find.name, request->in.find.business_id);

    finding->work = work;
    finding->find = (struct find_saga){.read = {.arena = &work->arena, .done = on_found, .context = finding},
                                       .business_digest = digest,
                                       .shard = digest_shard(&digest)};
    store_find_saga(engine->store, &finding->find);
}
