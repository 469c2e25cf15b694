#!/bin/sh
# The programs that are shipped keep the defences that the compiler and the linker offer.
# usage: check_hardened.sh PROGRAM...
set -u
for tool in readelf objdump; do
    command -v "$tool" >/dev/null || { echo "skipped: $tool is not there"; exit 77; }
done
missing=0
for program in "$@"; do
    headers=$(readelf -hldW "$program")
    symbols=$(readelf -W --dyn-syms "$program")
    has() {
        echo "$2" | grep -Eq "$3" || { echo "${program##*/} has no $1"; missing=1; }
    }
    has 'place of its own at each start (PIE)' "$headers" 'Type: +DYN'
    has 'table of addresses that is read only (RELRO)' "$headers" 'GNU_RELRO'
    has 'binding of all symbols at its start (BIND_NOW)' "$headers" 'BIND_NOW'
    has 'stack that runs no code' "$headers" 'GNU_STACK .* RW +0x'
    has 'guard of its stack' "$symbols" '__stack_chk_fail'
    has 'checked copies (FORTIFY)' "$symbols" '__[a-z]+_chk@'
    if readelf -h "$program" | grep -q 'X86-64' && ! objdump -d "$program" | grep -qm1 'endbr64'; then
        echo "${program##*/} has no marks for jumps (CET)"
        missing=1
    fi
done
exit $missing
