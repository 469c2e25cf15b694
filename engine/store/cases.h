/* What stands beside the log of a saga: cases that no log has, remarks about cases, and debts that were settled. */
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
    struct slice act;  /* in: act_text(), written with a remark that is new; SLICE_NONE: none */
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
    struct slice act;                     /* in: act_text(), written with the case; SLICE_NONE: none */
    bool ends_saga;                       /* in: abandons the saga, which is of this shard, and passes its locks on */
    struct slice sealed, sealed_of; /* the store's: the body as it is written, and which one: a repeat is known by it */
    uint64_t stands_as;             /* out; 0: nothing was written, because ... */
    bool fenced, decided;           /* out: ... another engine has the shard; it was resolved before */
};
void store_case_put(struct store *store, struct case_put *put);

struct debt_settle { /* settles a debt of a saga that has ended; ERR_NOT_FOUND when there is no such saga */
    struct store_read read;
    struct saga_id saga;    /* in */
    struct slice namespace; /* in */
    struct op_key key;      /* in */
    struct slice body;      /* in: JSON; out: what the first who settled this debt has said */
    uint32_t debt_count;    /* in: all debts of the saga */
    struct slice act;       /* in: act_text(), written where it settles the debt; SLICE_NONE: none */
    int64_t forget_ms;      /* in: the saga may be removed then, when its last debt is settled; 0: never */
};
void store_debt_settle(struct store *store, struct debt_settle *settle);

struct debt_settled_row {
    struct uuid saga;
    struct op_key key;
    struct slice body; /* JSON */
};
struct debt_settled { /* reads the debts of these sagas that were settled */
    struct store_read read;
    const struct saga_id *sagas;   /* in */
    size_t saga_count;             /* in */
    struct debt_settled_row *rows; /* out */
    size_t count;                  /* out */
};
void store_debt_settled(struct store *store, struct debt_settled *settled);

#endif
