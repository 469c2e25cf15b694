/*
 * Which mode of replication PostgreSQL is in, and what a failover then loses. See diagnosis.h and the table in
 * engine/operations.md. Whether a manager such as Patroni may take the names away while no standby is there
 * (`synchronous_mode` without `synchronous_mode_strict`) stands in its own settings, which PostgreSQL does not know.
 */
#include <inttypes.h>
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

static bool is_quorum(struct slice names)
{
    return names.len > 3 && strncasecmp(names.ptr, "any", 3) == 0 && (names.ptr[3] == ' ' || names.ptr[3] == '\t');
}

void judge_replication(struct diagnosis *d, struct slice database)
{
    struct slice names = show_member(d->ctl, json_member(database, "settings"), "synchronous_standby_names");
    int64_t standbys = 0;

    (void)json_i64(json_member(database, "standbys"), &standbys); /* 0 where it is not there */
    forget_warning(d);
    if (names.len > 0 && standbys == 0) {
        diagnosis_add(d, "replication", FINDING_WARNING,
                      SAY("no standby streams, and commits wait for one of %.*s", SLICE_ARG(names)), d->where,
                      SLICE("look at the standbys and at their network: sagad goes on by itself when one is back"));
    } else if (names.len > 0) {
        diagnosis_add(d, "replication", FINDING_FINE,
                      is_quorum(names)
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
