/* The command record: writes what happened to a saga as a scenario for `sagactl test`. */
#include <stdio.h>

#include "tools/sagactl/client.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/output.h"
#include "tools/sagactl/saga_name.h"
#include "tools/sagactl/scenario/record.h"

#define ENTRIES_MAX 100000
#define RECORD_BYTES_MAX ((size_t)256 << 20)

const char help_record[] =
    "sagactl record SAGA\n"
    "\n"
    "Prints what happened to a saga as a scenario for `sagactl test`: its input, what each call and\n"
    "probe was answered, what people and others did, and what came of it. Recorded in production and\n"
    "played at a desk, it says whether a changed definition would have gone on in the same way. An open\n"
    "saga, whose steps are the calls of an agent, cannot be recorded. Results are printed whole: look at\n"
    "the file before you share it.\n"
    "\n"
    "  sagactl record order/o-4711 > o-4711.json\n"
    "  sagactl test order.json o-4711.json\n"
    "  sagactl record order/o-4711 -o yaml > o-4711.yaml\n";

/* Reads the whole log. Gives EXIT_OK, or the exit code after it printed a sentence. */
static int read_log(struct ctl *ctl, struct slice saga, struct slice *entries, size_t *count)
{
    struct slice cursor = SLICE("0");

    while (cursor.len > 0) {
        struct answer answer;
        struct slice items, entry;
        struct json_walk walk;
        int code = client_get(
            ctl, arena_printf(&ctl->arena, "%.*s/log?limit=500&cursor=%.*s", SLICE_ARG(saga), SLICE_ARG(cursor)),
            &ctl->arena, &answer);

        if (code != EXIT_OK) {
            return code;
        }
        items = json_member(answer.body, "items");
        walk = json_walk(items);
        while (json_next_element(&walk, &entry)) {
            if (*count == ENTRIES_MAX) {
                (void)fprintf(stderr, "sagactl: the log has more than %d entries, which are too many to record\n",
                              ENTRIES_MAX);
                return EXIT_FAILED;
            }
            entries[(*count)++] = entry;
        }
        cursor = show_member(ctl, answer.body, "next_cursor");
    }
    return EXIT_OK;
}

static struct slice tool_of(struct recording *recording, struct slice key)
{
    struct ctl *ctl = recording->context;
    struct answer answer;

    if (client_get(ctl, arena_printf(&ctl->arena, "/v1/operations/%.*s", SLICE_ARG(key)), &ctl->arena, &answer) !=
        EXIT_OK) {
        return SLICE_NONE;
    }
    return json_string(json_member(answer.body, "tool"), &ctl->arena);
}

int cmd_record(struct ctl *ctl, int argc, char **argv)
{
    const struct option options[] = {{NULL, NULL, NULL, NULL}};
    struct recording recording = {.arena = &ctl->arena, .tool_of = tool_of, .context = ctl};
    struct arguments sagas;
    struct answer answer;
    struct slice path, *entries;
    struct buffer out;
    struct err err = {0};
    bool helped = false;

    if (!options_read(ctl, argc, argv, options, &sagas, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (sagas.count != 1) {
        return usage_error(ctl, "which saga? one at a time");
    }
    int code = saga_path(ctl, sagas.items[0], &path);

    code = code == EXIT_OK ? client_get(ctl, path, &ctl->arena, &answer) : code;
    entries = arena_array(&ctl->arena, ENTRIES_MAX, sizeof(*entries));
    code = code == EXIT_OK ? read_log(ctl, path, entries, &recording.entry_count) : code;
    if (code != EXIT_OK) {
        return code;
    }
    recording.saga = answer.body;
    recording.entries = entries;
    buffer_init(&out, RECORD_BYTES_MAX);
    if (recording_write(&recording, &out, &err) != ERR_OK) {
        err_print(&err, ctl->program);
        code = err_exit_code(err.code);
    } else {
        print_data(ctl, buffer_slice(&out));
    }
    buffer_fini(&out);
    return code;
}
