/* console, browse: the address of the console, or of a saga there, and a link that signs a browser in. */
#include <stdio.h>

#include "tools/sagactl/client.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/output.h"
#include "tools/sagactl/saga_name.h"

#define ANSWER_MS 30000

const char help_console[] = "sagactl console\n"
                            "\n"
                            "Prints a link to the console that signs a browser in once, within ten minutes, with\n"
                            "the rights of your token. Whoever opens it first is you: do not pass it on.\n"
                            "Without a token it is the address of the console alone.\n"
                            "\n"
                            "  sagactl console\n"
                            "  xdg-open \"$(sagactl console)\"\n";

const char help_browse[] = "sagactl browse SAGA\n"
                           "\n"
                           "Prints a link to this saga in the console. It signs a browser in once, as that of\n"
                           "`sagactl console` does.\n"
                           "\n"
                           "  sagactl browse order/order-1017\n"
                           "  xdg-open \"$(sagactl browse 019b3c52)\"\n";

/* Prints the link. `view` stands behind the # of the address; empty: where the console begins. */
static int print_link(struct ctl *ctl, struct slice view)
{
    struct answer answer;
    struct slice code;

    if (!ctl->token) {
        (void)printf("%s/console/%s%.*s\n", ctl->server, view.len > 0 ? "#" : "", SLICE_ARG(view));
        return EXIT_OK;
    }
    int exit_code = client_call(ctl, "POST", SLICE("/console/links"), SLICE("{}"), ANSWER_MS, &ctl->arena, &answer);

    if (exit_code != EXIT_OK) {
        return exit_code;
    }
    code = json_string(json_member(answer.body, "code"), &ctl->arena);
    (void)printf("%s/console/#/sign-in/%.*s%.*s\n", ctl->server, SLICE_ARG(code), SLICE_ARG(view));
    return EXIT_OK;
}

int cmd_console(struct ctl *ctl, int argc, char **argv)
{
    const struct option options[] = {{NULL, NULL, NULL, NULL}};
    struct arguments names;
    bool helped = false;

    if (!options_read(ctl, argc, argv, options, &names, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (names.count > 0) {
        return usage_error(ctl, "console takes no arguments");
    }
    return print_link(ctl, SLICE(""));
}

int cmd_browse(struct ctl *ctl, int argc, char **argv)
{
    const struct option options[] = {{NULL, NULL, NULL, NULL}};
    struct arguments names;
    struct slice id;
    bool helped = false;

    if (!options_read(ctl, argc, argv, options, &names, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (names.count != 1) {
        return usage_error(ctl, "browse takes one saga");
    }
    int exit_code = saga_id_of(ctl, names.items[0], &id);

    return exit_code == EXIT_OK ? print_link(ctl, arena_printf(&ctl->arena, "/saga/%.*s", SLICE_ARG(id))) : exit_code;
}
