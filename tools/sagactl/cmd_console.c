/* console: the address of the console, and a link that signs a browser in. */
#include <stdio.h>

#include "tools/sagactl/client.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/output.h"

#define ANSWER_MS 30000

const char help_console[] = "sagactl console\n"
                            "\n"
                            "Prints a link to the console that signs a browser in once, within ten minutes, with\n"
                            "the rights of your token. Whoever opens it first is you: do not pass it on.\n"
                            "Without a token it is the address of the console alone.\n"
                            "\n"
                            "  sagactl console\n"
                            "  xdg-open \"$(sagactl console)\"\n";

int cmd_console(struct ctl *ctl, int argc, char **argv)
{
    const struct option options[] = {{NULL, NULL, NULL, NULL}};
    struct arguments names;
    struct answer answer;
    struct slice code;
    bool helped = false;

    if (!options_read(ctl, argc, argv, options, &names, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (names.count > 0) {
        return usage_error(ctl, "console takes no arguments");
    }
    if (!ctl->token) {
        (void)printf("%s/console/\n", ctl->server);
        return EXIT_OK;
    }
    int exit_code = client_call(ctl, "POST", SLICE("/console/links"), SLICE("{}"), ANSWER_MS, &ctl->arena, &answer);

    if (exit_code != EXIT_OK) {
        return exit_code;
    }
    code = json_string(json_member(answer.body, "code"), &ctl->arena);
    (void)printf("%s/console/#/sign-in/%.*s\n", ctl->server, SLICE_ARG(code));
    return EXIT_OK;
}
