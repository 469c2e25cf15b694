/*
 * The file of `sagactl export`: JSON, one document a line. The first line says of what it is an export, the last one
 * that it is whole. A line of the kind "mark" stands behind each page that was read. An export that was cut off goes on
 * behind the last mark: what stands behind that is removed first, so no document is there twice and none is torn.
 */
#ifndef SAGACTL_EXPORT_FILE_H
#define SAGACTL_EXPORT_FILE_H

#include <stdio.h>

#include "tools/sagactl/command.h"

enum export_part { EXPORT_TOOLS, EXPORT_DEFINITIONS, EXPORT_CASES, EXPORT_SAGAS, EXPORT_ACTS, EXPORT_PART_COUNT };

extern const char *const export_kinds[EXPORT_PART_COUNT]; /* "tool": the kind of the lines of a part */

struct export_file {
    struct ctl *ctl;
    const char *path;
    FILE *file;
    enum export_part part; /* the part that is next; EXPORT_PART_COUNT: all are there */
    struct slice cursor;   /* the cursor of the next page of the part; empty: its first page */
    struct slice since;    /* the instant as it was asked for; empty: everything */
    struct slice next;     /* what the next export takes as --since; empty: not known yet */
    bool is_whole;         /* the last line is there */
    int64_t counts[EXPORT_PART_COUNT];
};

/* Makes a file that nobody else can read. Gives EXIT_OK, or the exit code after it printed a sentence. */
MUST_USE int export_file_new(struct export_file *file, struct ctl *ctl, const char *path, struct slice since);
/* Opens a file that export_file_new() made, behind its last mark. */
MUST_USE int export_file_resume(struct export_file *file, struct ctl *ctl, const char *path);

/* Begins a line of the part; then one call for each member, whose JSON is put on one line; then the end. */
void export_file_begin(struct export_file *file, enum export_part part);
void export_file_member(struct export_file *file, const char *name, struct slice json);
void export_file_open_array(struct export_file *file, const char *name);
void export_file_element(struct export_file *file, struct slice json, bool is_first);
void export_file_close_array(struct export_file *file);
void export_file_end(struct export_file *file);

/* A page of the part is in the file. `cursor` leads to the next one; SLICE_NONE: the part is over. */
void export_file_mark(struct export_file *file, enum export_part part, struct slice cursor);
void export_file_finish(struct export_file *file); /* writes the last line */
/* Gives EXIT_OK when everything is on the disk; else it has printed a sentence. Accepts a file that was not opened. */
MUST_USE int export_file_close(struct export_file *file);

#endif
