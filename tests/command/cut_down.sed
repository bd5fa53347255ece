# SPDX-License-Identifier: MIT
#
# sed -E: a file of harness/studies with models and budgets of seconds.
s/^steps.*/steps = 2/
s/^budgets.*/budgets = 32..64*2/
s/^tune-tokens.*/tune-tokens = 32/
s/^rates.*/rates = 1e-3/
s/^seeds.*/seeds = 1/
s/^baseline-seeds.*/baseline-seeds = 1/
/^equal/d
s/^tune-seeds.*/tune-seeds = 1/
s/^train.*mlm.*/train = --objective mlm --seq 8 --mem 0 --batch 2 --eval-every 2/
t
s/^train.*/train = --seq 8 --mem 8 --batch 2 --eval-every 2/
s/^eval.*mem 0.*/eval = --mem 0 --bytes 100/
t
s/^eval.*mem.*/eval = --mem 8 --bytes 100/
s/^(variant .*) --mem [0-9]+/\1/
s/^eval.*episodes.*/eval = --episodes 20/
s/--layers [0-9]+ --d-model [0-9]+ --heads [0-9]+/--layers 2 --d-model 16 --heads 4/
