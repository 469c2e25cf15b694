/*
 * Finds the steps that an expression names, and whether the expression bears that such a step was skipped. Programs are
 * scanned, not parsed. When the text right behind the name does not tell, the expression counts as not bearing it.
 */
#include "core/language/expression.h"

#include <string.h>

#include "core/language/expression_scan.h"

static bool word_at(struct slice mask, size_t at, const char *word)
{
    return slice_is((struct slice){mask.ptr + at, scan_name(mask, at) - at}, word);
}

static bool starts_at(struct slice mask, size_t at, const char *text)
{
    size_t len = strlen(text);

    return mask.len - at >= len && memcmp(mask.ptr + at, text, len) == 0;
}

/* Returns the place of the bracket that closes the one at `at`, or the end. */
static size_t closing_bracket(struct slice mask, size_t at)
{
    size_t depth = 0;

    for (; at < mask.len; at++) {
        depth += mask.ptr[at] == '[';
        depth -= mask.ptr[at] == ']';
        if (depth == 0) {
            return at;
        }
    }
    return at;
}

/* `at` is behind ".steps.ID". Follows the path from there through pipes, further paths and closing parentheses. */
static bool takes_null(struct slice mask, size_t at)
{
    bool first = true;

    for (;;) {
        at = scan_space(mask, at);
        if (at == mask.len) {
            return first; /* the object of the step itself is never null */
        }
        size_t end = scan_name(mask, at + 1);

        if (mask.ptr[at] == '.' && end > at + 1) {
            if (first && (word_at(mask, at + 1, "status") || word_at(mask, at + 1, "error"))) {
                return true;
            }
            first = false;
            at = end;
        } else if (mask.ptr[at] == '.' && at + 1 < mask.len && mask.ptr[at + 1] == '"') {
            const char *close = memchr(mask.ptr + at + 2, '"', mask.len - at - 2);

            first = false;
            at = close ? (size_t)(close - mask.ptr) + 1 : mask.len;
        } else if (mask.ptr[at] == '[') {
            first = false;
            at = closing_bracket(mask, at);
            at += at < mask.len;
        } else if (mask.ptr[at] == '.' || mask.ptr[at] == '?' || mask.ptr[at] == ')') {
            at++;
        } else if (mask.ptr[at] == '|' && starts_at(mask, scan_space(mask, at + 1), ".")) {
            at = scan_space(mask, at + 1);
        } else {
            break;
        }
    }
    if (mask.ptr[at] == '|') {
        return !starts_at(mask, at, "|=") && word_at(mask, scan_space(mask, at + 1), "not");
    }
    return first || starts_at(mask, at, "//") || starts_at(mask, at, "==") || starts_at(mask, at, "!=") ||
           word_at(mask, at, "then") || word_at(mask, at, "and") || word_at(mask, at, "or");
}

/* `at` is behind ".steps.ID". */
static bool asks_other_in(struct slice mask, size_t at)
{
    at = scan_space(mask, at);
    return at < mask.len && mask.ptr[at] == '.' && (word_at(mask, at + 1, "status") || word_at(mask, at + 1, "error"));
}

struct finder {
    void (*found)(void *context, const struct step_use *use);
    void *context;
};

static void tell(const struct finder *finder, struct slice id, struct slice pointer, bool bears_null, bool other_only)
{
    const struct step_use use = {.step_id = id, .pointer = pointer, .takes_null = bears_null, .other_only = other_only};

    finder->found(finder->context, &use);
}

static void each_in_program(struct slice source, struct slice pointer, const struct finder *finder)
{
    static const char steps[] = ".steps";
    size_t steps_len = sizeof(steps) - 1;
    struct arena arena;

    arena_init(&arena, 4096);
    struct slice mask = scan_mask(source, &arena);

    for (size_t at = 0; at + steps_len < mask.len; at++) {
        if (memcmp(mask.ptr + at, steps, steps_len) != 0 || scan_is_name(mask.ptr[at + steps_len]) ||
            (at > 0 && (scan_is_name(mask.ptr[at - 1]) || strchr(".])\"?}", mask.ptr[at - 1])))) {
            continue;
        }
        size_t i = at + steps_len, end;
        bool in_bracket = false;

        if (mask.ptr[i] == '.' && (end = scan_name(mask, i + 1)) > i + 1) {
            tell(finder, (struct slice){source.ptr + i + 1, end - i - 1}, pointer, takes_null(mask, end),
                 asks_other_in(mask, end));
            continue;
        }
        if (mask.ptr[i] == '.') { /* ."id" */
            i++;
        } else if (mask.ptr[i] == '[') {
            in_bracket = true;
            i = scan_space(mask, i + 1);
        }
        const char *close = i < mask.len && mask.ptr[i] == '"' ? memchr(mask.ptr + i + 1, '"', mask.len - i - 1) : NULL;

        if (close) {
            struct slice id = {source.ptr + i + 1, (size_t)(close - mask.ptr) - i - 1};

            end = (size_t)(close - mask.ptr) + 1;
            if (in_bracket) {
                end = scan_space(mask, end);
                end += end < mask.len && mask.ptr[end] == ']';
            }
            if (!memchr(id.ptr, '\\', id.len)) {
                tell(finder, id, pointer, takes_null(mask, end), asks_other_in(mask, end));
            }
        }
    }
    arena_fini(&arena);
}

static bool asks_other(const struct expression *e)
{
    return e->parts[2].member.ptr && (slice_is(e->parts[2].member, "status") || slice_is(e->parts[2].member, "error"));
}

void template_each_use(const struct template *template, void (*found)(void *context, const struct step_use *use),
                       void *context)
{
    const struct finder finder = {found, context};

    for (size_t i = 0; i < template->count; i++) {
        const struct expression *e = &template->expressions[i];

        switch (e->kind) {
        case EXPRESSION_PLAIN:
            if (e->part_count >= 2 && e->parts[0].member.ptr && slice_is(e->parts[0].member, "steps") &&
                e->parts[1].member.ptr) {
                tell(&finder, e->parts[1].member, e->pointer, e->part_count == 2 || asks_other(e),
                     e->part_count > 2 && asks_other(e));
            }
            break;
        case EXPRESSION_PROGRAM:
            each_in_program(e->source, e->pointer, &finder);
            break;
        case EXPRESSION_SECRET:
            break;
        }
    }
}

static bool program_uses_result(struct slice source)
{
    struct arena arena;
    bool found = false;

    arena_init(&arena, 4096);
    struct slice mask = scan_mask(source, &arena);

    for (size_t at = 0; at < mask.len && !found; at++) {
        found = mask.ptr[at] == '.' && word_at(mask, at + 1, "result") &&
                (at == 0 || (!scan_is_name(mask.ptr[at - 1]) && !strchr(".])\"?}", mask.ptr[at - 1])));
    }
    arena_fini(&arena);
    return found;
}

bool template_uses_result(const struct template *template)
{
    for (size_t i = 0; i < template->count; i++) {
        const struct expression *e = &template->expressions[i];

        if (e->kind == EXPRESSION_PROGRAM
                ? program_uses_result(e->source)
                : e->kind == EXPRESSION_PLAIN &&
                      (e->part_count == 0 || (e->parts[0].member.ptr && slice_is(e->parts[0].member, "result")))) {
            return true;
        }
    }
    return false;
}

struct step_finder {
    void (*found)(void *context, struct slice step_id, struct slice pointer);
    void *context;
};

static void on_use(void *context, const struct step_use *use)
{
    const struct step_finder *finder = context;

    finder->found(finder->context, use->step_id, use->pointer);
}

void template_each_step(const struct template *template,
                        void (*found)(void *context, struct slice step_id, struct slice pointer), void *context)
{
    struct step_finder finder = {found, context};

    template_each_use(template, on_use, &finder);
}
