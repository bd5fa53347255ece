#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# soak.sh: sweeps and trainings killed at KILLS (100) random moments, drawn with SEED (1), and resumed;
# then each EVERY-th (1) call of the system fails once. An hour or more.
set -eu
cd "$(dirname "$0")/.."
make tests
for what in sweep train; do
    tests/soak/kills.py $what --bench build/release/bench --kills "${KILLS:-100}" --seed "${SEED:-1}"
done
FAULTS_ALL=${EVERY:-1} scripts/test.sh build/release --filter '@(failing_calls|train_faults)/*'
