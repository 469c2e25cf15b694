/* Turns the bytes that a tool answered into JSON. */
#ifndef SAGAD_ADAPTERS_ANSWER_H
#define SAGAD_ADAPTERS_ANSWER_H

#include "base/arena.h"
#include "base/text.h"

struct call;

enum answer_kind {
    ANSWER_EMPTY,  /* the bytes are white space or none: null */
    ANSWER_JSON,   /* the bytes are JSON, and stay as they are */
    ANSWER_TEXT,   /* the bytes are UTF-8 without NUL, but not JSON: a JSON string */
    ANSWER_BINARY, /* the bytes are anything else: null */
};

enum answer_kind answer_json(struct slice bytes, size_t bytes_max, struct arena *arena, struct slice *json);

/* Fill call->outcome. `detail` is a sentence without secrets. The texts are copied into the call's arena. */
void answer_unsent(struct call *call, bool retry, const char *error, const char *detail);
void answer_unknown(struct call *call, const char *error, const char *detail);

#endif
