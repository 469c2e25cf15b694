/*
 * Templates: JSON in which strings are, or hold, `${ EXPR }`, where EXPR is jq over one object.
 *
 * Two ways to a value. A plain EXPR (a path of members and indexes such as .steps.charge.result.id) is followed here,
 * in the payload's own text, so that a number of thirty digits stays itself; the rules are jq's (a member of null is
 * null, of a number an error). Anything else is a program for libjq: somebody outside evaluates it and hands
 * the values to template_render().
 *
 * A string that is wholly one ${ EXPR } is replaced by the value, whatever its type. Inside a longer string the value
 * is put in as text: strings bare, everything else as compact JSON. `$${` stands for a literal `${`.
 */
#ifndef SAGAD_CORE_LANGUAGE_EXPRESSION_H
#define SAGAD_CORE_LANGUAGE_EXPRESSION_H

#include "base/arena.h"
#include "base/errors.h"

enum expression_kind { EXPRESSION_PLAIN, EXPRESSION_SECRET, EXPRESSION_PROGRAM };

struct expression_part { /* of a plain path */
    struct slice member; /* SLICE_NONE: an index */
    int64_t index;
};

struct expression {
    enum expression_kind kind;
    struct slice source;                 /* the text between ${ and }, trimmed */
    struct slice pointer;                /* where it stands, for messages */
    const struct expression_part *parts; /* EXPRESSION_PLAIN; `.` alone has none */
    size_t part_count;
    struct slice secret; /* EXPRESSION_SECRET: the name in secret("name") */
};

struct template_spot; /* a ${ } within the text of the template */

struct template
{
    struct slice json; /* the template's own text; SLICE_NONE: there is none */
    struct expression *expressions;
    struct template_spot *spots; /* as many as expressions, in order of the text */
    size_t count;
    size_t program_count; /* how many are EXPRESSION_PROGRAM */
};

/* What an expression may name. Which of these a place offers is up to the place; the rest stays
 * SLICE_NONE and is null. */
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
        lost; /* why its result could not be made: an expression that uses it fails. SLICE_NONE: it is as it is */
};

struct expression_context {
    struct slice input, args, result, response, item; /* JSON */
    struct slice saga_id, saga_name, key;             /* bare text */
    int attempt;                                      /* 0: none */
    const struct expression_step *steps;
    size_t step_count;
};

/*
 * Compile a template. Faults: unbalanced ${, a plain path or secret() whose root is not in `roots` (a bit set of enum
 * expression_root), a secret() inside a larger program. Whether a program compiles is for jq_check() outside.
 */
void template_compile(struct slice json, struct slice pointer, unsigned roots, struct arena *arena,
                      struct faults *faults, struct template *out);
/* The same for a place that is one expression or condition, written as "${ EXPR }"; anything else is a fault. */
void expression_compile(struct slice json, struct slice pointer, unsigned roots, struct arena *arena,
                        struct faults *faults, struct template *out);

/*
 * From now on the values that are put into the text at `pointer`, a URL, are percent-encoded: all but unreserved
 * characters. Not so a secret() that the URL begins with, which may hold scheme and host, and what ends in `| @uri`,
 * which has done it.
 */
void template_encode_url(const struct template *template, struct slice pointer);
/* Does it put anything into a URL that encoding could change? A key and the number of an attempt it does not. */
bool template_encodes_url(const struct template *template);

bool template_is_set(const struct template *template);
/* Does a plain path in it name this step's result or status? Calls back for each step named by `.steps.ID`, also inside
 * programs (found by scanning). */
void template_each_step(const struct template *template,
                        void (*found)(void *context, struct slice step_id, struct slice pointer), void *context);

struct step_use { /* of a step, by an expression */
    struct slice step_id, pointer;
    bool other_only; /* its result is not looked at, but its status or error */
    bool takes_null; /* a result that is null does no harm there: its status or error is asked for, or jq's `//`, a
                        comparison or a condition follows */
};
/* The same with what becomes of the step's result, as far as the text of the expression shows it. */
void template_each_use(const struct template *template, void (*found)(void *context, const struct step_use *use),
                       void *context);

struct path_use {               /* by an expression, from the root of what it sees */
    struct slice text, pointer; /* as written; where */
    const struct slice *parts;  /* names of members; SLICE_NONE: an index, or each element */
    size_t part_count;
};
/* Calls back for each path that is surely followed from the root; see expression_paths.c. */
void template_each_path(const struct template *template, void (*found)(void *context, const struct path_use *use),
                        void *context);

/* Does an expression in it name `.result` itself, as a compensator's arguments do? */
bool template_uses_result(const struct template *template);

/* Follow a plain path. SLICE "null" where jq gives null; false with a sentence where jq gives an error. */
bool expression_follow(const struct expression *expression, const struct expression_context *context,
                       struct arena *arena, struct slice *value, struct err *err);

/* The object that programs see, as JSON text. */
struct slice expression_context_json(const struct expression_context *context, struct arena *arena);

/*
 * Render. `values` holds one JSON text for each EXPRESSION_PROGRAM and EXPRESSION_SECRET, at the index of its
 * expression; may be NULL when there are none. ERR_INVALID with a sentence when a path cannot be followed.
 */
MUST_USE enum err_code template_render(const struct template *template, const struct expression_context *context,
                                       const struct slice *values, struct arena *arena, struct slice *out,
                                       struct err *err);

/* jq's truth: everything but false and null. */
bool expression_true(struct slice value);

#endif
