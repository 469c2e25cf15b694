/* See documents.h. */
#include "tools/sagactl/documents.h"

#include <stdio.h>

#include "io/process/jq.h"
#include "review/review.h"
#include "tools/sagactl/registered.h"

static bool find_item(const struct known_documents *known, enum definition_kind kind, struct slice name,
                      struct slice *body, uint32_t *version_found)
{
    for (size_t f = 0; f < known->count; f++) {
        for (size_t i = 0; i < known->items[f].item_count; i++) {
            const struct document_item *item = &known->items[f].items[i];

            if (item->kind == kind && slice_equal(item->name, name)) {
                *body = item->body;
                *version_found = 1; /* files have no versions */
                return true;
            }
        }
    }
    return false;
}

static bool find_tool(void *context, struct slice name, uint32_t version, struct slice *body, uint32_t *version_found)
{
    (void)version;
    return find_item(context, DEFINITION_TOOL, name, body, version_found);
}

static bool find_saga(void *context, struct slice name, uint32_t version, struct slice *body, uint32_t *version_found)
{
    (void)version;
    return find_item(context, DEFINITION_SAGA, name, body, version_found);
}

void documents_know(struct ctl *ctl, const struct input_text *texts, size_t count, struct known_documents *known,
                    struct tool_source *source)
{
    *known = (struct known_documents){arena_array(&ctl->arena, count, sizeof(struct document)), count};
    *source = (struct tool_source){.find = find_tool, .context = known, .find_saga = find_saga, .is_offline = true};
    for (size_t i = 0; i < count; i++) {
        struct faults faults;

        faults_init(&faults, &ctl->arena); /* these faults are not shown */
        document_check(texts[i].json, NULL, &ctl->arena, &faults, &known->items[i]);
    }
}

static size_t print_faults(const struct input_text *text, const struct faults *faults)
{
    for (size_t i = 0; i < faults->count; i++) {
        input_print_fault(text, faults->items[i].pointer, faults->items[i].detail);
    }
    return faults->count;
}

void documents_review(const struct input_text *text, const struct tool_source *source, struct arena *arena,
                      struct faults *faults, struct document *document)
{
    if (text->fault.position.line > 0) {
        faults_add(faults, SLICE(""), "%s", text->fault.detail);
        return;
    }
    review_document(text->json, source, arena, faults, document);
}

/* Takes the sagas that were asked for. */
static void take_sagas(const struct document *document, const char *only, struct documents *out)
{
    for (size_t i = 0; i < document->item_count; i++) {
        const struct document_item *item = &document->items[i];

        if (item->kind == DEFINITION_SAGA && (!only || slice_is(item->name, only))) {
            out->sagas[out->count++] = item->saga;
        }
    }
}

int documents_load_all(struct ctl *ctl, const struct arguments *files, struct document **out)
{
    struct input_text *texts = arena_array(&ctl->arena, files->count, sizeof(*texts));
    struct document *documents = arena_array(&ctl->arena, files->count, sizeof(*documents));
    struct faults *faults = arena_array(&ctl->arena, files->count, sizeof(*faults));
    struct known_documents known;
    struct tool_source source;
    size_t fault_count = 0;

    jq_prepare(); /* called while there is one thread and little memory */
    for (size_t i = 0; i < files->count; i++) {
        if (!input_read(ctl, files->items[i], &texts[i])) {
            return EXIT_FAILED;
        }
    }
    documents_know(ctl, texts, files->count, &known, &source);
    struct registered registered = {.code = EXIT_OK};

    if (ctl->server_is_given) {
        registered.code = registered_open(&registered, ctl, &source);
    }
    for (size_t i = 0; registered.code == EXIT_OK && i < files->count; i++) {
        faults_init(&faults[i], &ctl->arena);
        documents_review(&texts[i], &source, &ctl->arena, &faults[i], &documents[i]);
    }
    registered_close(&registered);
    if (registered.code != EXIT_OK) {
        return registered.code;
    }
    for (size_t i = 0; i < files->count; i++) {
        fault_count += print_faults(&texts[i], &faults[i]);
    }
    *out = documents;
    return fault_count > 0 ? EXIT_FAILED : EXIT_OK;
}

int documents_load(struct ctl *ctl, const struct arguments *files, const char *only, struct documents *out)
{
    struct document *documents;
    size_t item_count = 1;
    int code = documents_load_all(ctl, files, &documents);

    if (code != EXIT_OK) {
        return code;
    }
    for (size_t i = 0; i < files->count; i++) {
        item_count += documents[i].item_count;
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
