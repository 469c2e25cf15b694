#!/bin/sh
# The manual pages are made of what the programs say of themselves, and are sound.
# usage: check_manual.sh MAKER SAGAD SAGACTL
set -u
for tool in scdoc mandoc; do
    command -v "$tool" >/dev/null || { echo "skipped: $tool is not there"; exit 77; }
done
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
bad=0
"$1" "$2" "$3" "$scratch" || exit 1
for page in sagad.8 sagad.json.5 sagactl.1 saga-definition.5; do
    mandoc -Tlint -W warning "$scratch/$page" || bad=1
    mandoc -Tutf8 -O width=200 "$scratch/$page" | sed 's/.\x08//g' >"$scratch/$page.txt"
done
has() { # PAGE WORDS
    grep -qF -e "$2" "$scratch/$1.txt" || { echo "$1 does not have: $2"; bad=1; }
}
"$2" --help | sed -n 's/^  \(--[a-z-]*\) .*/\1/p' >"$scratch/settings"
[ "$(wc -l <"$scratch/settings")" -gt 30 ] || { echo "sagad --help shows no settings"; bad=1; }
while read -r setting; do has sagad.8 "$setting"; done <"$scratch/settings"
has sagad.json.5 'drain (time such as "10s")'
"$3" --help | sed -n '/^Commands/,/^$/s/^  \([a-z]*\) .*/\1/p' >"$scratch/commands"
[ "$(wc -l <"$scratch/commands")" -gt 30 ] || { echo "sagactl --help shows no commands"; bad=1; }
while read -r command; do has sagactl.1 "sagactl $command"; done <"$scratch/commands"
# Each member that the JSON Schemas know, but for keywords of JSON Schema itself, which are for arguments.
python3 - "$(dirname "$1")/../../schema" >"$scratch/members" <<'END'
import json, sys
def walk(node):
    if isinstance(node, dict):
        for name, value in node.items():
            if name == "properties":
                print("\n".join(value))
            if name != "argument_schema":
                walk(value)
    elif isinstance(node, list):
        for value in node:
            walk(value)
for name in ("definition", "tool"):
    walk(json.load(open(f"{sys.argv[1]}/{name}.schema.json")))
END
[ "$(wc -l <"$scratch/members")" -gt 100 ] || { echo "the JSON Schemas have no members"; bad=1; }
sort -u "$scratch/members" | sed 's/\$/\\$/' | while read -r member; do
    grep -q -E -e "^ +([a-z_.]+\.)?$member( \(|$)" "$scratch/saga-definition.5.txt" ||
        { echo "saga-definition.5 does not have the member $member"; exit 1; }
done || bad=1
exit $bad
