#!/bin/sh
# Install Debian's chromium for the test that opens a report in a browser (tests/test_browser.py).
set -eu

if command -v chromium >/dev/null 2>&1; then
    echo "chromium is installed: $(command -v chromium)"
    exit 0
fi
if ! command -v apt-get >/dev/null 2>&1; then
    echo "no apt-get here: install chromium by other means; without it the browser test is skipped" >&2
    exit 1
fi

as_root=""
if [ "$(id -u)" -ne 0 ]; then
    as_root="sudo"
fi
$as_root apt-get update
$as_root apt-get install --yes --no-install-recommends chromium
