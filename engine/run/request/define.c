/* Registers definitions. Everything is checked, all faults are reported at once, and a document is registered whole or
 * not at all. */
#include "run/call/activity.h"
#include "run/leaving.h"
#include "run/request/act.h"
#include "run/request/share.h"

#include "base/json.h"
#include "core/definition/drift.h"
#include "core/saga/sensitive.h"
#include "review/review.h"
#include "store/seal/payload_keys.h"

static void take_over(struct faults *from, struct engine_request *request)
{
    faults_init(&request->faults, request->arena);
    for (size_t i = 0; i < from->count; i++) {
        faults_add(&request->faults, from->items[i].pointer, "%.*s", SLICE_ARG(from->items[i].detail));
    }
}

static void refuse(struct work *work, struct faults *faults)
{
    struct err err = {0};

    if (work->request) {
        take_over(faults, work->request);
    }
    (void)err_set(&err, ERR_INVALID, "the document has %zu fault%s", faults->count + faults->dropped,
                  faults->count + faults->dropped == 1 ? "" : "s");
    err_hint(&err, "nothing was registered");
    work_done(work, ERR_INVALID, &err);
}

static void on_put(struct store_read *read)
{
    struct work *work = read->context;
    struct put_definitions *put = &work->store.put;
    struct json_writer w;

    if (work_read_failed(work, read)) {
        return;
    }
    json_writer_init(&w, &work->out);
    json_array_begin(&w, NULL);
    for (size_t i = 0; i < put->count; i++) {
        definitions_add(work->engine->definitions, &put->rows[i]);
        json_object_begin(&w, NULL);
        json_write_text(&w, "kind", put->rows[i].kind == DEFINITION_TOOL ? "tool" : "saga");
        json_write_slice(&w, "name", put->rows[i].name);
        if (i >= work->document.item_count) { /* a copy */
            json_write_slice(&w, "namespace", put->rows[i].namespace);
        }
        json_write_i64(&w, "version", put->rows[i].version);
        json_write_text(&w, "change", put->created[i] ? "created" : "unchanged");
        json_object_end(&w);
    }
    json_array_end(&w);
    work_done(work, ERR_OK, NULL);
}

/* --- what is sensitive --- */

/* Adds a fault for each item with sensitive members while there is no key to seal them under: they would lie in
 * PostgreSQL as they came. */
static void check_sealing(struct work *work)
{
    if (payload_keys_active(work->engine->options.payload_keys).ptr) {
        return;
    }
    for (size_t i = 0; i < work->document.item_count; i++) {
        const struct document_item *item = &work->document.items[i];
        bool own = (item->tool && item->tool->sensitive.count > 0) || (item->saga && item->saga->sensitive.count > 0);

        if (own || (item->saga && definition_has_sensitive(item->saga))) {
            faults_add(work->jq_faults,
                       own ? json_pointer_join(&work->arena, item->pointer, SLICE("sensitive")) : item->pointer,
                       "payloads with sensitive members are kept sealed only, and sagad has no active key: start it "
                       "with --payload-keys");
        }
    }
}

/* --- the quota --- */

/* A new version of a name that is there is none more. */
static bool is_over_quota_in(struct work *work, struct slice namespace, const struct document *document)
{
    struct definitions *definitions = work->engine->definitions;
    size_t tools = 0, sagas = 0, more = 0;

    if (!work_has_definitions_quota(work, namespace)) {
        return false;
    }
    (void)definitions_list(definitions, DEFINITION_TOOL, namespace, &work->arena, &tools);
    (void)definitions_list(definitions, DEFINITION_SAGA, namespace, &work->arena, &sagas);
    for (size_t i = 0; i < document->item_count; i++) {
        const struct document_item *item = &document->items[i];

        more += definitions_row(definitions, item->kind, namespace, item->name, 0) == NULL;
    }
    return more > 0 && work_is_over_definitions(work, namespace, tools + sagas + more);
}

static bool is_over_quota(struct work *work)
{
    if (is_over_quota_in(work, work->namespace, &work->document)) {
        return true;
    }
    for (size_t i = 0; i < work->document.share_count; i++) {
        if (is_over_quota_in(work, work->shares[i].namespace, &work->shares[i].document)) {
            return true;
        }
    }
    return false;
}

/* --- a look at what would be --- */

/* Returns the places in which the body differs from that of the newest version. */
static struct slice differing(struct work *work, const struct definition_row *row, const struct document_item *item)
{
    const struct tool nothing = {0}; /* this tool has no places that do not count */

    return drift_find(&nothing, row->body, item->body, &work->arena).pointers;
}

/* A version under an older reading is followed by one with the same body. */
static void foresee_in(struct work *work, struct slice namespace, const struct document *document,
                       struct json_writer *w)
{
    for (size_t i = 0; i < document->item_count; i++) {
        const struct document_item *item = &document->items[i];
        const struct definition_row *row =
            definitions_row(work->engine->definitions, item->kind, namespace, item->name, 0);
        bool same = row && digest_equal(&row->identity, &item->identity);
        bool stays = same && row->reading >= READING_NEWEST;

        json_object_begin(w, NULL);
        json_write_text(w, "kind", item->kind == DEFINITION_TOOL ? "tool" : "saga");
        json_write_slice(w, "name", item->name);
        if (document != &work->document) { /* a copy */
            json_write_slice(w, "namespace", namespace);
        }
        json_write_i64(w, "version", !row ? 1 : stays ? row->version : row->version + 1);
        json_write_text(w, "change", stays ? "unchanged" : "created");
        if (row) {
            json_write_i64(w, "registered", row->version);
        } else {
            json_write_null(w, "registered");
        }
        json_write_raw(w, "differs", row && !same ? differing(work, row, item) : SLICE("[]"));
        json_object_end(w);
    }
}

static void foresee_document(struct work *work)
{
    struct json_writer w;

    json_writer_init(&w, &work->out);
    json_array_begin(&w, NULL);
    foresee_in(work, work->namespace, &work->document, &w);
    for (size_t i = 0; i < work->document.share_count; i++) {
        foresee_in(work, work->shares[i].namespace, &work->shares[i].document, &w);
    }
    json_array_end(&w);
    work_done(work, ERR_OK, NULL);
}

/* --- registering --- */

static void put_rows(struct work *work, struct slice namespace, const struct document *document)
{
    struct put_definitions *put = &work->store.put;

    for (size_t i = 0; i < document->item_count; i++) {
        const struct document_item *item = &document->items[i];

        put->rows[put->count++] = (struct definition_row){.namespace = namespace,
                                                          .kind = item->kind,
                                                          .name = item->name,
                                                          .body = item->body,
                                                          .identity = item->identity,
                                                          .created_ms = loop_wall_ms(work->engine->loop)};
    }
}

/* Each namespace in which something is registered has an act of its own. */
static void put_acts(struct work *work)
{
    size_t count = work->document.share_count + 1;
    struct slice *acts = arena_array(&work->arena, count, sizeof(*acts)),
                 *namespaces = arena_array(&work->arena, count, sizeof(*namespaces));
    struct person_act *act = act_new(work, "apply", "definition", SLICE_NONE, SLICE_NONE);

    if (!act) {
        return;
    }
    acts[0] = act_of_work(work);
    namespaces[0] = work->namespace;
    for (size_t i = 1; i < count; i++) {
        struct person_act there = *act;

        there.id = uuid_v7(act->at_ms);
        there.namespace = namespaces[i] = work->shares[i - 1].namespace;
        there.detail = arena_printf(&work->arena, "shared by %.*s", SLICE_ARG(work->namespace));
        acts[i] = act_text(&there, &work->arena);
    }
    work->store.put.acts = acts;
    work->store.put.act_namespaces = namespaces;
    work->store.put.act_count = count;
}

static void put_document(struct work *work)
{
    const struct document *document = &work->document;
    struct put_definitions *put = &work->store.put;
    size_t count = document->item_count * (document->share_count + 1);

    *put = (struct put_definitions){.read = {.arena = &work->arena, .done = on_put, .context = work}};
    put->rows = arena_array(&work->arena, count + 1, sizeof(*put->rows));
    put->created = arena_array(&work->arena, count + 1, sizeof(*put->created));
    put_rows(work, work->namespace, document);
    for (size_t i = 0; i < document->share_count; i++) {
        put_rows(work, work->shares[i].namespace, &work->shares[i].document);
    }
    put_acts(work);
    store_put_definitions(work->engine->store, put);
}

/* Compiles programs. A program that does not compile becomes a fault, and those behind it are tried, so that all are
 * reported. */
static void on_compiled(struct jq_job *job);

static void compile_programs(struct work *work, size_t from)
{
    const struct document *document = &work->document;
    struct slice *programs = arena_array(&work->arena, document->check_count + 1, sizeof(*programs));
    size_t count = 0;

    for (size_t i = 0; i < document->check_count; i++) {
        if (document->checks[i].program.ptr && i >= from) {
            programs[count++] = document->checks[i].program;
        }
    }
    work->next = from;
    if (count == 0) {
        if (work->found > 0) {
            refuse(work, work->jq_faults);
        } else if (is_over_quota(work)) {
            return; /* it was answered */
        } else if (work->dry_run) {
            foresee_document(work);
        } else {
            put_document(work);
        }
        return;
    }
    work->jq = (struct jq_job){.programs = programs,
                               .count = count,
                               .check_only = true,
                               .arena = &work->arena,
                               .outputs = arena_array(&work->arena, count, sizeof(struct slice)),
                               .input_json = SLICE("null"),
                               .done = on_compiled};
    rendering_begins(work->engine); /* the engine does not end before the answer has come */
    jq_submit(work->engine->loop, &work->jq);
}

static void compiled(struct work *work, const struct jq_job *job)
{
    const struct document *document = &work->document;

    if (work_refused(work)) {
        return;
    }
    if (job->code == ERR_OK) {
        compile_programs(work, document->check_count);
        return;
    }
    size_t index = 0;

    for (size_t i = work->next; i < document->check_count; i++) {
        if (!document->checks[i].program.ptr) {
            continue;
        }
        if (index++ == job->failed_index) {
            faults_add(work->jq_faults, document->checks[i].pointer, "%s: %s", job->err.message, job->err.detail);
            work->found++;
            compile_programs(work, i + 1);
            return;
        }
    }
    work_done(work, job->code, &job->err);
}

static void on_compiled(struct jq_job *job)
{
    struct work *work = container_of(job, struct work, jq);
    struct engine *engine = work->engine;

    rendering_ends(engine);
    compiled(work, job);
    engine_check_drained(engine);
}

void engine_define(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);
    struct definitions_source source;

    if (work_refused(work)) {
        return;
    }
    work->dry_run = request->in.define.dry_run;
    work->jq_faults = arena_alloc(&work->arena, sizeof(*work->jq_faults));
    faults_init(work->jq_faults, &work->arena);
    definitions_source_init(&source, engine->definitions, work->namespace, SLICE_NONE, SLICE_NONE);
    review_document_core(arena_slice(&work->arena, request->in.define.document), &source.source, &work->arena,
                         work->jq_faults, &work->document);
    definitions_check_offers(engine->definitions, work->namespace, &work->document, &work->arena, work->jq_faults);
    check_sealing(work);
    if (share_is_refused(work)) {
        return; /* it was answered */
    }
    work->found = work->jq_faults->count;
    compile_programs(work, 0);
}
