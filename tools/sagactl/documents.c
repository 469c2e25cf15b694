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

void documents_know(struct ctl *ctl, const struct slice *texts, size_t count, struct known_documents *known,
                    struct tool_source *source)
{
    *known = (struct known_documents){arena_array(&ctl->arena, count, sizeof(struct document)), count};
    *source = (struct tool_source){.find = find_tool, .context = known, .find_saga = find_saga, .is_offline = true};
    for (size_t i = 0; i < count; i++) {
        struct faults faults;

        faults_init(&faults, &ctl->arena); /* these are not shown */
        document_check(texts[i], NULL, &ctl->arena, &faults, &known->items[i]);
    }
}

/* A line each, for those who grep: what is quoted from the document may have lines of its own. */
static void print_line(struct slice text)
{
    bool blank = false;

    for (size_t i = 0; i < text.len; i++) {
        bool is_blank = text.ptr[i] == ' ' || text.ptr[i] == '\n' || text.ptr[i] == '\r' || text.ptr[i] == '\t';

        if (!is_blank || !blank) {
            (void)fputc(is_blank ? ' ' : text.ptr[i], stderr);
        }
        blank = is_blank;
    }
    (void)fputc('\n', stderr);
}

/* What stands at `pointer`, or at what is around it where there is no such place: a member that is missing. */
static struct slice standing_at(struct slice text, struct slice pointer)
{
    for (;;) {
        struct slice value = json_at(text, pointer);

        if (value.ptr || pointer.len == 0) {
            return value;
        }
        while (pointer.len > 0 && pointer.ptr[--pointer.len] != '/') {
        }
    }
}

struct text_position documents_position(struct slice text, struct slice pointer)
{
    struct text_position position = {1, 1};
    struct err err;

    if (json_check(text, &json_limits_default, &err) != ERR_OK) {
        return (struct text_position){0, 0};
    }
    struct slice value = json_trim(standing_at(text, pointer));

    for (const char *at = text.ptr; value.ptr && at < value.ptr; at++) {
        position.column += ((unsigned char)*at & 0xc0) != 0x80; /* characters, not bytes */
        if (*at == '\n') {
            position.line++;
            position.column = 1;
        }
    }
    return position;
}

void documents_print_fault(const char *path, struct slice text, const struct fault *fault)
{
    struct text_position position = documents_position(text, fault->pointer);

    (void)fprintf(stderr, "%s:", path);
    if (position.line > 0) {
        (void)fprintf(stderr, "%u:%u:", position.line, position.column);
    }
    (void)fprintf(stderr, " %.*s: ", fault->pointer.len ? (int)fault->pointer.len : 10,
                  fault->pointer.len ? fault->pointer.ptr : "(document)");
    print_line(fault->detail);
}

static size_t print_faults(const char *path, struct slice text, const struct faults *faults)
{
    for (size_t i = 0; i < faults->count; i++) {
        documents_print_fault(path, text, &faults->items[i]);
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
    struct faults *faults = arena_array(&ctl->arena, files->count, sizeof(*faults));
    struct known_documents known;
    struct tool_source source;
    size_t fault_count = 0, item_count = 1;

    jq_prepare(); /* while there is one thread and little memory */
    for (size_t i = 0; i < files->count; i++) {
        if (!read_file(ctl, files->items[i], &texts[i])) {
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
        review_document(texts[i], &source, &ctl->arena, &faults[i], &documents[i]);
        item_count += documents[i].item_count;
    }
    registered_close(&registered);
    if (registered.code != EXIT_OK) {
        return registered.code;
    }
    for (size_t i = 0; i < files->count; i++) {
        fault_count += print_faults(files->items[i], texts[i], &faults[i]);
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
