/* What an issuer says of a person is taken to the letter, or not at all: half a right is a wrong one. */
#include "api/oidc.h"

#include <string.h>

#include "base/json.h"

#define NAMESPACES_MAX 100
#define SUBJECT_BYTES_MAX 120
#define GROUPS_MAX 64

/* --- settings --- */

static bool group_read(struct slice row, struct slice *group, enum role *role)
{
    const char *equals = row.len ? memrchr(row.ptr, '=', row.len) : NULL;

    if (!equals || equals == row.ptr) {
        return false;
    }
    *group = slice_trim((struct slice){row.ptr, (size_t)(equals - row.ptr)});
    return group->len > 0 &&
           role_parse(slice_trim((struct slice){equals + 1, row.len - (size_t)(equals + 1 - row.ptr)}), role);
}

static enum err_code check_roles(const char *roles, struct err *err)
{
    struct slice rows[GROUPS_MAX + 1], group;
    size_t count = slice_split(slice_of(roles), ',', rows, GROUPS_MAX + 1);
    bool good = count <= GROUPS_MAX;
    enum role role;

    for (size_t i = 0; good && i < count; i++) {
        good = group_read(rows[i], &group, &role);
    }
    if (!good) {
        (void)err_set(err, ERR_CONFIG, "--oidc-roles cannot be read");
        err_hint(err, "write GROUP=ROLE with commas between, at most %d; a role is reader, agent, operator or admin",
                 GROUPS_MAX);
    }
    return good ? ERR_OK : ERR_CONFIG;
}

enum err_code oidc_check(const struct oidc_options *options, struct err *err)
{
    if (!options->issuer.url) {
        if (options->issuer.audience || options->roles || options->namespace) {
            (void)err_set(err, ERR_CONFIG, "a setting of OpenID Connect is given without --oidc-issuer");
            err_hint(err, "give --oidc-issuer, or leave out --oidc-audience, --oidc-roles and --oidc-namespace");
            return ERR_CONFIG;
        }
        return ERR_OK;
    }
    if (issuer_check(&options->issuer, err) != ERR_OK) {
        return ERR_CONFIG;
    }
    if (options->namespace && !token_namespace_is_good(slice_of(options->namespace))) {
        return err_set(err, ERR_CONFIG,
                       "--oidc-namespace is not 1 to 128 printable characters without spaces, or is \"*\"");
    }
    return options->roles ? check_roles(options->roles, err) : ERR_OK;
}

/* --- claims --- */

static struct slice claim_of(struct slice claims, const char *name)
{
    return *name == '/' ? json_at(claims, slice_of(name)) : json_member(claims, name);
}

static enum role role_of_name(const struct oidc_options *options, struct slice name)
{
    enum role strongest = ROLE_NONE, role = ROLE_NONE;
    struct slice rows[GROUPS_MAX], group;
    size_t count = options->roles ? slice_split(slice_of(options->roles), ',', rows, GROUPS_MAX) : 0;

    if (!options->roles) {
        return name.ptr && role_parse(name, &role) ? role : ROLE_NONE;
    }
    for (size_t i = 0; i < count; i++) {
        if (group_read(rows[i], &group, &role) && slice_equal(group, name) && role > strongest) {
            strongest = role;
        }
    }
    return strongest;
}

static enum role role_of(const struct oidc_options *options, struct slice claim, struct arena *arena)
{
    struct json_walk walk = json_walk(claim);
    enum role strongest = ROLE_NONE;
    struct slice item;

    if (json_type(claim) == JSON_STRING) {
        return role_of_name(options, json_string(claim, arena));
    }
    while (json_type(claim) == JSON_ARRAY && json_next_element(&walk, &item)) {
        enum role role = json_type(item) == JSON_STRING ? role_of_name(options, json_string(item, arena)) : ROLE_NONE;

        strongest = role > strongest ? role : strongest;
    }
    return strongest;
}

static bool namespaces_of(const struct oidc_options *options, struct slice claim, struct arena *arena,
                          struct token *out)
{
    bool is_many = json_type(claim) == JSON_ARRAY;
    struct slice *names = arena_array(arena, is_many ? json_count(claim) + 1 : 1, sizeof(*names)), item;
    struct json_walk walk = json_walk(claim);

    if (options->namespace) {
        names[out->namespace_count++] = slice_of(options->namespace);
    } else if (!is_many) {
        names[out->namespace_count++] = json_string(claim, arena);
    }
    while (!options->namespace && is_many && json_next_element(&walk, &item)) {
        names[out->namespace_count++] = json_string(item, arena);
    }
    if (out->namespace_count == 0 || out->namespace_count > NAMESPACES_MAX) {
        return false;
    }
    for (size_t i = 0; i < out->namespace_count; i++) {
        if (!token_namespace_is_good(names[i])) {
            return false;
        }
    }
    out->namespaces = names;
    out->namespace = names[0];
    return true;
}

static bool subject_is_good(struct slice subject)
{
    return subject.ptr && subject.len <= SUBJECT_BYTES_MAX && token_name_is_good(subject);
}

enum err_code oidc_token(const struct oidc_options *options, struct slice claims, struct arena *arena,
                         struct token *out, struct err *err)
{
    struct slice subject = json_string(json_member(claims, "sub"), arena);

    *out = (struct token){.role = role_of(options, claim_of(claims, options->role_claim), arena)};
    if (!subject_is_good(subject)) {
        return err_set(err, ERR_FORBIDDEN,
                       "this JWT does not say who it is of: \"sub\" is 1 to %d printable characters without spaces",
                       SUBJECT_BYTES_MAX);
    }
    if (out->role == ROLE_NONE) {
        return err_set(err, ERR_FORBIDDEN, "this JWT gives no role here: its claim \"%.60s\" names none that is known",
                       options->role_claim);
    }
    if (!namespaces_of(options, claim_of(claims, options->namespace_claim), arena, out)) {
        return err_set(err, ERR_FORBIDDEN,
                       "this JWT gives no namespace here: its claim \"%.60s\" has none, or one that cannot be",
                       options->namespace_claim);
    }
    out->name = arena_printf(arena, OIDC_NAME_PREFIX "%.*s", SLICE_ARG(subject));
    return ERR_OK;
}
