/* The command preview: shows what each verb would lead to, before a person uses it. */
#include <stdio.h>
#include <string.h>

#include "tools/sagactl/client.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/output.h"
#include "tools/sagactl/saga_name.h"

const char help_preview[] = "sagactl preview SAGA\n"
                            "sagactl preview --escalation N\n"
                            "sagactl preview --operation KEY\n"
                            "\n"
                            "Says for each verb how the saga would end: which tools are called, what is undone\n"
                            "(! behind the name), and which effects are left standing. Nothing changes. For a\n"
                            "saga it plays the abort; for an escalation each verb that answers it; for an\n"
                            "operation each verdict.\n"
                            "\n"
                            "The play assumes that each later call succeeds. A step whose condition is open\n"
                            "begins; a line \"unless STEP\" says what follows where the condition does not hold.\n"
                            "\n"
                            "  sagactl preview --escalation 7\n"
                            "  sagactl preview order/A-17\n";

/* Returns "pay, ship!"; a "!" marks an undo. */
static struct slice names_of(struct ctl *ctl, struct slice list)
{
    struct json_walk walk = json_walk(list);
    struct slice text = SLICE(""), item;

    while (json_next_element(&walk, &item)) {
        bool is_name = json_type(item) == JSON_STRING;
        struct slice name = is_name ? show_value(ctl, item) : show_member(ctl, item, "step");
        const char *mark = !is_name && json_string_is(json_member(item, "direction"), "undo") ? "!" : "";

        text = arena_printf(&ctl->arena, "%.*s%s%.*s%s", SLICE_ARG(text), text.len ? ", " : "", SLICE_ARG(name), mark);
    }
    return text;
}

/* Returns "resolve --as happened", in the words of `sagactl resolve`. */
static struct slice verb_of(struct ctl *ctl, struct slice verb)
{
    struct slice name = show_member(ctl, verb, "verb"), as = show_member(ctl, verb, "as");
    struct slice then = show_member(ctl, verb, "then");
    bool accept_double = json_type(json_member(verb, "accept_double")) == JSON_BOOL;

    if (as.len) {
        name = arena_printf(&ctl->arena, "--as %.*s", SLICE_ARG(as));
    }
    return arena_printf(&ctl->arena, "%.*s%s%.*s%s", SLICE_ARG(name), then.len ? " --then " : "", SLICE_ARG(then),
                        accept_double ? " --accept-double" : "");
}

static void put_line(const char *name, struct slice text)
{
    if (text.len) {
        (void)printf("    %-9s %.*s\n", name, SLICE_ARG(text));
    }
}

static void print_end(struct ctl *ctl, struct slice end)
{
    struct slice branch = show_member(ctl, end, "if"), unless = show_member(ctl, end, "unless_begins");
    struct slice status = show_member(ctl, end, "status");

    (void)printf("  %s%.*s%s", colour_on(ctl, status_colour(status)), SLICE_ARG(status),
                 colour_off(ctl, status_colour(status)));
    if (branch.len) {
        (void)printf(", if %.*s", SLICE_ARG(branch));
    }
    if (unless.len) {
        (void)printf(", unless %.*s begins", SLICE_ARG(unless));
    }
    (void)printf("\n");
    put_line("calls", names_of(ctl, json_member(end, "calls")));
    put_line("undoes", names_of(ctl, json_member(end, "undone")));
    put_line("leaves", names_of(ctl, json_member(end, "standing")));
    put_line("waits for", show_member(ctl, end, "waits_for"));
}

static void print_verb(struct ctl *ctl, struct slice verb)
{
    struct json_walk ends = json_walk(json_member(verb, "ends"));
    struct slice name = verb_of(ctl, verb), end;

    (void)printf("%s%.*s%s\n", colour_on(ctl, COLOUR_BOLD), SLICE_ARG(name), colour_off(ctl, COLOUR_BOLD));
    while (json_type(json_member(verb, "ends")) == JSON_ARRAY && json_next_element(&ends, &end)) {
        print_end(ctl, end);
    }
}

static bool is_allowed(struct slice verb)
{
    bool allowed = false;

    return json_bool(json_member(verb, "allowed"), &allowed) && allowed;
}

static void print_preview(struct ctl *ctl, struct slice answer)
{
    struct json_walk walk = json_walk(json_member(answer, "verbs"));
    struct slice verb, refused = SLICE("");

    while (json_next_element(&walk, &verb)) {
        if (is_allowed(verb)) {
            print_verb(ctl, verb);
        } else {
            refused = arena_printf(&ctl->arena, "%.*s%s%.*s", SLICE_ARG(refused), refused.len ? ", " : "",
                                   SLICE_ARG(verb_of(ctl, verb)));
        }
    }
    if (refused.len) {
        (void)printf("not possible now: %.*s\n", SLICE_ARG(refused));
    }
    (void)fprintf(stderr, "assumed: %.*s\n", SLICE_ARG(show_member(ctl, answer, "assumes")));
}

int cmd_preview(struct ctl *ctl, int argc, char **argv)
{
    const char *escalation = NULL, *operation = NULL;
    const struct option options[] = {
        {"--escalation", &escalation, NULL, NULL}, {"--operation", &operation, NULL, NULL}, {NULL, NULL, NULL, NULL}};
    struct arguments names;
    struct answer answer;
    struct slice path;
    bool helped = false;
    int code = EXIT_OK;

    if (!options_read(ctl, argc, argv, options, &names, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (names.count + (escalation != NULL) + (operation != NULL) != 1) {
        return usage_error(ctl, "name one saga, one --escalation or one --operation");
    }
    if (names.count == 1) {
        code = saga_path(ctl, names.items[0], &path);
    } else {
        path = arena_printf(&ctl->arena, "/v1/%s/%.*s", escalation ? "escalations" : "operations",
                            SLICE_ARG(url_escape(slice_of(escalation ? escalation : operation), &ctl->arena)));
    }
    if (code == EXIT_OK) {
        code = client_get(ctl, arena_printf(&ctl->arena, "%.*s/preview", SLICE_ARG(path)), &ctl->arena, &answer);
    }
    if (code == EXIT_OK && ctl->output == OUTPUT_DATA) {
        print_data(ctl, answer.body);
    } else if (code == EXIT_OK) {
        print_preview(ctl, answer.body);
    }
    return code;
}
