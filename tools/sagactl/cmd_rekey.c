/* The command rekey: `sagad rekey`, which has the keys and the rights of the owner of the schema. No server has both.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/sagactl/cmds.h"

#define PATH_BYTES 4096

const char help_rekey[] = "sagactl rekey --database DSN --payload-keys FILE\n"
                          "\n"
                          "Puts everything that is encrypted in the database, and what is not yet, under\n"
                          "the active key of the file, while engines run, and says how far it is. It may\n"
                          "be stopped and begun again. It is `sagad rekey`, the program that it begins: it\n"
                          "needs the database as the owner of the schema, and the keys, and asks no server.\n"
                          "\n"
                          "  sagactl rekey --database \"$OWNER_DSN\" --payload-keys /etc/sagad/keys.json\n";

/* The sagad of the same folder, or else that of the PATH. */
static void find_sagad(char path[PATH_BYTES])
{
    ssize_t len = readlink("/proc/self/exe", path, PATH_BYTES - sizeof("sagad"));
    char *slash;

    path[len > 0 ? len : 0] = '\0';
    slash = strrchr(path, '/');
    (void)snprintf(slash ? slash + 1 : path, sizeof("sagad"), "sagad"); /* it has room */
    if (access(path, X_OK) != 0) {
        (void)snprintf(path, PATH_BYTES, "sagad");
    }
}

int cmd_rekey(struct ctl *ctl, int argc, char **argv)
{
    char path[PATH_BYTES];
    char **arguments = arena_array(&ctl->arena, (size_t)argc + 3, sizeof(*arguments));
    bool helped = false;

    for (int i = 0; i < argc; i++) {
        helped = helped || strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0;
        arguments[i + 2] = argv[i];
    }
    if (helped) {
        (void)fputs(help_rekey, stdout);
        return EXIT_OK;
    }
    find_sagad(path);
    arguments[0] = arena_text(&ctl->arena, SLICE("sagad"));
    arguments[1] = arena_text(&ctl->arena, SLICE("rekey"));
    (void)execvp(path, arguments); /* returns only with an error */
    (void)fprintf(stderr, "sagactl: sagad cannot be run: %s\n", strerror(errno));
    (void)fputs("  hint: run `sagad rekey` where sagad is installed\n", stderr);
    return EXIT_FAILED;
}
