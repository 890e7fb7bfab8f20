# Install a browser for the tests that open a report in one. Never fails: without a browser
# those tests are skipped, with the reason.
set -u

for name in chromium chromium-browser google-chrome; do
    command -v "$name" >/dev/null && exit 0
done
if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
    echo "No Chromium found: tests that open a report in a browser are skipped"
    exit 0
fi
echo "Installing Chromium for the tests that open a report in a browser"
log=$(mktemp)
export DEBIAN_FRONTEND=noninteractive
if ! { apt-get update && apt-get install --yes --no-install-recommends chromium; } \
    >"$log" 2>&1 </dev/null; then
    tail -n 3 "$log"
    echo "Chromium could not be installed: tests that open a report in a browser are skipped"
fi
rm -f "$log"
exit 0
