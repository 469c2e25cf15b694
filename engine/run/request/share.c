/* See share.h. */
#include "run/request/share.h"

#include "base/json.h"
#include "review/review.h"
#include "run/engine_state.h"

static bool may_register_in(const struct work *work, struct slice namespace)
{
    const struct engine_request *request = work->request;
    bool may = request->in.define.everywhere;

    for (size_t i = 0; i < request->in.define.namespace_count; i++) {
        may = may || slice_equal(request->in.define.namespaces[i], namespace);
    }
    return may;
}

static struct slice shared_by(struct work *work, enum definition_kind kind, struct slice namespace, struct slice name)
{
    const struct definition_row *row = definitions_row(work->engine->definitions, kind, namespace, name, 0);

    return row ? json_string(json_member(row->body, "shared_by"), &work->arena) : SLICE_NONE;
}

/* Names what the own document would change that another namespace shares with this one. */
static void check_own(struct work *work)
{
    for (size_t i = 0; i < work->document.item_count; i++) {
        const struct document_item *item = &work->document.items[i];
        struct slice by = shared_by(work, item->kind, work->namespace, item->name);

        if (by.ptr && !may_register_in(work, by)) {
            faults_add(work->jq_faults, item->pointer,
                       "the namespace %.*s shares this definition, and here it is read-only; have it changed there, or "
                       "take another name",
                       SLICE_ARG(by));
        }
    }
}

/* Names what a copy would cover in its namespace. */
static void check_covered(struct work *work, const struct share *share)
{
    for (size_t i = 0; i < share->document.item_count; i++) {
        const struct document_item *item = &share->document.items[i];
        const struct definition_row *row =
            definitions_row(work->engine->definitions, item->kind, share->namespace, item->name, 0);
        struct slice by = shared_by(work, item->kind, share->namespace, item->name);

        if (row && !slice_equal(by, work->namespace)) {
            faults_add(work->jq_faults, item->pointer,
                       "the namespace %.*s has another definition under this name, which a shared one does not replace",
                       SLICE_ARG(share->namespace));
        }
    }
}

static void put_copies(const struct document *document, enum definition_kind kind, struct slice by, struct buffer *out)
{
    const char *between = "";
    struct json_writer w;

    buffer_put_text(out, kind == DEFINITION_TOOL ? "\"tools\":[" : ",\"sagas\":[");
    for (size_t i = 0; i < document->item_count; i++) {
        struct slice body = document->items[i].body;

        if (document->items[i].kind == kind) {
            buffer_put_text(out, between);
            buffer_put_text(out, "{\"shared_by\":");
            json_writer_init(&w, out);
            json_write_slice(&w, NULL, by);
            buffer_put_char(out, ',');
            buffer_put_slice(out, (struct slice){body.ptr + 1, body.len - 1}); /* behind its brace */
            between = ",";
        }
    }
    buffer_put_char(out, ']');
}

/* A copy is compiled where it will be used: with the tools and sagas of its own namespace beside it. */
static void check_copy(struct work *work, struct slice text, struct share *share)
{
    struct definitions_source source;
    struct faults faults;

    faults_init(&faults, &work->arena);
    definitions_source_init(&source, work->engine->definitions, share->namespace, SLICE_NONE, SLICE_NONE);
    source.source.is_shared = true;
    review_document_core(text, &source.source, &work->arena, &faults, &share->document);
    definitions_check_offers(work->engine->definitions, share->namespace, &share->document, &work->arena, &faults);
    for (size_t i = 0; i < faults.count; i++) {
        faults_add(work->jq_faults, faults.items[i].pointer, "in the namespace %.*s: %.*s", SLICE_ARG(share->namespace),
                   SLICE_ARG(faults.items[i].detail));
    }
    if (faults.count == 0) {
        check_covered(work, share);
    }
}

bool share_is_refused(struct work *work)
{
    const struct document *document = &work->document;
    struct buffer text;

    for (size_t i = 0; i < document->share_count; i++) {
        struct err err = {0};

        if (!may_register_in(work, document->shares[i])) { /* in the same words whether or not it exists */
            (void)err_set(&err, ERR_FORBIDDEN, "this token may not act in the namespace %.*s that `share` names",
                          SLICE_ARG(document->shares[i]));
            work_done(work, ERR_FORBIDDEN, &err);
            return true;
        }
    }
    check_own(work);
    if (document->share_count == 0 || work->jq_faults->count > 0) {
        return false;
    }
    work->shares = arena_array(&work->arena, document->share_count, sizeof(*work->shares));
    buffer_init(&text, SIZE_MAX / 2);
    buffer_put_char(&text, '{');
    put_copies(document, DEFINITION_TOOL, work->namespace, &text);
    put_copies(document, DEFINITION_SAGA, work->namespace, &text);
    buffer_put_char(&text, '}');
    for (size_t i = 0; i < document->share_count; i++) {
        work->shares[i].namespace = document->shares[i];
        if (slice_equal(document->shares[i], work->namespace)) {
            faults_add(work->jq_faults, SLICE("/share"), "this is the namespace that it is registered in anyway");
        } else {
            check_copy(work, buffer_slice(&text), &work->shares[i]);
        }
    }
    buffer_fini(&text);
    return false;
}
