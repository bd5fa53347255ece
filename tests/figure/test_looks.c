/* SPDX-License-Identifier: MIT
 *
 * Colours, markers and dashes of series: a legend must tell them apart, with and without colours.
 */
#include "harness/figure/figure.h"
#include "tests/support/compared.h"
#include "tests/support/kept.h"

/* n series: of `styles` variants in turn, the k-th of each of kind k. */
static struct plot_names make(int n, int styles, int first)
{
    struct plot_names names = {0};

    for (int i = 0; i < n; i++) {
        char text[32], kind[32];
        int index;
        snprintf(text, sizeof(text), "series %d", i);
        snprintf(kind, sizeof(kind), "kind %d", i / styles);
        index = plot_name(&names, text, first + 5 * (i % styles));
        text_put(names.v[index].kind, PLOT_TEXT, kind);
    }
    plot_looks(&names);
    kept(names.v);
    return names;
}

static bool alike(const struct plot_name *a, const struct plot_name *b, bool grey)
{
    return a->marker == b->marker && a->dash % 5 == b->dash % 5 && (grey || a->colour == b->colour);
}

Test(looks, all_series_differ_also_in_grey)
{
    static const int shapes[][2] = {{1, 1}, {3, 3},  {6, 1},  {8, 8},  {8, 4},
                                    {8, 2}, {11, 2}, {12, 5}, {20, 20}};

    for (size_t k = 0; k < ARRAY_LEN(shapes); k++) {
        struct plot_names s = make(shapes[k][0], shapes[k][1], 3);
        for (int i = 0; i < s.n; i++)
            for (int j = 0; j < i; j++)
                cr_expect_not(alike(&s.v[i], &s.v[j], true), "%d of %d: %d and %d", shapes[k][1],
                              s.n, j, i);
    }
}

/* Up to eight variants have eight colours, whatever their places in the program's list. */
Test(looks, few_variants_have_different_colours)
{
    for (int first = 0; first < 12; first++) {
        struct plot_names s = make(8, 8, first);
        for (int i = 0; i < s.n; i++)
            for (int j = 0; j < i; j++)
                cr_expect_neq(s.v[i].colour, s.v[j].colour, "%d and %d from %d", j, i, first);
    }
}

Test(looks, colour_is_the_variant_and_dash_the_kind)
{
    struct plot_names s = make(6, 3, 0);

    for (int i = 0; i < s.n; i++)
        for (int j = 0; j < i; j++) {
            cr_expect_eq(s.v[i].colour == s.v[j].colour, i % 3 == j % 3);
            cr_expect_eq(s.v[i].dash == s.v[j].dash, i / 3 == j / 3);
        }
}

/* Seven lines of one colour are not told apart by marks of six pixels. */
Test(looks, no_four_of_a_few_series_share_a_colour)
{
    for (int n = 9; n <= 12; n++)
        for (int styles = 1; styles <= n; styles++) {
            struct plot_names s = make(n, styles, 3);
            for (int i = 0; i < s.n; i++) {
                int same = 0;
                for (int j = 0; j < s.n; j++)
                    same += s.v[i].colour == s.v[j].colour;
                cr_expect_leq(same, 3, "%d series of %d variants", n, styles);
            }
        }
}

/* What is no series of the program takes no colour from those that are. */
Test(looks, foreign_series_are_black)
{
    struct plot_names s = make(2, 2, 0);
    int index;

    index = plot_name(&s, "published", STYLE_FOREIGN);
    plot_looks(&s);
    kept(s.v);
    NUMBERS({s.v[0].colour, 0}, {s.v[1].colour, 1}, {s.v[index].colour, -1},
            {s.v[index].marker, -1});
}
