/* The command me: shows who the token belongs to. */
#include "tools/sagactl/client.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/output.h"

const char help_me[] = "sagactl me\n"
                       "\n"
                       "Says whose token the service sees, its namespace, its role and when it ends. A role\n"
                       "may do all that the ones before it may: reader, agent, operator, admin.\n"
                       "\n"
                       "  sagactl me\n";

int cmd_me(struct ctl *ctl, int argc, char **argv)
{
    const struct option options[] = {{NULL, NULL, NULL, NULL}};
    struct arguments names;
    struct answer answer;
    bool helped = false;

    if (!options_read(ctl, argc, argv, options, &names, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (names.count > 0) {
        return usage_error(ctl, "me takes no arguments");
    }
    int code = client_get(ctl, SLICE("/v1/me"), &ctl->arena, &answer);

    if (code == EXIT_OK && ctl->output == OUTPUT_DATA) {
        print_data(ctl, answer.body);
    } else if (code == EXIT_OK) {
        print_facts(ctl, answer.body, 0);
    }
    return code;
}
