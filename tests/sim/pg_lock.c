/*
 * Decides who may lock what, and who waits for whom. A row is locked by its holders. All waiters stand in one line, in
 * the order in which they came, and are called again when their lock may be free. As in PostgreSQL, a newcomer whose
 * lock is free takes it before those in line.
 */
#include "tests/sim/pg_state.h"

static bool conflicts(enum pg_lock_mode a, enum pg_lock_mode b)
{
    static const unsigned of[] = {
        [PG_KEY_SHARE] = 1u << PG_UPDATE,
        [PG_SHARE] = 1u << PG_NO_KEY_UPDATE | 1u << PG_UPDATE,
        [PG_NO_KEY_UPDATE] = 1u << PG_SHARE | 1u << PG_NO_KEY_UPDATE | 1u << PG_UPDATE,
        [PG_UPDATE] = 1u << PG_KEY_SHARE | 1u << PG_SHARE | 1u << PG_NO_KEY_UPDATE | 1u << PG_UPDATE,
    };

    return of[a] >> b & 1;
}

static struct pg_row_lock *own_lock(const struct pg_session *session, const struct pg_row *row)
{
    for (struct pg_row_lock *lock = row->locks; lock; lock = lock->next) {
        if (lock->session == session) {
            return lock;
        }
    }
    return NULL;
}

bool lock_is_held(const struct pg_session *session, const struct pg_row *row, enum pg_lock_mode at_least)
{
    const struct pg_row_lock *lock = own_lock(session, row);

    return lock && lock->mode >= at_least;
}

void lock_mark_written(struct pg_session *session, struct pg_row *row)
{
    struct pg_row_lock *lock = own_lock(session, row);

    if (lock) {
        lock->is_written = true;
    }
}

void session_number(struct pg_session *session)
{
    if (session->tx == 0) {
        session->tx = ++session->pg->last_tx;
    }
}

int64_t pg_tx(struct pg_call *call)
{
    session_number(call->session);
    return call->session->tx;
}

int64_t pg_edge(struct pg_call *call)
{
    return call->session->edge;
}

int64_t edge_now(const struct pg *pg)
{
    int64_t edge = pg->last_tx + 1;

    for (size_t i = 0; i < pg->session_count; i++) {
        int64_t tx = pg->sessions[i]->tx;

        edge = tx > 0 && tx < edge ? tx : edge;
    }
    return edge;
}

void lock_take(struct pg_session *session, struct pg_row *row, enum pg_lock_mode mode)
{
    struct pg *pg = session->pg;
    struct pg_row_lock *lock = own_lock(session, row);

    session_number(session);
    if (lock) {
        lock->mode = lock->mode > mode ? lock->mode : mode;
        return;
    }
    lock = pg->spare_lock;
    if (lock) {
        pg->spare_lock = lock->next;
    } else {
        lock = arena_alloc(&pg->arena, sizeof(*lock));
    }
    *lock = (struct pg_row_lock){
        .next = row->locks, .next_held = session->held, .row = row, .session = session, .mode = mode};
    row->locks = lock;
    session->held = lock;
}

/* Who holds a lock of this row that keeps the session from this one? NULL: nobody. */
static struct pg_session *holder_of(const struct pg_session *session, const struct pg_row *row, enum pg_lock_mode mode)
{
    for (const struct pg_row_lock *lock = row->locks; lock; lock = lock->next) {
        if (lock->session != session && conflicts(mode, lock->mode)) {
            return lock->session;
        }
    }
    return NULL;
}

bool pg_lock_if_free(struct pg_call *call, struct pg_row *row, enum pg_lock_mode mode, const void **current)
{
    bool unseen, changed;

    if (holder_of(call->session, row, mode)) {
        return false;
    }
    *current = row_now(call->session, row, &unseen, &changed);
    if (*current) {
        lock_take(call->session, row, mode);
    }
    return *current != NULL;
}

enum pg_progress pg_lock(struct pg_call *call, struct pg_row *row, enum pg_lock_mode mode, const void **current)
{
    struct pg_session *session = call->session;
    bool unseen, changed;

    if (row == session->conflict) {
        session->met[session->met_index - 1] = NULL; /* DO UPDATE looks again when the row has gone meanwhile */
    }
    *current = row_now(session, row, &unseen, &changed);
    if (changed && unseen) {
        return pg_fail(call, "21000"); /* ON CONFLICT DO UPDATE of a row that the same statement inserted */
    }
    if (!*current) {
        return PG_DONE;
    }
    if (holder_of(session, row, mode)) {
        session->wait_row = row;
        session->wait_mode = mode;
        return lock_wait(call, PG_WAIT_ROW);
    }
    lock_take(session, row, mode);
    return PG_DONE;
}

/* --- advisory locks --- */

static struct pg_advisory *advisory_of(struct pg *pg, int64_t class, int64_t object)
{
    struct pg_advisory **bucket = &pg->advisory[((uint64_t) class * 31 + (uint64_t)object) % PG_ADVISORY_BUCKETS],
                       *lock;

    for (lock = *bucket; lock; lock = lock->next) {
        if (lock->class == class && lock->object == object) {
            return lock;
        }
    }
    lock = arena_alloc(&pg->arena, sizeof(*lock));
    *lock = (struct pg_advisory){.next = *bucket, .class = class, .object = object};
    *bucket = lock;
    return lock;
}

/* Adds a lock that this session takes for the first time. */
static void advisory_hold(struct pg_session *session, struct pg_advisory *lock)
{
    if (lock->holder != session) {
        lock->holder = session;
        lock->next_held = session->advisory;
        session->advisory = lock;
    }
}

/* Frees the locks that are no longer held. */
static void advisory_settle(struct pg_session *session)
{
    struct pg_advisory **at = &session->advisory;

    while (*at) {
        struct pg_advisory *lock = *at;

        if (lock->session_count == 0 && !lock->of_transaction) {
            *at = lock->next_held;
            lock->holder = NULL;
        } else {
            at = &lock->next_held;
        }
    }
}

enum pg_progress pg_advisory_xact(struct pg_call *call, int64_t class, int64_t object)
{
    struct pg_advisory *lock = advisory_of(call->pg, class, object);

    if (lock->holder && lock->holder != call->session) {
        call->session->wait_advisory = lock;
        return lock_wait(call, PG_WAIT_ADVISORY);
    }
    advisory_hold(call->session, lock);
    lock->of_transaction = true;
    return PG_DONE;
}

bool pg_advisory_try(struct pg_call *call, int64_t class, int64_t object)
{
    struct pg_advisory *lock = advisory_of(call->pg, class, object);

    if (lock->holder && lock->holder != call->session) {
        return false;
    }
    advisory_hold(call->session, lock);
    lock->session_count++;
    return true;
}

bool pg_advisory_unlock(struct pg_call *call, int64_t class, int64_t object)
{
    struct pg_advisory *lock = advisory_of(call->pg, class, object);

    if (lock->holder != call->session || lock->session_count == 0) {
        return false;
    }
    lock->session_count--;
    advisory_settle(call->session);
    line_wake(call->pg);
    return true;
}

void pg_advisory_unlock_all(struct pg_call *call)
{
    for (struct pg_advisory *lock = call->session->advisory; lock; lock = lock->next_held) {
        lock->session_count = 0;
    }
    advisory_settle(call->session);
    line_wake(call->pg);
}

/* --- the end of locks --- */

static void unlink_of_row(struct pg_row_lock *lock)
{
    struct pg_row_lock **at = &lock->row->locks;

    while (*at != lock) {
        at = &(*at)->next;
    }
    *at = lock->next;
}

/* Drops the locks of a row that is gone. Only its maker can have locked it. */
void locks_drop_of_row(struct pg *pg, struct pg_row *row)
{
    while (row->locks) {
        struct pg_row_lock *lock = row->locks, **at = &lock->session->held;

        while (*at != lock) {
            at = &(*at)->next_held;
        }
        *at = lock->next_held;
        row->locks = lock->next;
        lock->next = pg->spare_lock;
        pg->spare_lock = lock;
    }
}

void locks_release(struct pg_session *session, bool of_session)
{
    struct pg *pg = session->pg;

    while (session->held) {
        struct pg_row_lock *lock = session->held;

        session->held = lock->next_held;
        unlink_of_row(lock);
        row_unlocked(pg, lock->row);
        lock->next = pg->spare_lock;
        pg->spare_lock = lock;
    }
    for (struct pg_advisory *lock = session->advisory; lock; lock = lock->next_held) {
        lock->of_transaction = false;
        lock->session_count = of_session ? 0 : lock->session_count;
    }
    advisory_settle(session);
    session->transaction = 0;
    session->tx = 0;
    line_wake(pg);
}

/* --- waiting --- */

enum pg_progress lock_wait(struct pg_call *call, enum pg_wait wait)
{
    call->session->wait = wait;
    return PG_WAIT;
}

/* A session that already holds a weaker lock of the row asks for no place in line: PostgreSQL skips the tuple lock
 * then (`skip_tuple_lock` in heap_lock_tuple(), `current_is_member` in heap_update()), since the first in line may wait
 * for this very session. */
static bool is_upgrade(const struct pg_session *session)
{
    return session->wait == PG_WAIT_ROW && own_lock(session, session->wait_row);
}

static bool is_same_wait(const struct pg_session *a, const struct pg_session *b)
{
    return a->wait == b->wait && !is_upgrade(a) && !is_upgrade(b) &&
           (a->wait == PG_WAIT_ROW        ? a->wait_row == b->wait_row && conflicts(a->wait_mode, b->wait_mode)
            : a->wait == PG_WAIT_ADVISORY ? a->wait_advisory == b->wait_advisory
                                          : false);
}

/* Calls `found` for each session that this one waits for, until it returns true. Sessions in front of it in line for
 * the same lock count, too. */
static bool any_blocker(struct pg_session *session, bool (*found)(struct pg_session *blocker, void *context),
                        void *context)
{
    if (session->wait == PG_WAIT_ROW) {
        for (const struct pg_row_lock *lock = session->wait_row->locks; lock; lock = lock->next) {
            if (lock->session != session && conflicts(session->wait_mode, lock->mode) &&
                found(lock->session, context)) {
                return true;
            }
        }
    } else if (session->wait == PG_WAIT_TRANSACTION) {
        if (session->wait_session->transaction == session->wait_transaction && found(session->wait_session, context)) {
            return true;
        }
    } else if (session->wait == PG_WAIT_ADVISORY) {
        struct pg_session *holder = session->wait_advisory->holder;

        if (holder && holder != session && found(holder, context)) {
            return true;
        }
    }
    for (struct pg_session *before = session->pg->line; before && before != session; before = before->wait_next) {
        if (is_same_wait(session, before) && !session->out_of_order && !before->out_of_order &&
            found(before, context)) {
            return true;
        }
    }
    return false;
}

static bool is_any(struct pg_session *blocker, void *context)
{
    (void)blocker;
    (void)context;
    return true;
}

void line_join(struct pg_session *session)
{
    struct pg *pg = session->pg;

    session->in_line = true;
    session->wait_previous = pg->line_end;
    session->wait_next = NULL;
    *(pg->line_end ? &pg->line_end->wait_next : &pg->line) = session;
    pg->line_end = session;
}

void line_leave(struct pg_session *session)
{
    struct pg *pg = session->pg;

    if (!session->in_line) {
        return;
    }
    session->in_line = false;
    session->wait = PG_WAIT_NOTHING;
    *(session->wait_previous ? &session->wait_previous->wait_next : &pg->line) = session->wait_next;
    *(session->wait_next ? &session->wait_next->wait_previous : &pg->line_end) = session->wait_previous;
    line_wake(pg);
}

void line_wake(struct pg *pg)
{
    for (struct pg_session *session = pg->line; session; session = session->wait_next) {
        session->out_of_order = session->out_of_order || (session->wait == PG_WAIT_ROW &&
                                                          row_last_commit(session->wait_row) != session->wait_changed);
    }
    for (struct pg_session *session = pg->line; session; session = session->wait_next) {
        if (!session->woken && !any_blocker(session, is_any, NULL)) {
            session_wake(session);
        }
    }
}

struct search {
    struct pg_session *start;
    uint32_t mark;
};

static bool leads_back(struct pg_session *blocker, void *context)
{
    struct search *search = context;

    if (blocker == search->start) {
        return true;
    }
    if (blocker->visit == search->mark || !blocker->in_line || blocker->woken) {
        return false;
    }
    blocker->visit = search->mark;
    return any_blocker(blocker, leads_back, search);
}

bool line_has_cycle(struct pg_session *session)
{
    struct search search = {session, ++session->pg->visits};

    return any_blocker(session, leads_back, &search);
}
