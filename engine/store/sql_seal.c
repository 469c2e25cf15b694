/* The statements about sealed payloads: see sql.h. */
#include "store/sql.h"

/* clang-format off */

/* Says that data is going to be sealed under this key. Not while a key that the data needs is missing ($3: those that
 * are there): the engine is about to be refused, and a key of a wrong file would be needed from then on. */
const struct db_statement sql_payload_key_put = {
    "payload_key_put",
    "insert into sagad.payload_key (name, proof) select $1::text, $2::bytea"
    " where not exists (select 1 from sagad.payload_key k where k.name <> all ($3::text[])) on conflict do nothing",
};

const struct db_statement sql_payload_keys = {
    "payload_keys",
    "select k.name, k.proof from sagad.payload_key k order by k.name",
};
