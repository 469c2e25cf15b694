/* Reads options the way people write them: in any place, as "--name value" or "--name=value". An unknown option gets an
 * error that says where to look. */
#include "core/language/members.h"
#include "io/process/jq.h"
#include "tools/sagactl/contexts.h"
#include "tools/sagactl/help.h"
#include "tools/sagactl/input_text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INPUT_BYTES_MAX (16 << 20)

struct globals {
    const char *server, *token, *namespace, *token_file, *ca_file, *cert, *key, *output, *jq, *context;
    bool all_namespaces, help, version, no_color, yes, asks_server;
};

static struct globals globals;

static const struct option global_options[] = {
    {"--server", &globals.server, NULL, NULL},
    {"--token", &globals.token, NULL, NULL},
    {"--namespace", &globals.namespace, NULL, NULL},
    {"-n", &globals.namespace, NULL, NULL},
    {"--all-namespaces", NULL, NULL, &globals.all_namespaces},
    {"-A", NULL, NULL, &globals.all_namespaces},
    {"--token-file", &globals.token_file, NULL, NULL},
    {"--ca-file", &globals.ca_file, NULL, NULL},
    {"--cert", &globals.cert, NULL, NULL},
    {"--key", &globals.key, NULL, NULL},
    {"--output", &globals.output, NULL, NULL},
    {"-o", &globals.output, NULL, NULL},
    {"--context", &globals.context, NULL, NULL},
    {"--jq", &globals.jq, NULL, NULL},
    {"--yes", NULL, NULL, &globals.yes},
    {"-y", NULL, NULL, &globals.yes},
    {"--help", NULL, NULL, &globals.help},
    {"-h", NULL, NULL, &globals.help},
    {"--version", NULL, NULL, &globals.version},
    {"--no-color", NULL, NULL, &globals.no_color},
    {NULL, NULL, NULL, NULL},
};

int usage_error(const struct ctl *ctl, const char *format, ...)
{
    va_list arguments;

    (void)fprintf(stderr, "%s: ", ctl->program);
    va_start(arguments, format);
    (void)vfprintf(stderr, format, arguments);
    va_end(arguments);
    const char *command = ctl->command ? ctl->command->name : "";

    (void)fprintf(stderr, "\n`%s%s%s --help` tells more.\n", ctl->program, *command ? " " : "", command);
    return EXIT_USAGE;
}

static const struct option *find(const struct option *options, const char *text, size_t len)
{
    for (const struct option *o = options; o && o->name; o++) {
        if (strlen(o->name) == len && memcmp(o->name, text, len) == 0) {
            return o;
        }
    }
    return NULL;
}

/* Looks for the option that somebody may have meant by `text`; the best so far is `*nearest`, `*least` edits away. */
static void look_for_nearest(const struct option *options, struct slice text, unsigned *least, const char **nearest)
{
    for (const struct option *o = options; o && o->name; o++) {
        unsigned distance = word_distance(text, slice_of(o->name));

        if (distance < *least && strlen(o->name) > 2) {
            *least = distance;
            *nearest = o->name;
        }
    }
}

static void say_unknown(const struct ctl *ctl, const struct option *options, struct slice text)
{
    const char *nearest = NULL;
    unsigned least = 3; /* edits from this number on mean another word */

    look_for_nearest(options, text, &least, &nearest);
    look_for_nearest(global_options, text, &least, &nearest);
    (void)usage_error(ctl, "unknown option %.*s%s%s%s", SLICE_ARG(text), nearest ? " (did you mean " : "",
                      nearest ? nearest : "", nearest ? "?)" : "");
}

/* Takes the option at argv[*i] and moves *i over its value. */
static bool take(struct ctl *ctl, const struct option *options, int argc, char **argv, int *i)
{
    const char *text = argv[*i], *equals = text[1] == '-' ? strchr(text, '=') : NULL;
    size_t len = equals ? (size_t)(equals - text) : strlen(text);
    const struct option *o = find(options, text, len);
    const char *value = equals ? equals + 1 : NULL;

    o = o ? o : find(global_options, text, len);
    if (!o) {
        say_unknown(ctl, options, (struct slice){text, len});
        return false;
    }
    if (o->flag) {
        if (equals) {
            (void)usage_error(ctl, "%s takes no value", o->name);
            return false;
        }
        *o->flag = true;
        return true;
    }
    if (!value) {
        if (*i + 1 >= argc) {
            (void)usage_error(ctl, "%s needs a value", o->name);
            return false;
        }
        value = argv[++*i];
    }
    if (o->values) {
        if (o->values->count == OPTION_REPEATS_MAX) {
            (void)usage_error(ctl, "%s stands there more than %d times", o->name, OPTION_REPEATS_MAX);
            return false;
        }
        o->values->items[o->values->count++] = value;
    } else {
        *o->value = value;
    }
    return true;
}

static bool is_option(const char *text)
{
    return text[0] == '-' && text[1] != '\0';
}

int options_read_globals(struct ctl *ctl, int argc, char **argv, bool *help, bool *version)
{
    int i = 1;

    for (; i < argc && is_option(argv[i]); i++) {
        if (!take(ctl, NULL, argc, argv, &i)) {
            return -1;
        }
    }
    *help = globals.help;
    *version = globals.version;
    return i;
}

bool options_read(struct ctl *ctl, int argc, char **argv, const struct option *options, struct arguments *out,
                  bool *helped)
{
    bool ended = false;

    out->items = arena_array(&ctl->arena, (size_t)argc + 1, sizeof(*out->items));
    out->count = 0;
    *helped = false;
    for (int i = 0; i < argc; i++) {
        if (!ended && strcmp(argv[i], "--") == 0) {
            ended = true;
        } else if (ended || !is_option(argv[i])) {
            out->items[out->count++] = argv[i];
        } else if (!take(ctl, options, argc, argv, &i)) {
            return false;
        }
    }
    if (globals.help) {
        help_print(ctl->command->help);
        *helped = true;
        return true;
    }
    return options_finish(ctl);
}

static bool finish_output(struct ctl *ctl)
{
    static const struct {
        const char *name;
        enum output output;
        bool yaml, wide;
    } outputs[] = {{"table", OUTPUT_TABLE, false, false}, {"wide", OUTPUT_TABLE, false, true},
                   {"json", OUTPUT_DATA, false, false},   {"yaml", OUTPUT_DATA, true, false},
                   {"name", OUTPUT_NAME, false, false},   {"csv", OUTPUT_CSV, false, false}};
    bool has_csv = ctl->command && ctl->command->has_csv;
    struct slice program = globals.jq ? slice_of(globals.jq) : SLICE_NONE;
    size_t failed;
    const char *name = globals.output ? globals.output : globals.jq ? "json" : "table";
    struct err err = {0};

    for (size_t i = 0; i < COUNT_OF(outputs); i++) {
        if (strcmp(name, outputs[i].name) == 0 && (outputs[i].output != OUTPUT_CSV || has_csv)) {
            ctl->output = outputs[i].output;
            ctl->yaml = outputs[i].yaml;
            ctl->wide = outputs[i].wide;
            ctl->jq = globals.jq;
            break;
        }
        if (i + 1 == COUNT_OF(outputs)) {
            (void)usage_error(ctl, "-o is table, wide, json, yaml%s name, not \"%s\"", has_csv ? ", csv or" : " or",
                              name);
            return false;
        }
    }
    if (!globals.jq) {
        return true;
    }
    if (ctl->output != OUTPUT_DATA || ctl->yaml) {
        (void)usage_error(ctl, "--jq prints what the program says; leave -o %s out", name);
        return false;
    }
    jq_prepare(); /* called while there is one thread */
    if (jq_check(&program, 1, &failed, &err) != ERR_OK) {
        (void)usage_error(ctl, "--jq: %s%s%s", err.message, err.detail[0] ? ": " : "", err.detail);
        return false;
    }
    return true;
}

static const char *first_of(const char *a, const char *b)
{
    return a && *a ? a : b && *b ? b : NULL;
}

/* Does the command work without a server? Such a command must not fail because of a missing token. */
static bool is_offline(const struct command *command)
{
    static const char *const names[] = {"check", "prove", "graph", "token", "config"};

    for (size_t i = 0; command && !globals.asks_server && i < COUNT_OF(names); i++) {
        if (strcmp(command->name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Finds the context of the command, from --context, the environment or `sagactl config use`. A named server has
 * precedence, and then `out` is NULL. Returns false after printing a sentence. */
static bool read_context(struct ctl *ctl, const struct context **out)
{
    const char *env_server = first_of(getenv("SAGACTL_SERVER"), NULL);
    struct slice name = slice_of(first_of(globals.context, env_server ? NULL : getenv("SAGACTL_CONTEXT")));

    *out = NULL;
    if (globals.server || (!name.ptr && env_server) || (is_offline(ctl->command) && !globals.context)) {
        return true;
    }
    struct contexts *contexts = arena_alloc(&ctl->arena, sizeof(*contexts));

    if (!contexts_read(ctl, contexts)) {
        return false;
    }
    name = name.ptr ? name : contexts->current;
    *out = name.ptr ? contexts_find(contexts, name) : NULL;
    if (name.ptr && !*out) {
        (void)usage_error(ctl, "there is no context \"%.*s\"; `sagactl config` lists them", SLICE_ARG(name));
        return false;
    }
    return true;
}

static bool take_server(struct ctl *ctl, const char *server)
{
    if (strncmp(server, "http://", 7) != 0 && strncmp(server, "https://", 8) != 0) {
        (void)usage_error(ctl, "--server (or SAGACTL_SERVER) is a URL such as %s, not \"%s\"", SERVER_DEFAULT, server);
        return false;
    }
    size_t len = strlen(server);

    while (len > 8 && server[len - 1] == '/') {
        len--;
    }
    ctl->server = arena_text(&ctl->arena, (struct slice){server, len});
    return true;
}

/* Takes the token. An option has precedence over the environment, whose token may be for another server than that of a
 * context. */
static bool take_token(struct ctl *ctl, const struct context *context)
{
    const char *file = globals.token_file;

    if (ctl->command && strcmp(ctl->command->name, "config") == 0) {
        ctl->token_file = file; /* the command stores the name and sends no request */
        return true;
    }
    ctl->token = first_of(globals.token, NULL);
    if (!ctl->token && !file && context) {
        file = context->token_file.ptr ? arena_text(&ctl->arena, context->token_file) : NULL;
    } else if (!ctl->token && !file) {
        ctl->token = first_of(getenv("SAGACTL_TOKEN"), NULL);
        file = ctl->token ? NULL : first_of(getenv("SAGACTL_TOKEN_FILE"), NULL);
    }
    ctl->token_file = ctl->token ? NULL : file;
    if (ctl->token_file && (ctl->server_is_given || !is_offline(ctl->command))) {
        struct slice text;

        if (!read_file(ctl, ctl->token_file, &text)) {
            return false;
        }
        ctl->token = arena_text(&ctl->arena, slice_trim(text));
    }
    return true;
}

/* The server of the environment may be another one than that of a context, as with tokens. */
static const char *take_file(struct ctl *ctl, const char *option, const struct context *context, struct slice stored,
                             const char *variable)
{
    const char *of_context = stored.ptr ? arena_text(&ctl->arena, stored) : NULL;

    return first_of(option, context ? of_context : getenv(variable));
}

static bool take_tls_files(struct ctl *ctl, const struct context *context)
{
    const struct context none = {.server = SLICE_NONE};
    const struct context *stored = context ? context : &none;

    ctl->ca_file = take_file(ctl, globals.ca_file, context, stored->ca_file, "SAGACTL_CA_FILE");
    ctl->cert = take_file(ctl, globals.cert, context, stored->cert, "SAGACTL_CERT");
    ctl->key = take_file(ctl, globals.key, context, stored->key, "SAGACTL_KEY");
    if (!ctl->cert != !ctl->key) {
        (void)usage_error(ctl, "--cert and --key (or SAGACTL_CERT and SAGACTL_KEY) go together");
    }
    return !ctl->cert == !ctl->key;
}

/* Finds the server, and whom it is to believe: the token and the client certificate. */
static bool finish_server(struct ctl *ctl)
{
    const struct context *context;

    if (globals.server && globals.context) {
        (void)usage_error(ctl, "--server or --context, not both");
        return false;
    }
    if (!read_context(ctl, &context)) {
        return false;
    }
    const char *server =
        context ? arena_text(&ctl->arena, context->server) : first_of(globals.server, getenv("SAGACTL_SERVER"));

    ctl->server_is_given = globals.server || globals.context;
    return take_server(ctl, server ? server : SERVER_DEFAULT) && take_token(ctl, context) &&
           take_tls_files(ctl, context);
}

bool options_ask_server(struct ctl *ctl)
{
    globals.asks_server = true;
    return finish_server(ctl);
}

bool options_finish(struct ctl *ctl)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

    if (!finish_output(ctl) || !finish_server(ctl)) {
        return false;
    }
    if (globals.all_namespaces && (globals.namespace || !ctl->command || !ctl->command->has_namespaces)) {
        (void)usage_error(ctl, globals.namespace ? "-n or -A, not both" : "-A is for lists; name a namespace with -n");
        return false;
    }
    ctl->all_namespaces = globals.all_namespaces;
    ctl->namespace = first_of(globals.namespace, getenv("SAGACTL_NAMESPACE"));
    ctl->yes = globals.yes;
    ctl->colour =
        isatty(STDOUT_FILENO) && !globals.no_color && !(no_color && *no_color) && !(term && strcmp(term, "dumb") == 0);
    ctl->progress = isatty(STDERR_FILENO) && !ctl->is_frame;
    return true;
}

bool read_file(struct ctl *ctl, const char *path, struct slice *out)
{
    bool is_stdin = strcmp(path, "-") == 0;
    FILE *file = is_stdin ? stdin : fopen(path, "re");
    struct buffer text;
    char block[16384];
    size_t n;

    if (!file) {
        (void)fprintf(stderr, "sagactl: %s cannot be read: %s\n", path, strerror(errno));
        return false;
    }
    buffer_init(&text, INPUT_BYTES_MAX);
    while ((n = fread(block, 1, sizeof(block), file)) > 0) {
        buffer_put(&text, block, n);
    }
    bool failed = ferror(file) != 0;
    int error = errno;

    if (!is_stdin) {
        (void)fclose(file); /* the file was only read */
    }
    if (failed || text.overflow) {
        (void)fprintf(stderr, "sagactl: %s cannot be read: %s\n", path,
                      failed ? strerror(error) : "it is larger than 16 MiB");
        buffer_fini(&text);
        return false;
    }
    *out = arena_slice(&ctl->arena, text.len ? buffer_slice(&text) : SLICE(""));
    buffer_fini(&text);
    return true;
}

bool read_json_argument(struct ctl *ctl, const char *option, const char *value, struct slice *out)
{
    struct err err = {0};
    struct input_text text;

    if (value[0] == '@' || strcmp(value, "-") == 0) {
        if (!input_read_whole(ctl, value[0] == '@' ? value + 1 : value, &text)) {
            return false;
        }
    } else {
        input_parse(ctl, option, slice_of(value), &text);
    }
    if (text.fault.position.line > 0) {
        (void)fprintf(stderr, "sagactl: %s is not JSON, and no YAML: line %u, column %u: %s\n", option,
                      text.fault.position.line, text.fault.position.column, text.fault.detail);
        return false;
    }
    if (json_check(text.json, &json_limits_default, &err) != ERR_OK) {
        (void)fprintf(stderr, "sagactl: %s is not JSON: %s%s%s\n", option, err.message, err.detail[0] ? ": " : "",
                      err.detail);
        return false;
    }
    *out = json_trim(text.json);
    return true;
}
