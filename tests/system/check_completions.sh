#!/usr/bin/env bash
# The completions offer what --help of sagactl shows, and names of the service, in each shell that is here.
# usage: check_completions.sh MAKER SAGACTL
set -u
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
"$1" "$2" "$scratch" || exit 1
bad=0
# What stands in for sagactl when names are asked for.
mkdir "$scratch/bin"
printf '#!/bin/sh\nprintf "one-of-%%s\\n" "$1"\n' >"$scratch/bin/sagactl"
chmod +x "$scratch/bin/sagactl"
export PATH="$scratch/bin:$PATH" HOME="$scratch" XDG_CONFIG_HOME="$scratch"

# Each prints what is offered for a line that ends with the word to be completed, a word a line.
in_bash() {
    bash -c '. "$1/sagactl.bash"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _sagactl
        printf "%s\n" "${COMPREPLY[@]}"' bash "$scratch" "$@"
}
in_zsh() {
    zsh -f -c '_describe() { print -l -- ${(P)2%%:*} }; _files() { print files }
        compadd() { shift; for it in "$@"; do [[ $it == $PREFIX* ]] && print -- $it; done }
        complete_it() { local -a words; words=("$@"); local CURRENT=$# PREFIX=${@[-1]}; . $file }
        file=$1/_sagactl; shift; complete_it "$@"' zsh "$scratch" "$@" 2>&1
}
in_fish() {
    local line="$*"
    fish -c "source '$scratch/sagactl.fish'; complete -C '$line'" | cut -f 1
}
offers() { # SHELL WANTED WORDS...
    local shell=$1 wanted=$2
    shift 2
    "in_$shell" "$@" >"$scratch/offered"
    grep -qxF -e "$wanted" "$scratch/offered" ||
        { echo "$shell: \"$*\" does not offer $wanted but: $(tr '\n' ' ' <"$scratch/offered" | cut -c1-400)"; bad=1; }
}

commands=$("$2" --help | sed -n '/^Commands/,/^$/s/^  \([a-z]*\) .*/\1/p')
[ "$(wc -w <<<"$commands")" -gt 30 ] || { echo "sagactl --help shows no commands"; exit 1; }
tried=0
for shell in bash zsh fish; do
    command -v "$shell" >/dev/null || continue
    tried=$((tried + 1))
    in_$shell sagactl '' >"$scratch/all"
    for command in $commands; do
        grep -qxF "$command" "$scratch/all" || { echo "$shell does not offer the command $command"; bad=1; }
    done
    offers "$shell" --against sagactl hammer --ag
    offers "$shell" --token-file sagactl show --tok
    offers "$shell" one-of-list sagactl show ''
    offers "$shell" one-of-definitions sagactl start ''
    offers "$shell" one-of-tools sagactl hold --tool ''
done
[ "$tried" -gt 0 ] || { echo "skipped: no shell is here"; exit 77; }
exit $bad
