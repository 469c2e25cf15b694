/*
 * Holds: what a person keeps from beginning until it is released. See decide/ for what follows, and run/call/holds.h
 * for how every engine learns of them.
 *
 * A hold is about a tool, a saga definition, a namespace, or the sagas with a tag. Under it no forward call begins;
 * compensations go on unless the hold says otherwise; probes always go on.
 */
#ifndef SAGAD_CORE_SAGA_HOLD_H
#define SAGAD_CORE_SAGA_HOLD_H

#include "base/json.h"
#include "core/saga/saga.h"

#define HOLD_PACE_DEFAULT 50 /* sagas let go in a second, by each engine */
#define HOLD_PACE_MAX 10000

enum hold_kind { HOLD_TOOL, HOLD_SAGA, HOLD_NAMESPACE, HOLD_TAG, HOLD_KIND_COUNT };

struct hold {
    uint64_t number;
    struct slice namespace;
    enum hold_kind kind;
    struct slice name;  /* the name of the tool, the definition, the namespace or the tag */
    struct slice value; /* the value of the tag */
    struct slice note, actor;
    bool undo;           /* compensations wait, too */
    bool refuses_starts; /* starts are refused; else they are taken and wait */
    uint32_t pace;
    int64_t made_ms, until_ms; /* until_ms 0: somebody has to release it */
};

struct hold_set { /* the holds that are in force now; numbers rise */
    const struct hold *items;
    size_t count;
};

/* The first hold that keeps a call of this tool from beginning; NULL: none does. The arena is scratch memory. */
const struct hold *hold_of_call(const struct hold_set *set, const struct saga *saga, struct slice tool,
                                enum direction direction, struct arena *arena);
/* The first hold that has starts of this definition refused; NULL: none has. `tags` is JSON or SLICE_NONE, twice: those
 * of the definition, and those of the start, which win. */
const struct hold *hold_of_start(const struct hold_set *set, struct slice namespace, struct slice saga,
                                 struct slice definition_tags, struct slice tags, struct arena *arena);

/* The body of POST /v1/holds. False: `faults` says why. */
bool hold_read(struct slice body, struct arena *arena, struct faults *faults, struct hold *out);
/* The members of the body, as the table keeps them and people see them, and `actor`; hold_read_kept() reads them. */
void hold_write(const struct hold *hold, struct arena *arena, struct json_writer *w);
const char *hold_kind_name(enum hold_kind kind); /* "tool", "saga": the member that names it */
bool hold_read_kept(struct slice body, struct arena *arena, struct faults *faults, struct hold *out);

#endif
