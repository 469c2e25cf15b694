#!/usr/bin/env bash
# One case of an agent, as the calls it makes: look, set a replacement aside, charge for express delivery, answer the
# customer. The calls stand or fall together. sagad cannot know what an agent has in mind, so that it is the agent who
# gives up: abort undoes what was done, in reverse. support.json has the tools. Run it twice: it is the same case, and
# nothing happens twice.
#
# usage: support.sh CASE CUSTOMER SKU      exit code 0: completed, 8: given up and undone
set -u
case=$1 customer=$2 sku=$3

saga=$(sagactl open --id "case-$case" --deadline 30m -o name) || exit

call() { # STEP TOOL ARGUMENTS
    sagactl call "$2" --saga "$saga" --step "$1" --args "$3"
}

give_up() {
    printf 'giving up: %s\n' "$1" >&2
    sagactl abort "$saga" --note "$1" >&2
    for _ in {1..300}; do # the first status is that of the saga, those of its steps follow
        status=$(sagactl show "$saga" -o json | grep -o '"status":"[a-z]*"' | head -n 1)
        [ "$status" = '"status":"compensated"' ] && exit 8
        sleep 0.1
    done
    exit 9
}

call look support.history "{\"case\": \"$case\"}" || give_up "the history cannot be read"
call replace support.replace "{\"request\": \"$case\", \"sku\": \"$sku\", \"qty\": 1}" ||
    give_up "there is no replacement"
# An agent forgets what it did, and says it differently. It is the same call: nothing new happens.
call replace support.replace "{\"qty\": 1.0, \"sku\": \"$sku\", \"request\": \"$case\", \"why\": \"arrived broken\"}" ||
    give_up "there is no replacement"
call express support.charge "{\"request\": \"$case\", \"amount\": 900, \"customer\": \"$customer\"}" ||
    give_up "the card does not pay"
call answer support.answer "{\"to\": \"$customer\", \"subject\": \"Your case $case: a new $sku is on its way\"}" ||
    give_up "the answer does not arrive"
sagactl complete "$saga"
