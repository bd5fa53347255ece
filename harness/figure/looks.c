/* SPDX-License-Identifier: MIT
 *
 * What series look like. A colour says what a series belongs to (a variant, a backend), a dash
 * which kind it is (memory, gate, length), and a marker is its own, so that a figure can be read
 * without colours too. Where eight colours do not suffice, each variant has a fixed one, and marker
 * and dash together tell the series apart. A few series of which many would share a colour have each
 * their own, as far as there are some. */
#include "figure.h"

enum { COLOURS = 8, MARKERS = 12, BLACK = -1, STAR = -1 }; /* as plots/style.gp */

/* Number of the first series with the same style, or the same kind, among the distinct ones. */
static int nth(const struct plot_names *s, int i, bool by_style, int *distinct)
{
    int at = -1;

    *distinct = 0;
    for (int k = 0; k < s->n; k++) {
        bool is_new = s->v[k].style < STYLE_FOREIGN;
        for (int b = 0; b < k && is_new; b++)
            is_new =
                by_style ? s->v[b].style != s->v[k].style : strcmp(s->v[b].kind, s->v[k].kind) != 0;
        *distinct += is_new;
        if (at < 0 &&
            (by_style ? s->v[k].style == s->v[i].style : strcmp(s->v[k].kind, s->v[i].kind) == 0))
            at = *distinct - 1;
    }
    return at;
}

/* Of so many series with one colour nobody tells the markers apart. */
enum { SHARED_MAX = 3 };

static bool shares_too_much(const struct plot_names *series)
{
    int most = 0;

    for (int i = 0; i < series->n; i++) {
        int same = 0;
        for (int k = 0; k < series->n; k++)
            same += series->v[k].style == series->v[i].style;
        most = same > most ? same : most;
    }
    return series->n > COLOURS && series->n <= MARKERS && most > SHARED_MAX;
}

void plot_looks(struct plot_names *series)
{
    for (int i = 0; i < series->n; i++) {
        struct plot_name *const s = &series->v[i];
        int styles, kinds;
        const int style = nth(series, i, true, &styles), kind = nth(series, i, false, &kinds);
        if (s->style >= STYLE_FOREIGN) {
            s->colour = BLACK;
            s->marker = STAR;
            s->dash = 0;
        } else if (shares_too_much(series)) {
            s->colour = i % COLOURS;
            s->marker = i;
            s->dash = i + i / COLOURS;
        } else if (styles > COLOURS) {
            s->colour = s->style % COLOURS;
            s->marker = i % MARKERS;
            s->dash = i + i / MARKERS;
        } else { /* of one style, the kinds have colours */
            s->colour = styles > 1 ? style : kind % COLOURS;
            s->marker = i % MARKERS;
            s->dash = kinds > 1 ? kind : style;
        }
    }
}
