/*
 * Templates: JSON in which strings are, or hold, `${ EXPR }`, where EXPR is jq over one object.
 *
 * An expression gets its value in one of two ways. A plain EXPR is a path of members and indexes such as
 * .steps.charge.result.id. It is followed here, in the payload's own text, so that a number of thirty digits keeps all
 * of them. The rules are jq's: a member of null is null, a member of a number is an error. Any other EXPR is a program
 * for libjq: the caller evaluates it and hands the values to template_render().
 *
 * A string that consists of one ${ EXPR } becomes the value, whatever its type. Inside a longer string the value
 * becomes text: a string without its quotes, any other value as compact JSON. `$${` means a literal `${`.
 */
#ifndef SAGAD_CORE_LANGUAGE_EXPRESSION_H
#define SAGAD_CORE_LANGUAGE_EXPRESSION_H

#include "base/arena.h"
#include "base/errors.h"

enum expression_kind { EXPRESSION_PLAIN, EXPRESSION_SECRET, EXPRESSION_PROGRAM };

struct expression_part { /* one part of a plain path */
    struct slice member; /* SLICE_NONE: an index */
    int64_t index;
};

struct expression {
    enum expression_kind kind;
    struct slice source;                 /* the text between ${ and }, trimmed */
    struct slice pointer;                /* the place of the expression, for messages */
    const struct expression_part *parts; /* EXPRESSION_PLAIN; `.` alone has none */
    size_t part_count;
    struct slice secret; /* EXPRESSION_SECRET: the name in secret("name") */
};

struct template_spot; /* a ${ } within the text of the template */

struct template
{
    struct slice json; /* the template's own text; SLICE_NONE: there is none */
    struct expression *expressions;
    struct template_spot *spots; /* one for each expression, in the order of the text */
    size_t count;
    size_t program_count; /* the number of expressions that are EXPRESSION_PROGRAM */
};

/* The roots that an expression may name. Each place offers some of them; the others are SLICE_NONE and read as null. */
enum expression_root {
    ROOT_INPUT = 1 << 0,
    ROOT_STEPS = 1 << 1,
    ROOT_SAGA = 1 << 2,
    ROOT_ARGS = 1 << 3,
    ROOT_KEY = 1 << 4,
    ROOT_ATTEMPT = 1 << 5,
    ROOT_RESULT = 1 << 6,
    ROOT_RESPONSE = 1 << 7,
    ROOT_ITEM = 1 << 8,
    ROOT_SECRET = 1 << 9
};

struct expression_step {
    struct slice id, result /* JSON */, status /* bare text */, error /* JSON object; SLICE_NONE: nothing has failed */;
    struct slice
        lost; /* why the result could not be made; an expression that uses it fails. SLICE_NONE: the result is sound */
};

struct expression_context {
    struct slice input, args, result, response, item; /* JSON */
    struct slice saga_id, saga_name, key;             /* bare text */
    int attempt;                                      /* 0: none */
    const struct expression_step *steps;
    size_t step_count;
};

/*
 * Compile a template. Faults are an unbalanced ${, a plain path or secret() whose root is not in `roots` (a bit set of
 * enum expression_root), and a secret() inside a larger program. jq_check() checks elsewhere whether a program
 * compiles.
 */
void template_compile(struct slice json, struct slice pointer, unsigned roots, struct arena *arena,
                      struct faults *faults, struct template *out);
/* Compile a template that must be one expression or condition, written as "${ EXPR }". Anything else is a fault. */
void expression_compile(struct slice json, struct slice pointer, unsigned roots, struct arena *arena,
                        struct faults *faults, struct template *out);

/*
 * Mark the text at `pointer` as a URL. Values that are put into it are percent-encoded from now on, except for
 * unreserved characters. Two kinds of values are not encoded: a secret() at the beginning of the URL, which may hold
 * scheme and host, and a program that ends in `| @uri`.
 */
void template_encode_url(const struct template *template, struct slice pointer);
/* Does the template put anything into a URL that encoding could change? Encoding changes neither a key nor the number
 * of an attempt. */
bool template_encodes_url(const struct template *template);

bool template_is_set(const struct template *template);
/* Calls back for each step that the template names as `.steps.ID`. Programs are scanned for such names. */
void template_each_step(const struct template *template,
                        void (*found)(void *context, struct slice step_id, struct slice pointer), void *context);

struct step_use { /* how an expression uses a step */
    struct slice step_id, pointer;
    bool other_only; /* the expression reads only the status or error of the step, not its result */
    bool takes_null; /* the expression bears a result that is null: it asks for status or error, or jq's `//`, a
                        comparison or a condition follows */
};
/* Calls back like template_each_step(), and says how the expression uses the step, as far as its text shows that. */
void template_each_use(const struct template *template, void (*found)(void *context, const struct step_use *use),
                       void *context);

struct path_use {               /* a path that an expression follows from the root of its context */
    struct slice text, pointer; /* the path as written, and its place */
    const struct slice *parts;  /* the names of members; SLICE_NONE for an index or for all elements */
    size_t part_count;
};
/* Calls back for each path that the template certainly follows from the root; see expression_paths.c. */
void template_each_path(const struct template *template, void (*found)(void *context, const struct path_use *use),
                        void *context);

/* Does the template name `.result` itself, as the arguments of a compensator do? */
bool template_uses_result(const struct template *template);

/* Follow a plain path. The value is "null" where jq gives null. Returns false with a sentence where jq gives an error.
 * */
bool expression_follow(const struct expression *expression, const struct expression_context *context,
                       struct arena *arena, struct slice *value, struct err *err);

/* Returns the context, the object that programs see, as JSON text. */
struct slice expression_context_json(const struct expression_context *context, struct arena *arena);

/*
 * Render a template. `values` holds one JSON text for each EXPRESSION_PROGRAM and EXPRESSION_SECRET, at the index of
 * its expression; it may be NULL when there are none. Ends with ERR_INVALID and a sentence when a path cannot be
 * followed.
 */
MUST_USE enum err_code template_render(const struct template *template, const struct expression_context *context,
                                       const struct slice *values, struct arena *arena, struct slice *out,
                                       struct err *err);

/* True by the rules of jq: every value except false and null is true. */
bool expression_true(struct slice value);

#endif
