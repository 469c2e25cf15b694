/*
 * Prints as JSON what the store sends: the settings of its connections and every statement of sql.h. So the test of the
 * plans (test_plans.mjs) asks PostgreSQL about these texts and not about copies.
 */
#include <stdio.h>

#include "base/json.h"
#include "store/store_state.h"

static const struct db_statement *const statements[] = {
#define STATEMENT(name) &name,
#include "statements_list.h" /* meson.build makes it from sql.h */
};

static bool is_hot(const struct db_statement *statement)
{
    for (size_t i = 0; sql_hot[i]; i++) {
        if (sql_hot[i] == statement) {
            return true;
        }
    }
    return false;
}

int main(void)
{
    struct buffer out;
    struct json_writer w;

    buffer_init(&out, 1 << 20);
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    json_array_begin(&w, "setup");
    for (size_t i = 0; store_setup[i]; i++) {
        json_write_text(&w, NULL, store_setup[i]);
    }
    json_array_end(&w);
    json_array_begin(&w, "statements");
    for (size_t i = 0; i < COUNT_OF(statements); i++) {
        json_object_begin(&w, NULL);
        json_write_text(&w, "name", statements[i]->name);
        json_write_text(&w, "sql", statements[i]->sql);
        json_write_bool(&w, "hot", is_hot(statements[i]));
        json_object_end(&w);
    }
    json_array_end(&w);
    json_object_end(&w);
    (void)printf("%.*s\n", SLICE_ARG(buffer_slice(&out)));
    buffer_fini(&out);
    return 0;
}
