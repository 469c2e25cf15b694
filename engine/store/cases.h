/* What stands beside the log of a saga: cases that no log has, and remarks about cases. */
#ifndef SAGAD_STORE_CASES_H
#define SAGAD_STORE_CASES_H

#include "store/store.h"

#define CASE_REMARKS_MAX 100 /* the most remarks of one case */

struct case_remark { /* adds a remark to a case; ERR_NOT_FOUND when there is no such case */
    struct store_read read;
    uint64_t number;        /* in */
    struct slice namespace; /* in */
    struct uuid id;         /* in: a remark with a known id adds nothing */
    enum remark_kind { REMARK_ACKNOWLEDGE, REMARK_ASSIGN, REMARK_COMMENT } kind; /* in */
    struct slice by;                                                             /* in: of REMARK_ACKNOWLEDGE */
    int64_t until_ms;  /* in: of REMARK_ACKNOWLEDGE; 0: until the case is resolved */
    struct slice to;   /* in: of REMARK_ASSIGN; empty: nobody */
    struct slice text; /* in: JSON object, as the case shows it */
    bool full;         /* out: nothing was added, because the case has CASE_REMARKS_MAX remarks */
};
const char *remark_kind_name(enum remark_kind kind);
void store_case_remark(struct store *store, struct case_remark *remark);

/*
 * Opens (resolved_ms is 0) or resolves an escalation that no log has, if the shard is at its epoch. A saga has at most
 * one open case "unreadable"; when there is one already, `stands_as` is its number. A repeat changes nothing.
 */
struct case_put {
    struct store_read read;
    uint32_t shard;                       /* in; the shard of the number: number modulo SHARD_COUNT */
    int64_t epoch;                        /* in */
    uint64_t number;                      /* in */
    struct saga_id saga;                  /* in; may lie in another shard */
    struct slice namespace, reason, body; /* in */
    int64_t opened_ms, resolved_ms;       /* in */
    struct uuid input;                    /* in: the inbox row to remove in the same transaction; nil: none */
    bool ends_saga;                       /* in: abandons the saga, which is of this shard, and passes its locks on */
    uint64_t stands_as;                   /* out; 0: nothing was written, because ... */
    bool fenced, decided;                 /* out: ... another engine has the shard; it was resolved before */
};
void store_case_put(struct store *store, struct case_put *put);

#endif
