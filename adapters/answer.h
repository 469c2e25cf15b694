/* How the bytes that a tool answered become JSON. */
#ifndef SAGAD_ADAPTERS_ANSWER_H
#define SAGAD_ADAPTERS_ANSWER_H

#include "base/arena.h"
#include "base/text.h"

struct call;

enum answer_kind {
    ANSWER_EMPTY,  /* nothing but white space: null */
    ANSWER_JSON,   /* verbatim */
    ANSWER_TEXT,   /* no JSON, but UTF-8 without NUL: a JSON string */
    ANSWER_BINARY, /* anything else: null */
};

enum answer_kind answer_json(struct slice bytes, size_t bytes_max, struct arena *arena, struct slice *json);

/* Fill call->outcome; `detail` is a sentence without secrets. The pieces are copied into the call's arena. */
void answer_unsent(struct call *call, bool retry, const char *error, const char *detail);
void answer_unknown(struct call *call, const char *error, const char *detail);

#endif
