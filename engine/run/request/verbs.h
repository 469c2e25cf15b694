/*
 * The verbs: each change of an existing saga that somebody outside may ask for is one row here. The API reads requests
 * by its row, engines pass it on to each other by its row, and change.c carries it out by its row. A row is data; this
 * file needs neither the loop nor the database. README.md says how to add one.
 */
#ifndef SAGAD_RUN_REQUEST_VERBS_H
#define SAGAD_RUN_REQUEST_VERBS_H

#include <stddef.h>

#include "base/json.h"
#include "base/role.h"
#include "core/saga/saga.h"

enum verb_id {
    VERB_PAUSE,
    VERB_RESUME,
    VERB_MEND,
    VERB_RERUN,
    VERB_ABORT,
    VERB_ESCALATE,
    VERB_COMPLETE,
    VERB_SIGNAL,
    VERB_DECIDE,
    VERB_RESOLVE_OPERATION,
    VERB_RESOLVE, /* resolves an escalation. The row stands below VERB_RESOLVE_OPERATION, whose input has the same name
                     and a key */
    VERB_ACKNOWLEDGE,
    VERB_ASSIGN,
    VERB_COMMENT,
    VERB_BYPASS,
    VERB_COST,
    VERB_COUNT
};

enum verb_on { ON_SAGA, ON_OPERATION, ON_ESCALATION, ON_APPROVAL };

enum verb_note { /* whether a request says in a person's words why */
                 NOTE_NONE,
                 NOTE_NEEDED,
                 NOTE_OF_OPERATORS /* operators and admins say why; an agent need not */
};

enum verb_answer {
    ANSWER_SAGA,
    ANSWER_OPERATION,
    ANSWER_QUESTION, /* the escalation or the approval */
    ANSWER_OWN       /* change.c has a function for it */
};

enum member_from { /* where a request has the member */
                   FROM_BODY,
                   FROM_WHOLE_BODY,
                   FROM_TARGET, /* the first part of the path that stands in braces */
                   FROM_PATH,   /* the second part of the path that stands in braces */
                   FROM_KEY,    /* the header Idempotency-Key */
                   FROM_TOKEN,
                   FROM_WORDS, /* another member of the body says it, in words */
                   FROM_ROW    /* the row of the verb has it: verb->action */
};

enum member_kind {                 /* the type that the member has in struct saga_input */
                   MEMBER_TEXT,    /* a slice */
                   MEMBER_NOTE,    /* a slice that is not blank */
                   MEMBER_HASH,    /* a slice of 64 hexadecimal digits */
                   MEMBER_ID,      /* a slice. Where it has none, an engine that passes the request on makes an id up */
                   MEMBER_JSON,    /* a slice of JSON, with at most as many bytes as a payload may have */
                   MEMBER_FLAG,    /* a bool */
                   MEMBER_NUMBER,  /* a uint64_t */
                   MEMBER_VERSION, /* a uint32_t from 1 on; 0 where the request has none */
                   MEMBER_INSTANT, /* an int64_t of milliseconds; 0 where the request has none */
                   MEMBER_MICROS,  /* an int64_t from 0 to COST_MICROS_MAX */
                   MEMBER_OPKEY,   /* a struct op_key */
                   MEMBER_ROLE,    /* an enum role */
                   MEMBER_ACTION,  /* an enum operator_action */
                   MEMBER_WORDS    /* nothing: each word of the member sets a flag of another member */
};

struct verb_word {
    const char *word; /* NULL ends a list */
    size_t at;        /* the offset in struct saga_input of the flag that this word sets; 0: it sets none */
};

struct verb_member {
    const char *name; /* the name of the member in the body of a request, and between engines */
    enum member_from from;
    enum member_kind kind;
    size_t at;                     /* the offset in struct saga_input */
    bool required;                 /* each body must have it. Of a note, verb->note says whether it must */
    bool left_out;                 /* it came with a later release: engines leave it out where it is absent */
    size_t characters_max;         /* the length of a note in characters; 0: as many as a body may have */
    const struct verb_word *words; /* the words that MEMBER_WORDS knows */
};

#define VERB_MEMBERS_MAX 16

struct verb {
    const char *name; /* the name between engines; two verbs may share one where one of them is on an operation */
    enum verb_on on;
    enum role least;
    enum verb_note note;
    enum saga_input_type input;
    enum operator_action action; /* the action of SAGA_INPUT_OPERATOR, where no member says it */
    size_t actor;                /* the offset in struct saga_input of the actor */
    size_t target;               /* the offset of the key or number of what the verb is on; unused with ON_SAGA */
    enum verb_answer answer;
    bool creates;    /* the status of the answer is 201 where the request was no repeat */
    bool repeatable; /* to do it twice is the same as once. An engine that cannot know whether another verb was done
                      * looks at the saga */
    int64_t wait_ms; /* how long the caller waits by default until the verb can be done; 0: it never waits */
    const struct verb_member *members;
    size_t member_count;
    /* Adds the faults that no single member shows; may be NULL. */
    void (*check)(struct slice body, const struct saga_input *input, struct faults *faults);
};

extern const struct verb verbs[VERB_COUNT];

/* A change that somebody asks for: a verb, the thing that it is on, and the members of the verb. */
struct change {
    enum verb_id verb;
    struct saga_id saga;     /* the saga of a verb ON_SAGA; all other verbs have a key or a number in the input */
    int64_t wait_ms;         /* for verbs that have `wait_ms` */
    struct saga_input input; /* the members of the verb; the engine adds type and actor */
};

/* Gives the place of the key, of a verb ON_OPERATION; of the number, of a verb ON_ESCALATION or ON_APPROVAL. */
struct op_key *verb_key(const struct verb *verb, struct saga_input *input);
uint64_t *verb_number(const struct verb *verb, struct saga_input *input);
enum json_type verb_member_type(const struct verb_member *member); /* the type in a body; JSON_NONE: any type */
bool verb_requires(const struct verb *verb, const struct verb_member *member); /* must each body have the member? */

/* Reads the members that a body has. `values` holds the JSON of each member of the table, SLICE_NONE where it is
 * absent. Adds each fault that it finds. `says_why` is true where an operator or an admin asks. */
void verb_read_body(const struct verb *verb, const struct slice *values, struct slice body, bool says_why,
                    struct arena *arena, struct saga_input *input, struct faults *faults);

/* Copies the members for `actor`; all of the copy lies in the arena. */
void verb_copy(const struct verb *verb, const struct saga_input *from, struct slice actor, struct arena *arena,
               struct saga_input *to);
/* Gives the first member that is larger than a payload may be; NULL: no member is. */
const struct verb_member *verb_too_large(const struct verb *verb, const struct saga_input *input, size_t bytes_max);

/* Is this member absent? It is a member that engines leave out. */
bool verb_lacks(const struct verb_member *member, const struct saga_input *input);
/* Writes the members into the object that the writer has begun, for another engine. An input without an id gets one
 * first. Where an item of a bulk job asks, the job and the item go along. */
void verb_write(const struct verb *verb, struct saga_input *input, int64_t now_ms, struct arena *arena,
                struct json_writer *w);
/* Reads the members that another engine wrote; they borrow from `object`. NULL: there is no verb of this name, or its
 * members make no sense. */
const struct verb *verb_read(struct slice name, struct slice object, struct arena *arena, struct saga_input *input);

#endif
