#!/usr/bin/env bash
# The sources of the packages name the version and all that a build needs, as the rest of the project does.
# usage: check_package.sh ROOT
set -u
cd "$1" || exit 2
. tools/packages
bad=0
version=$(sed -n "s/^project('sagad', 'c', version: '\([^']*\)'.*/\1/p" meson.build)
grep -qF "sagad ($version) " tools/package/debian/changelog ||
    { echo "tools/package/debian/changelog is not of version $version"; bad=1; }
needed=$(sed -n '/^Build-Depends:/,/^$/p' tools/package/debian/control |
    tr -d '\n' | sed 's/^Build-Depends://' | tr ',' '\n')
for package in "${packages_build[@]}"; do
    grep -qx " *$package" <<<"$needed" || { echo "Build-Depends does not name $package"; bad=1; }
done
exit $bad
