/* Sentences that are too long are cut, never refused: an error about an error helps nobody. */
#include "base/errors.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *title;
    int status, exit_code;
    bool retryable;
} err_table[ERR_COUNT] = {
#define X(code, name, title, status, exit_code, retryable) [code] = {name, title, status, exit_code, retryable},
    ERR_MAP(X)
#undef X
};

const char *err_name(enum err_code code)
{
    return err_table[code].name;
}

const char *err_title(enum err_code code)
{
    return err_table[code].title;
}

int err_http_status(enum err_code code)
{
    return err_table[code].status;
}

int err_exit_code(enum err_code code)
{
    return err_table[code].exit_code;
}

bool err_retryable(enum err_code code)
{
    return err_table[code].retryable;
}

/* A long sentence is cut, but never within a character: half a character would read as other text. */
static void put_sentence(char *out, size_t bytes, const char *format, va_list args)
{
    int len = vsnprintf(out, bytes, format, args);
    size_t last = bytes - 1; /* where the last character begins */

    if (len < 0 || (size_t)len < bytes) {
        return;
    }
    while (last > 0 && ((unsigned char)out[--last] & 0xc0) == 0x80) {
        /* one more byte of that character */
    }
    unsigned char lead = (unsigned char)out[last];
    size_t need = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;

    if (bytes - 1 - last < need) {
        out[last] = '\0';
    }
}

enum err_code err_set(struct err *err, enum err_code code, const char *message, ...)
{
    if (err) {
        va_list args;

        err->code = code;
        err->detail[0] = err->hint[0] = '\0';
        va_start(args, message);
        put_sentence(err->message, sizeof(err->message), message, args);
        va_end(args);
    }
    return code;
}

void err_detail(struct err *err, const char *format, ...)
{
    if (err) {
        va_list args;

        va_start(args, format);
        put_sentence(err->detail, sizeof(err->detail), format, args);
        va_end(args);
    }
}

void err_hint(struct err *err, const char *format, ...)
{
    if (err) {
        va_list args;

        va_start(args, format);
        put_sentence(err->hint, sizeof(err->hint), format, args);
        va_end(args);
    }
}

enum err_code err_context(struct err *err, const char *format, ...)
{
    if (!err) {
        return ERR_INTERNAL;
    }
    char context[sizeof(err->message)];
    struct err before = *err;
    va_list args;

    va_start(args, format);
    put_sentence(context, sizeof(context), format, args);
    va_end(args);
    (void)err_set(err, before.code, "%s: %s", context, before.message);
    memcpy(err->detail, before.detail, sizeof(err->detail));
    memcpy(err->hint, before.hint, sizeof(err->hint));
    return err->code;
}

void err_print(const struct err *err, const char *program)
{
    (void)fprintf(stderr, "%s: %s\n", program, err->message);
    if (err->detail[0]) {
        (void)fprintf(stderr, "  %s\n", err->detail);
    }
    if (err->hint[0]) {
        (void)fprintf(stderr, "  %s\n", err->hint);
    }
}

void faults_init(struct faults *faults, struct arena *arena)
{
    *faults = (struct faults){.arena = arena, .count_max = 200};
}

/* Callers ask this before they make any text: a hostile document must not fill the arena with faults that nobody
 * reads. */
static bool faults_full(struct faults *faults)
{
    if (faults->count < faults->count_max) {
        return false;
    }
    faults->dropped++;
    return true;
}

static void faults_put(struct faults *faults, struct fault fault)
{
    if (faults->count == faults->capacity) {
        size_t capacity = faults->capacity ? faults->capacity * 2 : 8;
        struct fault *items = arena_array(faults->arena, capacity, sizeof(*items));

        if (faults->count > 0) {
            memcpy(items, faults->items, faults->count * sizeof(*items));
        }
        faults->items = items;
        faults->capacity = capacity;
    }
    faults->items[faults->count++] = fault;
}

void faults_add(struct faults *faults, struct slice pointer, const char *format, ...)
{
    char detail[1024];
    va_list args;

    if (faults_full(faults)) {
        return;
    }
    va_start(args, format);
    put_sentence(detail, sizeof(detail), format, args);
    va_end(args);
    faults_put(faults, (struct fault){.pointer = arena_slice(faults->arena, pointer.ptr ? pointer : SLICE("")),
                                      .detail = arena_slice(faults->arena, slice_of(detail))});
}

void faults_add_not_supported(struct faults *faults, struct slice pointer, const char *member)
{
    if (faults_full(faults)) {
        return;
    }
    faults_put(faults,
               (struct fault){.pointer = arena_slice(faults->arena, pointer.ptr ? pointer : SLICE("")),
                              .detail = arena_printf(faults->arena,
                                                     "\"%s\" is not supported yet by this version of sagad", member),
                              .not_supported = true});
}
