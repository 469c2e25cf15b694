#!/bin/sh
# The source FILE with the planted bug PATCH in it, as OUT. usage: apply.sh ROOT PATCH FILE OUT
set -eu
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
sed -n 's|^+++ b/||p' "$2" | while read -r name; do
    mkdir -p "$copy/$(dirname "$name")"
    cp "$1/$name" "$copy/$name"
done
patch -s --fuzz=0 -p1 -d "$copy" <"$2"
cp "$copy/$3" "$4"
