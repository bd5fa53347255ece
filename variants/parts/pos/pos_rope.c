/* SPDX-License-Identifier: MIT
 *
 * Rotary positions (Su et al. 2021, "RoFormer", section 3.2): the first rope_dim coordinates of a
 * query or key are rotated pairwise by position * rope_base^(-2f/rope_dim). A product of two rows
 * then depends on the difference of their positions only. Pairs are adjacent, as in the paper, or
 * coordinate f of the first half with f of the second. Layers may have bases of their own, 0 for no
 * rotation (Kazemnejad et al. 2023, "NoPE").
 *
 * Longer contexts than trained on, by a factor s: `linear` divides frequencies by s (Chen et al.
 * 2023, arXiv:2306.15595), `ntk` takes base s^(r/(r-2)), `dynamic` does so with s n / n0 - (s - 1) for
 * texts of n tokens, more than the n0 = rope_original, and `yarn` (Peng et al. 2023,
 * arXiv:2309.00071) divides those that turn less than beta_slow times in the original context,
 * keeps those that turn more than beta_fast times, goes linearly between the two, and multiplies
 * cosines and sines by 0.1 ln s + 1. `llama3` (Llama 3.1, Grattafiori et al. 2024,
 * arXiv:2407.21783) does the same by turns: those of less than `low` are divided, those of more
 * than `high` stay, and between the two frequencies go linearly with turns. `longrope` (Ding et al.
 * 2024, arXiv:2402.13753) divides each by a number of its own, from one list for texts up to
 * rope_original tokens, from another beyond, and multiplies cosines and sines by
 * sqrt(1 + ln s / ln rope_original). Which list it is must be the same for all rows of a text, so
 * it follows from the most tokens that the model sees. */
#include "variants/parts/latent.h"
#include "variants/parts/rotary.h"

enum { STRETCH = 128 }; /* positions in the table */

#define PI 3.14159265358979323846

enum { ADJACENT, HALVES };
static const char *const pairs_name[] = {[ADJACENT] = "interleaved", [HALVES] = "half", NULL};

enum scaled { SCALED_ALL, SCALED_WINDOWLESS };
static const char *const scaled_name[] = {
    [SCALED_ALL] = "all", [SCALED_WINDOWLESS] = "windowless", NULL};

struct rope {
    int dim; /* coordinates of a head that are rotated */
    double base;
    int pairs;
    int original;               /* tokens of the original context */
    float beta_fast, beta_slow; /* turns in it */
    bool truncate;              /* yarn: the ramp begins and ends at whole pairs */
    float mscale;               /* of cosines and sines; 0 = by the factor */
    float low, high;            /* turns in the original context; llama3 */
    int scaled;                 /* which layers' frequencies are changed: enum scaled */
};

/* Latent attention has its own number, d_rope. */
static bool has_own_dim(const struct config *c) { return !has_latents(c); }

static bool is_yarn(const struct config *c) { return c->rope_scaling == ROPE_YARN; }
static bool is_llama3(const struct config *c) { return c->rope_scaling == ROPE_LLAMA3; }
static bool is_linear_in_layers(const struct config *c)
{
    return c->rope_scaling == ROPE_LINEAR && c->layer_rope_base.n > 0 && c->layer_windows.n > 0;
}
static bool is_longrope(const struct config *c) { return c->rope_scaling == ROPE_LONGROPE; }
static bool is_dynamic(const struct config *c) { return c->rope_scaling == ROPE_DYNAMIC; }
/* Do its frequencies follow from the length of the text? */
static bool has_length(const struct config *c) { return is_longrope(c) || is_dynamic(c); }
static bool has_original(const struct config *c)
{
    return is_yarn(c) || is_llama3(c) || has_length(c);
}
static bool has_mscale(const struct config *c) { return is_yarn(c) || is_longrope(c); }

static const struct choice rope_choices[] = {
    ROW_INT(struct rope, dim, "rope_dim", 0, 1 << 20, "coordinates of a head that are rotated",
            .zero_is_absent = true, .scope = SCOPE_LAYER, .setting = true, .if_changed = true,
            .applies = has_own_dim, .tiny = "4|4|2|2"),
    ROW_WIDE(struct rope, base, "rope_base", 0, INFINITY, "base of the frequencies", SETTING),
    ROW_WORD(struct rope, pairs, "rope_pairs", pairs_name, "which coordinates are rotated together",
             .absent = "interleaved", SETTING, .tiny = "half|interleaved"),
    ROW_INT(struct rope, original, "rope_original", 1, 1 << 28, "tokens of the original context",
            .absent = "4096", .applies = has_original, SETTING),
    ROW_REAL(struct rope, beta_fast, "rope_beta_fast", 0, 1 << 20,
             "turns in the original context, of frequencies that stay", .absent = "32",
             .applies = is_yarn, SETTING),
    ROW_REAL(struct rope, beta_slow, "rope_beta_slow", 0, 1 << 20,
             "turns in the original context, of frequencies that are divided", .absent = "1",
             .applies = is_yarn, SETTING),
    ROW_FLAG(struct rope, truncate, "rope_truncate",
             "1: the ramp between them begins and ends at whole pairs", .absent = "1",
             .if_other = true, .applies = is_yarn, SETTING),
    ROW_REAL(struct rope, mscale, "rope_mscale", 0, 1 << 20,
             "of cosines and sines, 0 = by the factor", .absent = "0", .applies = has_mscale,
             SETTING),
    ROW_REAL(struct rope, low, "rope_low", 0, 1 << 20,
             "turns in the original context, of frequencies that llama3 divides", .absent = "1",
             .applies = is_llama3, SETTING),
    ROW_REAL(struct rope, high, "rope_high", 0, 1 << 20,
             "turns in the original context, of frequencies that llama3 keeps", .absent = "4",
             .applies = is_llama3, SETTING),
    ROW_WORD(struct rope, scaled, "rope_scaled", scaled_name,
             "layers whose frequencies linear scaling divides", .absent = "all", .if_other = true,
             .applies = is_linear_in_layers, SETTING),
    {0},
};

static void rope_usual(const struct config *c, void *numbers)
{
    *(struct rope *)numbers = (struct rope){.dim = c->dh - c->dh % 2,
                                            .base = 10000,
                                            .pairs = has_latents(c) ? ADJACENT : HALVES,
                                            .original = 4096,
                                            .beta_fast = 32,
                                            .beta_slow = 1,
                                            .truncate = true,
                                            .low = 1,
                                            .high = 4};
}

static const struct part_numbers rope_numbers = {rope_choices, .size = NUMBERS_SIZE(struct rope),
                                                 .usual = rope_usual};

static const struct rope *rope_of(const struct config *c) { return config_numbers(c, SLOT_POS); }

/* Coordinates of a head that are rotated. Latent attention has its own number. */
static int dim_of(const struct config *c)
{
    return has_latents(c) ? latent_of(c)->rope : rope_of(c)->dim;
}

static int pairs_of(const struct config *c) { return dim_of(c) / 2; }

/* Each base has a table of its own; layer l has the table l % tables_of. */
static int tables_of(const struct config *c) { return max_int(1, c->layer_rope_base.n); }

static double base_of(const struct config *c, int table)
{
    return c->layer_rope_base.n ? c->layer_rope_base.at[table] : rope_of(c)->base;
}

/* A number for each pair, or none. */
static bool fits(const struct config *c, const struct rope_list *list)
{
    bool fine = list->n == 0 || list->n == pairs_of(c);

    for (int f = 0; f < list->n; f++)
        fine = fine && list->at[f] > 0;
    return fine;
}

static enum status check_longrope(const struct config *c, struct err *e)
{
    if (rope_of(c)->original < 2)
        return fail(e, E_USAGE, "rope: longrope of %d tokens  -> use 2 or more",
                    rope_of(c)->original);
    if (!fits(c, &c->rope_short) || !fits(c, &c->rope_long))
        return fail(
            e, E_USAGE,
            "rope: rope_short has %d numbers, rope_long %d  -> give %d that are more than 0",
            c->rope_short.n, c->rope_long.n, pairs_of(c));
    return OK;
}

static enum status rope_check(const struct config *c, struct err *e)
{
    if (c->dh < 2)
        return fail(e, E_USAGE, "rope: a head of width %d has no pair to rotate  -> use 2 or more",
                    c->dh);
    if (dim_of(c) < 2 || dim_of(c) > c->dh || dim_of(c) % 2)
        return fail(
            e, E_USAGE,
            "rope: %d coordinates to rotate  -> use an even number from 2 to the head width %d",
            dim_of(c), c->dh);
    for (int k = 0; k < tables_of(c); k++)
        if (base_of(c, k) != 0 && !(base_of(c, k) > 1))
            return fail(e, E_USAGE, "rope: base %g  -> use more than 1", base_of(c, k));
    if (rope_of(c)->scaled == SCALED_WINDOWLESS &&
        !(is_linear_in_layers(c) && c->layer_rope_base.n % c->layer_windows.n == 0))
        return fail(e, E_USAGE,
                    "rope: rope_scaled windowless needs linear scaling, and a base for each kind "
                    "of layers with a window of its own  -> use all");
    if (!c->layer_rope_base.n && rope_of(c)->base == 0)
        return fail(e, E_USAGE, "rope: base 0  -> use more than 1");
    if ((c->rope_scaling == ROPE_NTK || is_dynamic(c)) && dim_of(c) < 4)
        return fail(e, E_USAGE, "rope: %s scaling of %d coordinates  -> use 4 or more",
                    rope_scaling_name[c->rope_scaling], dim_of(c));
    if (c->rope_scaling == ROPE_YARN &&
        !(rope_of(c)->beta_slow > 0 && rope_of(c)->beta_fast > rope_of(c)->beta_slow))
        return fail(e, E_USAGE, "rope: %g to %g turns  -> use more than 0, the fast ones more",
                    (double)rope_of(c)->beta_slow, (double)rope_of(c)->beta_fast);
    if (!is_yarn(c) && !rope_of(c)->truncate)
        return fail(e, E_USAGE, "rope: rope_truncate 0 without yarn, which has it  -> use 1");
    if (c->rope_scaling == ROPE_LLAMA3 &&
        !(rope_of(c)->low > 0 && rope_of(c)->high > rope_of(c)->low))
        return fail(e, E_USAGE, "rope: %g to %g turns  -> use more than 0, the high ones more",
                    (double)rope_of(c)->low, (double)rope_of(c)->high);
    return is_longrope(c) ? check_longrope(c, e) : OK;
}

/* The pair that turns so often in the original context. */
static double pair_of(const struct config *c, double base, double turns)
{
    return dim_of(c) * log(rope_of(c)->original / (turns * 2 * PI)) / (2 * log(base));
}

/* How far the frequency of pair f is on the way to being divided, 0 to 1. */
static double yarn_ramp(const struct config *c, double base, int f)
{
    const struct rope *const r = rope_of(c);
    const double first = pair_of(c, base, (double)r->beta_fast);
    const double last = pair_of(c, base, (double)r->beta_slow);
    const double lo = fmax(r->truncate ? floor(first) : first, 0);
    const double hi = fmin(r->truncate ? ceil(last) : last, dim_of(c) - 1);

    return fmin(fmax((f - lo) / (hi != lo ? hi - lo : 0.001), 0), 1);
}

/* How far a frequency is on the way to being divided by its turns in the original context. */
static double turns_ramp(const struct rope *r, double w)
{
    const double turns = r->original * w / (2 * PI);

    return fmin(fmax(((double)r->high - turns) / ((double)r->high - (double)r->low), 0), 1);
}

/* Layers with this table see windows, and scaling is for those that see all. */
static bool stays(const struct config *c, int table)
{
    return rope_of(c)->scaled == SCALED_WINDOWLESS &&
           c->layer_windows.at[table % c->layer_windows.n] > 0;
}

/* Radians per position of pair f, in a text that is so many times as long as the original context. */
static double frequency(const struct config *c, int table, int f, double length)
{
    const struct rope_list *const by = length > 1 ? &c->rope_long : &c->rope_short;
    const double s = stays(c, table) ? 1 : (double)c->rope_factor, dim = dim_of(c),
                 base = base_of(c, table);
    const double w = pow(base, -2.0 * f / dim);

    switch (c->rope_scaling) {
    case ROPE_LINEAR:
        return w / s;
    case ROPE_NTK:
        return pow(base * pow(s, dim / (dim - 2)), -2.0 * f / dim);
    case ROPE_DYNAMIC:
        return pow(base * pow(s * fmax(length, 1) - (s - 1), dim / (dim - 2)), -2.0 * f / dim);
    case ROPE_YARN: {
        const double ramp = yarn_ramp(c, base, f);
        return w / s * ramp + w * (1 - ramp);
    }
    case ROPE_LLAMA3: {
        const double ramp = turns_ramp(rope_of(c), w);
        return w / s * ramp + w * (1 - ramp);
    }
    case ROPE_LONGROPE:
        return by->n ? w / (double)by->at[f] : w;
    default:
        return w;
    }
}

/* What cosines and sines are multiplied by. */
static double magnitude(const struct config *c)
{
    const struct rope *const r = rope_of(c);

    if (!has_mscale(c))
        return 1;
    if (r->mscale != 0)
        return (double)r->mscale;
    return is_yarn(c) ? 0.1 * log((double)c->rope_factor) + 1
                      : sqrt(1 + log((double)c->rope_factor) / log(r->original));
}

/* Row t: cosines, then sines, of position t. The table is the same for every window length, but where
 * frequencies follow from that of the text: there it has the text's tokens behind it. */
static size_t table_floats(const struct config *c) { return (size_t)STRETCH * (size_t)dim_of(c); }

static size_t rope_n_pos_encoding(const struct config *c, int K)
{
    return (size_t)tables_of(c) * table_floats(c) + (has_length(c) ? 1 : 0);
}

/* Of the text, in original contexts. */
static double length_of(const struct config *c, const float *pos_encoding)
{
    return has_length(c)
               ? (double)pos_encoding[(size_t)tables_of(c) * table_floats(c)] / rope_of(c)->original
               : 1;
}

/* Of one base, for pairs f0 .. */
static struct rotary_table table_of(const struct config *c, const float *pos_encoding, int table,
                                    int f0)
{
    float *const at = (float *)pos_encoding + (size_t)table * table_floats(c) + f0;

    return (struct rotary_table){at, at + pairs_of(c), dim_of(c), STRETCH};
}

static void rope_pos_encoding(const struct config *c, int64_t first, int K, float *pos_encoding)
{
    const int n = pairs_of(c);

    if (has_length(c))
        pos_encoding[(size_t)tables_of(c) * table_floats(c)] =
            (float)(c->text_len ? c->text_len : K);
    const double length = length_of(c, pos_encoding);
    for (int x = 0; x < tables_of(c) * n; x++) {
        const int table = x / n, f = x % n;
        const double w = base_of(c, table) != 0 ? frequency(c, table, f, length) : 0;
        const struct rotary_table of = table_of(c, pos_encoding, table, f);
        for (int t = 0; t < STRETCH; t++)
            rotary_row(&of, t, &w, 1);
    }
}

/* Those that are divided more or less are no geometric series. */
static void frequencies(double *w, const struct config *c, int table, double length, int f0, int n)
{
    const bool series = !has_original(c);
    const double ratio =
        series && n > 1 ? frequency(c, table, 1, length) / frequency(c, table, 0, length) : 1;

    w[0] = frequency(c, table, f0, length);
    for (int f = 1; f < n; f++)
        w[f] = series ? w[f - 1] * ratio : frequency(c, table, f0 + f, length);
}

static void rope_rotate(const struct engine *g, const struct config *c, const float *pos_encoding,
                        const struct rotation *t)
{
    const int table = t->layer % tables_of(c);
    const struct rotary r = {.x = t->x,
                             .stride = t->stride,
                             .B = t->B,
                             .rows = t->rows,
                             .heads = t->heads,
                             .width = t->width,
                             .pairs = pairs_of(c),
                             .position = t->position,
                             .halves = rope_of(c)->pairs == HALVES,
                             .back = t->back};

    if (base_of(c, table) == 0)
        return;
    for (int f0 = 0; f0 < r.pairs; f0 += ROTARY_PAIRS) {
        const struct rotary_table of = table_of(c, pos_encoding, table, f0);
        const int n = min_int(ROTARY_PAIRS, r.pairs - f0);
        double w[ROTARY_PAIRS];
        frequencies(w, c, table, length_of(c, pos_encoding), f0, n);
        rotary_turn(g, &r, &of, w, magnitude(c), f0, n);
    }
}

const struct pos pos_rope = {
    .name = "rope",
    .numbers = &rope_numbers,
    .check = rope_check,
    .n_pos_encoding = rope_n_pos_encoding,
    .pos_encoding = rope_pos_encoding,
    .rotate = rope_rotate,
};
