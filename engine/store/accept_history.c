/* `sagad accept-history`: a person says that the database may go on without what is missing. */
#include "store/accept_history.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "io/db.h"

enum { SQL_BYTES = 4096 };

struct losses {
    void (*progress)(const char *line);
    int count;
};

static void on_loss(void *context, int columns, const char *const *values)
{
    struct losses *losses = context;
    char line[512];

    losses->count++;
    if (columns == 3) {
        (void)snprintf(line, sizeof(line), "accepted: missing since %s, found by the engine %s: %s", values[0], values[1], values[2]); /* cut is good enough */
        losses->progress(line);
    }
}

/* As a literal: quotes doubled; standard_conforming_strings is on. False: it does not fit. */
static bool quote(const char *text, char *out, size_t bytes)
{
    size_t at = 0;

    out[at++] = '\'';
    for (; *text; text++) {
        if (at + 4 > bytes) {
            return false;
        }
        if (*text == '\'') {
            out[at++] = '\'';
        }
        out[at++] = *text;
    }
    out[at++] = '\'';
    out[at] = '\0';
    return true;
}

enum err_code accept_history(const char *dsn, const char *who, const char *note, void (*progress)(const char *line), struct err *err)
{
    char sql[SQL_BYTES], quoted_note[2 * HISTORY_NOTE_BYTES_MAX + 8], quoted_who[160];
    struct losses losses = {.progress = progress};
    struct db_session *session = NULL;
    enum err_code code;

    if (!note || !note[0] || strlen(note) > HISTORY_NOTE_BYTES_MAX || !quote(note, quoted_note, sizeof(quoted_note)) ||
        !quote(who, quoted_who, sizeof(quoted_who))) {
        (void)err_set(err, ERR_CONFIG, "accepting another history needs a note of at most %d bytes", HISTORY_NOTE_BYTES_MAX);
        err_hint(err, "sagad accept-history --note \"why the database may go on without what is missing\"");
        return ERR_CONFIG;
    }
    code = db_session_open(dsn, "sagad accept-history", &session, err);
    if (code != ERR_OK) {
        return code;
    }
    (void)snprintf(sql, sizeof(sql),
                   "set standard_conforming_strings = on;"
                   " update sagad.history_loss h set accepted_at = clock_timestamp(), accepted_by = %s || ', ' || current_user, note = %s"
                   " where h.accepted_at is null returning h.found_at, h.engine, h.missing",
                   quoted_who, quoted_note); /* it fits: both are bounded */
    code = db_session_run(session, sql, on_loss, &losses, err);
    db_session_close(session);
    if (code == ERR_OK && losses.count == 0) {
        (void)err_set(err, ERR_CONFLICT, "no engine has found another history in this database");
        err_hint(err, "nothing waits to be accepted; look at /readyz for why an engine is not ready");
        return ERR_CONFLICT;
    }
    return code;
}
