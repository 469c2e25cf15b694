/*
 * Renders templates over one context: at once where every expression is plain, on a worker thread where one is a
 * program for jq.
 */
#ifndef SAGAD_RUN_CALL_RENDERING_H
#define SAGAD_RUN_CALL_RENDERING_H

#include "core/definition/definition.h"
#include "io/process/jq.h"

struct secrets;

#define RENDERING_TEMPLATES_MAX 8

struct rendering_item {
    const struct template *template; /* in */
    enum err_code code;              /* out */
    struct slice value;              /* out: JSON in the arena */
    struct slice error;              /* out: a sentence in the arena, unless ERR_OK */
};

/* Lies in its owner; everything is borrowed until it is done. */
struct rendering {
    struct rendering_item items[RENDERING_TEMPLATES_MAX];
    struct rendering_item *many; /* instead of `items`, where there may be more; the owner's. NULL */
    size_t count;
    struct expression_context context;
    struct arena *arena;
    struct slice namespace;        /* the namespace whose secrets are meant */
    const struct secrets *secrets; /* NULL: secret() is an error here */
    void (*done)(
        struct rendering *rendering); /* only when rendering_start() returned false; exactly once, on the loop */
    void *context_of_owner;
    bool abandoned; /* what `context` borrows may be gone: nothing is rendered any more, every item fails */

    struct jq_job *job; /* in the arena, only where there are programs */
    struct slice *outputs;
};

/* True: finished, the items are good. False: `done` follows. */
MUST_USE bool rendering_start(struct loop *loop, struct rendering *rendering);

/*
 * The class of a call of `tool` with these arguments; of a conditional one by its condition, and the stricter one where
 * that cannot be told. Lies in its owner; everything is borrowed until it is done. `done` may come inside the call.
 */
struct effect_of_call {
    const struct tool *tool;
    struct slice args; /* JSON */
    struct arena *arena;
    void (*done)(struct effect_of_call *effect);
    void *context;
    enum effect effect; /* out */
    struct rendering rendering;
};
void effect_of_call(struct loop *loop, struct effect_of_call *effect);

#endif
