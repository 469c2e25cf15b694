/* Checks the settings of the adapter sql at registration. */
#include "adapters/sql_check.h"

#include "adapters/sql_text.h"
#include "adapters/tool_settings.h"
#include "io/postgres/environment.h"
#include "io/postgres/pool.h"

static void check_database(struct slice value, struct slice pointer, struct faults *faults)
{
    bool has_password;

    if (!db_dsn_is_readable(arena_text(faults->arena, json_string(value, faults->arena)), &has_password)) {
        faults_add(faults, pointer,
                   "\"database\" cannot be read; write \"host=... dbname=... user=...\", "
                   "\"postgresql://user@host/dbname\" or a "
                   "secret: \"${ secret(\\\"bank_dsn\\\") }\"");
    } else if (has_password) {
        faults_add(faults, pointer,
                   "a password stands plainly in \"database\", and definitions are stored and shown; make the "
                   "whole of it a secret: \"${ secret(\\\"bank_dsn\\\") }\"");
    } else if (!db_dsn_is_whole(arena_text(faults->arena, json_string(value, faults->arena)))) {
        faults_add(faults, pointer,
                   "\"database\" must name its server and its user, \"host=... dbname=... user=...\", and no service: "
                   "what sagad "
                   "itself connects with is not for tools");
    }
}

static const struct tool_setting settings_table[] = {
    {"database", BIT(JSON_STRING), true, check_database},
    {"statement", BIT(JSON_STRING), true,
     NULL}, /* checked below, because it depends on the parameters; it is not a template */
    {"params", BIT(JSON_ARRAY), false, NULL},
    {"barrier", BIT(JSON_BOOL), false, NULL},
};

static struct slice place_of(struct faults *faults, struct slice pointer, const char *member)
{
    return json_pointer_join(faults->arena, pointer, slice_of(member));
}

static void check_fixed(struct slice settings, const char *member, struct slice pointer, const char *why,
                        struct faults *faults)
{
    if (setting_is_template(json_member(settings, member))) {
        faults_add(faults, place_of(faults, pointer, member), "\"%s\" is no template: %s", member, why);
    }
}

/* Is this a command that would end the transaction, outlive it, or cannot run in one? */
static bool command_is_refused(struct slice command)
{
    static const char *const refused[] = {"BEGIN",     "START",   "COMMIT",  "END",      "ROLLBACK",   "ABORT",
                                          "SAVEPOINT", "RELEASE", "PREPARE", "EXECUTE",  "DEALLOCATE", "SET",
                                          "RESET",     "DISCARD", "LISTEN",  "UNLISTEN", "COPY",       "VACUUM",
                                          "DECLARE",   "FETCH",   "MOVE",    "CLOSE",    "LOAD",       "CHECKPOINT"};

    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        if (slice_is(command, refused[i])) {
            return true;
        }
    }
    return false;
}

static void check_statement(struct slice settings, struct slice pointer, struct faults *faults)
{
    struct slice statement = json_member(settings, "statement"), params = json_member(settings, "params"), place;
    size_t count = json_type(params) == JSON_ARRAY ? json_count(params) : 0;
    struct sql_text text;
    const char *fault;

    if (json_type(statement) != JSON_STRING || setting_is_template(statement)) {
        return;
    }
    place = place_of(faults, pointer, "statement");
    fault = sql_text_read(json_string(statement, faults->arena), (int)count, faults->arena, &text);
    if (fault) {
        faults_add(faults, place, "it cannot be used: %s", fault);
        return;
    }
    if (command_is_refused(text.command)) {
        faults_add(faults, place,
                   "%.*s cannot be used: the statement runs in a transaction that sagad begins and commits, in a "
                   "session that others use after it",
                   SLICE_ARG(text.command));
    }
    for (int i = 1; i <= text.highest; i++) {
        if ((size_t)i > count && (text.used & UINT64_C(1) << (i - 1))) {
            faults_add(faults, place, "$%d stands in the statement, but \"params\" has %zu element%s", i, count,
                       count == 1 ? "" : "s");
        }
    }
    for (size_t i = 0; i < count && i < SQL_PARAMS_MAX; i++) {
        if (!(text.used & UINT64_C(1) << i)) {
            faults_add(faults,
                       json_pointer_join(faults->arena, place_of(faults, pointer, "params"),
                                         arena_printf(faults->arena, "%zu", i)),
                       "there is no $%zu in the statement for it", i + 1);
        }
    }
}

void sql_check(struct slice settings, struct slice pointer, enum key_place place, struct faults *faults)
{
    if (!settings_check(settings, pointer, settings_table, COUNT_OF(settings_table), faults)) {
        return;
    }
    check_fixed(settings, "statement", pointer,
                "nothing is ever built into SQL; write $1 and give the value in \"params\"", faults);
    check_fixed(settings, "params", pointer, "write an array; its elements may be templates", faults);
    check_fixed(settings, "barrier", pointer, "write true or false", faults);
    if (json_count(json_member(settings, "params")) >= SQL_PARAMS_MAX) {
        faults_add(faults, place_of(faults, pointer, "params"),
                   "there are %zu parameters; at most %d are possible. An array or object is one parameter, as JSON",
                   json_count(json_member(settings, "params")), SQL_PARAMS_MAX - 1);
        return;
    }
    check_statement(settings, pointer, faults);
    if (place != KEY_PLACE_DEFAULT) {
        faults_add(faults, pointer, "a statement gets its key as the parameter $key: leave the place of the key out");
    }
}

bool sql_has_barrier(struct slice settings)
{
    bool barrier;

    return json_bool(json_member(settings, "barrier"), &barrier) && barrier;
}

/* The compensator must look into the table that has the key. The same text of "database" means the same database. */
bool sql_shares_keys(struct slice undone, struct slice settings)
{
    return sql_has_barrier(undone) && sql_has_barrier(settings) &&
           slice_equal(json_trim(json_member(undone, "database")), json_trim(json_member(settings, "database")));
}
