/*
 * What a definition says about the tools that agents see over the Model Context Protocol, and the list of those tools.
 *
 * A tool is offered unless it says `"expose": false`, or undoes another one and does not say `true`. A saga is offered
 * as `start_NAME` where it says `"expose": true`. Clients take names of 1 to 64 of the characters A-Z a-z 0-9 _ - only.
 * So names are mapped, and two definitions that map to one name are refused at registration.
 */
#ifndef SAGAD_CORE_DEFINITION_EXPOSURE_H
#define SAGAD_CORE_DEFINITION_EXPOSURE_H

#include "core/definition/definition.h"
#include "core/language/members.h"

#define OFFER_NAME_BYTES_MAX 64

struct exposure { /* the member `expose` */
    bool is_given, is_offered;
    bool step, scope;    /* the model fills them, as arguments of these names */
    bool is_open_world;  /* the tool reaches beyond the services of its owner; true where nothing is said */
    struct slice title;  /* SLICE_NONE: none */
    struct slice sets;   /* JSON array of names; SLICE_NONE: it is in no named set */
    struct slice output; /* JSON Schema of the result, an object; SLICE_NONE: none */
};

/* Names every fault of the member `expose` of this tool. Absent: no fault. A saga takes true and false only. */
void exposure_check(const struct members *tool);
bool exposure_is_in_set(const struct exposure *exposure, struct slice set);

struct offered { /* a definition that may be offered */
    enum definition_kind kind;
    struct slice name, body; /* the body passed document_check() */
};

struct offer {
    struct slice name; /* the name that clients see */
    enum definition_kind kind;
    struct slice definition, body; /* the definition's own name, and what it was registered with */
    struct exposure exposure;
    bool reads;       /* the effect is `read`, whatever the arguments */
    bool is_terminal; /* nothing undoes it */
    bool coalesces;   /* a repeat gets what the first call got */
    bool takes_saga;  /* the model may name an open saga as the argument `saga`; so of `step` and `scope` */
    bool takes_step, takes_scope;
};

struct offers { /* the offers, sorted by name */
    struct arena arena;
    struct offer *items;
    size_t count;
};

/* Borrows the definitions. Where two map to one name, neither is offered: a name never changes its meaning. */
void offers_build(const struct offered *definitions, size_t count, struct offers *out);
void offers_fini(struct offers *offers);                                         /* accepts a zeroed struct */
const struct offer *offers_find(const struct offers *offers, struct slice name); /* NULL: there is none */
/* Names a fault of each of the `fresh` that maps to the name of another definition, of `fresh` or of `registered`.
 * A definition of `registered` under the name of a fresh one is replaced by it. */
void offers_check(const struct offered *fresh, const struct slice *pointers, size_t fresh_count,
                  const struct offered *registered, size_t registered_count, struct arena *arena,
                  struct faults *faults);

#endif
