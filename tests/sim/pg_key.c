/* The order of each table's rows by their key, and the size of a row. */
#include "tests/sim/pg_state.h"

static int compare_int(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

#define COMPARE(expression)                                                                                            \
    do {                                                                                                               \
        int order_ = (expression);                                                                                     \
        if (order_ != 0) {                                                                                             \
            return order_;                                                                                             \
        }                                                                                                              \
    } while (0)

int rows_compare(enum pg_table table, const void *left, const void *right)
{
    switch (table) {
    case PG_SHARD:
        return compare_int(((const struct row_shard *)left)->shard, ((const struct row_shard *)right)->shard);
    case PG_SAGA: {
        const struct row_saga *a = left, *b = right;

        COMPARE(compare_int(a->shard, b->shard));
        return uuid_compare(&a->id, &b->id);
    }
    case PG_LOG: {
        const struct row_log *a = left, *b = right;

        COMPARE(compare_int(a->shard, b->shard));
        COMPARE(uuid_compare(&a->saga, &b->saga));
        return compare_int(a->seq, b->seq);
    }
    case PG_OPERATION_KEY: {
        const struct row_operation_key *a = left, *b = right;

        COMPARE(compare_int(a->shard, b->shard));
        return uuid_compare(&a->key, &b->key);
    }
    case PG_KEY_BUNDLE: {
        const struct row_key_bundle *a = left, *b = right;

        COMPARE(compare_int(a->shard, b->shard));
        COMPARE(compare_int(a->check_ms, b->check_ms));
        return uuid_compare(&a->id, &b->id);
    }
    case PG_INBOX: {
        const struct row_inbox *a = left, *b = right;

        COMPARE(compare_int(a->shard, b->shard));
        return uuid_compare(&a->id, &b->id);
    }
    case PG_AWAKE: {
        const struct row_awake *a = left, *b = right;

        COMPARE(compare_int(a->shard, b->shard));
        return uuid_compare(&a->saga, &b->saga);
    }
    case PG_DUE: {
        const struct row_due *a = left, *b = right;

        COMPARE(compare_int(a->shard, b->shard));
        return uuid_compare(&a->saga, &b->saga);
    }
    case PG_ANSWER: {
        const struct row_answer *a = left, *b = right;

        COMPARE(compare_int(a->shard, b->shard));
        return uuid_compare(&a->input, &b->input);
    }
    case PG_ESCALATION: {
        const struct row_escalation *a = left, *b = right;

        COMPARE(compare_int(a->shard, b->shard));
        return compare_int(a->number, b->number);
    }
    case PG_APPROVAL: {
        const struct row_approval *a = left, *b = right;

        COMPARE(compare_int(a->shard, b->shard));
        return compare_int(a->number, b->number);
    }
    case PG_NUMBER_GONE:
        return compare_int(((const struct row_number_gone *)left)->shard,
                           ((const struct row_number_gone *)right)->shard);
    case PG_LOCK: {
        const struct row_lock *a = left, *b = right;

        COMPARE(compare_int(a->shard, b->shard));
        COMPARE(slice_compare(a->digest, b->digest));
        return compare_int(a->ticket, b->ticket);
    }
    case PG_ENGINE:
        return slice_compare(((const struct row_engine *)left)->instance, ((const struct row_engine *)right)->instance);
    case PG_DEFINITION:
    case PG_TOOL: {
        const struct row_definition *a = left, *b = right;

        COMPARE(slice_compare(a->namespace, b->namespace));
        COMPARE(slice_compare(a->name, b->name));
        return compare_int(a->version, b->version);
    }
    case PG_GUARD: {
        const struct row_guard *a = left, *b = right;

        COMPARE(compare_int(a->shard, b->shard));
        COMPARE(slice_compare(a->namespace, b->namespace));
        return slice_compare(a->tool, b->tool);
    }
    case PG_GUARD_PLACE: {
        const struct row_guard_place *a = left, *b = right;

        COMPARE(compare_int(a->shard, b->shard));
        COMPARE(slice_compare(a->namespace, b->namespace));
        COMPARE(slice_compare(a->tool, b->tool));
        return uuid_compare(&a->holder, &b->holder);
    }
    case PG_GUARD_BREAKER: {
        const struct row_guard_breaker *a = left, *b = right;

        COMPARE(compare_int(a->shard, b->shard));
        COMPARE(slice_compare(a->namespace, b->namespace));
        COMPARE(slice_compare(a->tool, b->tool));
        return slice_compare(a->endpoint, b->endpoint);
    }
    case PG_GUARD_BUDGET: {
        const struct row_guard_budget *a = left, *b = right;

        COMPARE(compare_int(a->shard, b->shard));
        COMPARE(slice_compare(a->name, b->name));
        return compare_int(a->period_ms, b->period_ms);
    }
    case PG_GUARD_RESERVATION: {
        const struct row_guard_reservation *a = left, *b = right;

        COMPARE(compare_int(a->shard, b->shard));
        COMPARE(slice_compare(a->namespace, b->namespace));
        COMPARE(slice_compare(a->tool, b->tool));
        return uuid_compare(&a->operation, &b->operation);
    }
    case PG_BULK: {
        const struct row_bulk *a = left, *b = right;

        COMPARE(compare_int(a->shard, b->shard));
        return uuid_compare(&a->id, &b->id);
    }
    case PG_BULK_ITEM: {
        const struct row_bulk_item *a = left, *b = right;

        COMPARE(compare_int(a->shard, b->shard));
        COMPARE(uuid_compare(&a->bulk, &b->bulk));
        return compare_int(a->number, b->number);
    }
    case PG_SCHEDULE: {
        const struct row_schedule *a = left, *b = right;

        COMPARE(compare_int(a->shard, b->shard));
        COMPARE(slice_compare(a->namespace, b->namespace));
        return slice_compare(a->name, b->name);
    }
    case PG_SERIES: {
        const struct row_series *a = left, *b = right;

        COMPARE(slice_compare(a->namespace, b->namespace));
        COMPARE(compare_int(a->span, b->span));
        COMPARE(compare_int(a->at_ms, b->at_ms));
        COMPARE(slice_compare(a->kind, b->kind));
        COMPARE(slice_compare(a->name, b->name));
        return uuid_compare(&a->part, &b->part);
    }
    case PG_HOLD:
        return compare_int(((const struct row_hold *)left)->number, ((const struct row_hold *)right)->number);
    case PG_HOLD_VERSION:
        return 0; /* the table has one row */
    case PG_EVENT_GONE: {
        const struct row_event_gone *a = left, *b = right;

        COMPARE(compare_int(a->shard, b->shard));
        return slice_compare(a->namespace, b->namespace);
    }
    case PG_CASE_EVENT: {
        const struct row_case_event *a = left, *b = right;

        COMPARE(compare_int(a->shard, b->shard));
        COMPARE(compare_int(a->number, b->number));
        return a->is_resolved - b->is_resolved;
    }
    case PG_CASE_REMARK: {
        const struct row_case_remark *a = left, *b = right;

        COMPARE(compare_int(a->shard, b->shard));
        return compare_int(a->number, b->number);
    }
    case PG_DEBT_SETTLED: {
        const struct row_debt_settled *a = left, *b = right;

        COMPARE(compare_int(a->shard, b->shard));
        COMPARE(uuid_compare(&a->saga, &b->saga));
        return uuid_compare(&a->operation, &b->operation);
    }
    case PG_EVENT: {
        const struct row_event *a = left, *b = right;

        COMPARE(compare_int(a->shard, b->shard));
        return uuid_compare(&a->id, &b->id);
    }
    case PG_NOTIFY: {
        const struct row_notify *a = left, *b = right;

        COMPARE(compare_int(a->shard, b->shard));
        COMPARE(slice_compare(a->namespace, b->namespace));
        return slice_compare(a->name, b->name);
    }
    case PG_NOTIFICATION: {
        const struct row_notification *a = left, *b = right;

        COMPARE(compare_int(a->shard, b->shard));
        COMPARE(slice_compare(a->namespace, b->namespace));
        COMPARE(slice_compare(a->name, b->name));
        return compare_int(a->number, b->number);
    }
    case PG_GRANT:
        return uuid_compare(&((const struct row_grant *)left)->id, &((const struct row_grant *)right)->id);
    case PG_PAYLOAD_KEY:
        return slice_compare(((const struct row_payload_key *)left)->name,
                             ((const struct row_payload_key *)right)->name);
    case PG_TABLE_COUNT:
        break;
    }
    UNREACHABLE();
}

const size_t rows_bytes[PG_TABLE_COUNT] = {
    [PG_SHARD] = sizeof(struct row_shard),
    [PG_SAGA] = sizeof(struct row_saga),
    [PG_LOG] = sizeof(struct row_log),
    [PG_OPERATION_KEY] = sizeof(struct row_operation_key),
    [PG_KEY_BUNDLE] = sizeof(struct row_key_bundle),
    [PG_INBOX] = sizeof(struct row_inbox),
    [PG_AWAKE] = sizeof(struct row_awake),
    [PG_DUE] = sizeof(struct row_due),
    [PG_ANSWER] = sizeof(struct row_answer),
    [PG_ESCALATION] = sizeof(struct row_escalation),
    [PG_APPROVAL] = sizeof(struct row_approval),
    [PG_NUMBER_GONE] = sizeof(struct row_number_gone),
    [PG_LOCK] = sizeof(struct row_lock),
    [PG_ENGINE] = sizeof(struct row_engine),
    [PG_DEFINITION] = sizeof(struct row_definition),
    [PG_TOOL] = sizeof(struct row_definition),
    [PG_GUARD] = sizeof(struct row_guard),
    [PG_GUARD_PLACE] = sizeof(struct row_guard_place),
    [PG_GUARD_BREAKER] = sizeof(struct row_guard_breaker),
    [PG_GUARD_BUDGET] = sizeof(struct row_guard_budget),
    [PG_GUARD_RESERVATION] = sizeof(struct row_guard_reservation),
    [PG_SCHEDULE] = sizeof(struct row_schedule),
    [PG_SERIES] = sizeof(struct row_series),
    [PG_HOLD] = sizeof(struct row_hold),
    [PG_HOLD_VERSION] = sizeof(struct row_hold_version),
    [PG_BULK] = sizeof(struct row_bulk),
    [PG_BULK_ITEM] = sizeof(struct row_bulk_item),
    [PG_EVENT_GONE] = sizeof(struct row_event_gone),
    [PG_CASE_EVENT] = sizeof(struct row_case_event),
    [PG_CASE_REMARK] = sizeof(struct row_case_remark),
    [PG_DEBT_SETTLED] = sizeof(struct row_debt_settled),
    [PG_EVENT] = sizeof(struct row_event),
    [PG_NOTIFY] = sizeof(struct row_notify),
    [PG_NOTIFICATION] = sizeof(struct row_notification),
    [PG_GRANT] = sizeof(struct row_grant),
    [PG_PAYLOAD_KEY] = sizeof(struct row_payload_key),
};
