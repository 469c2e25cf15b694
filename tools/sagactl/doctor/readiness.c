/* Is sagad ready, and if not, which part of it? See diagnosis.h. */
#include "tools/sagactl/doctor/diagnosis.h"
#include "tools/sagactl/output.h"

static const struct {
    const char *member, *check, *what, *act;
} parts[] = {
    {"database", "database", "sagad has no connection to PostgreSQL",
     "look whether PostgreSQL runs and takes connections, and at the log of sagad"},
    {"schema", "schema", "the schema of the database does not fit this sagad",
     "run `sagad migrate` with the same --database"},
    {"leases", "leases", "sagad has no leases yet",
     "ask again in a few seconds; if it stays, look at its log and at `sagactl engines`"},
    {"loaded", "sagas", "sagad still reads its sagas", "ask again in a few seconds; if it stays, look at its log"},
};

static bool is_true(struct slice answer, const char *name)
{
    return slice_is(json_trim(json_member(answer, name)), "true");
}

void diagnose_warning(struct diagnosis *d, struct slice text)
{
    struct slice act = SLICE("");

    for (size_t i = text.len; i-- > 2;) { /* the part behind the last semicolon says what to do */
        if (text.ptr[i - 1] == ';' && text.ptr[i] == ' ') {
            act = (struct slice){text.ptr + i + 1, text.len - i - 1};
            text.len = i - 1;
            break;
        }
    }
    diagnosis_add(d, "replication", FINDING_WARNING, text, d->where, act);
}

static void add_not_ready(struct diagnosis *d, struct slice server, struct slice answer)
{
    struct slice reason = show_member(d->ctl, answer, "reason"), hint = show_member(d->ctl, answer, "hint");

    if (is_true(answer, "draining")) {
        diagnosis_add(d, "server", FINDING_TROUBLE, SLICE("sagad is stopping, and takes no new work"), server,
                      SLICE("start it again when it has ended"));
        return;
    }
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        if (!is_true(answer, parts[i].member)) {
            diagnosis_add(d, parts[i].check, FINDING_TROUBLE, reason.len ? reason : slice_of(parts[i].what), server,
                          hint.len ? hint : slice_of(parts[i].act));
            return; /* the parts behind it wait for this one */
        }
    }
    diagnosis_add(d, "server", FINDING_TROUBLE, reason.len ? reason : SLICE("sagad is not ready"), server,
                  hint.len ? hint : SLICE("look at its log"));
}

void diagnose_readiness(struct diagnosis *d, struct slice server, struct slice answer)
{
    struct json_walk walk;
    struct slice warning;

    if (slice_is(show_member(d->ctl, answer, "status"), "ready")) {
        diagnosis_add(d, "server", FINDING_FINE, SLICE("ready"), server, SLICE(""));
    } else {
        add_not_ready(d, server, answer);
    }
    if (json_type(json_member(answer, "warnings")) == JSON_ARRAY) {
        walk = json_walk(json_member(answer, "warnings"));
        while (json_next_element(&walk, &warning)) {
            diagnose_warning(d, show_value(d->ctl, warning));
        }
    }
}
