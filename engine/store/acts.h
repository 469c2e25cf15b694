/* What persons and tokens did: acts, and how often somebody was refused. See schema/migrations/0028_act.sql. */
#ifndef SAGAD_STORE_ACTS_H
#define SAGAD_STORE_ACTS_H

#include "base/role.h"
#include "store/store.h"

#define ACTS_LOOKED_AT 20000 /* the most acts that one list reads */

struct person_act { /* SLICE_NONE, nil: there is none */
    struct uuid id;
    int64_t at_ms;
    enum role role;
    const char *via; /* "token", "session" or "local" */
    struct slice namespace, actor, address;
    struct slice verb, kind, target, detail;
    struct saga_id saga;
    struct slice saga_name, business_id, tool, note;
};
/* Returns the act as the requests of the store take it: JSON of bounded size. Long texts are cut, because an act must
 * never keep a change from being written. */
struct slice act_text(const struct person_act *act, struct arena *arena);

struct act_refusal {           /* the refusals of one token in one minute */
    struct person_act example; /* one of them; `at_ms` is the minute, and `id` is made of namespace, token and minute */
    const char *code;
    int64_t count, last_ms;
};
struct act_refuse { /* adds to the rows of their tokens and minutes. When its answer is lost, they may count twice */
    struct store_read read;
    const struct act_refusal *refusals; /* in */
    size_t count;                       /* in */
};
void store_act_refuse(struct store *store, struct act_refuse *refuse);

struct act_forget { /* empties the months that ended before an instant; never the last 31 days */
    struct store_read read;
    int64_t before_ms; /* in */
    int64_t months;    /* out: how many were emptied */
};
void store_act_forget(struct store *store, struct act_forget *forget);

struct act_row {
    struct person_act act;
    struct slice role, via; /* the texts of the row */
    struct slice outcome, code;
    int64_t count, last_ms;
};
struct act_list { /* newest first */
    struct store_read read;
    struct slice namespace;      /* in */
    int64_t since_ms, before_ms; /* in: from the first on, before the second; */
    struct uuid before;          /* in: acts of that very instant only where their ids are lower */
    const struct slice *actors, *verbs, *sagas, *tools;     /* in: one of these, of each; */
    size_t actor_count, verb_count, saga_count, tool_count; /* in: 0: any */
    struct saga_id saga;                                    /* in: nil: any */
    struct slice outcome;                                   /* in: SLICE_NONE: any */
    size_t limit;                                           /* in */
    struct act_row *rows;                                   /* out */
    size_t count;                                           /* out */
    bool has_edge;    /* out: older acts were not read. The last one that was read: */
    int64_t edge_ms;  /* out */
    struct uuid edge; /* out */
};
void store_act_list(struct store *store, struct act_list *list);

#endif
