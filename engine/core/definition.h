/*
 * Tools and sagas as written in JSON, compiled: immutable, and all that the engine ever asks of them. Everything lives in
 * the arena given and borrows nothing.
 *
 * Every fault is reported with its JSON Pointer, all at once. Members of later versions of the format are refused by name.
 */
#ifndef SAGAD_CORE_DEFINITION_H
#define SAGAD_CORE_DEFINITION_H

#include "base/key_place.h"
#include "base/digest.h"
#include "core/expression.h"
#include "core/policy.h"
#include "core/schema.h"

#define DEFINITION_STEPS_MAX 256
#define TIMEOUT_DEFAULT_MS (INT64_C(30) * 1000)
#define TIMEOUT_MAX_MS (INT64_C(3600) * 1000)
#define PROBE_VISIBILITY_DEFAULT_MS (INT64_C(5) * 1000)
#define GIVE_UP_AFTER_DEFAULT_MS (INT64_C(24) * 3600 * 1000)

struct outcome_rules { /* conditions over .response; an unset one leaves the adapter's default in force */
    struct template completed, running, retry, no_effect, absent;
};

struct probe {
    struct slice adapter;        /* name of the member that selects it */
    struct template settings;
    struct outcome_rules outcome; /* completed, absent, running */
    struct template result;
    int64_t visibility_ms;       /* absent counts only that long after the last send; default 5s */
    int64_t timeout_ms;
    int64_t give_up_after_ms;    /* default 24h */
};

struct tool;

struct compensator { /* the registered undo of a tool, or a step's own */
    bool is_set;
    struct slice tool_name;
    const struct tool *tool;     /* resolved in a compiled definition; NULL in a tool on its own */
    struct template with;
    bool tolerates_absent, voids_key;
    bool has_retry;
    struct retry_policy retry;   /* in a compiled definition: its own members, else those of the tool, else of the class */
    struct slice retry_json;     /* `retry` as written; SLICE_NONE when there is none */
    struct slice pointer;        /* where it stands */
    int64_t give_up_after_ms;    /* default 24h */
};

struct tool {
    struct slice name, description;
    uint32_t version;            /* 0: inline, it lives and dies with its saga */
    struct slice body;           /* the JSON it was registered with */
    struct slice adapter;        /* "http", "exec", "builtin" */
    struct template settings;
    enum effect effect;
    enum key_place key_place;
    struct slice key_name;
    int64_t key_window_ms;       /* 0: not given */
    struct outcome_rules outcome;
    struct template result;
    bool has_probe;
    struct probe probe;
    struct compensator compensate;
    bool terminal;
    bool has_retry;
    struct retry_policy retry;
    int64_t timeout_ms;          /* default 30s */
    const struct schema *input;  /* may be NULL */
};

struct step_definition {
    struct slice id;
    uint32_t index;
    const struct tool *tool;
    struct template with, scope;
    struct retry_policy retry;    /* the step's, else the tool's, else the class's */
    int64_t timeout_ms;
    struct compensator compensate; /* the step's, else the tool's */
    bool terminal;
    const uint32_t *after;        /* indexes of the steps it waits for */
    uint32_t after_count;
};

struct definition { /* a saga with the tools it was pinned to */
    struct slice name;
    uint32_t version;
    struct slice body;
    const struct schema *input;
    int64_t deadline_ms;          /* 0: none */
    struct template output;
    struct step_definition *steps;
    uint32_t step_count;
    const uint64_t *ancestors;    /* bit matrix, see graph.h: who comes before whom */
    const struct tool **tools;    /* every tool it uses, compensators too, without inline ones; by name */
    uint32_t tool_count;
};

/* Where tools that are not in the document come from. `version` 0 asks for the newest. False: there is none. */
struct tool_source {
    bool (*find)(void *context, struct slice name, uint32_t version, struct slice *body, uint32_t *version_found);
    void *context;
};

/* Compile one tool. NULL when `faults` grew. The body passed json_check(), here and below. */
struct tool *tool_compile(struct slice body, uint32_t version, struct slice pointer, struct arena *arena, struct faults *faults);

/* Compile a saga against the newest tools of `source`, or the versions that `source` answers with. NULL when `faults` grew. */
struct definition *definition_compile(struct slice body, uint32_t version, const struct tool_source *source, struct slice pointer,
                                      struct arena *arena, struct faults *faults);

/* A definition document: {"tools": [...], "sagas": [...]}. */
enum definition_kind { DEFINITION_TOOL, DEFINITION_SAGA };

struct document_item {
    enum definition_kind kind;
    struct slice name, body;
    struct digest identity;           /* SHA-256 of the canonical form */
    struct slice pointer;             /* "/tools/0" */
    const struct tool *tool;          /* DEFINITION_TOOL */
    const struct definition *saga;    /* DEFINITION_SAGA */
};

struct document_check { /* what only the layers above can check: adapters' settings and jq programs */
    struct slice pointer;
    struct slice program;             /* a jq program that must compile; SLICE_NONE: settings of an adapter */
    struct slice adapter, settings;
    enum key_place key_place;
};

struct document {
    struct document_item *items;
    size_t item_count;
    struct document_check *checks;
    size_t check_count;
};

/*
 * `text` need not have been checked: syntax faults are reported like all others. Sagas may use tools of the same document.
 * What is compiled here has version 0: it is for looking at, not for running. `registered` may be NULL.
 */
void document_check(struct slice text, const struct tool_source *registered, struct arena *arena, struct faults *faults, struct document *out);

#endif
