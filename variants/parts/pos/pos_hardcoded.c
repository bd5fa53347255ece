/* SPDX-License-Identifier: MIT
 *
 * Hard-coded Gaussian attention (You et al. 2020): s_h[n] = -(n - c_h)^2 / (2 sigma^2) and nothing
 * else; there are no queries and keys. Heads take the centres c in turn. The paper uses the density
 * without a softmax; over whole rows the two agree. */
#include "pos_bias.h"
#include "variants/parts/parts.h"

enum { MAX_CENTRES = 8 };
struct hardcoded {
    int n;
    float centre[MAX_CENTRES], sigma; /* tokens back */
};

static void print_centres(char text[CHOICE_TEXT], const void *numbers)
{
    const struct hardcoded *const o = numbers;

    *text = '\0';
    for (int i = 0; i < o->n; i++)
        text_item(text, CHOICE_TEXT, "%.9g", (double)o->centre[i]);
}

static enum status parse_centres(void *numbers, const char *text, struct err *e)
{
    struct hardcoded *const o = numbers;
    double at[MAX_CENTRES];
    const int n = list_read(at, MAX_CENTRES, text, -1e6, 1e6, false);

    if (n < 1)
        return fail(e, E_USAGE,
                    "hard_centre \"%.60s\": not up to %d distances  -> write for example 1,0", text,
                    (int)MAX_CENTRES);
    o->n = n;
    for (int i = 0; i < n; i++)
        o->centre[i] = (float)at[i];
    return OK;
}

static const struct choice hardcoded_choices[] = {
    ROW_TEXT("hard_centre", print_centres, parse_centres,
             "distances that the heads look at, in turn", SETTING, .scope = SCOPE_CORE),
    ROW_REAL(struct hardcoded, sigma, "hard_sigma", 1e-3, 1e6, "standard deviation in tokens",
             .scope = SCOPE_CORE, SETTING),
    {0},
};

static const struct part_numbers hardcoded_numbers = {
    hardcoded_choices, PRESET(struct hardcoded, .n = 2, .centre = {1, 0}, .sigma = 1)};

static void hardcoded_build_tables(const struct pos_call *t)
{
    struct attn *const a = t->a;
    const struct hardcoded *const o = config_numbers(t->c, SLOT_POS);

    for (int h = 0; h < t->c->H; h++)
        for (int n = -a->Rf; n < a->R; n++) {
            const double x = (n - (double)o->centre[h % o->n]) / (double)o->sigma;
            bias_of(a, h)[-n] = (float)(-x * x / 2);
        }
}

const struct pos pos_hardcoded = {
    .name = "hardcoded",
    .form = "hard",
    .numbers = &hardcoded_numbers,
    .no_content = true,
    .reserve = bias_reserve,
    .build_tables = hardcoded_build_tables,
};
