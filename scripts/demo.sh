# Two answers to "which wall?": for the committed run $1, and for a run made here, into $2.
# Called by `make demo`, which sets VENV and MAKE.
set -eu

whichwall=$VENV/bin/whichwall
answers=$(mktemp -d)
trap 'rm -rf "$answers"' EXIT

answer() {
    "$whichwall" analyze "$1" >"$2"
    cat "$2"
}

echo
echo "== Which wall? A decode run collected on an H200: $1"
answer "$1" "$answers/committed"

"$MAKE" --no-print-directory --silent "$VENV/collect.stamp"

echo
echo "== Which wall? A decode run of this machine: $2"
"$whichwall" collect --mode decode --out "$2" --overwrite
answer "$2" "$answers/here"

echo
echo "== The answers"
cat "$answers/committed"
echo
cat "$answers/here"
