/* See export_file.h. */
#include "tools/sagactl/export/export_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/instant.h"
#include "tools/sagactl/output.h"
#include "tools/sagactl/saga_end.h"

#define FORMAT 1
#define MARK "{\"kind\":\"mark\","
#define LAST "{\"kind\":\"end\","

const char *const export_kinds[EXPORT_PART_COUNT] = {[EXPORT_TOOLS] = "tool",
                                                     [EXPORT_DEFINITIONS] = "definition",
                                                     [EXPORT_CASES] = "case",
                                                     [EXPORT_SAGAS] = "saga",
                                                     [EXPORT_ACTS] = "act"};

/* A mark is short, whatever the lines around it are. */
static const struct json_limits line_limits = {
    .bytes_max = 65536, .depth_max = 4, .number_bytes_max = 40, .exponent_max = 400};

static int failed(const struct export_file *file, const char *what)
{
    (void)fprintf(stderr, "sagactl: the file %s cannot be %s: %s\n", file->path, what, strerror(errno));
    return EXIT_FAILED;
}

/* JSON has line ends between its tokens only. */
static void put_on_one_line(struct export_file *file, struct slice json)
{
    for (size_t i = 0; i < json.len; i++) {
        (void)putc(json.ptr[i] == '\n' || json.ptr[i] == '\r' ? ' ' : json.ptr[i], file->file);
    }
}

/* The writer of a line is closed right away: a line has few and short members but for those that come as JSON. */
static void put_line(struct export_file *file, void (*write)(const struct export_file *, struct json_writer *))
{
    struct buffer out;
    struct json_writer w;

    buffer_init(&out, 65536);
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    write(file, &w);
    json_object_end(&w);
    put_on_one_line(file, buffer_slice(&out));
    (void)putc('\n', file->file);
    buffer_fini(&out);
}

static void write_now(struct json_writer *w, const char *name)
{
    char now[INSTANT_TEXT_BYTES];

    instant_text(now_ms(), now);
    json_write_text(w, name, now);
}

static struct slice namespace_of(const struct ctl *ctl)
{
    return ctl->namespace ? slice_of(ctl->namespace) : SLICE_NONE;
}

static void write_first(const struct export_file *file, struct json_writer *w)
{
    json_write_text(w, "kind", "export");
    json_write_i64(w, "format", FORMAT);
    json_write_text(w, "server", file->ctl->server);
    json_write_slice(w, "namespace", namespace_of(file->ctl));
    write_now(w, "at");
    if (file->since.len > 0) {
        json_write_slice(w, "since", file->since);
    }
}

/* Beside each mark and in the last line, so that it is not lost when the export is cut off. */
static void write_next(const struct export_file *file, struct json_writer *w)
{
    if (file->next.len > 0) {
        json_write_slice(w, "next", file->next);
    }
}

static void write_mark(const struct export_file *file, struct json_writer *w)
{
    json_write_text(w, "kind", "mark");
    json_write_text(w, "part", file->part < EXPORT_PART_COUNT ? export_kinds[file->part] : "end");
    json_write_slice(w, "cursor", file->cursor.len ? file->cursor : SLICE_NONE);
    write_next(file, w);
}

static void write_last(const struct export_file *file, struct json_writer *w)
{
    json_write_text(w, "kind", "end");
    write_now(w, "at");
    json_object_begin(w, "counts");
    for (int part = 0; part < EXPORT_PART_COUNT; part++) {
        json_write_i64(w, export_kinds[part], file->counts[part]);
    }
    json_object_end(w);
    write_next(file, w);
}

int export_file_new(struct export_file *file, struct ctl *ctl, const char *path, struct slice since)
{
    *file = (struct export_file){.ctl = ctl, .path = path, .since = since};
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0 && errno == EEXIST) {
        return usage_error(ctl, "the file %s is there already; add --resume to go on with it", path);
    }
    if (fd < 0) {
        return failed(file, "made");
    }
    file->file = fdopen(fd, "w");
    if (!file->file) {
        (void)close(fd); /* nothing was written */
        return failed(file, "made");
    }
    put_line(file, write_first);
    file->part = EXPORT_TOOLS;
    export_file_mark(file, EXPORT_TOOLS, SLICE(""));
    return EXIT_OK;
}

/* --- going on with a file --- */

static bool is_ours(const struct export_file *file, struct slice line)
{
    struct ctl *ctl = file->ctl;
    struct err err = {0};

    return json_check(line, &line_limits, &err) == ERR_OK && slice_is(show_member(ctl, line, "kind"), "export") &&
           slice_is(show_member(ctl, line, "format"), "1") && slice_is(show_member(ctl, line, "server"), ctl->server) &&
           slice_is(show_member(ctl, line, "namespace"), ctl->namespace ? ctl->namespace : "");
}

static void take_mark(struct export_file *file, struct slice line)
{
    struct slice part = show_member(file->ctl, line, "part");

    file->part = EXPORT_TOOLS;
    while (file->part < EXPORT_PART_COUNT && !slice_is(part, export_kinds[file->part])) {
        file->part++;
    }
    file->cursor = arena_slice(&file->ctl->arena, show_member(file->ctl, line, "cursor"));
    file->next = arena_slice(&file->ctl->arena, show_member(file->ctl, line, "next"));
}

static void count_line(struct slice line, int64_t counts[EXPORT_PART_COUNT])
{
    char begin[40];

    for (int part = 0; part < EXPORT_PART_COUNT; part++) {
        (void)snprintf(begin, sizeof(begin), "{\"kind\":\"%s\",", export_kinds[part]);
        counts[part] += slice_starts_with(line, begin);
    }
}

/* Reads the lines up to the last mark. Gives the place behind it; 0: this is no file of ours. */
static off_t find_mark(struct export_file *file)
{
    int64_t counts[EXPORT_PART_COUNT] = {0};
    off_t at = 0, behind = 0;
    char *text = NULL;
    size_t room = 0;
    struct err err = {0};

    for (ssize_t len; (len = getline(&text, &room, file->file)) > 0 && text[len - 1] == '\n'; at += len) {
        struct slice line = {text, (size_t)len - 1};
        bool is_mark = slice_starts_with(line, MARK) && json_check(line, &line_limits, &err) == ERR_OK;

        if (at == 0 && !is_ours(file, line)) {
            break;
        }
        if (at == 0) {
            file->since = arena_slice(&file->ctl->arena, show_member(file->ctl, line, "since"));
        }
        count_line(line, counts);
        file->is_whole = slice_starts_with(line, LAST);
        if (is_mark) {
            take_mark(file, line);
            memcpy(file->counts, counts, sizeof(counts));
            behind = at + len;
        }
    }
    free(text);
    return behind;
}

int export_file_resume(struct export_file *file, struct ctl *ctl, const char *path)
{
    *file = (struct export_file){.ctl = ctl, .path = path, .file = fopen(path, "r+e")};
    if (!file->file) {
        return failed(file, "opened");
    }
    off_t behind = find_mark(file);

    if (behind == 0) {
        return usage_error(ctl, "%s is no file of sagactl export from this server and namespace", path);
    }
    if (!file->is_whole && (ftruncate(fileno(file->file), behind) != 0 || fseeko(file->file, behind, SEEK_SET) != 0)) {
        return failed(file, "written");
    }
    return EXIT_OK;
}

/* --- writing --- */

void export_file_begin(struct export_file *file, enum export_part part)
{
    (void)fprintf(file->file, "{\"kind\":\"%s\"", export_kinds[part]);
    file->counts[part]++;
}

void export_file_member(struct export_file *file, const char *name, struct slice json)
{
    (void)fprintf(file->file, ",\"%s\":", name);
    put_on_one_line(file, json.len > 0 ? json : SLICE("null"));
}

void export_file_open_array(struct export_file *file, const char *name)
{
    (void)fprintf(file->file, ",\"%s\":[", name);
}

void export_file_element(struct export_file *file, struct slice json, bool is_first)
{
    if (!is_first) {
        (void)putc(',', file->file);
    }
    put_on_one_line(file, json);
}

void export_file_close_array(struct export_file *file)
{
    (void)putc(']', file->file);
}

void export_file_end(struct export_file *file)
{
    (void)fputs("}\n", file->file);
}

void export_file_mark(struct export_file *file, enum export_part part, struct slice cursor)
{
    file->part = cursor.ptr ? part : part + 1;
    file->cursor = cursor.ptr ? arena_slice(&file->ctl->arena, cursor) : SLICE("");
    put_line(file, write_mark);
    (void)fflush(file->file); /* a failure stays with the file, and closing it reports it */
}

void export_file_finish(struct export_file *file)
{
    put_line(file, write_last);
}

int export_file_close(struct export_file *file)
{
    if (!file->file) {
        return EXIT_OK;
    }
    bool good = fflush(file->file) == 0 && !ferror(file->file) && fsync(fileno(file->file)) == 0;

    good = fclose(file->file) == 0 && good;
    file->file = NULL;
    return good ? EXIT_OK : failed(file, "written");
}
