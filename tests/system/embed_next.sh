#!/bin/sh
# Writes a C source like embed_migrations.sh, with one more migration behind the files that are given:
# embed_next.sh EMBED_SCRIPT FOLDER NEXT_FILE FILE...
set -eu
embed=$1 folder=$2 next=$3
shift 3
for last; do :; done
number=$(basename "$last" .sql | sed 's/_.*//; s/^0*//')
named=$folder/$(printf '%04d' $((number + 1)))_next_release.sql
cp "$next" "$named"
sh "$embed" "$@" "$named"
