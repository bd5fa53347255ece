/* SPDX-License-Identifier: MIT
 *
 * DExTra's own numbers, and the sizes of its stages (Mehta et al. 2020, arXiv:2008.00623,
 * section 3.1).
 *
 * Widths grow linearly from the input's to `width` D over the first half of the stages and shrink
 * again; groups double from stage to stage and halve again. In the paper:
 *
 *   y_0 = x W_0
 *   y_i = act(glt_i([x, y_(i-1)]))          the last without act (not stated in the paper)
 *
 * The authors' program has a full linear map before and after, groups begin at 2, and every stage
 * has an activation:
 *
 *   x_0 = act(W_in x)
 *   y_i = act(glt_i([x_0, y_(i-1)]))
 *   y   = act(W_out [x_0, y_n])
 *
 * The number of groups always divides what is split. */
#include "dextra.h"

/* ---- own numbers -------------------------------------------------------------------------- */

static const char *const form_name[] = {[DEXTRA_PAPER] = "paper", [DEXTRA_CODE] = "code", NULL};
static const char *const act_name[] = {[GLT_RELU] = "relu",
                                       [GLT_GELU] = "gelu",
                                       [GLT_GELU_TANH] = "gelu_tanh",
                                       [GLT_SWISH] = "swish",
                                       NULL};

enum act_kind dextra_act(const struct config *c)
{
    static const enum act_kind kind[] = {[GLT_RELU] = ACT_RELU,
                                         [GLT_GELU] = ACT_GELU,
                                         [GLT_GELU_TANH] = ACT_GELU_TANH,
                                         [GLT_SWISH] = ACT_SWISH};

    return kind[dextra_of(c)->act];
}

/* The next number of "3,4" that lies in [1, most]; NAN where there is none. */
static double next_number(const char **at, double most)
{
    char *end;
    const double value = strtod(*at, &end);

    if (end == *at || (*end != ',' && *end != '\0') || !(value >= 1 && value <= most))
        return NAN;
    *at = *end == ',' ? end + 1 : NULL;
    return value;
}

/* The first and the last of a list of one number per layer, of which those between lie on a line,
 * in whole numbers rounded down. */
static enum status read_ends(struct dextra *own, const char *key, const char *text, bool whole,
                             double most, double out[2], struct err *e)
{
    const char *at = text;
    int n = 0;

    for (double value; at; n++) {
        value = next_number(&at, most);
        if (isnan(value))
            return fail(e, E_USAGE,
                        "%s \"%s\" is not a list of numbers up to %g  -> write for example 4,8",
                        key, text, most);
        out[n > 0] = value;
        out[1] = value;
    }
    at = text;
    for (int i = 0; n > 2 && i < n; i++) {
        const double line = out[0] + (out[1] - out[0]) * i / (n - 1),
                     value = next_number(&at, most);
        if (fabs((whole ? floor(line) : line) - value) > 1e-4 * value)
            return fail(e, E_USAGE,
                        "%s \"%s\" is not a line over %d layers  -> write for example 4,8", key,
                        text, n);
    }
    if (n > 2)
        own->listed = n;
    return OK;
}

static enum status read_depth(void *base, const char *text, struct err *e)
{
    struct dextra *const own = base;
    double ends[2] = {0};

    TRY(read_ends(own, "dextra_depth", text, true, MAX_DEXTRA_DEPTH, ends, e));
    own->depth[0] = (int)ends[0], own->depth[1] = (int)ends[1];
    return OK;
}

static enum status read_width(void *base, const char *text, struct err *e)
{
    struct dextra *const own = base;
    double ends[2] = {0};

    TRY(read_ends(own, "dextra_width", text, false, MAX_DEXTRA_WIDTH, ends, e));
    own->width[0] = (float)ends[0], own->width[1] = (float)ends[1];
    return OK;
}

static void print_depth(char text[CHOICE_TEXT], const void *base)
{
    const struct dextra *const own = base;

    snprintf(text, CHOICE_TEXT, "%d,%d", own->depth[0], own->depth[1]);
}

static void print_width(char text[CHOICE_TEXT], const void *base)
{
    const struct dextra *const own = base;

    snprintf(text, CHOICE_TEXT, "%.9g,%.9g", (double)own->width[0], (double)own->width[1]);
}

static const struct choice dextra_choices[] = {
    ROW_WORD(struct dextra, form, "dextra", form_name, "whose form", SETTING),
    ROW_TEXT("dextra_depth", print_depth, read_depth, "group linear transforms", SETTING),
    ROW_TEXT("dextra_width", print_width, read_width, "the widest transform, of the model's width",
             SETTING),
    ROW_INT(struct dextra, groups, "glt_max_groups", 1, 1 << 16, "most groups", SETTING),
    ROW_FLAG(struct dextra, shuffle, "glt_shuffle", "groups exchange units", .absent = "0",
             SETTING),
    ROW_FLAG(struct dextra, norm, "glt_norm", "each transform is normalised", .absent = "0",
             SETTING),
    ROW_WORD(struct dextra, act, "glt_act", act_name, "activation", SETTING),
    {0},
};

static enum status dextra_check(const struct config *c, const void *numbers, struct err *e)
{
    const struct dextra *const d = numbers;
    const int n = d->listed, into = d->form == DEXTRA_CODE ? c->H * c->dh : c->D;

    if (n && n != c->N)
        return fail(e, E_USAGE, "%s: a map of %d layers in a model of %d  -> write for example 4,8",
                    c->variant->name, n, c->N);
    for (int i = 0; i < d->depth[0]; i++) {
        const struct dextra_given at = d->given[i];
        const int in = into + (i && d->given[i - 1].width ? d->given[i - 1].width : 0);
        if (at.groups && (at.width % at.groups || in % at.groups || into % at.groups))
            return fail(e, E_USAGE, "%s: transform %d from %d to %d in %d groups  -> use a divisor",
                        c->variant->name, i, in, at.width, at.groups);
    }
    return OK;
}

const struct part_numbers dextra_numbers = {dextra_choices,
                                            PRESET(struct dextra, .depth = {4, 8}, .width = {2, 3},
                                                   .groups = 8, .shuffle = true, .act = GLT_GELU),
                                            dextra_check};

/* ---- stages ------------------------------------------------------------------------------- */

/* The nth of N values on a straight line from first to last. */
static double on_line(double first, double last, int nth, int N)
{
    return N > 1 ? first + (last - first) * min_int(nth, N - 1) / (N - 1) : first;
}

/* Groups of transform i of n: doubling up to the middle, then halving. */
static int groups_of(const struct config *c, int i, int n, int base)
{
    const int from_end = min_int(i, n - 1 - i);
    int groups = 1;

    for (int k = dextra_of(c)->form == DEXTRA_CODE ? -1 : 0; k < from_end; k++)
        if (2 * groups <= dextra_of(c)->groups && base % (2 * groups) == 0)
            groups *= 2;
    return groups;
}

static int width_of(int i, int n, int base, int widest)
{
    const int half = (n + 1) / 2, from_end = min_int(i, n - 1 - i);

    return half > 1 ? base + (int)((double)(widest - base) * from_end / (half - 1)) : base;
}

static void add(struct stages *s, struct stage stage)
{
    s->at[s->n] = stage;
    s->at[s->n].param = s->n ? s->at[s->n - 1].param + (s->at[s->n - 1].norm ? 4 : 2) : 0;
    s->n++;
}

struct stages dextra_stages(const struct config *c, int nth)
{
    enum { ROUND = 8 }; /* as in the authors' program */
    const struct dextra *const own = dextra_of(c);
    const bool code = own->form == DEXTRA_CODE, norm = own->norm;
    const int n = (int)on_line(own->depth[0], own->depth[1], nth, c->N);
    const int widest =
        (int)(on_line((double)own->width[0], (double)own->width[1], nth, c->N) * c->D);
    const int last = c->H * c->dh, base = code ? last : c->D;
    struct stages s = {0};

    CHECK(n >= 1 && n <= MAX_DEXTRA_DEPTH);
    if (code)
        add(&s, (struct stage){"in", 1, c->D, 0, base, true, false, norm, true, 0});
    for (int i = 0, before = 0; i < n; i++) {
        const struct dextra_given given = own->given[i];
        const int groups = given.groups ? given.groups : groups_of(c, i, n, base);
        const int unit = max_int(code ? ROUND : 1,
                                 max_int(groups, groups_of(c, min_int(i + 1, n - 1), n, base)));
        const int computed = (width_of(i, n, base, widest) + unit - 1) / unit * unit;
        const int width = given.width ? given.width : computed;
        struct stage t = {.groups = groups,
                          .a = base,
                          .b = before,
                          .out = i == n - 1 ? last : width,
                          .reads_x = !code,
                          .shuffle = own->shuffle && groups > 1,
                          .norm = norm,
                          .act = code || i < n - 1};
        snprintf(t.name, sizeof(t.name), "glt.%d", i);
        add(&s, t);
        before = t.out;
    }
    if (code)
        add(&s, (struct stage){"out", 1, base, last, last, false, false, norm, true, 0});
    return s;
}
