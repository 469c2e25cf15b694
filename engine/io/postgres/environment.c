/* Follows libpq's own precedence: the string, then its service, then the variables.
 * https://www.postgresql.org/docs/current/libpq-envars.html */
#include "io/postgres/environment.h"

#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

/* These variables tell libpq where its service file is; they give nobody any rights. */
static const char *const kept[] = {"PGSERVICEFILE=", "PGSYSCONFDIR="};

static bool is_name(const char *dsn) /* is it a bare name of a database? */
{
    return !strchr(dsn, '=') && strncmp(dsn, "postgres://", 11) != 0 && strncmp(dsn, "postgresql://", 13) != 0;
}

static const char *value_of(const PQconninfoOption *options, const char *keyword)
{
    for (; options && options->keyword; options++) {
        if (strcmp(options->keyword, keyword) == 0) {
            return options->val && options->val[0] ? options->val : NULL;
        }
    }
    return NULL;
}

void db_dsn_put(struct buffer *out, const char *keyword, const char *value)
{
    buffer_printf(out, "%s%s='", out->len > 0 ? " " : "", keyword);
    for (; *value; value++) {
        if (*value == '\'' || *value == '\\') {
            buffer_put_char(out, '\\');
        }
        buffer_put_char(out, *value);
    }
    buffer_put_char(out, '\'');
}

/* Does the option get its value from the service or from a variable? */
static bool is_given(const PQconninfoOption *option, bool has_service)
{
    const char *variable = option->envvar ? getenv(option->envvar) : NULL;

    if (!option->val || !option->val[0]) {
        return false;
    }
    return (variable && variable[0]) ||
           (has_service && (!option->compiled || strcmp(option->val, option->compiled) != 0));
}

static void put_missing(struct buffer *out, const PQconninfoOption *own, const char *service)
{
    PQconninfoOption *defaults;

    if (service) {
        (void)setenv("PGSERVICE", service,
                     1); /* PQconndefaults() looks the service up in the environment, which is cleared later */
    }
    defaults = PQconndefaults();
    for (const PQconninfoOption *option = defaults; option && option->keyword; option++) {
        if (!value_of(own, option->keyword) && is_given(option, value_of(defaults, "service") != NULL)) {
            db_dsn_put(out, option->keyword, option->val);
        }
    }
    PQconninfoFree(defaults); /* accepts NULL */
}

static void forget_variables(void)
{
    for (size_t i = 0; environ && environ[i];) {
        char *equals = strncmp(environ[i], "PG", 2) == 0 ? strchr(environ[i], '=') : NULL;
        char name[64];

        for (size_t k = 0; equals && k < COUNT_OF(kept); k++) {
            equals = strncmp(environ[i], kept[k], strlen(kept[k])) == 0 ? NULL : equals;
        }
        if (!equals || (size_t)(equals - environ[i]) >= sizeof(name)) {
            i++;
            continue;
        }
        memcpy(name, environ[i], (size_t)(equals - environ[i]));
        name[equals - environ[i]] = '\0';
        explicit_bzero(equals + 1, strlen(equals + 1));
        (void)unsetenv(name); /* cannot fail for a name that exists; the next variable moves to this place */
    }
}

const char *db_environment_take(const char *dsn, struct arena *arena)
{
    PQconninfoOption *own = is_name(dsn) ? NULL : PQconninfoParse(dsn, NULL);
    const char *taken = dsn;
    struct buffer out;

    buffer_init(&out, DB_DSN_BYTES_MAX);
    if (own || is_name(dsn)) {
        if (!own && dsn[0]) {
            db_dsn_put(&out, "dbname", dsn);
        }
        for (const PQconninfoOption *option = own; option && option->keyword; option++) {
            if (option->val && option->val[0]) {
                db_dsn_put(&out, option->keyword, option->val);
            }
        }
        put_missing(&out, own, value_of(own, "service"));
        taken = out.overflow ? dsn : arena_text(arena, buffer_slice(&out));
    }
    explicit_bzero((char *)buffer_c(&out), out.len); /* the buffer may hold a password */
    buffer_fini(&out);
    PQconninfoFree(own); /* accepts NULL */
    forget_variables();
    return taken;
}

bool db_dsn_is_whole(const char *dsn)
{
    PQconninfoOption *options = is_name(dsn) ? NULL : PQconninfoParse(dsn, NULL);
    bool whole = value_of(options, "user") && (value_of(options, "host") || value_of(options, "hostaddr")) &&
                 !value_of(options, "service");

    PQconninfoFree(options); /* accepts NULL */
    return whole;
}
