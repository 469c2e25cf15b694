/*
 * The command start --batch: sends the lines of a file, many in one request. A line whose outcome is uncertain (no
 * answer, too busy) is sent again. This is safe because each line has an id: its own, or one that this run gives it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/id.h"
#include "tools/sagactl/client.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/output.h"
#include "tools/sagactl/saga_end.h"

#define STARTS_MAX 1000
#define REQUEST_BYTES_MAX 1000000 /* a service accepts 1 MiB by default */
#define REQUEST_MS 60000
#define PAUSE_MS 1000

struct line {
    int64_t number;    /* the number of the line in the file, from 1 */
    struct slice text; /* JSON with an id */
    bool settled;
};

struct starts {
    struct ctl *ctl;
    FILE *file;
    char *read;
    size_t read_capacity;
    char run[UUID_TEXT_BYTES];
    struct arena arena; /* holds the current lines */
    struct line lines[STARTS_MAX];
    size_t count, unsettled;
    struct line next; /* a line that was read but does not fit into the request */
    int64_t number;
    bool at_end;
    size_t at_once; /* lines in a request; fewer when the service accepts less */
    int64_t patience_ms, moved_ms;
    size_t started, there, refused;
};

/* --- results --- */

static void print_started(struct starts *starts, int64_t number, bool created, struct slice saga)
{
    struct ctl *ctl = starts->ctl;
    struct slice id = show_member(ctl, saga, "id"), status = show_member(ctl, saga, "status");

    if (ctl->output == OUTPUT_NAME) {
        (void)printf("%.*s\n", SLICE_ARG(id));
    } else {
        (void)printf("%-7lld %s  %.*s  %s%.*s%s\n", (long long)number, created ? "started" : "there  ", SLICE_ARG(id),
                     colour_on(ctl, status_colour(status)), SLICE_ARG(status), colour_off(ctl, status_colour(status)));
    }
}

static void print_refused(const struct starts *starts, int64_t number, struct slice detail)
{
    const struct ctl *ctl = starts->ctl;

    /* With -o name only the ids are data. */
    (void)fprintf(ctl->output == OUTPUT_NAME ? stderr : stdout, "%-7lld %srefused%s  %.*s\n", (long long)number,
                  colour_on(ctl, COLOUR_RED), colour_off(ctl, COLOUR_RED), SLICE_ARG(detail));
}

static struct slice detail_of(struct ctl *ctl, struct slice problem)
{
    struct slice detail = show_member(ctl, problem, "detail"), error = json_element(json_member(problem, "errors"), 0);

    if (json_type(error) == JSON_OBJECT) {
        struct slice pointer = show_member(ctl, error, "pointer"), text = show_member(ctl, error, "detail");

        return arena_printf(&ctl->arena, "%.*s: %.*s%s%.*s", SLICE_ARG(detail), SLICE_ARG(pointer),
                            pointer.len > 0 ? ": " : "", SLICE_ARG(text));
    }
    return detail;
}

static void settle(struct starts *starts, struct line *line, int64_t status, struct slice result)
{
    struct ctl *ctl = starts->ctl;
    bool is_started = status == 200 || status == 201;

    line->settled = true;
    starts->unsettled--;
    starts->moved_ms = now_ms();
    starts->started += status == 201;
    starts->there += status == 200;
    starts->refused += !is_started;
    progress_clear(ctl);
    if (ctl->output == OUTPUT_DATA) {
        print_data(ctl, arena_printf(&ctl->arena, "{\"line\":%lld,%.*s", (long long)line->number, (int)(result.len - 1),
                                     result.ptr + 1));
    } else if (is_started) {
        print_started(starts, line->number, status == 201, json_member(result, "body"));
    } else {
        print_refused(starts, line->number, detail_of(ctl, json_member(result, "body")));
    }
}

/* Refuses a line here, before or after it was sent. */
static void refuse(struct starts *starts, struct line *line, const char *type, struct slice detail)
{
    struct buffer text;
    struct json_writer w;

    buffer_init(&text, 65536);
    json_writer_init(&w, &text);
    json_object_begin(&w, NULL);
    json_object_begin(&w, "body");
    json_write_text(&w, "type", type);
    json_write_slice(&w, "detail", detail);
    json_object_end(&w);
    json_object_end(&w);
    settle(starts, line, 0, buffer_slice(&text));
    buffer_fini(&text);
}

/* --- lines --- */

/* Gives the line an id. Without an id, sending it again would start another saga. */
static struct slice with_id(struct starts *starts, struct slice text, int64_t number)
{
    if (json_type(text) != JSON_OBJECT || json_member(text, "id").ptr) {
        return text;
    }
    struct slice rest = {text.ptr + 1, text.len - 1};

    return arena_printf(&starts->arena, "{\"id\":\"%s-%lld\"%s%.*s", starts->run, (long long)number,
                        json_count(text) > 0 ? "," : "", SLICE_ARG(rest));
}

/* Reads the next line. Returns false at the end of the file. Lines that are not JSON are refused on the way. */
static bool read_line(struct starts *starts, struct line *out)
{
    ssize_t len;

    while ((len = getline(&starts->read, &starts->read_capacity, starts->file)) >= 0) {
        struct slice text = slice_trim((struct slice){starts->read, (size_t)len});
        struct err err = {0};

        starts->number++;
        if (text.len == 0) {
            continue;
        }
        *out = (struct line){.number = starts->number};
        if (json_check(text, &json_limits_default, &err) == ERR_OK) {
            out->text = with_id(starts, arena_slice(&starts->arena, text), starts->number);
            return true;
        }
        starts->unsettled++; /* settle() counts it back */
        refuse(starts, out, "not-json", arena_printf(&starts->arena, "%s: %s", err.message, err.detail));
    }
    starts->at_end = true;
    return false;
}

static void fill(struct starts *starts)
{
    size_t bytes = 0;

    /* The line that did not fit is in the arena of the lines before it. It is the only one that stays. */
    char *kept = starts->next.text.ptr ? memory_alloc(starts->next.text.len + 1) : NULL;

    if (kept) {
        memcpy(kept, starts->next.text.ptr, starts->next.text.len);
    }
    arena_reset(&starts->arena);
    starts->count = 0;
    if (kept) {
        struct slice text = {kept, starts->next.text.len};

        starts->lines[starts->count++] =
            (struct line){.number = starts->next.number, .text = arena_slice(&starts->arena, text)};
        bytes = text.len;
        free(kept);
        starts->next = (struct line){0};
    }
    while (starts->count < STARTS_MAX && !starts->at_end) {
        struct line line;

        if (!read_line(starts, &line)) {
            break;
        }
        if (starts->count > 0 && bytes + line.text.len + 2 > REQUEST_BYTES_MAX) {
            starts->next = line;
            break;
        }
        bytes += line.text.len + 2;
        starts->lines[starts->count++] = line;
    }
    starts->unsettled = starts->count;
}

/* --- requests --- */

/* Writes a request with the first unsettled lines, and returns how many. */
static size_t write_request(struct starts *starts, struct line **sent, struct buffer *out)
{
    size_t count = 0;

    buffer_put_char(out, '[');
    for (size_t i = 0; i < starts->count && count < starts->at_once; i++) {
        if (!starts->lines[i].settled) {
            buffer_put_text(out, count > 0 ? "," : "");
            buffer_put_slice(out, starts->lines[i].text);
            sent[count++] = &starts->lines[i];
        }
    }
    buffer_put_char(out, ']');
    return count;
}

/* Returns the seconds to wait before the lines that are too much now; 0 when there are none. */
static int64_t take_results(struct starts *starts, struct line **sent, size_t count, struct slice items)
{
    struct json_walk walk = json_walk(items);
    struct slice result;
    int64_t wait_s = 0;

    for (size_t i = 0; i < count && json_next_element(&walk, &result); i++) {
        int64_t status = 0, again_s = 0;

        (void)json_i64(json_member(result, "status"), &status);
        if (status == 503 || status == 429) {
            again_s = json_i64(json_member(result, "retry_after"), &again_s) && again_s > 0 ? again_s : 1;
            wait_s = again_s > wait_s ? again_s : wait_s;
        } else {
            settle(starts, sent[i], status, result);
        }
    }
    return wait_s;
}

static void show_counts(const struct starts *starts, int64_t wait_ms)
{
    char waits[64] = "";

    if (wait_ms > 0) {
        (void)snprintf(waits, sizeof(waits), "; waiting %lld s", (long long)(wait_ms + 999) / 1000);
    }
    progress_show(starts->ctl, "%zu started, %zu there, %zu refused, %zu at hand%s", starts->started, starts->there,
                  starts->refused, starts->unsettled, waits);
}

/* Sends one request. After EXIT_OK the caller goes on in `wait_ms`. */
static int send_some(struct starts *starts, int64_t *wait_ms)
{
    struct line *sent[STARTS_MAX];
    struct ctl *ctl = starts->ctl;
    struct buffer body;
    struct answer answer;
    struct arena arena;

    arena_init(&arena, 65536);
    buffer_init(&body, SIZE_MAX);
    size_t count = write_request(starts, sent, &body);

    show_counts(starts, 0);
    ctl->quiet = true;
    int code = client_call(ctl, "POST", SLICE("/v1/sagas/batch"), buffer_slice(&body), REQUEST_MS, &arena, &answer);

    ctl->quiet = false;
    *wait_ms = 0;
    if (code == EXIT_OK) {
        *wait_ms = take_results(starts, sent, count, json_member(answer.body, "items")) * 1000;
    } else if (answer.status == 413 && count > 1) {
        starts->at_once = count / 2;
        code = EXIT_OK;
    } else if (answer.status == 413) {
        settle(starts, sent[0], 413, arena_printf(&arena, "{\"status\":413,\"body\":%.*s}", SLICE_ARG(answer.body)));
        code = EXIT_OK;
    } else if (code == EXIT_UNREACHABLE || code == EXIT_WAIT_OVER) {
        *wait_ms = answer.retry_after_s > 0 ? answer.retry_after_s * 1000 : PAUSE_MS;
        code = EXIT_OK;
    }
    buffer_fini(&body);
    arena_fini(&arena);
    arena_reset(&ctl->arena); /* frees what was shown */
    return code;
}

/* Gives up. Nobody knows the outcome of the remaining lines: the service may have started them. */
static int give_up(struct starts *starts)
{
    progress_clear(starts->ctl);
    for (size_t i = 0; i < starts->count; i++) {
        if (!starts->lines[i].settled) {
            refuse(starts, &starts->lines[i], "no-answer", SLICE("not taken in, as far as is known"));
        }
    }
    (void)fprintf(stderr, "sagactl: %s took nothing in for %lld s: given up before line %lld\n", starts->ctl->server,
                  (long long)starts->patience_ms / 1000, (long long)starts->number + !starts->next.text.ptr);
    return EXIT_UNREACHABLE;
}

static int start_lines(struct starts *starts)
{
    starts->moved_ms = now_ms();
    while (starts->unsettled > 0) {
        int64_t wait_ms = 0;
        int code = send_some(starts, &wait_ms);

        if (code != EXIT_OK) {
            return code;
        }
        if (starts->unsettled > 0 && now_ms() + wait_ms - starts->moved_ms > starts->patience_ms) {
            return give_up(starts);
        }
        for (; starts->unsettled > 0 && wait_ms > 0; wait_ms -= PAUSE_MS) {
            show_counts(starts, wait_ms);
            (void)usleep((useconds_t)(wait_ms < PAUSE_MS ? wait_ms : PAUSE_MS) * 1000);
        }
    }
    return EXIT_OK;
}

int start_batch(struct ctl *ctl, const char *path, int64_t patience_ms)
{
    bool is_stdin = strcmp(path, "-") == 0;
    struct starts *starts = arena_alloc(&ctl->arena, sizeof(*starts));
    struct ctl own = *ctl; /* a copy with its own arena for the output, because a file may have millions of lines */
    struct uuid run = uuid_v7(now_ms());
    int code = EXIT_OK;

    *starts = (struct starts){.ctl = &own, .at_once = STARTS_MAX, .patience_ms = patience_ms};
    starts->file = is_stdin ? stdin : fopen(path, "re");
    if (!starts->file) {
        (void)fprintf(stderr, "sagactl: %s cannot be read: %s\n", path, strerror(errno));
        return EXIT_FAILED;
    }
    uuid_text(&run, starts->run);
    arena_init(&starts->arena, 1 << 20);
    arena_init(&own.arena, 65536);
    while (code == EXIT_OK && (!starts->at_end || starts->next.text.ptr)) {
        fill(starts);
        code = start_lines(starts);
    }
    progress_clear(ctl);
    if (ferror(starts->file)) {
        (void)fprintf(stderr, "sagactl: %s cannot be read to its end\n", path);
        code = code ? code : EXIT_FAILED;
    }
    (void)fprintf(stderr, "%zu started, %zu there already, %zu refused\n", starts->started, starts->there,
                  starts->refused);
    if (!is_stdin) {
        (void)fclose(starts->file); /* the file was only read */
    }
    free(starts->read);
    arena_fini(&starts->arena);
    arena_fini(&own.arena);
    ctl->loop = own.loop; /* the owner closes the loop */
    ctl->http = own.http;
    return code == EXIT_OK && starts->refused > 0 ? EXIT_FAILED : code;
}
