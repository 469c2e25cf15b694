/* Checks definitions for the service and, offline, for `sagactl check`. */
#include "review/review.h"

#include "adapters/adapter.h"
#include "io/process/jq.h"

static void review_settings(const struct document_check *check, struct faults *faults)
{
    const struct adapter *adapter = adapter_find(check->adapter);

    if (!adapter) {
        faults_add(faults, check->pointer, "there is no adapter named \"%.*s\"", SLICE_ARG(check->adapter));
        return;
    }
    adapter->check(check->settings, check->pointer, check->key_place, faults);
}

void review_document_core(struct slice text, const struct tool_source *registered, struct arena *arena,
                          struct faults *faults, struct document *out)
{
    document_check(text, registered, arena, faults, out);
    for (size_t i = 0; i < out->check_count; i++) {
        if (!out->checks[i].program.ptr) {
            review_settings(&out->checks[i], faults);
        }
    }
}

void review_document(struct slice text, const struct tool_source *registered, struct arena *arena,
                     struct faults *faults, struct document *out)
{
    struct document_check *checks;
    struct slice *programs;
    size_t count = 0, failed = 0;

    review_document_core(text, registered, arena, faults, out);
    checks = arena_array(arena, out->check_count + 1, sizeof(*checks));
    programs = arena_array(arena, out->check_count + 1, sizeof(*programs));
    for (size_t i = 0; i < out->check_count; i++) {
        if (out->checks[i].program.ptr) {
            checks[count] = out->checks[i];
            programs[count++] = out->checks[i].program;
        }
    }
    for (size_t from = 0; from < count; from += failed + 1) {
        struct err err = {0};

        if (jq_check(programs + from, count - from, &failed, &err) == ERR_OK) {
            return;
        }
        faults_add(faults, checks[from + failed].pointer, "%s: %s", err.message, err.detail);
    }
}
