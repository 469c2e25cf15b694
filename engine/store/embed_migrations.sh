#!/bin/sh
# Writes a C source with the migrations whose files are given, in that order: NNNN_name.sql is version NNNN, name.
set -eu
printf '/* Made from schema/migrations by embed_migrations.sh. */\n#include "store/migrate.h"\n\n'
printf 'const struct migration migrations[] = {\n'
for file; do
    base=$(basename "$file" .sql)
    version=$(printf '%s' "${base%%_*}" | sed 's/^0*//')
    printf '    {%s, "%s",\n' "$version" "${base#*_}"
    sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/     "/' -e 's/$/\\n"/' "$file"
    printf '    },\n'
done
printf '    {0, "", ""},\n};\n'
