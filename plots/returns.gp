# SPDX-License-Identifier: MIT
# Returns of tasks over the steps that were played. Kind 0: x steps, y the mean over seeds, low..high
# the least and the most of them; 1: what the best policy earns; 2: actions at random. How to run it by
# hand: style.gp.
if (!exists("here")) here = "plots/"
if (!exists("title")) title = "Returns of tasks while they are learnt"
load here."style.gp"
x_title = "steps played (thousands)"
y_title = "mean return of an episode"
log_y = 0
free_y = 1
if (has_kind(1)) { key_form = "dotted"; key_name = "the best policy"; eval add_key }
if (has_kind(2)) { key_form = "dashes"; key_name = "actions at random"; eval add_key }
if (!dumb) { key_form = "band"; key_name = "least to most of the seeds"; eval add_key }
# The more of them, the paler.
bands = dumb ? '' : sprintf('for [s = 0:n_series - 1] data using (xs(s, 0) / 1e3):"low":"high" with filledcurves fc rgb colour(s + 1) fs transparent solid %.2f noborder, ', 1.0 / (4 + n_series))
draw = 'plot '.bands.'for [s = 0:n_series - 1] data using (xs(s, 1) / 1e3):"y" with lines lc rgb 0x444444 dt 3 lw 1.2' \
    .', for [s = 0:n_series - 1] data using (xs(s, 2) / 1e3):"y" with lines lc rgb 0x444444 dt 2 lw 1' \
    .', for [s = 0:n_series - 1] data using (xs(s, 0) / 1e3):"y"' \
    .' with linespoints lc rgb colour(s + 1) dt dashes(s + 1) lw 1.4 pt marker(s + 1) ps 0.7'
# A few ticks, at round numbers: the lengths of trainings differ. (stats obeys ranges.)
prepare = 'set autoscale; ' \
    .'stats data using (in_row(r, l) ? column("x") / 1e3 : NaN) name "played" nooutput; ' \
    .'wide = played_max > played_min ? played_max - played_min : 1; set xtics nice(wide / 6); ' \
    .'set xrange [played_min - 0.04 * wide:played_max + 0.04 * wide]; set yrange [y_from:y_to]'
load here."panels.gp"
