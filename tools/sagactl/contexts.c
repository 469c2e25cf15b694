/* See contexts.h. */
#include "tools/sagactl/contexts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Returns the path of the file; NULL when no variable names the home folder. */
static const char *path_of(struct ctl *ctl, const char *file)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

    if (config && config[0] == '/') {
        return arena_printf(&ctl->arena, "%s/%s", config, file).ptr;
    }
    return home && home[0] == '/' ? arena_printf(&ctl->arena, "%s/.config/%s", home, file).ptr : NULL;
}

static struct slice text_of(struct ctl *ctl, struct slice object, const char *name)
{
    return json_string(json_member(object, name), &ctl->arena);
}

/* Can only this user write the file? Any other writer could send the user's token to a server of their own. */
static bool is_ours_alone(const char *path)
{
    struct stat st;

    if (stat(path, &st) == 0 && (st.st_mode & (S_IWGRP | S_IWOTH))) {
        (void)fprintf(stderr, "sagactl: others may write %s; take that right away: chmod go-w %s\n", path, path);
        return false;
    }
    return true;
}

bool contexts_read(struct ctl *ctl, struct contexts *out)
{
    const char *path = path_of(ctl, "sagactl/contexts.json");
    struct slice text, item;

    *out = (struct contexts){0};
    if (!path || access(path, F_OK) != 0) {
        return true;
    }
    if (!is_ours_alone(path) || !read_file(ctl, path, &text)) {
        return false;
    }
    struct slice items =
        json_check(text, &json_limits_default, NULL) == ERR_OK ? json_member(text, "contexts") : SLICE_NONE;
    struct json_walk walk = json_walk(items);

    if (json_type(items) != JSON_ARRAY || json_count(items) > CONTEXTS_MAX) {
        (void)fprintf(stderr, "sagactl: %s is no file of contexts; `sagactl config set` writes one\n", path);
        return false;
    }
    out->current = text_of(ctl, text, "current");
    while (json_next_element(&walk, &item)) {
        struct context *context = &out->items[out->count++];

        *context = (struct context){text_of(ctl, item, "name"),       text_of(ctl, item, "server"),
                                    text_of(ctl, item, "token_file"), text_of(ctl, item, "ca_file"),
                                    text_of(ctl, item, "cert"),       text_of(ctl, item, "key")};
        if (!context->name.ptr || !context->server.ptr) {
            (void)fprintf(stderr, "sagactl: %s has a context without a name or a server\n", path);
            return false;
        }
    }
    return true;
}

struct context *contexts_find(struct contexts *contexts, struct slice name)
{
    for (size_t i = 0; i < contexts->count; i++) {
        if (slice_equal(contexts->items[i].name, name)) {
            return &contexts->items[i];
        }
    }
    return NULL;
}

static struct slice json_of(struct ctl *ctl, const struct contexts *contexts)
{
    struct buffer out;
    struct json_writer w;

    buffer_init(&out, SIZE_MAX / 2);
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    json_write_slice(&w, "current", contexts->current);
    json_array_begin(&w, "contexts");
    for (size_t i = 0; i < contexts->count; i++) {
        json_object_begin(&w, NULL);
        json_write_slice(&w, "name", contexts->items[i].name);
        json_write_slice(&w, "server", contexts->items[i].server);
        json_write_slice(&w, "token_file", contexts->items[i].token_file);
        json_write_slice(&w, "ca_file", contexts->items[i].ca_file);
        json_write_slice(&w, "cert", contexts->items[i].cert);
        json_write_slice(&w, "key", contexts->items[i].key);
        json_object_end(&w);
    }
    json_array_end(&w);
    json_object_end(&w);
    struct slice json = arena_slice(&ctl->arena, buffer_slice(&out));

    buffer_fini(&out);
    return json;
}

/* Makes the missing folders, for this user alone. */
static bool make_folders(char *path)
{
    for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        bool good = mkdir(path, 0700) == 0 || errno == EEXIST;

        *at = '/';
        if (!good) {
            return false;
        }
    }
    return true;
}

bool contexts_lock(struct ctl *ctl)
{
    const char *folder = path_of(ctl, "sagactl/");
    int fd = -1;

    if (folder && make_folders(arena_text(&ctl->arena, slice_of(folder)))) {
        fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    if (folder && (fd < 0 || flock(fd, LOCK_EX) != 0)) {
        (void)fprintf(stderr, "sagactl: %s cannot be locked: %s\n", folder, strerror(errno));
        return false;
    }
    return true; /* contexts_write() reports a missing folder */
}

bool contexts_write(struct ctl *ctl, const struct contexts *contexts)
{
    const char *path = path_of(ctl, "sagactl/contexts.json");
    struct slice json = json_of(ctl, contexts);

    if (!path) {
        (void)fputs("sagactl: neither XDG_CONFIG_HOME nor HOME says where contexts are kept\n", stderr);
        return false;
    }
    char *next = arena_text(&ctl->arena, arena_printf(&ctl->arena, "%s.next", path));
    int fd = make_folders(next) ? open(next, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    bool good = fd >= 0 && write(fd, json.ptr, json.len) == (ssize_t)json.len && write(fd, "\n", 1) == 1;

    good = fd >= 0 && close(fd) == 0 && good && rename(next, path) == 0;
    if (!good) {
        (void)fprintf(stderr, "sagactl: %s cannot be written: %s\n", path, strerror(errno));
    }
    return good;
}
