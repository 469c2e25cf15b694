/* The feed of events: turns of the log, and what no log tells of, in the order of their transactions. */
#include "store/store_state.h"

static void read_event(struct job *job, const struct db_rows *rows, size_t i, struct stored_event *out)
{
    *out = (struct stored_event){.tx = db_int(rows, i, 3),
                                 .has_saga = !db_is_null(rows, i, 4),
                                 .saga_name = arena_slice(job->arena, db_bytes(rows, i, 8)),
                                 .version = db_is_null(rows, i, 9) ? 0 : (uint32_t)db_int(rows, i, 9),
                                 .business_id = arena_slice(job->arena, db_bytes(rows, i, 10)),
                                 .tags = arena_slice(job->arena, db_bytes(rows, i, 11))};
    if (out->has_saga) {
        out->saga.uuid = db_uuid(rows, i, 4);
    }
    if (!db_is_null(rows, i, 16)) {
        out->id = db_uuid(rows, i, 16);
        out->at_ms = db_timestamptz(rows, i, 17);
        out->type = arena_slice(job->arena, db_bytes(rows, i, 18));
        out->subject = arena_slice(job->arena, db_bytes(rows, i, 19));
        out->data = arena_slice(job->arena, db_bytes(rows, i, 20));
    } else if (db_is_null(rows, i, 12)) {
        out->first_seq = (uint64_t)db_int(rows, i, 5);
        out->at_ms = db_timestamptz(rows, i, 6);
        out->payload = arena_slice(job->arena, db_bytes(rows, i, 7));
        if (out->payload.ptr) {
            struct stored_turn turn = {.first_seq = out->first_seq, .payload = out->payload};

            turn_open(job->store, &out->saga.uuid, &turn, job->arena);
            out->payload = turn.payload;
        }
    } else {
        out->number = (uint64_t)db_int(rows, i, 12);
        out->is_resolved = db_int(rows, i, 13) != 0;
        out->at_ms = db_timestamptz(rows, i, 14);
        out->reason = arena_slice(job->arena, db_bytes(rows, i, 15));
    }
}

static void on_list(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;
    struct event_list *list = job->request;
    size_t count = db_row_count(rows);
    int64_t cut = 0;

    list->edge = db_int(rows, 0, 0);
    list->gone = db_is_null(rows, 0, 1) ? 0 : db_int(rows, 0, 1);
    list->count = 0;
    list->through = list->after;
    if (db_is_null(rows, 0, 3)) {
        return;
    }
    cut = db_is_null(rows, 0, 2) ? 0 : db_int(rows, 0, 2);
    list->rows = arena_array(job->arena, count + 1, sizeof(*list->rows));
    for (size_t i = 0; i < count && db_int(rows, i, 3) != cut; i++) {
        read_event(job, rows, i, &list->rows[list->count++]);
    }
    list->is_cut = list->count == 0; /* one transaction has more rows than the limit */
    list->through = list->count ? list->rows[list->count - 1].tx : list->after;
    list->more = true;
}

void store_event_list(struct store *store, struct event_list *list)
{
    struct job *job = read_job(store, &list->read, list);
    struct db_args *args = job_query(job, &sql_event_list, on_list);

    list->more = list->is_cut = false;
    db_arg_int8(args, list->after);
    db_arg_int8(args, (int64_t)list->limit);
    db_arg_text(args, list->namespace);
    db_arg_int8(args, (int64_t)list->bytes_max);
    job_submit(job);
}
