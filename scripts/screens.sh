#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# screens.sh: write tests/screens/ anew, which is what commands print for known rows.
set -eu
cd "$(dirname "$0")/.."
make tests
REWRITE_SCREENS=1 scripts/test.sh build/release --filter '@(screens|exclusions)/*'
