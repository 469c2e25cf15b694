/* What the readers of tools, sagas and documents share. Private to definitions. */
#ifndef SAGAD_CORE_DEFINITION_PARTS_H
#define SAGAD_CORE_DEFINITION_PARTS_H

#include "core/definition/definition.h"
#include "core/language/members.h"

#define NAME_BYTES_MAX 128
#define STEP_ID_BYTES_MAX 64
#define POINTER_BYTES_MAX 512 /* a JSON Pointer into arguments and bodies: it may be followed by recursion */
#define NAME_RULE "a lower-case letter, then up to 127 lower-case letters, digits, `_`, `.` or `-`"
#define STEP_ID_RULE "a lower-case letter, then up to 63 lower-case letters, digits or `_`"

#define ROOTS_STEP (ROOT_INPUT | ROOT_STEPS | ROOT_SAGA)
#define ROOTS_END ROOTS_STEP /* when all steps are over */
#define ROOTS_LOCK (ROOT_INPUT | ROOT_SAGA)
#define ROOTS_SETTINGS (ROOT_ARGS | ROOT_KEY | ROOT_ATTEMPT | ROOT_SECRET)
#define ROOTS_RESPONSE (ROOT_RESPONSE | ROOT_ARGS | ROOT_KEY)
#define ROOTS_COMPENSATE (ROOT_ARGS | ROOT_RESULT | ROOT_KEY | ROOTS_STEP)

struct reader { /* one pass over a document, a tool or a saga */
    struct arena *arena;
    struct faults *faults;
    bool collects; /* checks for the layers above */
    bool holds;    /* paths against what is known of their values: of what is registered now, not of what was before */
    bool offline;  /* what is registered was not looked at */
    bool tool_is_graded;     /* the tool read last: its effect, `compensate` and `terminal` have no fault */
    struct faults *warnings; /* NULL: nobody wants them */
    struct document_check *checks;
    size_t check_count, check_capacity;
    enum reading reading;          /* the reading of what is being read */
    bool url_raw;                  /* the tool that is being read wants no encoding in its URLs */
    const struct nesting *nesting; /* the sagas that are being read, the innermost first */
};

struct nesting {
    const struct nesting *around; /* the saga that this one is a child of */
    struct slice name;
    uint32_t depth; /* 0: nobody's child */
};

/* How many faults there are by now, also those that were only counted. */
size_t reader_faults(const struct reader *reader);
/* Whether to look for what was probably meant: not any more in a document that is nothing but faults. */
bool reader_has_time(const struct reader *reader);
struct slice reader_element_pointer(struct reader *reader, struct slice pointer, size_t index);

/* A member that is a template; unset when it is absent. */
void reader_template(struct reader *reader, const struct members *members, const char *name, unsigned roots,
                     struct template *out);
void reader_template_at(struct reader *reader, struct slice value, struct slice pointer, unsigned roots,
                        struct template *out);
/* A member that is one expression or condition. */
void reader_expression(struct reader *reader, const struct members *members, const char *name, unsigned roots,
                       struct template *out);

/* Exactly one member that names an adapter, with its settings. */
void reader_adapter(struct reader *reader, const struct members *members, const char *what, enum key_place place,
                    struct slice *adapter, struct template *settings);
/* A barrier remembers effects, and a read has none. `what` names it. */
void reader_refuse_barrier(struct reader *reader, const struct members *members, const char *what);
#define ADAPTERS "http exec sql mcp builtin"

/* The members of a retry object, which will be put on top of `under`; what is not given is 0 in `own`. */
void reader_retry(struct reader *reader, struct slice value, struct slice pointer, enum effect effect,
                  const struct retry_policy *under, struct retry_policy *own);
/* `roots`: what its `with` sees. */
void reader_compensator(struct reader *reader, struct slice value, struct slice pointer, unsigned roots,
                        struct compensator *out);

/* precheck, on_duplicate, material, volatile, ttl, on_expired, rate, concurrency, breaker, test, cost (tool_members.c).
 */
void tool_read_registry(struct reader *reader, const struct members *members, struct tool *tool);
bool pointer_is_sound(struct slice pointer); /* a JSON Pointer to a member */
/* A member that is a list of JSON Pointers, put behind those in `first`; `drops`: what they name is left out, which no
 * element can be. False: it is absent, or no list. */
bool reader_pointers(struct reader *reader, const struct members *members, const char *name,
                     const struct pointers *first, bool drops, struct pointers *out);

/* --- definition/sensitive.c: what only an admin is shown --- */

/* `input` is the schema of the arguments, or of the input of a saga; NULL: there is none. */
void reader_sensitive(struct reader *reader, const struct members *members, const struct schema *input,
                      struct pointers *sensitive);
/* Faults for each text that everybody is shown and that is made of something sensitive. */
void check_tool_shows(struct reader *reader, const struct tool *tool);
void check_saga_shows(struct reader *reader, const struct definition *definition);

/* The class that allows most of those it may turn out to be; tool->effect is the one that allows least. */
enum effect tool_effect_mildest(const struct tool *tool);

/* `name` is SLICE_NONE but for an inline tool. Never NULL: what could be read of it serves to find further faults. */
struct tool *tool_read(struct reader *reader, struct slice body, struct slice name, uint32_t version,
                       struct slice pointer);

/* --- where sagas find tools --- */

enum tool_lookup {
    TOOL_FOUND,
    TOOL_FLAWED, /* the same, but what it does to a saga is known: its effect, `compensate` and `terminal` are right */
    TOOL_BROKEN, /* it exists, and its own faults were reported elsewhere */
    TOOL_MISSING
};

struct tool_finder {
    enum tool_lookup (*find)(struct tool_finder *finder, struct slice name, struct slice pointer,
                             const struct tool **out);
    struct slice (*near)(struct tool_finder *finder,
                         struct slice name); /* a name that was probably meant; may be NULL */
    bool (*is_checked)(struct tool_finder *finder,
                       const struct tool *tool); /* the compensator was looked for already; may be NULL */
    /* The same for sagas, as children: `why` is what is wrong with a registered one, SLICE_NONE when that is said
     * elsewhere. */
    enum tool_lookup (*find_saga)(struct tool_finder *finder, struct slice name, const struct definition **out,
                                  struct slice *why);
    bool (*has_saga)(struct tool_finder *finder, struct slice name);
    struct slice (*near_saga)(struct tool_finder *finder, struct slice name); /* may be NULL */
};

struct found_saga {
    struct slice name, why; /* why: it does not compile here; SLICE_NONE: it does */
    const struct definition *saga;
};

struct source_finder { /* finds registered tools and sagas, and compiles each of them once */
    struct tool_finder finder;
    struct tool_finder
        *outermost; /* where registered sagas look for their own tools and children: this one, or what is around it */
    struct reader *reader;
    const struct tool_source *source; /* may be NULL */
    const struct tool **tools;
    size_t tool_count, tool_capacity;
    struct found_saga *sagas;
    size_t saga_count, saga_capacity;
};
void source_finder_init(struct source_finder *self, struct reader *reader, const struct tool_source *source);

struct saga_reader { /* one saga being read */
    struct reader *reader;
    struct tool_finder *finder;
    struct definition *definition;
    struct slice steps_pointer;
    struct slice *steps_json;
    bool *is_inline;
    bool graph_is_sound; /* every `after` could be resolved */
};

/* --- definition/step.c: first the ids of all steps, then each step --- */

void step_read_id(struct saga_reader *s, uint32_t index);
void step_read(struct saga_reader *s, uint32_t index);

/* --- definition/children.c --- */

/* The child that a step names. Faults unless there is one that can be a part of this saga. */
void child_read(struct saga_reader *s, struct step_definition *step, const struct members *m);
/* The tools and sagas that a saga and its children use. */
void children_collect(struct saga_reader *s);

/* --- definition/saga.c: what a saga has besides its steps --- */

void saga_read_tags(struct reader *reader, const struct members *m, struct definition *definition);
void saga_read_compensation(struct reader *reader, const struct members *m, struct definition *definition);
void saga_read_locks(struct reader *reader, const struct members *m, struct definition *definition);
void saga_read_followers(struct saga_reader *s, const struct members *m);

struct definition *saga_read(struct reader *reader, struct slice body, uint32_t version, struct tool_finder *finder,
                             struct slice pointer);

/* The tool that turned out to be meant, and its retries under those of the compensator. */
void compensator_resolve(struct compensator *compensator, const struct tool *tool);

/* Faults unless the `test` of a tool, where it has one, is a tool that reads. */
void tool_check_test(struct reader *reader, const struct tool *tool, struct tool_finder *finder, struct slice pointer);

/* Faults unless there is a tool `compensator` names and its class may undo. Gives the tool, or NULL. */
const struct tool *compensator_find(struct reader *reader, const struct compensator *compensator,
                                    struct tool_finder *finder, struct slice pointer);

/* " and none is registered under this name", or that nobody looked. */
const char *reader_not_registered(const struct reader *reader);

/* --- definition/paths.c: paths held against what is known of the values they lead into --- */

void check_tool_paths(struct reader *reader, const struct tool *tool);
void check_saga_paths(struct reader *reader, const struct definition *definition, struct slice steps_pointer);

/* --- definition/check.c --- */

/* Every other step before the terminal one, on every path. */
void check_terminal(struct reader *reader, const struct definition *definition, struct slice steps_pointer);
/* What `.steps` is asked for must surely have ended by then. */
void check_references(struct reader *reader, const struct definition *definition, struct slice steps_pointer);

#endif
