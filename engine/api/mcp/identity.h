/*
 * What a call is for: the run, the step, the scope, the turn and the emission, from whatever the host sends.
 *
 * The first source counts that says something: a grant, `_meta`, headers, the arguments that sagad added to those of
 * the tool. Two of them that say different things are refused. Only where none says anything, the keys that hosts send
 * anyway fill the run, the turn and the emission. The id of the JSON-RPC request is never an emission, because a client
 * that sends a call again gives it a new id.
 */
#ifndef SAGAD_API_MCP_IDENTITY_H
#define SAGAD_API_MCP_IDENTITY_H

#include "base/arena.h"
#include "base/errors.h"
#include "base/id.h"
#include "io/http/server.h"

#define HOST_RUN_KEYS_DEFAULT "vscode.conversationId,threadId,ai.opencode/sessionID,antigravity.google/conversation_id"
#define HOST_TURN_KEYS_DEFAULT "vscode.requestId,x-codex-turn-metadata#/turn_id"
#define HOST_EMISSION_KEYS_DEFAULT "claudecode/toolUseId,callId"

/* Members of `_meta`, with commas between; KEY#/POINTER is a value within one. */
struct host_keys {
    struct slice run, turn, emission;
};

struct grant;

struct identity_sources {
    const struct grant *grant; /* NULL: none */
    struct slice meta;         /* JSON object, or SLICE_NONE */
    const struct http_exchange *headers;
    struct slice arguments; /* JSON object, or SLICE_NONE: what of it is for sagad is told by these three */
    bool takes_saga, takes_step, takes_scope;
    const struct host_keys *keys;
    bool session_is_run; /* the id of a session, where nothing else says a run */
};

struct identity {
    struct slice run, step, scope, turn, emission; /* texts; SLICE_NONE: nobody says */
    bool run_is_told;                              /* the host tells it, for sagad: it is no key that it sends anyway */
    bool has_saga;
    struct saga_id saga; /* the saga of the handle */
};

/* False with the sentence of the refusal. */
MUST_USE bool identity_read(const struct identity_sources *sources, struct arena *arena, struct identity *out,
                            struct err *err);

/* The handle of an open saga, for a model to carry. It holds a mark of the run that the host told when it was opened,
 * so that it is good in no other run. `run` may be SLICE_NONE: then it is good in any. */
struct slice saga_handle(struct saga_id saga, struct slice run, struct arena *arena);
/* False: it is none. `is_of_run`: it may be used in this run. */
MUST_USE bool saga_handle_read(struct slice handle, struct slice run, struct saga_id *out, bool *is_of_run);

#endif
