/* See ledger.h. Group commit: a writer that finds no sync under way syncs everything written so far. */
#include "ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/check.h"

static _Noreturn void ledger_broken(const char *what)
{
    /* A shop that cannot write its ledger must not go on working. */
    fprintf(stderr, "sagad-shop: the ledger cannot be %s: %s\n", what, strerror(errno));
    exit(1);
}

static enum err_code ledger_replay(struct ledger *ledger, struct slice text, bool (*line)(void *, struct slice),
                                   void *context, struct err *err)
{
    size_t at = 0;

    while (at < text.len) {
        const char *end = memchr(text.ptr + at, '\n', text.len - at);

        if (!end) {
            break;
        }
        if (!line(context, (struct slice){text.ptr + at, (size_t)(end - text.ptr) - at})) {
            return err_set(err, ERR_CORRUPT, "line %llu of the ledger makes no sense",
                           (unsigned long long)ledger->lines + 1);
        }
        ledger->lines++;
        at = (size_t)(end - text.ptr) + 1;
    }
    if (at < text.len && ftruncate(ledger->fd, (off_t)at) != 0) {
        return err_set(err, ERR_IO, "the torn last line of the ledger cannot be cut off: %s", strerror(errno));
    }
    ledger->written_bytes = at;
    return ERR_OK;
}

enum err_code ledger_open(struct ledger *ledger, const char *path, bool sync,
                          bool (*line)(void *context, struct slice text), void *context, struct err *err)
{
    struct stat st;
    size_t len = 0;
    char *text;
    enum err_code code;

    *ledger = (struct ledger){.sync = sync};
    ledger->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (ledger->fd < 0 || fstat(ledger->fd, &st) != 0) {
        return err_set(err, ERR_IO, "the ledger %s cannot be opened: %s", path, strerror(errno));
    }
    pthread_mutex_init(&ledger->mutex, NULL);
    pthread_cond_init(&ledger->synced_more, NULL);
    text = memory_alloc((size_t)st.st_size + 1);
    while (len < (size_t)st.st_size) {
        ssize_t got = pread(ledger->fd, text + len, (size_t)st.st_size - len, (off_t)len);

        if (got <= 0) {
            break;
        }
        len += (size_t)got;
    }
    code = ledger_replay(ledger, (struct slice){text, len}, line, context, err);
    ledger->synced_bytes = ledger->written_bytes;
    free(text);
    return code;
}

void ledger_close(struct ledger *ledger)
{
    if (ledger->fd >= 0) {
        close(ledger->fd);
        ledger->fd = -1;
    }
}

uint64_t ledger_append(struct ledger *ledger, struct slice line)
{
    char *text = memory_alloc(line.len + 1);
    size_t done = 0;
    uint64_t position;

    memcpy(text, line.ptr, line.len);
    text[line.len] = '\n';
    while (done < line.len + 1) {
        ssize_t got = write(ledger->fd, text + done, line.len + 1 - done);

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            ledger_broken("written");
        }
        done += (size_t)got;
    }
    free(text);
    pthread_mutex_lock(&ledger->mutex);
    ledger->lines++;
    ledger->written_bytes += line.len + 1;
    position = ledger->written_bytes;
    pthread_mutex_unlock(&ledger->mutex);
    return position;
}

uint64_t ledger_lines(struct ledger *ledger)
{
    uint64_t lines;

    pthread_mutex_lock(&ledger->mutex);
    lines = ledger->lines;
    pthread_mutex_unlock(&ledger->mutex);
    return lines;
}

void ledger_wait(struct ledger *ledger, uint64_t position)
{
    if (!ledger->sync) {
        return;
    }
    pthread_mutex_lock(&ledger->mutex);
    while (ledger->synced_bytes < position) {
        if (ledger->syncing) {
            pthread_cond_wait(&ledger->synced_more, &ledger->mutex);
        } else {
            uint64_t until = ledger->written_bytes;

            ledger->syncing = true;
            pthread_mutex_unlock(&ledger->mutex);
            if (fdatasync(ledger->fd) != 0) {
                ledger_broken("synced");
            }
            pthread_mutex_lock(&ledger->mutex);
            ledger->synced_bytes = until;
            ledger->syncing = false;
            pthread_cond_broadcast(&ledger->synced_more);
        }
    }
    pthread_mutex_unlock(&ledger->mutex);
}
