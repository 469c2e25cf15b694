/* See show_sent.h. */
#include "tools/sagactl/show_sent.h"

#include <stdio.h>

#include "tools/sagactl/client.h"
#include "tools/sagactl/output.h"

#define INDENT 12
#define LINES_MAX 3 /* the most lines of an input, unless all were asked for */

void show_input(struct ctl *ctl, struct slice saga, bool full)
{
    struct slice input = show_member(ctl, saga, "input"), shown;
    size_t width = terminal_width(), room = width > INDENT + 20 ? width - INDENT : 20;

    if (input.len == 0 || slice_is(input, "{}")) {
        return;
    }
    shown = full ? input : text_cut(ctl, input, LINES_MAX * room);
    (void)printf("  input     ");
    print_wrapped(shown, INDENT, width);
    if (shown.len < input.len) {
        (void)printf("%*ssagactl show %.*s --full\n", INDENT, "", SLICE_ARG(show_member(ctl, saga, "id")));
    }
}

void show_tags(struct ctl *ctl, struct slice saga)
{
    struct json_walk walk = json_walk(json_member(saga, "tags"));
    struct slice name, value, text = SLICE("");

    while (json_next_member(&walk, &name, &value)) {
        text = arena_printf(&ctl->arena, "%.*s%s%.*s=%.*s", SLICE_ARG(text), text.len > 0 ? "  " : "", SLICE_ARG(name),
                            SLICE_ARG(show_value(ctl, value)));
    }
    if (text.len > 0) {
        (void)printf("  tags      ");
        print_wrapped(text, INDENT, terminal_width());
    }
}

/* Returns "sent 3 times, from 2026-01-31T09:05:00.250Z to 2026-01-31T09:06:00.250Z". */
static struct slice when_sent(struct ctl *ctl, struct slice operation)
{
    struct slice times = show_member(ctl, operation, "attempts"), first = show_member(ctl, operation, "first_sent_at");
    struct slice last = show_member(ctl, operation, "last_sent_at");

    if (first.len == 0) {
        return SLICE("not sent");
    }
    if (slice_equal(first, last)) {
        return arena_printf(&ctl->arena, "sent at %.*s", SLICE_ARG(first));
    }
    return arena_printf(&ctl->arena, "sent %.*s times, from %.*s to %.*s", SLICE_ARG(times), SLICE_ARG(first),
                        SLICE_ARG(last));
}

static int show_operation(struct ctl *ctl, struct slice step, const char *what, struct slice key)
{
    struct answer answer;
    struct slice args;
    int code = client_get(ctl, arena_printf(&ctl->arena, "/v1/operations/%.*s", SLICE_ARG(key)), &ctl->arena, &answer);

    if (code != EXIT_OK) {
        return code;
    }
    args = show_member(ctl, answer.body, "args");
    (void)printf("    %s%.*s  %.*s\n      key   %.*s, ", what, SLICE_ARG(step),
                 SLICE_ARG(show_member(ctl, answer.body, "tool")), SLICE_ARG(key));
    print_wrapped(when_sent(ctl, answer.body), INDENT, terminal_width());
    (void)printf("      args  ");
    print_wrapped(args.len > 0 ? args : SLICE("not kept any more"), INDENT, terminal_width());
    return EXIT_OK;
}

int show_sent(struct ctl *ctl, struct slice saga)
{
    struct slice steps = json_member(saga, "steps"), item;
    struct json_walk walk = json_walk(steps);
    int code = EXIT_OK;
    size_t count = 0;

    while (code == EXIT_OK && json_type(steps) == JSON_ARRAY && json_next_element(&walk, &item)) {
        struct slice step = show_member(ctl, item, "id"), key = show_member(ctl, item, "key");
        struct slice undo = show_member(ctl, json_member(item, "compensation"), "key");

        if (key.len > 0 && count++ == 0) {
            (void)printf("\n  sent\n");
        }
        if (key.len > 0) {
            code = show_operation(ctl, step, "", key);
        }
        if (code == EXIT_OK && undo.len > 0) {
            code = show_operation(ctl, step, "undo of ", undo);
        }
    }
    return code;
}
