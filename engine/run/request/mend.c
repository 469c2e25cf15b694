/*
 * A saga goes on with another version of a tool. Another engine may have registered that version a moment ago, so both
 * the engine that is asked and the owner of the saga load what they do not know yet.
 */
#include "run/request/calling.h"

static void on_definitions(struct store_read *read)
{
    struct work *work = read->context;
    const struct load_definitions *load = container_of(read, struct load_definitions, read);

    if (work_read_failed(work, read)) {
        return;
    }
    for (size_t i = 0; i < load->count; i++) {
        definitions_add(work->engine->definitions, &load->rows[i]);
    }
    route_send(work);
}

void mend_send(struct work *work)
{
    const struct saga_input *input = &work->mail.input;

    if (definitions_row(work->engine->definitions, DEFINITION_TOOL, work->namespace, input->mend.tool,
                        input->mend.version)) {
        route_send(work);
        return;
    }
    struct load_definitions *load = arena_alloc(&work->arena, sizeof(*load));

    *load = (struct load_definitions){.read = {.arena = &work->arena, .done = on_definitions, .context = work}};
    store_load_definitions(work->engine->store, load);
}
