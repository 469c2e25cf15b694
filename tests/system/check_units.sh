#!/bin/sh
# The units of systemd say what systemd understands, leave little open, and are the same but for their names.
# usage: check_units.sh FOLDER SAGAD
set -u
folder=$1
sagad=$2
command -v systemd-analyze >/dev/null || { echo "skipped: systemd-analyze is not there"; exit 77; }
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
bad=0
for unit in sagad.service sagad@.service; do
    # The program is where it was built: systemd-analyze looks for it.
    sed "s#/usr/bin/sagad#$sagad#" "$folder/$unit" >"$scratch/$unit"
    said=$(systemd-analyze verify --man=no "$scratch/$unit" 2>&1) && [ -z "$said" ] || { echo "$unit: $said"; bad=1; }
    # Other programs are in packages that a small Debian lacks: /bin/kill is in procps.
    grep '^Exec' "$folder/$unit" | grep -Ev '^Exec[A-Za-z]*=/(usr/bin/sagad|bin/sh) ' &&
        { echo "$unit runs what may not be there"; bad=1; }
    said=$(systemd-analyze security --no-pager --offline=true --threshold=20 "$scratch/$unit" 2>&1) ||
        { echo "$unit leaves more open than 2.0:"; echo "$said"; bad=1; }
done
sed -e '1d' -e 's#/etc/sagad/%i\.json#/etc/sagad/sagad.json#' -e 's#^StateDirectory=sagad/%i$#StateDirectory=sagad#' \
    -e 's#sagad@\.service#sagad.service#' -e '/^Description=/d' "$folder/sagad@.service" >"$scratch/instance"
sed -e '1d' -e '/^Description=/d' "$folder/sagad.service" >"$scratch/single"
diff "$scratch/single" "$scratch/instance" || { echo "the two units differ in more than their names"; bad=1; }
exit $bad
