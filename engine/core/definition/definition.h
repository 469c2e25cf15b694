/*
 * Tools and sagas as written in JSON, compiled: immutable, and all that the engine ever asks of them. Everything lives
 * in the arena given and borrows nothing.
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
#define COST_MICROS_MAX INT64_C(1000000000000000) /* of one call: so that thousands of them can be added up */
#define BUDGET_MAX INT64_C(1000000000000000000)
#define TTL_DEFAULT_MS (INT64_C(24) * 3600 * 1000)
#define GIVE_UP_AFTER_DEFAULT_MS (INT64_C(24) * 3600 * 1000)
#define FOR_EACH_MAX 1000u    /* elements of one step */
#define SAGA_STEPS_MAX 10000u /* of a running saga, with elements and children's steps */
#define CHILD_DEPTH_MAX 8     /* of sagas in sagas */
#define LOCKS_MAX 16
#define LOCK_KEY_BYTES_MAX 512
#define FOLLOWERS_MAX 32

struct outcome_rules { /* conditions over .response; an unset one leaves the adapter's default in force */
    struct template completed, running, retry, no_effect, absent;
};

struct probe {
    struct slice adapter; /* name of the member that selects it */
    struct template settings;
    struct outcome_rules outcome; /* completed, absent, running */
    struct template result;
    int64_t visibility_ms; /* absent counts only that long after the last send; default 5s */
    int64_t timeout_ms;
    int64_t give_up_after_ms; /* default 24h */
};

struct precheck { /* state verification before acting: a read, asked before the intent */
    struct slice adapter;
    struct template settings;
    struct template done;    /* condition over .response: the wanted state holds already */
    struct template blocked; /* a reason, or null; unset: never */
    struct template result;  /* over .response: the step's result where `done` holds; unset: null */
    int64_t timeout_ms;
};

enum on_duplicate { DUPLICATE_COALESCE, DUPLICATE_REFUSE, DUPLICATE_ESCALATE, DUPLICATE_ALLOW };

struct rate_limit { /* over all engines */
    uint32_t limit; /* 0: none */
    int64_t per_ms;
};

struct breaker_policy {
    uint32_t failures; /* so many within the window open it; 0: there is no breaker */
    int64_t window_ms, cooldown_ms;
};

struct tool;

struct compensator { /* the registered undo of a tool, or a step's own */
    bool is_set;
    struct slice tool_name;
    const struct tool *tool; /* resolved in a compiled definition; NULL in a tool on its own */
    struct template with;
    bool tolerates_absent, voids_key;
    bool has_retry;
    struct retry_policy
        retry; /* in a compiled definition: its own members, else those of the tool, else of the class */
    struct retry_policy own_retry; /* its own members alone; 0: not given */
    struct slice pointer;          /* where it stands */
    int64_t give_up_after_ms;      /* default 24h */
};

struct tool {
    struct slice name, description;
    uint32_t version;     /* 0: inline, it lives and dies with its saga */
    enum reading reading; /* of the document it was registered with; an inline one has that of its saga */
    struct slice body;    /* the JSON it was registered with */
    struct slice adapter; /* "http", "exec", "builtin" */
    struct template settings;
    enum effect effect;        /* the stricter one where it depends on the arguments */
    bool conditional;          /* then: decided for each call by effect_if, and frozen in its record */
    struct template effect_if; /* condition over .args */
    enum effect effect_then, effect_else;
    enum key_place key_place;
    struct slice key_name;
    int64_t key_window_ms;        /* 0: not given */
    int settles[KEY_SETTLES_MAX]; /* HTTP statuses of refusals that prove that no attempt under the key took effect */
    size_t settles_count;
    struct outcome_rules outcome;
    struct template result;
    struct template error;  /* the sentence for people of what is no success, over .response; unset: the adapter's */
    uint32_t record_errors; /* bytes kept of the body of such an answer; 0: none */
    bool has_probe;
    struct probe probe;
    struct compensator compensate;
    bool terminal;
    struct template scope; /* plain paths over .args: what a call is about, where its step or caller says nothing */
    bool has_retry;
    struct retry_policy retry;     /* of the stricter class, see retry_policy_of() */
    struct retry_policy own_retry; /* as written; 0: not given */
    int64_t timeout_ms;            /* default 30s */
    const struct schema *input;    /* may be NULL */
    bool has_precheck;
    struct precheck precheck;
    enum on_duplicate on_duplicate;
    bool has_material;                   /* else all that are not volatile are material */
    struct pointers material, volatiles; /* volatiles: as written and the three that always are */
    struct pointers sensitive;           /* into the arguments; with "/result" in front into the result */
    int64_t ttl_ms;                      /* default 24h */
    bool again_on_expired;
    struct rate_limit rate;
    uint32_t concurrency; /* over all engines; 0: unbounded */
    struct breaker_policy breaker;
    struct slice test;     /* the tool of class `read` that tries the breaker; SLICE_NONE: calls or status reads do */
    struct template cost;  /* micro-units of money: a number, or an expression over .args, .result, .key; unset: 0 */
    struct slice currency; /* of the cost: three capital letters; SLICE_NONE: the definition does not say */
    int64_t cost_fixed_micros; /* where it is a number: reserved before the call */
    bool guarded;              /* rate, concurrency, breaker or precheck: asked before each attempt's intent */
};

struct budget { /* of a saga; -1: unbounded */
    int64_t calls, emissions, micros;
};

#define BUDGET_UNBOUNDED ((struct budget){-1, -1, -1})

enum on_failure { /* what a certain failure of a step means for its saga; what nobody knows is settled or asked first */
                  ON_FAILURE_COMPENSATE, /* the saga is undone */
                  ON_FAILURE_ESCALATE,   /* a person says */
                  ON_FAILURE_CONTINUE    /* the saga goes on, the step's result is null */
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
    struct slice id;   /* unique in its saga; of members of a group the whole path: "hotels#0/book" */
    struct slice name; /* what the key is derived from: the id, but in open sagas the name that the caller gave */
    uint32_t index;
    const struct tool *tool; /* STEP_CALL; else NULL */
    struct template with, scope;
    struct template for_each; /* an array: then this step is a group, and runs once an element */
    uint32_t concurrency;     /* of for_each: elements under way at once; 0 is 1 */
    struct slice child_name;  /* STEP_SAGA */
    const struct definition *child;
    struct template sleep;    /* STEP_SLEEP: a duration or an instant */
    struct slice signal_name; /* STEP_SIGNAL */
    int64_t wait_timeout_ms;  /* STEP_SIGNAL, STEP_APPROVE; 0: none */
    struct template show;     /* STEP_APPROVE; may be unset: null is shown */
    unsigned roles;           /* STEP_APPROVE: bits of enum role, at least one */
    bool not_by_starter;      /* STEP_APPROVE: whoever started the saga does not approve it */
    struct template when;     /* condition; where it does not hold the step is skipped */
    enum on_failure on_failure;
    struct retry_policy retry;     /* the step's, else the tool's, else the class's */
    struct retry_policy own_retry; /* the step's as written; 0: not given */
    int64_t timeout_ms;
    struct compensator compensate; /* the step's, else the tool's */
    bool terminal;                 /* of a child: one of its steps is */
    const uint32_t *after;         /* indexes of the steps it waits for */
    uint32_t after_count;
    /* of a member of a group, which came with step.opened; else STEP_NONE, ELEMENT_NONE, NULL and its index */
    uint32_t group;                      /* the step it belongs to */
    uint32_t element;                    /* of for_each: which one */
    const struct definition *written_in; /* NULL: the outermost saga */
    uint32_t member;                     /* its index there */
};

/* A group has no call of its own: its members do the work. */
static inline bool step_is_group(const struct step_definition *step)
{
    return step->kind == STEP_SAGA || template_is_set(&step->for_each);
}

struct lock_definition {
    struct template key;
    bool fails; /* when it is taken; else it waits */
};

struct follower_definition { /* `then` */
    struct slice saga;
    struct template input; /* unset: {} */
    struct template id;    /* unset: made of the saga's id */
};

enum saga_kind {
    SAGA_DEFINED,
    SAGA_OPEN, /* its steps are the calls of an agent, not known beforehand */
    SAGA_RUN   /* the calls that name one run outside any saga: independent of each other */
};

/* Where sagas find the tools that their log names. What it gives lives as long as the engine, its compensator is
 * resolved by the caller. */
struct tool_shelf {
    const struct tool *(*find)(const struct tool_shelf *shelf, struct slice namespace, struct slice name,
                               uint32_t version); /* 0: the newest; NULL: none */
    /*
     * A saga that was written down, compiled with this version of one of its tools and all else as it is pinned.
     * The same pins give the same definition. NULL with a sentence: there is no such version, or the saga does not
     * compile with it.
     */
    const struct definition *(*mend)(const struct tool_shelf *shelf, struct slice namespace,
                                     const struct definition *definition, struct slice tool, uint32_t version,
                                     struct err *err);
};

#define OPEN_SAGA_NAME "~open"
#define RUN_SAGA_NAME "~run"

struct definition { /* a saga with the tools it was pinned to */
    enum saga_kind kind;
    const struct tool_shelf *shelf; /* of SAGA_DEFINED it may be NULL: then no tool of it is mended */
    struct budget budget;
    struct slice name;
    uint32_t version;
    struct slice body;
    const struct schema *input;
    struct pointers sensitive;  /* into the input; with "/result" in front into the output */
    int64_t deadline_ms;        /* 0: none */
    struct slice tags;          /* JSON object of texts, added to those of the start; SLICE_NONE: none */
    struct template tag_values; /* of the same object, where there are plain paths over .input in it; else unset */
    struct slice retired;       /* nothing is started under its name any more: why; SLICE_NONE: it is not */
    uint32_t undo_concurrency;  /* how many steps may be undone at once; 0 is 1 */
    struct template output;
    struct step_definition *steps;
    struct step_room *room; /* of an open one: what its steps lie in, see definition_with_step() */
    uint32_t step_count;
    const uint64_t *ancestors; /* bit matrix, see graph.h: who comes before whom */
    const struct tool **tools; /* every tool it and its children use, compensators too, without inline ones; by name */
    uint32_t tool_count;
    const struct definition **children; /* every saga in it, at any depth, once; by name */
    uint32_t child_count;
    const struct lock_definition *locks;
    uint32_t lock_count;
    const struct follower_definition *followers;
    uint32_t follower_count;
    int64_t retention_ms;   /* 0: its log is kept */
    uint32_t written_count; /* steps as written; behind them are those that groups brought (0 in open sagas) */
    uint32_t height;        /* how deep sagas lie in it: 0 without children */
    uint32_t step_total;    /* steps as written, with those of its children */
};

enum definition_kind { DEFINITION_TOOL, DEFINITION_SAGA };

/* Where tools that are not in the document come from. `version` 0 asks for the newest. False: there is none. */
struct tool_source {
    bool (*find)(void *context, struct slice name, uint32_t version, struct slice *body, uint32_t *version_found);
    void *context;
    /* the same for sagas, as children and followers; NULL: there are none */
    bool (*find_saga)(void *context, struct slice name, uint32_t version, struct slice *body, uint32_t *version_found);
    /* Under which reading a version was registered; NULL: all of them under the newest. */
    enum reading (*reading)(void *context, enum definition_kind kind, struct slice name, uint32_t version);
    /* Is this body the newest version under its name already? What was good enough to be registered stays so. NULL:
     * nothing is. */
    bool (*has_body)(void *context, enum definition_kind kind, struct slice name, const struct digest *identity);
    bool is_offline; /* it knows files only: nobody looked at what is registered, and faults say so */
};

/* Compile one tool. NULL when `faults` grew. The body passed json_check(), here and below. */
struct tool *tool_compile(struct slice body, uint32_t version, struct slice pointer, struct arena *arena,
                          struct faults *faults);
/* The same of one that was registered, under the reading it was registered with. */
struct tool *tool_compile_as(enum reading reading, struct slice body, uint32_t version, struct slice pointer,
                             struct arena *arena, struct faults *faults);

/* Compile a saga against the newest tools of `source`, or the versions that `source` answers with. NULL when `faults`
 * grew. */
struct definition *definition_compile(struct slice body, uint32_t version, const struct tool_source *source,
                                      struct slice pointer, struct arena *arena, struct faults *faults);
struct definition *definition_compile_as(enum reading reading, struct slice body, uint32_t version,
                                         const struct tool_source *source, struct slice pointer, struct arena *arena,
                                         struct faults *faults);

/* What an open saga or a run begins with: no steps. Each call adds one (saga_apply). */
struct definition *definition_open(enum saga_kind kind, const struct tool_shelf *shelf, struct arena *arena);
/* `undo` is the tool that tool->compensate names, NULL where it has none. False: this tool cannot be called forward (a
 * compensator only), or `undo` is missing. */
MUST_USE bool step_definition_of_call(const struct tool *tool, const struct tool *undo, struct step_definition *out);
/*
 * A copy of an open definition with one more step; its index is set. `definition` stays as it is. Amortised: within one
 * arena the array of steps is shared with the one before, but never the place of a step.
 */
struct definition *definition_with_step(const struct definition *definition, const struct step_definition *step,
                                        struct arena *arena);

/*
 * A copy of a definition with the members that the group `step` brings: `count` elements, or (ELEMENT_NONE) the steps
 * of its child. Where they begin is `first`. NULL: there would be more than SAGA_STEPS_MAX. Amortised, like
 * definition_with_step(). An element is the step without `for_each`, `when` and `after`, which were for all of them; it
 * may be a group itself.
 */
struct definition *definition_with_members(const struct definition *definition, uint32_t step, uint32_t count,
                                           struct arena *arena, uint32_t *first);
/*
 * A saga goes on with another version of a tool: its definition with that version wherever the tool is called, forward
 * or to undo. Steps keep their places, names and members. definition_mendable() says beforehand whether there is one:
 * false with a sentence, ERR_NOT_FOUND where the version is not known here.
 */
MUST_USE bool definition_mendable(const struct definition *definition, struct slice namespace, struct slice tool,
                                  uint32_t version, struct err *err);
const struct definition *definition_mend(const struct definition *definition, struct slice namespace, struct slice tool,
                                         uint32_t version, struct arena *arena);
/* The version of this tool that the definition calls; 0: it calls none of this name. In open sagas each step has its
 * own: the oldest of them. */
uint32_t definition_tool_version(const struct definition *definition, struct slice tool);
/* Does a step of it, or of its children, wait for this signal? */
bool definition_awaits(const struct definition *definition, struct slice signal);

/* A budget as written: {"calls", "emissions", "micros"}, one of them at least. False when `faults` grew. */
bool budget_read(struct slice value, struct slice pointer, struct arena *arena, struct faults *faults,
                 struct budget *out);

/* The tags of the definition, with what their paths over the input give: a number is written as it is, and what is not
 * there makes no tag. ERR_INVALID with a sentence: one of them is no short text with this input. */
MUST_USE enum err_code definition_tags(const struct definition *definition, struct slice input, struct arena *arena,
                                       struct slice *out, struct err *err);
/* What a call with these arguments is about, by tool->scope, which is set. SLICE_NONE: nothing. False with a sentence
 * where a path cannot be followed. */
MUST_USE bool tool_scope(const struct tool *tool, struct slice args, struct arena *arena, struct slice *scope,
                         struct err *err);
/* May this tool undo another? Not where it may turn out to be `once`, or only to read. */
bool tool_may_undo(const struct tool *tool);
/* Which retries hold for an operation whose class turned out to be `effect`: the members written, on top of those of
 * the class. */
struct retry_policy retry_policy_of(const struct tool *tool, enum effect effect);
struct retry_policy retry_policy_of_step(const struct step_definition *step, enum effect effect);
struct retry_policy retry_policy_of_undo(const struct compensator *compensate, enum effect effect);

/* A definition document: {"tools": [...], "sagas": [...]}. */
struct document_item {
    enum definition_kind kind;
    struct slice name, body;
    struct digest identity;        /* SHA-256 of the canonical form */
    struct slice pointer;          /* "/tools/0" */
    const struct tool *tool;       /* DEFINITION_TOOL */
    const struct definition *saga; /* DEFINITION_SAGA */
};

struct document_check { /* what only the layers above can check: adapters' settings and jq programs */
    struct slice pointer;
    struct slice program; /* a jq program that must compile; SLICE_NONE: settings of an adapter */
    struct slice adapter, settings;
    enum key_place key_place;
};

struct document {
    struct document_item *items;
    size_t item_count;
    struct document_check *checks;
    size_t check_count;
    struct faults *warnings; /* of what is allowed and seldom meant, as far as the core sees it */
};

/*
 * `text` need not have been checked: syntax faults are reported like all others. Sagas may use tools of the same
 * document. What is compiled here has version 0: it is for looking at, not for running. `registered` may be NULL.
 */
void document_check(struct slice text, const struct tool_source *registered, struct arena *arena, struct faults *faults,
                    struct document *out);

#endif
