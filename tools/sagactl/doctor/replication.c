/*
 * Which mode of replication PostgreSQL is in, and what a failover then loses. See diagnosis.h and the table in
 * engine/operations.md. Whether a manager such as Patroni may take the names away while no standby is there
 * (`synchronous_mode` without `synchronous_mode_strict`) stands in its own settings, which PostgreSQL does not know.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tools/sagactl/doctor/diagnosis.h"
#include "tools/sagactl/output.h"

#define SAY(...) arena_printf(&d->ctl->arena, __VA_ARGS__)

/* What sagad itself has warned of may be some seconds old. */
static void forget_warning(struct diagnosis *d)
{
    size_t kept = 0;

    for (size_t i = 0; i < d->count; i++) {
        if (strcmp(d->items[i].check, "replication") != 0) {
            d->items[kept++] = d->items[i];
        }
    }
    d->count = kept;
}

#define SPACE " \t\r\n"

struct waiting {
    bool is_quorum; /* for any of those that are named; otherwise for the first of them */
    int64_t count;  /* the standbys that a commit waits for */
};

/* Returns what stands behind the word, or the text itself where it does not begin with the word and a space. */
static const char *behind_word(const char *text, const char *word)
{
    size_t len = strlen(word);

    return strncasecmp(text, word, len) == 0 && text[len] != '\0' && strchr(SPACE, text[len]) ? text + len : text;
}

/* Reads `ANY n (a, b)`, `FIRST n (a, b)`, `n (a, b)` and `a, b`. PostgreSQL has checked the text before. A list without
 * a number is `FIRST 1`, and a standby may have a number for its name. */
static struct waiting read_names(const char *names)
{
    const char *text = names + strspn(names, SPACE), *behind_any = behind_word(text, "any");
    char *end;
    long count = strtol(behind_word(behind_any, "first"), &end, 10);

    end += strspn(end, SPACE);
    return (struct waiting){.is_quorum = behind_any != text, .count = count > 0 && *end == '(' ? count : 1};
}

void judge_replication(struct diagnosis *d, struct slice database)
{
    struct slice names = show_member(d->ctl, json_member(database, "settings"), "synchronous_standby_names");
    struct waiting waiting = read_names(arena_text(&d->ctl->arena, names));
    int64_t standbys = 0;

    (void)json_i64(json_member(database, "standbys"), &standbys); /* 0 where it is not there */
    forget_warning(d);
    if (names.len > 0 && standbys == 0) {
        diagnosis_add(d, "replication", FINDING_WARNING,
                      SAY("no standby streams, and commits wait for one of %.*s", SLICE_ARG(names)), d->where,
                      SLICE("look at the standbys and at their network: sagad goes on by itself when one is back"));
    } else if (names.len > 0 && standbys < waiting.count) {
        diagnosis_add(d, "replication", FINDING_WARNING,
                      SAY("too few standbys stream, %" PRId64 " of the %" PRId64 " that each commit waits for: %.*s",
                          standbys, waiting.count, SLICE_ARG(names)),
                      d->where,
                      SLICE("look at the standbys and at their network: sagad goes on by itself when enough are back"));
    } else if (names.len > 0) {
        diagnosis_add(d, "replication", FINDING_FINE,
                      waiting.is_quorum
                          ? SAY("quorum, %.*s: what is acknowledged is on so many standbys, too; a failover "
                                "to the one that has most loses nothing",
                                SLICE_ARG(names))
                          : SAY("synchronous, %.*s: what is acknowledged is on a standby, too; a failover "
                                "to it loses nothing",
                                SLICE_ARG(names)),
                      d->where, SLICE(""));
    } else if (standbys == 0) {
        diagnosis_add(d, "replication", FINDING_FINE,
                      SLICE("none: a crash of the server loses nothing, the loss of its disk all since the backup"),
                      d->where, SLICE(""));
    } else {
        diagnosis_add(
            d, "replication", FINDING_WARNING,
            SLICE("asynchronous: no commit waits for a standby; promoted, it lacks what was acknowledged last"),
            d->where, SLICE("set synchronous_standby_names, or synchronous_mode_strict of Patroni"));
    }
}
