/* The command config: named servers. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/sagactl/cmds.h"
#include "tools/sagactl/contexts.h"
#include "tools/sagactl/output.h"

const char help_config[] = "sagactl config\n"
                           "sagactl config set NAME --server URL [--token-file FILE]\n"
                           "                  [--ca-file FILE] [--cert FILE --key FILE]\n"
                           "sagactl config use NAME\n"
                           "sagactl config remove NAME\n"
                           "\n"
                           "Keeps servers under names, in sagactl/contexts.json below XDG_CONFIG_HOME\n"
                           "(~/.config): a context is a URL, the file of the token for it, of the\n"
                           "authorities of an https server, and of a client certificate. Without\n"
                           "arguments it lists them; * marks the one in use. `use` makes one the default, and\n"
                           "--context NAME or SAGACTL_CONTEXT names one for a command.\n"
                           "\n"
                           "--server goes first, then --context, SAGACTL_SERVER, SAGACTL_CONTEXT, the one in\n"
                           "use. To the server of a context goes the token of that context, or of a flag;\n"
                           "never the one of the environment, which may be for another server.\n"
                           "\n"
                           "  sagactl config set shop --server http://127.0.0.1:8077\n"
                           "  sagactl config use shop\n"
                           "  sagactl stats --context shop\n";

static int print_contexts(struct ctl *ctl, const struct contexts *contexts)
{
    static const char *const titles[] = {" ", "NAME", "SERVER", "TOKEN FILE", NULL};
    struct table table;

    table_init(&table, ctl, titles);
    table.flexible = BIT(3);
    for (size_t i = 0; i < contexts->count; i++) {
        const struct context *context = &contexts->items[i];

        if (ctl->output == OUTPUT_NAME) {
            (void)printf("%.*s\n", SLICE_ARG(context->name));
            continue;
        }
        struct cell *row = table_row(&table);

        row[0].text = slice_equal(context->name, contexts->current) ? SLICE("*") : SLICE("");
        row[1].text = context->name;
        row[2].text = context->server;
        row[3].text = context->token_file;
    }
    if (ctl->output != OUTPUT_NAME) {
        table_print(&table, 0);
    }
    return EXIT_OK;
}

/* SLICE_NONE for no file. False: it is not there, and a sentence was printed. */
static bool absolute(struct ctl *ctl, const char *file, struct slice *out)
{
    char *path = file ? realpath(file, NULL) : NULL;

    *out = path ? arena_slice(&ctl->arena, slice_of(path)) : SLICE_NONE;
    free(path);
    if (file && !out->ptr) {
        (void)fprintf(stderr, "sagactl: %s cannot be found: %s\n", file, strerror(errno));
        return false;
    }
    return true;
}

static int set(struct ctl *ctl, struct contexts *contexts, const char *name)
{
    struct context *context = contexts_find(contexts, slice_of(name));

    if (!ctl->server_is_given) {
        return usage_error(ctl, "which server? --server URL");
    }
    if (!context && contexts->count == CONTEXTS_MAX) {
        return usage_error(ctl, "there are %d contexts, and no more can be; remove one", CONTEXTS_MAX);
    }
    struct slice token_file, ca_file, cert, key;

    if (!absolute(ctl, ctl->token_file, &token_file) || !absolute(ctl, ctl->ca_file, &ca_file) ||
        !absolute(ctl, ctl->cert, &cert) || !absolute(ctl, ctl->key, &key)) {
        return EXIT_FAILED;
    }
    context = context ? context : &contexts->items[contexts->count++];
    *context = (struct context){slice_of(name), slice_of(ctl->server), token_file, ca_file, cert, key};
    return contexts_write(ctl, contexts) ? EXIT_OK : EXIT_FAILED;
}

static int use(struct ctl *ctl, struct contexts *contexts, struct context *context)
{
    contexts->current = context->name;
    return contexts_write(ctl, contexts) ? EXIT_OK : EXIT_FAILED;
}

static int remove_context(struct ctl *ctl, struct contexts *contexts, struct context *context)
{
    size_t at = (size_t)(context - contexts->items);

    if (slice_equal(contexts->current, context->name)) {
        contexts->current = SLICE_NONE;
    }
    memmove(context, context + 1, (contexts->count - at - 1) * sizeof(*context));
    contexts->count--;
    return contexts_write(ctl, contexts) ? EXIT_OK : EXIT_FAILED;
}

int cmd_config(struct ctl *ctl, int argc, char **argv)
{
    struct contexts contexts;
    struct arguments names;
    bool helped = false;

    if (!options_read(ctl, argc, argv, NULL, &names, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if ((names.count > 0 && !contexts_lock(ctl)) || !contexts_read(ctl, &contexts)) {
        return EXIT_FAILED;
    }
    if (names.count == 0) {
        return print_contexts(ctl, &contexts);
    }
    if (names.count != 2 || names.items[1][0] == '\0') {
        return usage_error(ctl, "set, use or remove, and the name of a context");
    }
    if (strcmp(names.items[0], "set") == 0) {
        return set(ctl, &contexts, names.items[1]);
    }
    bool uses = strcmp(names.items[0], "use") == 0;

    if (!uses && strcmp(names.items[0], "remove") != 0) {
        return usage_error(ctl, "\"%s\" is none of set, use and remove", names.items[0]);
    }
    struct context *context = contexts_find(&contexts, slice_of(names.items[1]));

    if (!context) {
        (void)fprintf(stderr, "sagactl: there is no context \"%s\"; `sagactl config` lists them\n", names.items[1]);
        return EXIT_NOT_FOUND;
    }
    return uses ? use(ctl, &contexts, context) : remove_context(ctl, &contexts, context);
}
