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
    VERB_RESOLVE, /* of an escalation; below the one before, whose inputs have the same name and a key */
    VERB_ACKNOWLEDGE,
    VERB_ASSIGN,
    VERB_COMMENT,
    VERB_BYPASS,
    VERB_COST,
    VERB_COUNT
};

enum verb_on { ON_SAGA, ON_OPERATION, ON_ESCALATION, ON_APPROVAL };

enum verb_note { /* a person's words about why */
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
                   FROM_TARGET, /* the first part in braces of the path */
                   FROM_PATH,   /* the second */
                   FROM_KEY,    /* the header Idempotency-Key */
                   FROM_TOKEN,
                   FROM_WORDS, /* another member of the body says it, in words */
                   FROM_ROW    /* verb->action */
};

enum member_kind {              /* what lies in the input: */
                   MEMBER_TEXT, /* slice */
                   MEMBER_NOTE, /* slice; not blank */
                   MEMBER_HASH, /* slice: 64 hexadecimal digits */
                   MEMBER_ID,   /* slice; an engine that passes it on makes one up, so that a repeat is known for one */
                   MEMBER_JSON, /* slice: JSON of at most so many bytes as payloads may have */
                   MEMBER_FLAG, /* bool */
                   MEMBER_NUMBER,  /* uint64_t */
                   MEMBER_VERSION, /* uint32_t, from 1; 0 where it is not given */
                   MEMBER_INSTANT, /* int64_t, milliseconds; 0: not given */
                   MEMBER_MICROS,  /* int64_t, 0 to COST_MICROS_MAX */
                   MEMBER_OPKEY,   /* struct op_key */
                   MEMBER_ROLE,    /* enum role */
                   MEMBER_ACTION,  /* enum operator_action */
                   MEMBER_WORDS    /* nothing of its own: each word sets a flag */
};

struct verb_word {
    const char *word; /* NULL ends a list */
    size_t at;        /* in struct saga_input, of the flag that this word sets; 0: none */
};

struct verb_member {
    const char *name; /* in the body of a request, and between engines */
    enum member_from from;
    enum member_kind kind;
    size_t at;                     /* in struct saga_input */
    bool required;                 /* of a note its verb says whether it is */
    bool left_out;                 /* between engines, where it is absent: it came with a later release */
    size_t characters_max;         /* of a note; 0: as many as a body may have */
    const struct verb_word *words; /* MEMBER_WORDS */
};

#define VERB_MEMBERS_MAX 16

struct verb {
    const char *name; /* between engines; two verbs may share it where one of them is on an operation */
    enum verb_on on;
    enum role least;
    enum verb_note note;
    enum saga_input_type input;
    enum operator_action action; /* of SAGA_INPUT_OPERATOR, where no member says it */
    size_t actor;                /* in struct saga_input: who says it */
    size_t target;               /* in struct saga_input: which key or number; unused with ON_SAGA */
    enum verb_answer answer;
    bool creates;    /* the answer is 201 where it was no repeat */
    bool repeatable; /* twice is the same as once. Else an engine that cannot know whether it was done
                      * looks at the saga */
    int64_t wait_ms; /* the caller may wait until it can be done, by default so long; 0: never */
    const struct verb_member *members;
    size_t member_count;
    /* Faults that no single member shows; may be NULL. */
    void (*check)(struct slice body, const struct saga_input *input, struct faults *faults);
};

extern const struct verb verbs[VERB_COUNT];

/* What somebody asks for: a verb, what it is about, and its members. */
struct change {
    enum verb_id verb;
    struct saga_id saga;     /* ON_SAGA; all others have their key or number in the input */
    int64_t wait_ms;         /* verbs with `wait_ms` */
    struct saga_input input; /* its members; the engine adds type and actor */
};

struct op_key *verb_key(const struct verb *verb, struct saga_input *input);    /* ON_OPERATION */
uint64_t *verb_number(const struct verb *verb, struct saga_input *input);      /* ON_ESCALATION, ON_APPROVAL */
enum json_type verb_member_type(const struct verb_member *member);             /* of a body; JSON_NONE: any */
bool verb_requires(const struct verb *verb, const struct verb_member *member); /* has every body to have it? */

/* Reads the members that a body has. `values`: the JSON of each member of the table, SLICE_NONE where it is absent.
 * Adds every fault that is found; `says_why`: whoever asks is an operator or admin. */
void verb_read_body(const struct verb *verb, const struct slice *values, struct slice body, bool says_why,
                    struct arena *arena, struct saga_input *input, struct faults *faults);

/* A copy of the members for `actor`, all of it in the arena. */
void verb_copy(const struct verb *verb, const struct saga_input *from, struct slice actor, struct arena *arena,
               struct saga_input *to);
/* The first member that is larger than a payload may be; NULL: none. */
const struct verb_member *verb_too_large(const struct verb *verb, const struct saga_input *input, size_t bytes_max);

/* Is a member that is left out between engines absent? */
bool verb_lacks(const struct verb_member *member, const struct saga_input *input);
/* Between engines: members of the object that the writer has begun, and back. Whatever has no id gets one first.
 * Which item of a bulk job asks goes with them. */
void verb_write(const struct verb *verb, struct saga_input *input, int64_t now_ms, struct arena *arena,
                struct json_writer *w);
/* NULL: it is no verb, or its members make no sense. Members borrow from `object`. */
const struct verb *verb_read(struct slice name, struct slice object, struct arena *arena, struct saga_input *input);

#endif
