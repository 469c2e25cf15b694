/* The whole check of a definition document: what the core proves, what adapters say of their settings, what jq
 * compiles. */
#ifndef SAGAD_REVIEW_REVIEW_H
#define SAGAD_REVIEW_REVIEW_H

#include "core/definition/definition.h"

/*
 * Every fault goes to `faults`; `out` is good when there are none. Compiling a jq program takes about 15 ms, so on the
 * loop's thread use review_document_core() and have the programs of `out->checks` compiled by jq_submit().
 */
void review_document(struct slice text, const struct tool_source *registered, struct arena *arena,
                     struct faults *faults, struct document *out);
void review_document_core(struct slice text, const struct tool_source *registered, struct arena *arena,
                          struct faults *faults, struct document *out);

/* Advice about a document without faults: what it may say and seldom means (advice.c). Nothing is refused for it. */
void advice_warn(const struct document *document, struct faults *warnings);
/* What another reading would make of the same text: see base/reading.h. */
void advice_differences(const struct document *document, enum reading since, struct faults *notes);

#endif
