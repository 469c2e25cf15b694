/* See lease_identity.h. A space separates the fields. A field that cannot be learnt is "?", and then nothing is ever
 * certain. */
#include "store/lease/lease_identity.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIELD_HOST, FIELD_BOOT, FIELD_NAMESPACE, FIELD_PID, FIELD_STARTED, FIELD_INSTANCE, FIELD_COUNT };

static bool read_text(const char *path, char *out, size_t out_bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, out, out_bytes - 1);

    if (fd >= 0) {
        (void)close(fd); /* the file was only read */
    }
    out[len > 0 ? len : 0] = '\0';
    return len > 0;
}

/* Cuts a text to one word, so that it stays one field. */
static void one_word(char *text)
{
    text[strcspn(text, " \n")] = '\0';
    if (!text[0]) {
        text[0] = '?';
        text[1] = '\0';
    }
}

/*
 * Reads the state and the start time (in ticks since boot) from /proc/PID/stat. The name of the program is in
 * parentheses and may hold anything, so the fields are counted from the last parenthesis. Returns false when there is
 * no such process.
 */
static bool process_started(long pid, char *state, char *started, size_t started_bytes)
{
    char path[64], stat[1024];
    const char *at;

    (void)snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
    if (!read_text(path, stat, sizeof(stat)) || (at = strrchr(stat, ')')) == NULL || at[1] != ' ') {
        return false;
    }
    at += 2;
    *state = *at;
    for (int field = 3; field < 22; field++) { /* the state is field 3, the start time field 22 */
        at = strchr(at, ' ');
        if (!at) {
            return false;
        }
        at++;
    }
    (void)snprintf(started, started_bytes, "%.*s", (int)strcspn(at, " \n"), at);
    return true;
}

void lease_identity_own(const char *instance, char out[LEASE_IDENTITY_BYTES])
{
    char host[65] = "", boot[64] = "", namespace[64] = "", started[32] = "?", state;
    ssize_t len = readlink("/proc/self/ns/pid", namespace, sizeof(namespace) - 1);

    namespace[len > 0 ? len : 0] = '\0';
    (void)gethostname(host, sizeof(host) - 1); /* an empty name is shown as ? */
    (void)read_text("/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
    (void)process_started((long)getpid(), &state, started, sizeof(started));
    one_word(host);
    one_word(boot);
    one_word(namespace);
    one_word(started);
    (void)snprintf(out, LEASE_IDENTITY_BYTES, "%s %s %s %ld %s %s", host, boot, namespace, (long)getpid(), started,
                   instance);
}

static size_t split(struct slice identity, struct slice fields[FIELD_COUNT])
{
    return slice_split(identity, ' ', fields, FIELD_COUNT);
}

bool lease_identity_is_dead(struct slice identity, const char *own)
{
    struct slice theirs[FIELD_COUNT], ours[FIELD_COUNT];
    char state = '?', started[32];
    int64_t pid;

    if (split(identity, theirs) != FIELD_COUNT || split(slice_of(own), ours) != FIELD_COUNT ||
        !slice_equal(theirs[FIELD_BOOT], ours[FIELD_BOOT]) || slice_is(ours[FIELD_BOOT], "?") ||
        !slice_equal(theirs[FIELD_NAMESPACE], ours[FIELD_NAMESPACE]) || slice_is(ours[FIELD_NAMESPACE], "?") ||
        !slice_to_i64(theirs[FIELD_PID], &pid) || pid <= 0 || slice_is(theirs[FIELD_STARTED], "?")) {
        return false;
    }
    if (!process_started((long)pid, &state, started, sizeof(started))) {
        return kill((pid_t)pid, 0) < 0 &&
               errno == ESRCH; /* /proc may hide the process (hidepid), so the kernel is asked, too */
    }
    return !slice_is(theirs[FIELD_STARTED], started) || state == 'Z' || state == 'X';
}

struct slice lease_identity_instance(struct slice identity)
{
    struct slice fields[FIELD_COUNT];

    return identity.ptr && split(identity, fields) == FIELD_COUNT ? fields[FIELD_INSTANCE] : SLICE_NONE;
}
