/*
 * Bulk jobs: one verb on many sagas. Read README.md of this folder first.
 *
 * A job has items. An item is one change (request/verbs.h) of one saga, with the operation that it is about as it was
 * when the set of the job was frozen.
 */
#ifndef SAGAD_RUN_BULK_BULK_H
#define SAGAD_RUN_BULK_BULK_H

#include "run/request/work.h"
#include "store/bulk.h"

#define BULK_RUN_WITHIN_MS (15 * 60000) /* a frozen set may be run for so long */

struct bulk_item {
    struct saga_id saga;
    struct slice saga_name, business_id, step; /* for people; SLICE_NONE: not known */
    uint64_t escalation;                       /* 0: no open one is known */
    struct op_key key;                         /* the key of the operation; nil: it is about the saga */
    uint32_t attempts;                         /* the calls when the set was frozen */
    enum verb_id verb;
    struct saga_input input; /* the members of the verb but its note, which is the job's */
};

/* --- item.c --- */

/* The stored form, JSON, and back. False: it makes no sense. */
struct slice bulk_item_write(struct bulk_item *item, int64_t now_ms, struct arena *arena);
bool bulk_item_read(struct slice body, struct arena *arena, struct bulk_item *out);
/* Members of the object that the writer has begun: what people are shown of a stored item. */
void bulk_item_show(struct slice body, struct json_writer *w);
/* What an engine is asked for: the item with the note of the job. `id`: "JOB/ITEM", also for verbs that have an
 * Idempotency-Key. */
void bulk_item_change(const struct bulk_item *item, struct slice note, struct slice id, struct change *out);
/* The asking of its case that the frozen set shows: a verdict about an earlier one is refused. */
void bulk_item_set_round(struct bulk_item *item, uint64_t round);
struct slice bulk_item_id(struct saga_id job, uint64_t number, struct arena *arena);

/* --- plan.c: what a request for a job says --- */

enum bulk_of { BULK_OF_CASES, BULK_OF_SAGAS, BULK_OF_ITEMS, BULK_OF_DEBTS };

struct bulk_plan {
    struct slice body, note, filter, items; /* JSON, text, JSON object and array; SLICE_NONE: not given */
    enum bulk_of of;
    bool settles;                        /* the action is `settle` */
    struct slice debt_tools;             /* BULK_OF_DEBTS: of these tools, with commas between; SLICE_NONE: of any */
    enum verb_id verb;                   /* the verb that the members are read by */
    struct slice said[VERB_MEMBERS_MAX]; /* the members that the request says for all items, as JSON */
    struct engine_questions cases;       /* BULK_OF_CASES */
    struct engine_sagas sagas;           /* BULK_OF_SAGAS, BULK_OF_DEBTS: its filter */
};

/* The verb that an action of bulk jobs is; of what is done to cases VERB_RESOLVE. */
bool bulk_find_verb(struct slice action, enum verb_id *out);
/* Adds every fault. All of it lies in the arena, and in `body`. */
void bulk_plan_read(struct slice body, struct arena *arena, struct bulk_plan *plan, struct faults *faults);
/* The members of the verb for one element of `items`, or for all of a filter (SLICE_NONE). */
void bulk_plan_members(const struct bulk_plan *plan, struct slice item, struct arena *arena, struct saga_input *out,
                       struct faults *faults);

/* --- preview.c --- */

/* What the saga says to the item now. */
struct bulk_answer {
    enum err_code code;    /* ERR_OK: it applies */
    struct slice refusal;  /* the sentence of a refusal */
    struct slice leads_to; /* the status in which the saga ends if nothing else fails; two with "or" between */
};
void bulk_preview(const struct saga *saga, const struct bulk_item *item, struct slice note, int64_t now_ms,
                  struct arena *arena, struct bulk_answer *out);

/* --- show.c --- */

/* The job as the API shows it to whoever asked for this work. */
void bulk_show(struct work *work, const struct bulk_row *row, struct json_writer *w);

/* --- bulker.c: carries out the jobs whose shards are ours --- */

struct bulker *bulker_new(struct engine *engine);
void bulker_free(struct bulker *bulker);
void bulker_watch(struct bulker *bulker); /* the store is ready, for the first time */
void bulker_stop(struct bulker *bulker);  /* draining */
void bulker_look(struct bulker *bulker);  /* a shard was gained, or a job was run */

#endif
