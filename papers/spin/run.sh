#!/usr/bin/env bash
# Checks Fair-k with Spin: every case must pass both searches, and every mutant must fail one of them.
# Exit status: 0 if so, 1 if not, 3 if Spin or a C compiler is missing.
set -eu

cases=("3 1 2" "3 2 1" "3 2 2" "4 1 1" "4 2 1" "4 1 2" "5 2 1") # N K R
mutants=(1 2 3 4)
mutant_case="3 1 2"
depth=100000 # limit of the search; a search that reaches it counts as failed

if ! command -v spin >/dev/null; then
    echo "spin is not installed (Debian: apt-get install spin)"
    exit 3
fi
cc=${CC:-cc}
if ! command -v "$cc" >/dev/null; then
    echo "spin needs a C compiler (Debian: apt-get install gcc)"
    exit 3
fi

model=$(cd "$(dirname "$0")" && pwd)/fair_k.pml
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cp "$model" fair_k.pml

# search N K R MUTANT safety|cycles: writes the output of the search to the file `safety` or `cycles`.
search() {
    local defines=(-DNOREDUCE -DCOLLAPSE) options=("-m$depth")
    if [ "$5" = safety ]; then
        defines+=(-DSAFETY)
    else
        defines+=(-DNP)
        options+=(-l)
    fi
    rm -f pan pan.*
    spin "-DN=$1" "-DK=$2" "-DR=$3" "-DMUTANT=$4" -a fair_k.pml >made 2>&1 || { cat made; exit 1; }
    "$cc" -w -O2 "${defines[@]}" -o pan pan.c
    ./pan "${options[@]}" >"$5" 2>&1 || true # the output decides; a search without a verdict in it has failed
}

errors() { sed -n 's/.*errors: \([0-9]*\).*/\1/p' "$1"; }
states() { sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' "$1"; }
seconds() { sed -n 's/.*elapsed time \([0-9.]*\) seconds.*/\1/p' "$1"; }
reason() { sed -n 's/^pan:[0-9]*: \(.*\) (at depth.*/\1/p' "$1" | grep . || echo "the search was not finished"; }
passed() { [ "$(errors "$1")" = 0 ] && ! grep -q -e "not completed" -e "depth too small" -e "out of memory" "$1"; }
caught() { [ "$(errors "$1")" -gt 0 ] 2>/dev/null; }

wrong=0
for each in "${cases[@]}"; do
    read -r n k r <<<"$each"
    verdict=ok
    for kind in safety cycles; do
        search "$n" "$k" "$r" 0 "$kind"
        if ! passed "$kind"; then
            [ "$verdict" != ok ] || verdict="FAILED ($kind): $(reason "$kind")"
            wrong=1
        fi
    done
    printf 'N=%s K=%s R=%s  %8s states  errors: %s  %5s s   cycles: %s  %5s s   %s\n' "$n" "$k" "$r" "$(states safety)" \
        "$(errors safety)" "$(seconds safety)" "$(errors cycles)" "$(seconds cycles)" "$verdict"
done

read -r n k r <<<"$mutant_case"
for mutant in "${mutants[@]}"; do
    verdict="NOT CAUGHT"
    for kind in safety cycles; do
        search "$n" "$k" "$r" "$mutant" "$kind"
        if caught "$kind"; then
            verdict="caught ($kind): $(reason "$kind")"
            break
        fi
    done
    [ "$verdict" != "NOT CAUGHT" ] || wrong=1
    printf 'mutant %s  N=%s K=%s R=%s  %s\n' "$mutant" "$n" "$k" "$r" "$verdict"
done
exit "$wrong"
