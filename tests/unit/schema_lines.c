/*
 * Reads lines of {"schema": ..., "value": ...} and answers each with one line: "valid", "invalid", or "refused" with
 * the places and reasons for which the schema is refused. check_input_schemas.mjs runs this program.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "core/language/schema.h"

/* Prints an answer as one line, whatever the names in a value hold. */
static void print_in_line(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        (void)putchar((unsigned char)text.ptr[i] < ' ' ? ' ' : text.ptr[i]);
    }
}

static void print_faults(const char *word, const struct faults *faults)
{
    (void)printf("%s", word);
    for (size_t i = 0; i < faults->count; i++) {
        (void)putchar(' ');
        print_in_line(faults->items[i].pointer);
        (void)printf(": ");
        print_in_line(faults->items[i].detail);
        (void)putchar(';');
    }
    (void)printf("\n");
}

static void answer(struct slice line)
{
    struct arena arena;
    struct faults faults;
    struct err err;

    arena_init(&arena, 65536);
    faults_init(&faults, &arena);
    if (json_check(line, &json_limits_default, &err) != ERR_OK) {
        (void)printf("unreadable %s\n", err.message);
        arena_fini(&arena);
        return;
    }
    const struct schema *schema = schema_compile(json_member(line, "schema"), SLICE(""), &arena, &faults);

    if (!schema) {
        print_faults("refused", &faults);
    } else {
        schema_check(schema, json_member(line, "value"), SLICE(""), &arena, &faults);
        print_faults(faults.count == 0 ? "valid" : "invalid", &faults);
    }
    arena_fini(&arena);
}

int main(void)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t len;

    while ((len = getline(&line, &capacity, stdin)) > 0) {
        answer((struct slice){line, (size_t)len - (line[len - 1] == '\n')});
    }
    free(line);
    return 0;
}
