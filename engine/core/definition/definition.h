/*
 * Compiled tools and sagas. A compiled definition has all that the engine asks of the JSON, and never changes. It lies
 * in the arena that the caller gave and borrows nothing.
 *
 * Every fault is reported with its JSON Pointer, all at once. Members of later versions of the format are refused by
 * name.
 */
#ifndef SAGAD_CORE_DEFINITION_DEFINITION_H
#define SAGAD_CORE_DEFINITION_DEFINITION_H

#include "base/digest.h"
#include "base/key_place.h"
#include "base/reading.h"
#include "base/role.h"
#include "core/definition/opkey.h"
#include "core/language/expression.h"
#include "core/language/policy.h"
#include "core/language/schema.h"

#define DEFINITION_STEPS_MAX 256
#define TIMEOUT_DEFAULT_MS (INT64_C(30) * 1000)
#define TIMEOUT_MAX_MS (INT64_C(3600) * 1000)
#define PROBE_VISIBILITY_DEFAULT_MS (INT64_C(5) * 1000)
#define BREAKER_FAILURES_DEFAULT 5
#define BREAKER_WINDOW_DEFAULT_MS (INT64_C(60) * 1000)
#define BREAKER_COOLDOWN_DEFAULT_MS (INT64_C(30) * 1000)
#define KEY_SETTLES_MAX 16
#define RECORD_HEADERS_MAX 16                     /* the headers of an answer that a tool keeps */
#define RECORD_HEADER_BYTES_MAX 64                /* the name of one */
#define COST_MICROS_MAX INT64_C(1000000000000000) /* the cost of one call: thousands of them can be added up */
#define BUDGET_MAX INT64_C(1000000000000000000)
#define TTL_DEFAULT_MS (INT64_C(24) * 3600 * 1000)
#define GIVE_UP_AFTER_DEFAULT_MS (INT64_C(24) * 3600 * 1000)
#define FOR_EACH_MAX 1000u    /* the elements of one step */
#define SAGA_STEPS_MAX 10000u /* the steps of a running saga, with its elements and the steps of its children */
#define CHILD_DEPTH_MAX 8     /* how deep sagas lie in sagas */
#define LOCKS_MAX 16
#define LOCK_KEY_BYTES_MAX 512
#define FOLLOWERS_MAX 32

struct outcome_rules { /* conditions over .response; where one is unset, the default of the adapter holds */
    struct template completed, running, retry, no_effect, absent;
};

struct probe {
    struct slice adapter; /* the adapter's name, which is the member that selects it */
    struct template settings;
    struct outcome_rules outcome; /* a probe has the rules completed, absent and running */
    struct template result;
    int64_t visibility_ms; /* "absent" counts only when the last send is that long ago; 5s by default */
    int64_t timeout_ms;
    int64_t give_up_after_ms; /* 24h by default */
};

struct precheck { /* a read before the intent, which looks whether the call is needed */
    struct slice adapter;
    struct template settings;
    struct template done;    /* a condition over .response: the wanted state is there already */
    struct template blocked; /* the reason why the call may not be made, or null; unset: it may always be made */
    struct template result;  /* the result of the step where `done` holds, over .response; unset: null */
    int64_t timeout_ms;
};

enum on_duplicate { DUPLICATE_COALESCE, DUPLICATE_REFUSE, DUPLICATE_ESCALATE, DUPLICATE_ALLOW };

struct rate_limit { /* a limit over all engines */
    uint32_t limit; /* the number of calls in each `per_ms`; 0: there is no limit */
    int64_t per_ms;
};

struct breaker_policy {
    uint32_t failures; /* the number of failures within the window that opens it; 0: there is no breaker */
    int64_t window_ms, cooldown_ms;
};

struct tool;

struct compensator { /* the tool that undoes: registered with a tool, or written in a step */
    bool is_set;
    struct slice tool_name;
    const struct tool *tool; /* set in a compiled definition; NULL in a tool on its own */
    struct template with;
    bool tolerates_absent, voids_key;
    bool has_retry;
    struct retry_policy retry;     /* a compiled definition fills members in from the tool, else from the class */
    struct retry_policy own_retry; /* only the members that it has itself; 0: it has none */
    struct slice pointer;          /* the place of the undo in the document */
    int64_t give_up_after_ms;      /* 24h by default */
};

struct tool {
    struct slice name, description;
    uint32_t version;     /* 0: the tool is inline, it lives and dies with its saga */
    enum reading reading; /* the reading of the document that registered it; an inline tool has that of its saga */
    struct slice body;    /* the JSON of its registration */
    struct slice adapter; /* "http", "exec", "builtin" and so on */
    struct template settings;
    enum effect effect;        /* the stricter class where the class depends on the arguments */
    bool conditional;          /* `effect_if` decides the class of each call, and the record of the call freezes it */
    struct template effect_if; /* a condition over .args */
    enum effect effect_then, effect_else;
    enum key_place key_place;
    struct slice key_name;
    int64_t key_window_ms;        /* how long the receiver remembers keys; 0: the definition does not say */
    int settles[KEY_SETTLES_MAX]; /* statuses of HTTP refusals; each proves that no attempt under the key took effect */
    size_t settles_count;
    struct outcome_rules outcome;
    struct template result;
    struct template error;  /* the sentence about a call that did not succeed, over .response; unset: the adapter's */
    uint32_t record_errors; /* the bytes that are kept of the body of such an answer; 0: none */
    struct slice record_headers; /* the headers that are kept of such an answer: a JSON array; SLICE_NONE: none */
    bool has_probe;
    struct probe probe;
    struct compensator compensate;
    bool terminal;
    struct template scope; /* plain paths over .args: the scope of a call, where its step or caller gives none */
    bool has_retry;
    struct retry_policy retry;     /* the policy of the stricter class, see retry_policy_of() */
    struct retry_policy own_retry; /* only the members that are written; 0: there are none */
    int64_t timeout_ms;            /* 30s by default */
    const struct schema *input;    /* the schema of its arguments; may be NULL */
    bool has_precheck;
    struct precheck precheck;
    enum on_duplicate on_duplicate;
    bool has_material;                   /* false: all arguments that are not volatile are material */
    struct pointers material, volatiles; /* the three that are always volatile are among `volatiles` */
    struct pointers sensitive;           /* places in the arguments; behind "/result", in the result */
    int64_t ttl_ms;                      /* 24h by default */
    bool again_on_expired;
    struct rate_limit rate;
    uint32_t concurrency; /* the calls under way in all engines at once; 0: unbounded */
    struct breaker_policy breaker;
    struct slice test;         /* the tool of class `read` that tries the breaker; SLICE_NONE: calls or probes try it */
    struct template cost;      /* millionths of money: a number, or an expression over .args, .result, .key; unset: 0 */
    struct slice currency;     /* the currency of the cost, three capital letters; SLICE_NONE: unknown */
    int64_t cost_fixed_micros; /* the cost where it is a number, which is reserved before the call */
    bool guarded;              /* it has a rate, concurrency, breaker or precheck, which is asked before each intent */
};

struct budget { /* what a saga may use; -1: unbounded */
    int64_t calls, emissions, micros;
};

#define BUDGET_UNBOUNDED ((struct budget){-1, -1, -1})

enum on_failure { /* what a certain failure of a step means for its saga; an unknown outcome is settled first */
                  ON_FAILURE_COMPENSATE, /* the saga is undone */
                  ON_FAILURE_ESCALATE,   /* a person decides */
                  ON_FAILURE_CONTINUE    /* the saga goes on, and the result of the step is null */
};

enum step_kind {
    STEP_CALL,
    STEP_SAGA, /* a child: its steps become steps of this saga when it begins */
    STEP_SLEEP,
    STEP_SIGNAL,
    STEP_APPROVE
};

#define ELEMENT_NONE UINT32_MAX

struct step_definition {
    enum step_kind kind;
    struct slice id;   /* the step's id, unique in the saga; a member of a group has the whole path: "hotels#0/book" */
    struct slice name; /* the key is derived from it: the id, or in open sagas the name that the caller gave */
    uint32_t index;
    const struct tool *tool; /* the tool of STEP_CALL; NULL for the other kinds */
    struct template with, scope;
    struct template for_each; /* an array; where it is set, this step is a group and runs once for each element */
    uint32_t concurrency;     /* the elements under way at once; 0 is 1 */
    struct slice child_name;  /* the saga of STEP_SAGA */
    const struct definition *child;
    struct template sleep;    /* how long or until when STEP_SLEEP sleeps */
    struct slice signal_name; /* the signal of STEP_SIGNAL */
    int64_t wait_timeout_ms;  /* how long STEP_SIGNAL and STEP_APPROVE wait; 0: without end */
    struct template show;     /* what STEP_APPROVE shows; unset: null */
    unsigned roles;           /* who may decide STEP_APPROVE: bits of enum role, at least one */
    bool not_by_starter;      /* whoever started the saga may not decide STEP_APPROVE */
    struct template when;     /* a condition; where it does not hold, the step is skipped */
    enum on_failure on_failure;
    struct retry_policy retry;     /* the policy of the step, else of the tool, else of the class */
    struct retry_policy own_retry; /* only the members that the step has; 0: it has none */
    int64_t timeout_ms;
    struct compensator compensate; /* the undo of the step, else of the tool */
    bool terminal;                 /* nothing undoes it; a child is terminal where one of its steps is */
    const uint32_t *after;         /* the indexes of the steps that it waits for */
    uint32_t after_count;
    /* These are for members of groups, which came with step.opened; other steps have STEP_NONE, ELEMENT_NONE, NULL and
     * their own index. */
    uint32_t group;                      /* the step of the group */
    uint32_t element;                    /* the number of its element of for_each */
    const struct definition *written_in; /* the saga that it was written in; NULL: the outermost one */
    uint32_t member;                     /* the step's index in that saga */
};

/* A group has no call of its own: its members do the work. */
static inline bool step_is_group(const struct step_definition *step)
{
    return step->kind == STEP_SAGA || template_is_set(&step->for_each);
}

struct lock_definition {
    struct template key;
    bool fails; /* the saga fails where the key is taken; false: it waits */
};

struct follower_definition { /* a saga that starts when this one has completed: `then` */
    struct slice saga;
    struct template input; /* the input of the follower; unset: {} */
    struct template id;    /* the business id of the follower; unset: an id made of the id of this saga */
};

enum saga_kind {
    SAGA_DEFINED,
    SAGA_OPEN, /* the calls of an agent are its steps, which nobody knows beforehand */
    SAGA_RUN   /* the calls that name one run, outside any saga; no call depends on another */
};

/* The place where sagas find the tools that their logs name. A tool that it gives lives as long as the engine; the
 * caller resolves its compensator. */
struct tool_shelf {
    const struct tool *(*find)(const struct tool_shelf *shelf, struct slice namespace, struct slice name,
                               uint32_t version); /* version 0: the newest. NULL: there is none */
    /*
     * Compiles a registered saga with this version of one of its tools, and all other tools as they are pinned. The
     * same pins give the same definition. NULL with a sentence: there is no such version, or the saga does not compile
     * with it.
     */
    const struct definition *(*mend)(const struct tool_shelf *shelf, struct slice namespace,
                                     const struct definition *definition, struct slice tool, uint32_t version,
                                     struct err *err);
};

#define OPEN_SAGA_NAME "~open"
#define RUN_SAGA_NAME "~run"

struct definition { /* a saga with the tools that are pinned for it */
    enum saga_kind kind;
    const struct tool_shelf *shelf; /* NULL is possible in SAGA_DEFINED: no tool of the saga is mended then */
    struct budget budget;
    struct slice name;
    uint32_t version;
    struct slice body;
    const struct schema *input;
    struct pointers sensitive;  /* places in the input; behind "/result", in the output */
    int64_t deadline_ms;        /* 0: there is no deadline */
    struct slice tags;          /* a JSON object of texts, added to the tags of the start; SLICE_NONE: there are none */
    struct template tag_values; /* the same object where it has plain paths over .input; else unset */
    struct slice retired; /* why no saga is started under this name any more; SLICE_NONE: the definition is in use */
    uint32_t undo_concurrency; /* how many steps may be undone at once; 0 is 1 */
    struct template output;
    struct step_definition *steps;
    struct step_room *room; /* the memory of the steps of an open saga, see definition_with_step() */
    uint32_t step_count;
    const uint64_t *ancestors; /* a bit matrix of which step comes before which, see graph.h */
    const struct tool *
        *tools; /* all tools of the saga and its children, with compensators, without inline tools; by name */
    uint32_t tool_count;
    const struct definition **children; /* each saga in it at any depth, once; sorted by name */
    uint32_t child_count;
    const struct lock_definition *locks;
    uint32_t lock_count;
    const struct follower_definition *followers;
    uint32_t follower_count;
    int64_t retention_ms; /* how long the log of an ended saga is kept; 0: for ever */
    uint32_t
        written_count;   /* the steps as written; the steps that groups brought stand behind them (0 in open sagas) */
    uint32_t height;     /* how deep sagas lie in this one: 0 without children */
    uint32_t step_total; /* the steps as written, with those of its children */
};

enum definition_kind { DEFINITION_TOOL, DEFINITION_SAGA };

/* Finds the tools that are not in the document. `version` 0 asks for the newest. False: there is no such tool. */
struct tool_source {
    bool (*find)(void *context, struct slice name, uint32_t version, struct slice *body, uint32_t *version_found);
    void *context;
    /* Finds the sagas that are children or followers; NULL: there are none. */
    bool (*find_saga)(void *context, struct slice name, uint32_t version, struct slice *body, uint32_t *version_found);
    /* Gives the reading under which a version was registered; NULL: all were registered under the newest. */
    enum reading (*reading)(void *context, enum definition_kind kind, struct slice name, uint32_t version);
    /* Is this body the newest version under its name already? What was good enough to be registered stays so. NULL:
     * no body is. */
    bool (*has_body)(void *context, enum definition_kind kind, struct slice name, const struct digest *identity);
    bool is_offline; /* the source knows files only: nobody looked at what is registered, and faults say so */
    bool is_shared;  /* the document is a copy for another namespace: each item names in `shared_by` where it is from */
};

/* Compiles one tool. NULL: `faults` grew. The body has passed json_check(), here and below. */
struct tool *tool_compile(struct slice body, uint32_t version, struct slice pointer, struct arena *arena,
                          struct faults *faults);
/* Compiles a registered tool, under the reading of its registration. */
struct tool *tool_compile_as(enum reading reading, struct slice body, uint32_t version, struct slice pointer,
                             struct arena *arena, struct faults *faults);

/* Compiles a saga against the newest tools of `source`, or the versions that `source` answers with. NULL: `faults`
 * grew. */
struct definition *definition_compile(struct slice body, uint32_t version, const struct tool_source *source,
                                      struct slice pointer, struct arena *arena, struct faults *faults);
struct definition *definition_compile_as(enum reading reading, struct slice body, uint32_t version,
                                         const struct tool_source *source, struct slice pointer, struct arena *arena,
                                         struct faults *faults);

/* Makes the definition of an open saga or a run, which begins without steps. Each call adds one (saga_apply). */
struct definition *definition_open(enum saga_kind kind, const struct tool_shelf *shelf, struct arena *arena);
/* Makes the step of a call. `undo` is the tool that tool->compensate names, NULL where it names none. False: this tool
 * is only a compensator and cannot be called forward, or `undo` is missing. */
MUST_USE bool step_definition_of_call(const struct tool *tool, const struct tool *undo, struct step_definition *out);
/*
 * Copies an open definition with one more step, whose index is set. `definition` stays as it is. The cost is amortised:
 * within one arena the copies share the array of steps, but never the place of a step.
 */
struct definition *definition_with_step(const struct definition *definition, const struct step_definition *step,
                                        struct arena *arena);

/*
 * Copies a definition with the members that the group `step` brings: `count` elements, or the steps of its child where
 * `count` is ELEMENT_NONE. `first` is the index of the first member. NULL: there would be more than SAGA_STEPS_MAX. The
 * cost is amortised like that of definition_with_step(). An element is the step without `for_each`, `when` and `after`,
 * which were for all elements; it may be a group itself.
 */
struct definition *definition_with_members(const struct definition *definition, uint32_t step, uint32_t count,
                                           struct arena *arena, uint32_t *first);
/*
 * Gives the definition of a saga that goes on with another version of a tool: that version stands wherever the tool is
 * called, forward or to undo. Steps keep their places, names and members. definition_mendable() says beforehand whether
 * there is such a definition: false with a sentence, ERR_NOT_FOUND where this engine does not know the version.
 */
MUST_USE bool definition_mendable(const struct definition *definition, struct slice namespace, struct slice tool,
                                  uint32_t version, struct err *err);
const struct definition *definition_mend(const struct definition *definition, struct slice namespace, struct slice tool,
                                         uint32_t version, struct arena *arena);
/* Gives the version of this tool that the definition calls; 0: it calls no tool of this name. In open sagas each step
 * has a version of its own; the oldest counts. */
uint32_t definition_tool_version(const struct definition *definition, struct slice tool);
/* Does a step of the saga, or of its children, wait for this signal? */
bool definition_awaits(const struct definition *definition, struct slice signal);

/* Reads a budget: {"calls", "emissions", "micros"}, one of them at least. False: `faults` grew. */
bool budget_read(struct slice value, struct slice pointer, struct arena *arena, struct faults *faults,
                 struct budget *out);

/* Gives the tags of the definition, with the values of their paths over the input. A number is written as it is; a
 * value that is absent makes no tag. ERR_INVALID with a sentence: one tag is no short text with this input. */
MUST_USE enum err_code definition_tags(const struct definition *definition, struct slice input, struct arena *arena,
                                       struct slice *out, struct err *err);
/* Gives the scope of a call with these arguments, by tool->scope, which is set. SLICE_NONE: it has none. False with a
 * sentence: a path cannot be followed. */
MUST_USE bool tool_scope(const struct tool *tool, struct slice args, struct arena *arena, struct slice *scope,
                         struct err *err);
/* May this tool undo another one? A tool that may turn out to be `once`, or only to read, may not. */
bool tool_may_undo(const struct tool *tool);
/* Gives the retries of an operation whose class turned out to be `effect`: the members that are written, on top of
 * those of the class. */
struct retry_policy retry_policy_of(const struct tool *tool, enum effect effect);
struct retry_policy retry_policy_of_step(const struct step_definition *step, enum effect effect);
struct retry_policy retry_policy_of_undo(const struct compensator *compensate, enum effect effect);

/* A definition document: {"tools": [...], "sagas": [...]}. */
struct document_item {
    enum definition_kind kind;
    struct slice name, body;
    struct digest identity;        /* the SHA-256 of its canonical form */
    struct slice pointer;          /* the place in the document, such as "/tools/0" */
    const struct tool *tool;       /* the tool of a DEFINITION_TOOL */
    const struct definition *saga; /* the saga of a DEFINITION_SAGA */
};

struct document_check { /* a thing that only the layers above can check: settings of an adapter, or a jq program */
    struct slice pointer;
    struct slice program; /* a jq program that must compile; SLICE_NONE: the settings of an adapter are to be checked */
    struct slice adapter, settings;
    enum key_place key_place;
};

struct document {
    struct document_item *items;
    size_t item_count;
    struct document_check *checks;
    size_t check_count;
    struct slice *shares; /* the namespaces that get a copy of it */
    size_t share_count;
    struct faults *warnings; /* about what is allowed and seldom meant, as far as the core sees it */
};

/*
 * Compiles a document. Nobody need have checked `text`: faults of syntax are reported like all others. Sagas may use
 * tools of the same document. A definition that is compiled here has version 0: it is for looking at, not for running.
 * `registered` may be NULL.
 */
void document_check(struct slice text, const struct tool_source *registered, struct arena *arena, struct faults *faults,
                    struct document *out);

#endif
