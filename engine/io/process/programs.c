/* Says which programs sagad may start. The settings are read once, before anything runs; each program is checked when
 * it is about to start. */
#include "io/process/programs.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum err_code user_read(struct programs *programs, const char *name, struct err *err)
{
    char text[4096];
    struct passwd entry, *found = NULL;

    if (getpwnam_r(name, &entry, text, sizeof(text), &found) != 0 || !found) {
        (void)err_set(err, ERR_CONFIG, "there is no user \"%s\" for --exec-user", name);
        err_hint(err, "name a user of its own, which may read neither the tokens nor the secrets of sagad");
        return ERR_CONFIG;
    }
    if (entry.pw_uid == geteuid() || entry.pw_uid == 0) {
        (void)err_set(err, ERR_CONFIG, "--exec-user names %s, from whom nothing could be kept",
                      entry.pw_uid == 0 ? "root" : "the user of sagad itself");
        err_hint(err, "name another user, or say --exec-as-me if programs of tools may do all that sagad can");
        return ERR_CONFIG;
    }
    if (geteuid() != 0) {
        (void)err_set(err, ERR_CONFIG, "sagad is not privileged to run programs as the user \"%s\"", name);
        err_hint(err, "start sagad as root, or say --exec-as-me if programs of tools may do all that sagad can");
        return ERR_CONFIG;
    }
    programs->as_user = true;
    programs->uid = entry.pw_uid;
    programs->gid = entry.pw_gid;
    (void)snprintf(programs->home, sizeof(programs->home), "%s",
                   entry.pw_dir); /* a cut name is a folder that does not exist */
    return ERR_OK;
}

static enum err_code paths_read(struct programs *programs, const char *paths, struct err *err)
{
    for (const char *at = paths; *at;) {
        size_t len = strcspn(at, ":");
        char path[PATH_MAX];

        if (len == 0) {
            at++;
            continue;
        }
        if (len >= sizeof(path) || at[0] != '/' || programs->path_count == PROGRAM_PATHS_MAX) {
            (void)err_set(err, ERR_CONFIG, "--exec-path cannot be read at \"%.*s\"", (int)(len < 200 ? len : 200), at);
            err_hint(err, "give at most %d absolute paths of programs and folders, with colons between them",
                     PROGRAM_PATHS_MAX);
            return ERR_CONFIG;
        }
        memcpy(path, at, len);
        path[len] = '\0';
        char *resolved = realpath(path, NULL);

        if (!resolved) {
            (void)err_set(err, ERR_CONFIG, "--exec-path names %s, which cannot be found", path);
            err_detail(err, "%s", strerror(errno));
            return ERR_CONFIG;
        }
        programs->paths[programs->path_count++] = resolved;
        at += len;
    }
    return ERR_OK;
}

enum err_code programs_read(struct programs *programs, const char *user, bool as_me, const char *paths, struct err *err)
{
    *programs = (struct programs){.allowed = user || as_me, .path_is_set = paths != NULL};
    if (user && as_me) {
        return err_set(err, ERR_CONFIG, "--exec-user and --exec-as-me say two things; keep one");
    }
    enum err_code code = user ? user_read(programs, user, err) : ERR_OK;

    code = code == ERR_OK && paths ? paths_read(programs, paths, err) : code;
    if (code != ERR_OK) {
        programs_fini(programs);
    }
    return code;
}

void programs_fini(struct programs *programs)
{
    while (programs->path_count > 0) {
        free(programs->paths[--programs->path_count]);
    }
}

/* Finds the program in the way exec does. Returns false when there is none. */
static bool find(const char *program, const char *search, char out[PATH_MAX])
{
    if (strchr(program, '/')) {
        return program[0] == '/' &&
               realpath(program, out); /* a list cannot name a program below the tool's own folder */
    }
    for (const char *at = search ? search : ""; *at;) {
        size_t len = strcspn(at, ":");
        char path[PATH_MAX];

        if (len > 0 && at[0] == '/' &&
            (size_t)snprintf(path, sizeof(path), "%.*s/%s", (int)len, at, program) < sizeof(path) &&
            access(path, X_OK) == 0) {
            return realpath(path, out) != NULL;
        }
        at += len + (at[len] == ':');
    }
    return false;
}

const char *programs_refusal(const struct programs *programs, const char *program, const char *search)
{
    char path[PATH_MAX];

    if (!programs) {
        return NULL;
    }
    if (!programs->allowed) {
        return "sagad runs no programs here: it was started with neither --exec-user nor --exec-as-me.";
    }
    if (!programs->path_is_set) {
        return NULL;
    }
    if (!find(program, search, path)) {
        return "The program cannot be found, and --exec-path names those that may run.";
    }
    for (size_t i = 0; i < programs->path_count; i++) {
        size_t len = strlen(programs->paths[i]);

        if (strncmp(path, programs->paths[i], len) == 0 &&
            (path[len] == '\0' || path[len] == '/' || programs->paths[i][len - 1] == '/')) {
            return NULL;
        }
    }
    return "The program is none of those that may run, see --exec-path.";
}
