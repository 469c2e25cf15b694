#!/bin/sh
# Each planted bug still finds its place in the sources, to the letter: a near place is another bug, or no C. They are
# built and hunted by tools/test --long alone. usage: all_apply.sh ROOT
set -eu
cd "$1"
bad=0
for patch in tests/sim/planted/*.patch; do
    patch -s --dry-run --fuzz=0 -p1 <"$patch" && continue
    echo "$patch has no place any more: mend it together with what it bends"
    bad=1
done
exit $bad
