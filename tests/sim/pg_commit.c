/*
 * Decides what becomes of written rows: a transaction takes them back or commits them, the standby confirms them, a
 * server loses them, and they are forgotten when nobody can see them any more.
 */
#include <string.h>

#include "tests/sim/pg_state.h"

void rows_undo(struct pg_session *session, uint32_t command, bool keep)
{
    while (session->written && session->written->command >= command) {
        struct pg_version *version = session->written;
        struct pg_row *row = version->row;

        session->written = version->written;
        CHECK(row->newest == version);
        if (!keep || (version->older && !version->older->gone)) {
            if (keep) {
                lock_mark_written(session, row);
            }
            row_pop(session->pg, row);
        } else if (!version->gone) { /* the row was inserted */
            lock_take(session, row, PG_UPDATE);
            if (version->older) {
                row_pop(session->pg, row);
            } else {
                row->newest = NULL;
                row->kept = version;
            }
        }
    }
}

static bool is_log_row(const struct pg_version *version)
{
    return version->row->table == PG_LOG && !version->gone;
}

/* Returns the newest epoch that is not after a commit. */
static struct pg_epoch epoch_at(const struct pg *pg, size_t shard, uint64_t commit)
{
    const struct pg_epoch *epoch = pg->epochs[shard];

    while (epoch && epoch->commit > commit) {
        epoch = epoch->before;
    }
    return epoch ? *epoch : (struct pg_epoch){0};
}

int64_t pg_epoch(const struct pg *pg, uint32_t shard, int64_t *since_us)
{
    struct pg_epoch epoch = epoch_at(pg, shard, UINT64_MAX);

    *since_us = epoch.since_us;
    return epoch.epoch;
}

const void *pg_committed(const struct pg_row *row)
{
    const struct pg_version *version = row->newest;

    while (version && version->owner) {
        version = version->older;
    }
    return version && !version->gone ? version->data : NULL;
}

size_t pg_inbox_rows(const struct pg *pg)
{
    const struct pg_rows *rows = &pg->tables[PG_INBOX];
    size_t count = 0;

    for (size_t i = 0; i < rows->count; i++) {
        count += pg_committed(rows->sorted[i]) != NULL;
    }
    return count;
}

/* Tells the rows of the log that a commit wrote, in order of saga and seq. */
static void tell_turns(struct pg *pg, const struct pg_commit *commit, void (*tell)(const struct committed_turn *turn))
{
    const struct pg_version *written = commit->written;
    const struct row_log *few[32], **rows = few;
    size_t count = 0, fill = 0;

    for (const struct pg_version *version = written; version; version = version->written) {
        count += is_log_row(version);
    }
    if (count > COUNT_OF(few)) {
        rows = arena_array(&pg->arena, count, sizeof(*rows));
    }
    for (const struct pg_version *version = written; version; version = version->written) {
        const struct row_log *row = (const void *)version->data;
        size_t i = fill;

        if (!is_log_row(version)) {
            continue;
        }
        for (; i > 0 && rows_compare(PG_LOG, rows[i - 1], row) > 0; i--) {
            rows[i] = rows[i - 1];
        }
        rows[i] = row;
        fill++;
    }
    for (size_t i = 0; i < count; i++) {
        struct pg_epoch epoch = epoch_at(pg, (size_t)rows[i]->shard, commit->number);

        tell(&(struct committed_turn){.saga = {rows[i]->saga},
                                      .shard = (uint32_t)rows[i]->shard,
                                      .epoch = rows[i]->epoch,
                                      .at_ms = rows[i]->at_ms,
                                      .seq = (uint32_t)rows[i]->seq,
                                      .records = (uint32_t)rows[i]->records,
                                      .payload = rows[i]->payload,
                                      .rest = rows[i]->rest,
                                      .shard_epoch = epoch.epoch,
                                      .epoch_since_us = epoch.since_us});
    }
    tell(NULL);
}

static struct pg_commit *recent_at(struct pg *pg, size_t i)
{
    return &pg->recent[(pg->recent_first + i) % pg->recent_capacity];
}

static void remember(struct pg *pg, struct pg_commit commit)
{
    if (pg->recent_count == pg->recent_capacity) {
        size_t capacity = pg->recent_capacity > 0 ? 2 * pg->recent_capacity : 256;
        struct pg_commit *larger = arena_array(&pg->arena, capacity, sizeof(*larger));

        for (size_t i = 0; i < pg->recent_count; i++) {
            larger[i] = *recent_at(pg, i);
        }
        pg->recent = larger;
        pg->recent_first = 0;
        pg->recent_capacity = capacity;
    }
    pg->recent_count++;
    *recent_at(pg, pg->recent_count - 1) = commit;
}

/* Notes the epoch that a shard has from this commit on. */
static void note_epoch(struct pg *pg, const struct pg_version *version)
{
    const struct row_shard *row = (const void *)version->data;
    struct pg_epoch *epoch;

    if (epoch_at(pg, (size_t)row->shard, UINT64_MAX).epoch == row->epoch) {
        return;
    }
    epoch = arena_alloc(&pg->arena, sizeof(*epoch));
    *epoch = (struct pg_epoch){pg->epochs[row->shard], row->epoch, world->now_us, version->commit};
    pg->epochs[row->shard] = epoch;
}

bool pg_is_ahead(const struct pg *pg, struct saga_id saga)
{
    for (size_t i = pg->confirmed; i < pg->recent_count; i++) {
        const struct pg_commit *commit = &pg->recent[(pg->recent_first + i) % pg->recent_capacity];

        for (const struct pg_version *version = commit->written; version; version = version->written) {
            if (is_log_row(version) &&
                uuid_equal(&((const struct row_log *)(const void *)version->data)->saga, &saga.uuid)) {
                return true;
            }
        }
    }
    return false;
}

static void confirm(struct pg *pg)
{
    while (pg->confirmed < pg->recent_count) {
        struct pg_commit commit = *recent_at(pg, pg->confirmed++);

        if (pg->on_turn && commit.written) {
            tell_turns(pg, &commit, pg->on_turn);
        }
    }
}

void rows_commit(struct pg_session *session, bool flushed, bool confirms)
{
    struct pg *pg = session->pg;
    struct pg_version *written = session->written;

    pg->commits++;
    for (struct pg_version *version = written; version; version = version->written) {
        version->owner = NULL;
        version->commit = pg->commits;
        if (version->row->table == PG_SHARD && !version->gone) {
            note_epoch(pg, version);
        }
    }
    session->written = NULL;
    if (written) {
        remember(pg, (struct pg_commit){pg->commits, world->now_us, written, flushed});
    } else if (flushed && pg->recent_count > 0) {
        recent_at(pg, pg->recent_count - 1)->flushed = true;
    }
    locks_release(session, false);
    if (confirms) {
        confirm(pg);
    }
}

static uint64_t oldest_snapshot(const struct pg *pg)
{
    uint64_t oldest = pg->commits;

    for (size_t i = 0; i < pg->session_count; i++) {
        const struct pg_session *session = pg->sessions[i];

        if ((session->phase == PG_STATEMENT || session->phase == PG_WAITING) && session->snapshots[0] < oldest) {
            oldest = session->snapshots[0];
        }
    }
    return oldest;
}

/* Forgets all versions below the one that a commit made, which stands for good. */
static void forget_below(struct pg *pg, struct pg_version *written)
{
    struct pg_version *before;

    for (struct pg_version *version = written; version; version = before) {
        struct pg_version *older = version->older;
        struct pg_row *row = version->row;

        before = version->written;
        if (!row) {
            continue; /* the version was below another one of the same commit */
        }
        if (version->gone && row->newest == version) {
            row_remove(pg, row); /* the key is read from a version that is freed next */
            version_free(pg, version);
        } else if (version->gone) {
            struct pg_version *above = row->newest;

            while (above->older != version) {
                above = above->older;
            }
            above->older = NULL;
            version_free(pg, version);
        } else {
            version->older = NULL;
        }
        while (older) {
            struct pg_version *next = older->older;

            version_free(pg, older);
            older = next;
        }
        version->written = NULL;
    }
}

void rows_forget(struct pg *pg)
{
    uint64_t oldest;

    if (pg->confirmed == 0 || recent_at(pg, 0)->at_us > world->now_us - PG_LOSE_US_MAX) {
        return;
    }
    oldest = oldest_snapshot(pg);
    while (pg->confirmed > 0 && recent_at(pg, 0)->at_us <= world->now_us - PG_LOSE_US_MAX &&
           recent_at(pg, 0)->number <= oldest) {
        forget_below(pg, recent_at(pg, 0)->written);
        pg->recent_first = (pg->recent_first + 1) % pg->recent_capacity;
        pg->recent_count--;
        pg->confirmed--;
    }
}

/* Counts the last commits that are not on the disk and may be lost when the server crashes. */
static size_t lost_by_crash(struct pg *pg)
{
    size_t unsafe = 0;

    while (unsafe < pg->recent_count) {
        const struct pg_commit *commit = recent_at(pg, pg->recent_count - 1 - unsafe);

        if (commit->flushed || commit->at_us < world->now_us - 600000 /* three turns of the WAL writer */) {
            break;
        }
        unsafe++;
    }
    return unsafe > 0 ? world_below(STREAM_POSTGRES, (uint32_t)unsafe + 1) : 0;
}

static void take_back(struct pg *pg)
{
    struct pg_commit commit = *recent_at(pg, pg->recent_count - 1);
    struct pg_version *before;

    if (pg->on_lost && commit.written && pg->confirmed == pg->recent_count) {
        tell_turns(pg, &commit, pg->on_lost);
    }
    for (struct pg_version *version = commit.written; version; version = before) {
        before = version->written;
        CHECK(version->row->newest == version);
        row_pop(pg, version->row);
    }
    for (size_t i = 0; i < COUNT_OF(pg->epochs); i++) {
        while (pg->epochs[i] && pg->epochs[i]->commit >= commit.number) {
            pg->epochs[i] = pg->epochs[i]->before;
        }
    }
    pg->recent_count--;
    pg->confirmed = pg->confirmed < pg->recent_count ? pg->confirmed : pg->recent_count;
}

/* Loses the last commits. The server has ended, and no transaction is open. */
void rows_lose(struct pg *pg, int64_t since_us, bool by_crash)
{
    size_t lost = by_crash ? lost_by_crash(pg) : 0;

    while (!by_crash && lost < pg->recent_count &&
           (pg->recent_count - lost > pg->confirmed || recent_at(pg, pg->recent_count - 1 - lost)->at_us > since_us)) {
        lost++;
    }
    for (; lost > 0; lost--) {
        take_back(pg);
    }
}
