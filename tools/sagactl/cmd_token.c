/* The command token new: makes a secret for a client, and the row for the service's file of tokens, which holds only
 * its digest. */
#include <stdio.h>
#include <string.h>

#include "base/digest.h"
#include "base/instant.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/output.h"
#include "tools/sagactl/saga_end.h"
#include "tools/sagactl/tokens_file.h"

const char help_token[] =
    "sagactl token new --name NAME [--role reader|agent|operator|admin] [--namespace NAME] [--expires 90d]\n"
    "                  [--tools NAME,...] [--into FILE]\n"
    "\n"
    "Makes an access token. The token is printed once: give it to the client. The row goes into the\n"
    "file that sagad reads with --tokens, {\"tokens\": [ROW, ...]}; it holds a digest only, and sagad\n"
    "reads the file again when it changes. Defaults: role reader, namespace default, 90 days;\n"
    "--expires never makes one that does not expire. With --tools it calls these tools only, and\n"
    "sees nothing but their operations; card.* stands for all names that begin so. With --into the\n"
    "row is added to this file, and the token alone is printed.\n"
    "\n"
    "  reader    sees everything of its namespace\n"
    "  agent     also starts, aborts and signals sagas, and calls tools\n"
    "  operator  also resolves escalations, approves, pauses and resumes, and signs off a bypass\n"
    "  admin     also registers definitions\n"
    "\n"
    "The role that may decide an approval is said by its `roles`.\n"
    "\n"
    "  sagactl token new --name ci --role agent\n"
    "  sagactl token new --name ann --role operator -o json\n"
    "  sagactl token new --name me --role admin --into /etc/sagad/tokens.json > token\n";

static bool role_is_known(const char *role)
{
    static const char *const roles[] = {"reader", "agent", "operator", "admin"};

    for (size_t i = 0; i < COUNT_OF(roles); i++) {
        if (strcmp(role, roles[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void make_token(char out[72])
{
    struct digest random;

    CHECK(random_bytes(random.bytes, sizeof(random.bytes)));
    memcpy(out, "sagad_", 6);
    digest_hex(&random, out + 6);
}

static void write_tools(struct json_writer *w, const char *tools)
{
    json_array_begin(w, "tools");
    for (const char *at = tools; *at; at += strcspn(at, ",") + (strchr(at, ',') != NULL)) {
        json_write_slice(w, NULL, (struct slice){at, strcspn(at, ",")});
    }
    json_array_end(w);
}

static int add_to_file(struct ctl *ctl, const char *into, const char *name, const char *token, struct buffer *row)
{
    bool added = tokens_file_add(ctl, into, slice_of(name), buffer_slice(row));

    buffer_fini(row);
    if (added) {
        (void)puts(token);
    }
    return added ? EXIT_OK : EXIT_FAILED;
}

int cmd_token(struct ctl *ctl, int argc, char **argv)
{
    const char *name = NULL, *role = "reader", *namespace = "default", *expires = "90d", *tools = NULL, *into = NULL;
    const struct option options[] = {{"--name", &name, NULL, NULL},
                                     {"--role", &role, NULL, NULL},
                                     {"--namespace", &namespace, NULL, NULL},
                                     {"--expires", &expires, NULL, NULL},
                                     {"--tools", &tools, NULL, NULL},
                                     {"--into", &into, NULL, NULL},
                                     {NULL, NULL, NULL, NULL}};
    struct arguments verbs;
    struct buffer row;
    struct json_writer w;
    int64_t lives_ms = 0;
    char token[72], hex[65], instant[INSTANT_TEXT_BYTES];
    bool helped = false;

    if (!options_read(ctl, argc, argv, options, &verbs, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (verbs.count != 1 || strcmp(verbs.items[0], "new") != 0) {
        return usage_error(ctl, "the verb is `token new`");
    }
    if (!name || !*name || strpbrk(name, " \t\n") || !*namespace || strpbrk(namespace, " \t\n")) {
        return usage_error(ctl, "--name says who will use it; a name and a namespace have no spaces");
    }
    if (tools && (!*tools || strpbrk(tools, " \t\n") || strstr(tools, ",,") || *tools == ',')) {
        return usage_error(ctl, "--tools are names of tools with commas between, without spaces");
    }
    if (!role_is_known(role)) {
        return usage_error(ctl, "--role is reader, agent, operator or admin, not \"%s\"", role);
    }
    if (strcmp(expires, "never") != 0 && (!duration_parse(slice_of(expires), &lives_ms) || lives_ms == 0)) {
        return usage_error(ctl, "--expires is a duration such as 90d, or never, not \"%s\"", expires);
    }
    make_token(token);
    struct digest digest = digest_sha256(slice_of(token));

    digest_hex(&digest, hex);
    buffer_init(&row, 65536);
    json_writer_init(&w, &row);
    json_object_begin(&w, NULL);
    if (ctl->output == OUTPUT_DATA && !into) {
        json_write_text(&w, "token", token);
        json_object_begin(&w, "row");
    }
    json_write_text(&w, "name", name);
    json_write_text(&w, "sha256", hex);
    json_write_text(&w, "namespace", namespace);
    json_write_text(&w, "role", role);
    if (tools) {
        write_tools(&w, tools);
    }
    if (lives_ms) {
        instant_text(now_ms() + lives_ms, instant);
        json_write_text(&w, "expires_at", instant);
    }
    json_object_end(&w);
    if (into) {
        return add_to_file(ctl, into, name, token, &row);
    }
    if (ctl->output == OUTPUT_DATA) {
        json_object_end(&w);
    } else if (ctl->output == OUTPUT_NAME) {
        (void)fprintf(stderr, "Row for the tokens file: ");
        (void)fprintf(stderr, "%s\n", buffer_c(&row));
        (void)puts(token);
        buffer_fini(&row);
        return EXIT_OK;
    } else {
        (void)printf("token  %s\nrow    ", token);
        (void)fprintf(stderr, "The token is shown this once. The row goes into the file given to sagad --tokens.\n");
    }
    print_data(ctl, buffer_slice(&row));
    buffer_fini(&row);
    return EXIT_OK;
}
