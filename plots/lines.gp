# SPDX-License-Identifier: MIT
# `draw` for lines with bands: kind 0, y times y_scale. A script may append to it.
bands = 'for [s = 0:n_series - 1] data using (xs(s, 0)):(column("low") * y_scale)' \
    .':(column("high") * y_scale)' \
    .' with filledcurves fc rgb colour(style[s + 1])' \
    .' fs transparent solid (n_series > 8 ? 0.08 : 0.25) noborder, '
lines = 'for [s = 0:n_series - 1] data using (xs(s, 0)):(column("y") * y_scale)' \
    .' with linespoints lc rgb colour(style[s + 1])' \
    .' dt dashes(style[s + 1], dash[s + 1]) lw 1.6 pt marker(style[s + 1]) ps 0.8'
draw = "plot ".(dumb ? "" : bands).lines
