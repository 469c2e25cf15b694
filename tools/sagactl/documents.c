/* See documents.h. */
#include "tools/sagactl/documents.h"

#include <stdio.h>

#include "io/jq.h"
#include "run/review.h"

struct texts { /* the documents of all files, before they are checked */
    struct document *items;
    size_t count;
};

static bool find_tool(void *context, struct slice name, uint32_t version, struct slice *body, uint32_t *version_found)
{
    const struct texts *known = context;

    (void)version; /* files have no versions */
    for (size_t f = 0; f < known->count; f++) {
        for (size_t i = 0; i < known->items[f].item_count; i++) {
            const struct document_item *item = &known->items[f].items[i];

            if (item->kind == DEFINITION_TOOL && slice_equal(item->name, name)) {
                *body = item->body;
                *version_found = 1;
                return true;
            }
        }
    }
    return false;
}

static size_t print_faults(const char *path, const struct faults *faults)
{
    for (size_t i = 0; i < faults->count; i++) {
        const struct fault *fault = &faults->items[i];

        (void)fprintf(stderr, "%s: %.*s: %.*s\n", path, fault->pointer.len ? (int)fault->pointer.len : 10,
                      fault->pointer.len ? fault->pointer.ptr : "(document)", SLICE_ARG(fault->detail));
    }
    return faults->count;
}

/* Those of its sagas that are asked for. */
static void take_sagas(const struct document *document, const char *only, struct documents *out)
{
    for (size_t i = 0; i < document->item_count; i++) {
        const struct document_item *item = &document->items[i];

        if (item->kind == DEFINITION_SAGA && (!only || slice_is(item->name, only))) {
            out->sagas[out->count++] = item->saga;
        }
    }
}

int documents_load(struct ctl *ctl, const struct arguments *files, const char *only, struct documents *out)
{
    struct slice *texts = arena_array(&ctl->arena, files->count, sizeof(*texts));
    struct document *documents = arena_array(&ctl->arena, files->count, sizeof(*documents));
    struct texts known = {arena_array(&ctl->arena, files->count, sizeof(struct document)), files->count};
    struct tool_source source = {find_tool, &known};
    size_t fault_count = 0, item_count = 1;

    jq_prepare(); /* while there is one thread and little memory */
    for (size_t i = 0; i < files->count; i++) {
        struct faults faults;

        if (!read_file(ctl, files->items[i], &texts[i])) {
            return EXIT_FAILED;
        }
        faults_init(&faults, &ctl->arena); /* a saga may stand before its tools: these faults are not shown */
        document_check(texts[i], NULL, &ctl->arena, &faults, &known.items[i]);
    }
    for (size_t i = 0; i < files->count; i++) {
        struct faults faults;

        faults_init(&faults, &ctl->arena);
        review_document(texts[i], &source, &ctl->arena, &faults, &documents[i]);
        fault_count += print_faults(files->items[i], &faults);
        item_count += documents[i].item_count;
    }
    if (fault_count > 0) {
        return EXIT_FAILED;
    }
    *out = (struct documents){arena_array(&ctl->arena, item_count, sizeof(*out->sagas)), 0};
    for (size_t i = 0; i < files->count; i++) {
        take_sagas(&documents[i], only, out);
    }
    if (out->count == 0) {
        (void)fprintf(stderr, "sagactl: there is no saga %s%sin what was given\n", only ? only : "", only ? " " : "");
        return EXIT_NOT_FOUND;
    }
    return EXIT_OK;
}
