/*
 * See least_rights.h. New tables get all four rights on rows first, so that a table that a migration adds is never
 * missing. Then what no statement of an engine does is taken away: nobody who gets hold of the role can change the log,
 * a definition or an act. The start of an engine looks whether rights are missing (sql_check_server).
 */
#include "store/least_rights.h"

#include <string.h>

#define ROLE_BYTES_MAX 63 /* the bytes of a name in PostgreSQL */

/* "@" stands for the role, quoted as a name. */
static const char statements[] =
    "-- Run this in the database of sagad as the role that ran `sagad migrate`, after each migration.\n"
    "begin;\n"
    "set local search_path = pg_catalog, pg_temp;\n"
    "grant usage on schema sagad to @;\n"
    "grant select, insert, update, delete on all tables in schema sagad to @;\n"
    "-- What an engine only reads.\n"
    "revoke insert, update, delete on sagad.schema_version, sagad.log_entry, sagad.saga_step, sagad.operation,\n"
    "    sagad.case_list from @;\n"
    "-- What it only adds to.\n"
    "revoke update, delete on sagad.tool, sagad.definition, sagad.history_shard, sagad.history_saga,\n"
    "    sagad.history_call from @;\n"
    "-- What it adds to and, when it is over, removes; it changes nothing of it.\n"
    "revoke update on sagad.log, sagad.operation_key, sagad.key_bundle, sagad.lock, sagad.payload_key from @;\n"
    "-- Shards are made by migrations, and latches are locked by a function.\n"
    "revoke insert, delete on sagad.shard from @;\n"
    "revoke select, insert, update, delete on sagad.latch from @;\n"
    "-- Acts: refusals of one minute are added up, and old ones leave by the function act_forget.\n"
    "do $acts$\n"
    "declare\n"
    "    part regclass;\n"
    "begin\n"
    "    for part in select inhrelid::regclass from pg_inherits where inhparent = 'sagad.act'::regclass loop\n"
    "        execute 'revoke all on ' || part || $role$ from @$role$;\n"
    "    end loop;\n"
    "end\n"
    "$acts$;\n"
    "revoke update, delete on sagad.act from @;\n"
    "grant update (count, last_at) on sagad.act to @;\n"
    "commit;\n";

static void put_name(struct buffer *out, const char *role)
{
    buffer_put(out, "\"", 1);
    for (const char *c = role; *c; c++) {
        buffer_put(out, c, 1);
        if (*c == '"') {
            buffer_put(out, c, 1);
        }
    }
    buffer_put(out, "\"", 1);
}

enum err_code least_rights_write(const char *role, struct buffer *out, struct err *err)
{
    size_t len = strlen(role);
    bool is_name = len > 0 && len <= ROLE_BYTES_MAX && !strchr(role, '$'); /* the DO block is quoted with dollars */

    for (const char *c = role; *c; c++) {
        is_name = is_name && (unsigned char)*c >= ' ' && *c != 127;
    }
    if (!is_name) {
        (void)err_set(err, ERR_CONFIG, "--role \"%s\" cannot be the name of a role", role);
        err_hint(err, "give 1 to %d bytes without control characters and dollar signs", ROLE_BYTES_MAX);
        return ERR_CONFIG;
    }
    for (const char *at = statements; *at; at++) {
        if (*at == '@') {
            put_name(out, role);
        } else {
            buffer_put(out, at, 1);
        }
    }
    return ERR_OK;
}
