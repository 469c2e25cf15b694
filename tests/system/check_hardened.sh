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
    if readelf -h "$program" | grep -q 'X86-64'; then
        code=$(objdump -d --no-show-raw-insn "$program" | grep -E 'endbr64|orq +\$0x0,\(%rsp\)' | cut -f2- | sort -u)
        has 'marks for jumps (CET)' "$code" 'endbr64'
        # A frame of more than a page touches each page of it.
        has 'touch of each page of its stack (stack clash protection)' "$code" 'orq'
    fi
done
exit $missing
