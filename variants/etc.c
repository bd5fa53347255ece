/* SPDX-License-Identifier: MIT
 *
 * ETC: Ainslie et al. 2020, "ETC: Encoding Long and Structured Inputs in Transformers".
 *
 *   long_i = softmax(scale q_i . [k_g; k_j, |i - j| < window])    of all global rows and a window
 *   glob_i = softmax(scale q_i . [k_g; k_j])                      of everything
 *
 * The first rows of a text are global, the others long. Both kinds of queries have maps of their
 * own for global and for long keys and values, and a W_o. A global row reads the whole text, so
 * there is no causal form. Its relative labels are tables of distances and not part of this. */
#include "variants/model/attention/sublayer_attention.h"

struct etc {
    int global; /* first rows that are global */
};

static const struct choice choices[] = {
    ROW_INT(struct etc, global, "global_rows", 0, 1 << 16, "first rows that are global",
            .scope = SCOPE_LAYER, .setting = true, .tiny = "2"),
    {0},
};

static enum status check(const struct config *c, const void *numbers, struct err *e)
{
    if (c->window < 1)
        return fail(e, E_USAGE, "%s: window %d of rows that are not global  -> use 1 or more",
                    c->variant->name, c->window);
    return OK;
}

static const struct part_numbers etc_numbers = {choices, PRESET(struct etc, .global = 16), check};

/* Of L rows, one of which at least is long. */
static int globals_of(const struct config *c, int L)
{
    const struct etc *const etc = config_numbers(c, SLOT_MIXER);

    return min_int(etc->global, L - 1);
}

static int globals(const struct steps *t, struct extent now) { return globals_of(t->c, now.L); }

/* ---- maps of some rows ---------------------------------------------------------------------- */

/* Attentions: of long queries, then of global ones. */
enum { LONG, GLOBAL, CALLS };
/* Numbers: whether long rows are mapped, for which attention, into a value of all rows. */
enum { OF_LONG, OF_CALL, TO_ALL };

static int long_rows(const struct steps *t, struct extent now) { return now.L - globals(t, now); }

/* Rows [first, first + rows) of a text of L. */
struct piece {
    int first, rows;
};

static struct piece piece_of(const struct step *s, int L)
{
    const int G = globals_of(s->c, L);

    if (s->n[OF_CALL] == GLOBAL && G == 0) /* it does not run */
        return (struct piece){0, 0};
    return s->n[OF_LONG] ? (struct piece){G, L - G} : (struct piece){0, G};
}

/* They are the whole of a value, or in one of the whole text. */
static struct seq_rows rows_of(const struct step_call *c, const struct matrix *m, int first)
{
    const bool whole = m->batch == c->length * m->row;

    return (struct seq_rows){m->at + (whole ? first * m->row : 0), m->batch};
}

static void piece_forward(const struct step_call *c)
{
    const struct piece of = piece_of(c->s, c->length);

    if (of.rows)
        project_map(c->g, c->param[0], NULL, rows_of(c, c->out, of.first),
                    rows_of(c, c->in, of.first), c->B, of.rows);
}

static void piece_backward(const struct step_call *c)
{
    const struct piece of = piece_of(c->s, c->length);
    const struct seq_rows d_y = rows_of(c, c->d_out, of.first);

    if (of.rows == 0)
        return;
    project_weight_grad(c->g, c->param[0], d_y, rows_of(c, c->in, of.first), c->B, of.rows);
    project_input_grad(c->g, c->param[0], rows_of(c, c->d_in, of.first), d_y, c->B, of.rows, 1);
}

/* L rows of the output. */
static double piece_flop(const struct step *s, int B, int L)
{
    return 2.0 * B * (s->n[TO_ALL] ? piece_of(s, L).rows : L) * s->width[0] * s->result;
}

static void piece(struct steps *t, int to, int x, int weight, int call, bool of_long)
{
    static const struct step_kind kind = {.name = "piece",
                                          .forward = piece_forward,
                                          .backward = piece_backward,
                                          .pure = true,
                                          .flop = piece_flop};
    struct step *const s = STEP_READING(t, &kind, x);

    s->n[OF_LONG] = of_long;
    s->n[OF_CALL] = call;
    s->n[TO_ALL] = t->value[to].rows == NULL;
    step_shares(s, weight);
    step_writes_to(t, s, to);
}

/* ---- the two attentions --------------------------------------------------------------------- */

/* Keys and values are [of global rows; of long ones]. */
static struct attn core(const struct steps *t, int call, struct extent now)
{
    const int G = globals(t, now), L = now.L;
    struct attn a = attn_of_config(t->c, now.B, call == LONG ? L - G : G, call == LONG ? G : 0);

    a.window = 0;
    if (call == LONG)
        a.mask = &t->mask;
    else
        a.K = L;
    return a;
}

enum { MAP_Q, MAP_KG, MAP_KL, MAP_VG, MAP_VL, MAP_O, MAPS };

/* Parameters of both, in this order; returns the first. */
static int declare(struct steps *t)
{
    static const char *const calls[] = {"long", "glob"}, *const names[] = {"q",  "kg", "kl",
                                                                           "vg", "vl", "o"};
    const int q = config_q_width(t->c), k = config_kv_width(t->c), D = t->c->D;
    const int rows[] = {q, k, k, k, k, D}, first = t->n_params;
    char name[24];

    for (int call = 0; call < CALLS; call++)
        for (int i = 0; i < MAPS; i++) {
            snprintf(name, sizeof(name), "%s.%s.weight", calls[call], names[i]);
            steps_map(t, rows[i], i == MAP_O ? q : D, name);
        }
    return first;
}

static void attend(struct steps *t, int call, int maps)
{
    const int kv = config_kv_width(t->c), q_width = config_q_width(t->c);
    const int k = steps_value(t, kv), v = steps_value(t, kv);
    value_rows *const rows = call == LONG ? long_rows : globals;
    const int q = steps_value_of(t, q_width, rows, false);

    piece(t, v, STEPS_INPUT, maps + MAP_VL, call, true);
    piece(t, v, STEPS_INPUT, maps + MAP_VG, call, false);
    piece(t, k, STEPS_INPUT, maps + MAP_KL, call, true);
    piece(t, k, STEPS_INPUT, maps + MAP_KG, call, false);
    piece(t, q, STEPS_INPUT, maps + MAP_Q, call, call == LONG);
    const int o = step_attend(t, (struct attend){.q = q,
                                                 .k = k,
                                                 .v = v,
                                                 .width = q_width,
                                                 .part = call,
                                                 .last = call == LONG,
                                                 .rows = rows,
                                                 .core = core});
    piece(t, t->result, o, maps + MAP_O, call, call == LONG);
}

static void build(struct steps *t)
{
    const int maps = declare(t);

    t->no_past = "global rows read a whole text  -> use --mem 0";
    t->mask = (struct mask){.window = t->c->window, .global = globals_of(t->c, INT_MAX)};
    t->last = NULL;
    t->result = steps_value(t, t->c->D);
    attend(t, GLOBAL, maps + MAPS);
    attend(t, LONG, maps);
}

const struct mixer mixer_etc = {.name = "etc",
                                .numbers = &etc_numbers,
                                .kind = &sublayer_attending,
                                .build = build,
                                .prefix = "",
                                .attends = true,
                                .both = true,
                                .excludes = EXCLUDES(HAS_CAUSAL, HAS_SAME_LENGTH, HAS_MASKS,
                                                     HAS_LAYER_WINDOWS, HAS_ROTATED, HAS_SOFT_CAP,
                                                     HAS_ATTN_BIAS)};

const struct variant variant_etc = {
    .name = "etc",
    .paper = "Ainslie et al. 2020, arXiv:2004.08483",
    .about = "the first rows see all and are seen by all, the others a window",
    .control = "learned --direction both --ffn gelu",
    .pos = &pos_learned,
    .ffn = &ffn_gelu,
    .mixer = &mixer_etc,
    .window = 84,
    .bidirectional = true,
};
