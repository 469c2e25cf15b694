/*
 * Makes the definition of a saga that goes on with another version of a tool.
 *
 * The caller (tool_shelf) has the registered texts. A written saga is compiled again with other pins, so all rules for
 * definitions also hold for the mended one. Then open groups get their members again, and all steps keep their places.
 * The steps of an open saga are made again one by one, as they were made the first time.
 */
#include "core/definition/parts.h"

static bool calls(const struct step_definition *step, struct slice tool)
{
    return step->tool && step->tool->version && slice_equal(step->tool->name, tool);
}

static bool undoes(const struct step_definition *step, struct slice tool)
{
    return step->compensate.tool && slice_equal(step->compensate.tool->name, tool);
}

uint32_t definition_tool_version(const struct definition *definition, struct slice tool)
{
    uint32_t oldest = 0;

    for (uint32_t i = 0; i < definition->tool_count; i++) {
        if (slice_equal(definition->tools[i]->name, tool)) {
            return definition->tools[i]->version;
        }
    }
    for (uint32_t i = 0; definition->kind != SAGA_DEFINED && i < definition->step_count; i++) {
        const struct step_definition *step = &definition->steps[i];
        uint32_t called = calls(step, tool) ? step->tool->version : 0,
                 undone = undoes(step, tool) ? step->compensate.tool->version : 0;

        oldest = called && (!oldest || called < oldest) ? called : oldest;
        oldest = undone && (!oldest || undone < oldest) ? undone : oldest;
    }
    return oldest;
}

/* --- open sagas and runs --- */

/* Makes the step of a call again. A step that its arguments had made harmless (no effect, so not terminal) stays so. */
static bool step_again(const struct step_definition *step, const struct tool *tool, struct step_definition *out)
{
    const struct tool *undo = step->compensate.tool;

    if (tool->compensate.is_set != (undo != NULL) || (undo && !slice_equal(tool->compensate.tool_name, undo->name)) ||
        !step_definition_of_call(tool, undo, out)) {
        return false;
    }
    out->id = step->id;
    out->name = step->name;
    out->index = step->index;
    out->member = step->member;
    out->terminal = tool->terminal == step->tool->terminal ? step->terminal : tool->terminal;
    return true;
}

static bool mend_step(struct step_definition *step, const struct tool *tool)
{
    struct step_definition again;

    if (calls(step, tool->name)) {
        if (!step_again(step, tool, &again)) {
            return false;
        }
        *step = again;
    }
    if (undoes(step, tool->name)) {
        if (!tool_may_undo(tool)) {
            return false;
        }
        compensator_resolve(&step->compensate, tool);
    }
    return true;
}

static const struct tool *find(const struct definition *definition, struct slice namespace, struct slice tool,
                               uint32_t version)
{
    return definition->shelf ? definition->shelf->find(definition->shelf, namespace, tool, version) : NULL;
}

static bool open_mendable(const struct definition *definition, struct slice namespace, struct slice name,
                          uint32_t version, struct err *err)
{
    const struct tool *tool = find(definition, namespace, name, version);

    if (!tool) {
        (void)err_set(err, ERR_NOT_FOUND, "version %u of the tool %.*s is not registered", version, SLICE_ARG(name));
        err_hint(err, "`sagactl tools` lists what is registered; `sagactl apply FILE` registers more");
        return false;
    }
    for (uint32_t i = 0; i < definition->step_count; i++) {
        struct step_definition step = definition->steps[i];

        if (!mend_step(&step, tool)) {
            (void)err_set(err, ERR_CONFLICT, "version %u of the tool %.*s undoes in another way, or cannot undo",
                          version, SLICE_ARG(name));
            err_detail(err, "the call %.*s is bound to what was said when it was made", SLICE_ARG(step.id));
            return false;
        }
    }
    return true;
}

static const struct definition *mend_open(const struct definition *definition, const struct tool *tool,
                                          struct arena *arena)
{
    struct definition *next = arena_dup(arena, definition, sizeof(*definition));

    next->room = NULL;
    next->steps = arena_array(arena, definition->step_count + 1, sizeof(*next->steps));
    for (uint32_t i = 0; i < definition->step_count; i++) {
        next->steps[i] = definition->steps[i];
        CHECK(mend_step(&next->steps[i], tool));
    }
    return next;
}

/* --- sagas that were written down --- */

/* Counts the members of the group that begins at `first`. */
static uint32_t members_from(const struct definition *definition, uint32_t first)
{
    uint32_t count = 1;

    while (first + count < definition->step_count &&
           definition->steps[first + count].group == definition->steps[first].group) {
        count++;
    }
    return count;
}

static const struct definition *with_members_of(const struct definition *written, const struct definition *grown,
                                                struct arena *arena)
{
    const struct definition *next = written;

    for (uint32_t at = grown->written_count, first; at < grown->step_count;) {
        uint32_t group = grown->steps[at].group, count = members_from(grown, at);
        bool is_each = template_is_set(&next->steps[group].for_each);

        next = definition_with_members(next, group, is_each ? count : ELEMENT_NONE, arena, &first);
        CHECK(next && first == at && next->step_count == at + count);
        at += count;
    }
    return next;
}

bool definition_mendable(const struct definition *definition, struct slice namespace, struct slice tool,
                         uint32_t version, struct err *err)
{
    const struct tool_shelf *shelf = definition->shelf;

    if (definition->kind != SAGA_DEFINED) {
        return open_mendable(definition, namespace, tool, version, err);
    }
    if (!shelf || !shelf->mend) {
        (void)err_set(err, ERR_NOT_FOUND, "no versions of tools are known here");
        return false;
    }
    return shelf->mend(shelf, namespace, definition, tool, version, err) != NULL;
}

const struct definition *definition_mend(const struct definition *definition, struct slice namespace, struct slice tool,
                                         uint32_t version, struct arena *arena)
{
    const struct tool_shelf *shelf = definition->shelf;
    const struct definition *written;

    if (definition->kind != SAGA_DEFINED) {
        return mend_open(definition, find(definition, namespace, tool, version), arena);
    }
    written = shelf->mend(shelf, namespace, definition, tool, version, NULL);
    return with_members_of(written, definition, arena);
}
