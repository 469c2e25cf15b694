/* The rights that the role of the engines needs in the schema of sagad, and no more, as SQL for the role that owns it.
 */
#ifndef SAGAD_STORE_LEAST_RIGHTS_H
#define SAGAD_STORE_LEAST_RIGHTS_H

#include "base/arena.h"
#include "base/errors.h"
#include "base/text.h"

/* ERR_CONFIG: the text cannot be the name of a role. The statements may run again, after each migration. */
MUST_USE enum err_code least_rights_write(const char *role, struct buffer *out, struct err *err);

#endif
