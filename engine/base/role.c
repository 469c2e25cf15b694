/* The names of roles. */
#include "base/role.h"

#include "base/check.h"

const char *role_name(enum role role)
{
    static const char *const names[] = {
#define X(id, name) [id] = name,
        ROLE_MAP(X)
#undef X
    };

    CHECK(role < ROLE_COUNT);
    return names[role];
}

bool role_parse(struct slice name, enum role *out)
{
    for (int role = ROLE_NONE + 1; role < ROLE_COUNT; role++) {
        if (slice_is(name, role_name((enum role)role))) {
            *out = (enum role)role;
            return true;
        }
    }
    return false;
}
