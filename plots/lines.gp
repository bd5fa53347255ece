# SPDX-License-Identifier: MIT
# `draw` for lines with bands: kind 0, y times y_scale. A script may append to it. More than eight
# bands would hide each other and the lines.
bands = 'for [s = 0:n_series - 1] data using (xs(s, 0)):(column("low") * y_scale)' \
    .':(column("high") * y_scale)' \
    .' with filledcurves fc rgb colour(s + 1)' \
    .' fs transparent solid 0.2 noborder, '
lines = 'for [s = 0:n_series - 1] data using (xs(s, 0)):(column("y") * y_scale)' \
    .' with linespoints lc rgb colour(s + 1) dt dashes(s + 1) lw 1.6 pt marker(s + 1) ps 0.8'
draw = "plot ".(dumb || n_series > 8 ? "" : bands).lines
stats data using (column("kind") == 0 ? column("low") : NaN) name "band" nooutput
if (exists("band_records") && n_series <= 8) { key_form = "band"; key_name = "95 % interval"; eval add_key }
