/*
 * The judge: the invariants, from what is committed in PostgreSQL, the books of the tools, and the notes
 * of clients. It believes nothing that an engine says of itself. Each is checked as soon as it can be broken; what must
 * come true in the end (I5: every accepted start ends) is checked when the world was healed and has come to rest.
 *
 * The numbers are those of the shared list: I1 one effect a key, I2 no call without its committed intent, I3
 * compensation: right set and reverse order, I4 no forward effect after its compensation, I5 nothing after the end, I6
 * every accepted start ends or is escalated, I7 acknowledged is durable and never changes (and the operations of a log
 * are found by their keys), I8 one owner acts, I9 the log is dense, and folds, I10 the same start is one saga, I11
 * unknown never becomes known by itself, I12 once leaves once, I13 retry and backoff honoured, I14 exactly one open
 * escalation, I18 timers once and never early, I19 people's changes have actor, role, time and reason, I20 what is held
 * does not leave, I21 an item of a bulk job acts once, and not after a stop, and its outcome says so, I22 a receiver of
 * notifications is told what has happened, each thing under one id, and nothing else, I23 each instant of a schedule
 * has one saga.
 */
#ifndef SAGAD_TESTS_SIM_CHECK_H
#define SAGAD_TESTS_SIM_CHECK_H

#include "tests/sim/pg.h"
#include "tests/sim/tool.h"

void check_begin(struct slice definitions); /* `definitions` is a JSON document, borrowed until check_fini() */
void check_fini(void);
void check_end(void);                               /* checks the invariants of the end, when the world is at rest */
void check_turn(const struct committed_turn *turn); /* for pg_on_turn() */
/* To be called when a request has reached a tool and the tool has not acted yet. */
void check_call(const struct tool_entry *entry, struct slice args);
void check_effect(const struct tool_entry *entry); /* the tool has acted */

/* In holder.c: was a hold that is about this call certainly in force, and not about to end? */
bool holders_forbid(struct slice namespace, struct slice tool, bool is_undo, int64_t at_us);
/* In jobber.c: when the answer came to whoever stopped this bulk job; 0: nobody has. */
int64_t jobber_stopped_us(struct saga_id job);

/* Answers that clients and people got. */
struct ack_start {
    struct slice namespace, business_id, input; /* business_id SLICE_NONE: the start has none */
    struct saga_id saga;
    bool created;
};
void check_acknowledged_start(const struct ack_start *ack);
void check_acknowledged_signal(struct saga_id saga, struct slice name, struct slice key);
void check_acknowledged_decision(uint64_t approval, bool approved);
void check_acknowledged_resolution(uint64_t escalation);
/* Checks the saga as an engine showed it: an ended saga never changes. */
void check_seen(struct saga_id saga, struct slice answer);

/* In check_told.c: a message has come to the receiver of notifications, which keeps it or refuses it. */
void check_told(struct slice message_id, struct slice body, bool is_kept);
const char *check_untold(void); /* an event that happened, and that the receiver does not have; NULL: there is none */

/* In clerk.c: a saga has this business id. */
void check_scheduled(struct slice business_id);
void check_schedule_begin(void);
void check_schedule_end(void);

/* For the driver: counts acknowledged sagas that have neither ended nor wait for a person. */
size_t check_unfinished(void);
/* Open escalations and approvals by order of number, for the people of the simulation. False: there is no i-th. */
bool check_escalation_at(size_t i, uint64_t *number, struct saga_id *saga, struct slice *step, struct op_key *key,
                         bool *of_undo);
bool check_approval_at(size_t i, uint64_t *number, struct saga_id *saga, struct slice *hash);

#endif
