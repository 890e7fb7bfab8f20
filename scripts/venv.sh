# Make the virtual environment $1 with $PYTHON, or say in one line what to install.
set -eu

if [ -z "$PYTHON" ]; then
    echo "No Python 3.11 or newer found: install one, or name it: make PYTHON=/path/to/python3" >&2
    exit 1
fi
if ! "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null; then
    version=$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    echo "$PYTHON cannot make virtual environments: apt-get install python$version-venv (Debian, Ubuntu)" >&2
    exit 1
fi
echo "Making $1 with $("$PYTHON" --version)"
"$PYTHON" -m venv "$1"
