/* The migrations, compiled in from schema/migrations by embed_migrations.sh. migrate() itself
 * is declared in store.h. */
#ifndef SAGAD_STORE_MIGRATE_H
#define SAGAD_STORE_MIGRATE_H

struct migration {
    int version;
    const char *name;
    const char *sql;
};

extern const struct migration migrations[]; /* the migrations by version, without gaps; the end is version 0 */

int migrate_newest(void); /* the version of the schema that this program runs on */

#endif
