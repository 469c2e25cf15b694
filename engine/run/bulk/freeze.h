/* A set that is being made: what freeze.c (which gathers and writes it) and look.c share. */
#ifndef SAGAD_RUN_BULK_FREEZE_H
#define SAGAD_RUN_BULK_FREEZE_H

#include "base/map.h"
#include "run/bulk/bulk.h"
#include "run/bulk/groups.h"

#define LOOKS_AT_ONCE 4

struct item_identity { /* the identity of what an item is about; without padding, since it is a key of a map */
    struct uuid saga, key;
    uint64_t escalation;
};

struct candidate {
    struct slice asked; /* the element of the request; SLICE_NONE: from a filter */
    struct slice body;  /* the stored form; SLICE_NONE: not made, and not acted on */
    struct slice name;  /* what people call it; with what follows, once the saga has been heard */
    struct slice says;  /* what the saga would answer: a refusal, or what it leads to; SLICE_NONE: it was not asked */
    bool applies;
};

struct look { /* at one candidate */
    struct freeze *freeze;
    struct candidate *candidate;
    struct arena arena;
    struct bulk_item item;
    struct slice name; /* what people call it */
    struct read_saga read;
    struct find_operation operation;
    struct find_saga find;
    size_t names_tried, names_found;
    struct deferred deferred;
    bool busy;
};

struct freeze {
    struct work *work;
    struct bulk_plan plan;
    struct saga_id id;
    struct arena page; /* the arena of what was read */
    struct candidate *candidates;
    size_t count, capacity, most;
    struct list_questions cases;
    struct list_sagas sagas;
    struct map seen; /* identity -> the candidate that was kept; of a filter itself */
    struct look looks[LOOKS_AT_ONCE];
    size_t next, under_way, looked;
    int64_t looks_until_ms;
    uint64_t applies;
    struct groups refused, unmatched, leads_to;
    const struct definition_row **names;
    size_t name_count;
    struct slice *bodies; /* the bodies of the items that are acted on */
    size_t body_count, written;
    struct deferred deferred;
    struct bulk_begin begin;
    struct bulk_add add;
    struct bulk_freeze done;
    bool over; /* the work has been ended: what is under way is awaited by nobody */
};

/* --- freeze.c --- */

/* Ends the work, when nothing of it is under way any more. */
void freeze_fail(struct freeze *freeze, enum err_code code, const struct err *err);
void freeze_write(struct freeze *freeze); /* all are looked at */
struct slice freeze_name(const struct bulk_item *item, struct arena *arena);
/* False: there are too many, and the work has been ended. */
bool freeze_add(struct freeze *freeze, struct candidate candidate);
/* Sets what the verb is about. False: the item has nothing that the verb could be about. */
bool freeze_aim(struct bulk_item *item);
/* Why this candidate of a request, which was kept, is left alone after all: another one is about the same. Where they
 * say different things both are. NULL: it is the first. */
const char *freeze_repeats(struct freeze *freeze, struct candidate *candidate, const struct bulk_item *item);
/* Keeps the item as what its candidate is. False: it is larger than allowed. */
bool freeze_keep(struct freeze *freeze, struct candidate *candidate, struct bulk_item *item);

/* --- debts.c --- */

void freeze_gather_debts(struct freeze *freeze); /* gathers debts that nobody has settled, then freeze_look() */

/* --- look.c --- */

void freeze_look(struct freeze *freeze); /* at all candidates, then freeze_write() */

#endif
