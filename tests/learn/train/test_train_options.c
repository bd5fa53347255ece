/* SPDX-License-Identifier: MIT
 *
 * Every option of bench train that is a number arrives where it belongs. Trainings are given numbers of
 * which no two are alike, and each is computed back from what the training did. An option without a row
 * fails. */
#include "harness/cli/option_table.h"
#include "tests/support/command_line.h"
#include "tests/support/open_trainer.h"
#include "tests/support/program.h"
#include "tests/support/tmp_folder.h"

TestSuite(train_options, .init = folder_make, .fini = folder_remove, .timeout = 120);

enum which { LOOP, TEXT, MASKED, TASK, CLOCK, WHICHES };
static const struct row {
    const char *name, *value;
    enum which in;
} rows[] = {
    {"steps", "41", LOOP},
    {"stop-at", "29", LOOP},
    {"eval-every", "7", LOOP},
    {"log-every", "3", LOOP},
    {"lr", "0.013", LOOP},
    {"lr-warmup", "6", LOOP},
    {"lr-floor", "0.27", LOOP},
    {"lr-decay", "0.35", LOOP},
    {"minutes", "0.0007", CLOCK},
    {"grad-clip", "0.0175", TEXT},
    {"weight-decay", "0.19", TEXT},
    {"z-loss", "0.071", TEXT},
    {"dropout", "0.23", TEXT},
    {"seq", "10", TEXT},
    {"mem", "12", TEXT},
    {"batch", "5", TEXT},
    {"layers", "1", TEXT},
    {"d-model", "24", TEXT},
    {"heads", "14", TEXT},
    {"kv-heads", "2", TEXT},
    {"d-head", "8", TEXT},
    {"d-inner", "17", TEXT},
    {"threads", "9", TEXT},
    {"seed", "11", TEXT},
    {"mask-share", "0.375", MASKED},
    {"discount", "0.83", TASK},
    {"trace", "0.61", TASK},
    {"value-coef", "0.43", TASK},
    {"entropy-coef", "0.058", TASK},
};
enum { ROWS = ARRAY_LEN(rows) };

static double said(const char *name)
{
    for (int i = 0; i < ROWS; i++)
        if (strcmp(rows[i].name, name) == 0)
            return strtod(rows[i].value, NULL);
    cr_assert_fail("--%s has no row", name);
    return NAN;
}

/* The options of one training, behind what it is. */
static void line_of(char *line, size_t size, enum which in, const char *what)
{
    size_t n = (size_t)snprintf(line, size, "train --pin none --backend ref %s", what);

    for (int i = 0; i < ROWS; i++)
        if (rows[i].in == in)
            n += (size_t)snprintf(line + n, size - n, " --%s %s", rows[i].name, rows[i].value);
    cr_assert_lt(n, size);
}

static void begin(struct trainer *t, enum which in, const char *what)
{
    char line[1000];
    struct options o;

    line_of(line, sizeof(line), in, what);
    cr_assert_eq(parse_words(&o, line, &failure), OK, "%s: %s", line, failure.msg);
    training_settle(&o);
    training_begin(t, o);
}

static void expect(const char *name, double is, double within)
{
    cr_expect(fabs(is - said(name)) <= within * said(name), "--%s %g arrives as %.9g", name,
              said(name), is);
}

/* Also told apart from its default, which nothing would have to hand on. */
Test(train_options, every_number_has_a_row_of_its_own)
{
    for (int i = 0; i < option_count; i++) {
        const struct option_spec *const s = &option_specs[i];
        const bool number = s->kind == KIND_INT || s->kind == KIND_DECIMAL ||
                            s->kind == KIND_INTS || s->kind == KIND_SEED;
        const char *const preset = command_preset(CMD_TRAIN, s->name);
        if (!number || !option_is_for(s, CMD_TRAIN))
            continue;
        const double x = said(s->name);
        cr_expect(!preset || strtod(preset, NULL) != x, "--%s", s->name);
        cr_expect(!s->preset || strtod(s->preset, NULL) != x, "--%s", s->name);
        for (int k = 0; k < ROWS; k++)
            cr_expect(strtod(rows[k].value, NULL) != x || strcmp(rows[k].name, s->name) == 0,
                      "--%s and --%s are %g", s->name, rows[k].name, x);
    }
}

/* ---- the loop ------------------------------------------------------------------------------- */

#define SMALL                                                                                      \
    "--variant xl --layers 1 --d-model 8 --heads 2 --seq 4 --mem 4 --batch 2 --threads 1 -q"

static struct rows curve(void) { return must_read_table(in_folder("m.train.csv"), TABLE_TRAIN); }

static const struct train_row *at_step(const struct rows *all, int step)
{
    const struct train_row *const row = all->row;

    for (size_t i = 0; i < all->n; i++)
        if (row[i].step == step)
            return &row[i];
    cr_assert_fail("no row of step %d", step);
    return row;
}

Test(train_options, of_the_loop)
{
    char line[1000];

    line_of(line, sizeof(line), LOOP, SMALL " --ckpt m --schedule wsd");
    must_bench("%s", line);
    struct rows all = curve();
    const struct train_row *row = all.row;
    expect("stop-at", (double)row[all.n - 1].step, 0);
    must_bench("train --ckpt m --resume --log-every 3 -q");
    all = curve();
    row = all.row;
    expect("steps", (double)row[all.n - 1].step, 0);
    expect("log-every", (double)row[0].step, 0);
    size_t i = 0;
    while (i < all.n && isnan(row[i].valid_nats))
        i++;
    cr_assert_lt(i, all.n);
    expect("eval-every", (double)row[i].step, 0);
    /* Rates are written with nine digits or more. The steps are 3, the warm-up's last, 39 and 41. */
    const double peak = at_step(&all, 6)->lr, floor = at_step(&all, 41)->lr / peak;
    const double height = (at_step(&all, 39)->lr / peak - floor) / (1 - floor);
    expect("lr", peak, 1e-7);
    expect("lr-warmup", 3 * peak / at_step(&all, 3)->lr, 1e-7);
    expect("lr-floor", floor, 1e-7);
    expect("lr-decay", 2 / (41 * height), 1e-6);
}

/* Without it the training would last for days. */
Test(train_options, of_the_clock)
{
    char line[1000];

    line_of(line, sizeof(line), CLOCK, SMALL " --ckpt m --steps 2000000000");
    must_bench("%s", line);
}

/* ---- a step on a text ----------------------------------------------------------------------- */

#define COPY                                                                                       \
    "--variant rope --set out_bias=1 --corpus copy:lag=3,alphabet=9 --lr 0.5 --lr-warmup 0 "       \
    "--steps 3 --ckpt unused"

/* The coefficient of z from the gradient of the output's bias, the mean over rows of
 * p - 1{target} + 2 c z p. */
static double z_coefficient(const struct trainer *t, const struct param *bias, int32_t *targets,
                            const float *logits, int rows_n)
{
    const int V = t->lm.c.V;
    double most = 0, c = NAN;

    for (int v = 0; v < V; v++) {
        double plain = 0, of_z = 0;
        for (int i = 0; i < rows_n; i++) {
            const float *const x = logits + (ptrdiff_t)i * V;
            double sum = 0;
            for (int k = 0; k < V; k++)
                sum += exp((double)x[k]);
            plain += (exp((double)x[v]) / sum - (v == targets[i])) / rows_n;
            of_z += 2 * log(sum) * exp((double)x[v]) / sum / rows_n;
        }
        if (fabs(of_z) > most) {
            most = fabs(of_z);
            c = ((double)bias->grad[v] - plain) / of_z;
        }
    }
    return c;
}

Test(train_options, of_a_step_on_a_text)
{
    struct trainer t, u;
    const struct param *bias = NULL, *matrix = NULL;

    begin(&t, TEXT, COPY);
    begin(&u, TEXT, COPY); /* the same, which takes no step */
    const struct step_report r = trainer_step(&t, 0);
    for (int i = 0; i < t.lm.params.n; i++) {
        const struct param *const p = &t.lm.params.v[i];
        bias = p->group == PARAM_BIASES && (int)p->n == t.lm.c.V ? p : bias;
        matrix = p->group == PARAM_MATRICES ? p : matrix;
    }
    cr_assert(bias && matrix);
    const ptrdiff_t which = matrix - t.lm.params.v;
    const float *const m = t.optimizer.m[which], *const before = u.lm.params.v[which].data;

    /* m is a tenth of the clipped gradient. The step is lr (g / (|g| + eps) + decay x). */
    double clip = 0, decay = 0, most = 0, far = 0;
    for (size_t k = 0; k < matrix->n; k++) {
        const double g = (double)matrix->grad[k], x = (double)before[k];
        if (fabs(g) > most) {
            most = fabs(g);
            clip = (double)m[k] / (0.1 * g) * r.grad_norm;
        }
        if (fabs(x) > far) {
            const double scaled = g * said("grad-clip") / r.grad_norm;
            far = fabs(x);
            decay = ((x - (double)matrix->data[k]) / r.lr - scaled / (fabs(scaled) + 1e-8)) / x;
        }
    }
    cr_assert_gt(r.grad_norm, said("grad-clip"));
    expect("grad-clip", clip, 1e-5);
    /* x is of order 0.1, and a difference of 0.5 (1 + 0.19 x) is rounded to 6e-8. */
    expect("weight-decay", decay, 1e-4);

    /* With a mask of that share the same forward pass has the same loss, with any other it has not. */
    const int n = t.L;
    double loss[3];
    for (int i = 2; i >= 0; i--) {
        u.lm.drop.p = (float)(said("dropout") + 0.01 * i);
        lm_forget(&u.lm);
        lm_forward(&u.lm, &u.engine, t.tokens, t.B, n, n, t.targets, u.nll);
        loss[i] = 0;
        for (int k = 0; k < t.B * n; k++)
            loss[i] += (double)u.nll[k] / (t.B * n);
    }
    cr_expect(fabs(loss[0] - r.loss) < 1e-12 && fabs(loss[1] - r.loss) > 1e-6 &&
                  fabs(loss[2] - r.loss) > 1e-6,
              "--dropout: %.9g, %.9g", loss[0], r.loss);
    expect("z-loss", z_coefficient(&t, bias, t.targets, u.lm.logits, t.B * n), 1e-4);

    expect("seq", t.L, 0);
    expect("mem", t.M + t.past, 0);
    expect("batch", t.B, 0);
    expect("layers", t.lm.c.N, 0);
    expect("d-model", t.lm.c.D, 0);
    expect("heads", t.lm.c.H, 0);
    expect("kv-heads", t.lm.c.kv_heads, 0);
    expect("d-head", t.lm.c.dh, 0);
    expect("d-inner", t.lm.c.F, 0);
    expect("threads", t.engine.threads, 0);
    expect("seed", (double)t.lm.drop.seed, 0);
}

/* Of a segment of 16 six, whatever they are. */
Test(train_options, of_hidden_tokens)
{
    struct trainer t;

    begin(&t, MASKED,
          "--variant bert --objective mlm --corpus copy:lag=3,alphabet=9 --seq 16 --batch 2 "
          "--layers 1 "
          "--d-model 8 --heads 2 --threads 1 --steps 3 --ckpt unused");
    trainer_step(&t, 0);
    int hidden = 0;
    for (int i = 0; i < t.B * t.L; i++)
        hidden += t.tokens[i] == t.lm.c.V - 1;
    expect("mask-share", hidden / 32.0, 0);
}

/* ---- a step on a task ----------------------------------------------------------------------- */

struct coefs {
    double discount, trace, value, entropy;
};

/* The loss of what was played, from its definition, in double: advantages as sums over what comes. */
static double by_hand(const struct trainer *t, int n, struct coefs c)
{
    const struct play *const p = t->play;
    const int A = task_actions(&p->player.task), V = t->lm.c.V;
    double sum = 0;

    for (int b = 0; b < t->B; b++)
        for (int i = 0; i < n; i++) {
            const float *const out = p->out + (ptrdiff_t)(b * n + i) * V;
            double advantage = 0, all = 0, entropy = 0;
            for (int k = i; k < n; k++) {
                const float *const here = p->out + (ptrdiff_t)(b * n + k) * V;
                const double next = (double)(k + 1 < n ? here[V + A] : p->after[b]);
                advantage +=
                    pow(c.discount * c.trace, k - i) *
                    ((double)p->player.rewards[b * n + k] + c.discount * next - (double)here[A]);
            }
            for (int a = 0; a < A; a++)
                all += exp((double)out[a]);
            for (int a = 0; a < A; a++)
                entropy -= exp((double)out[a]) / all * log(exp((double)out[a]) / all);
            const double chosen = exp((double)out[p->player.actions[b * n + i]]) / all;
            sum += -advantage * log(chosen) + c.value * advantage * advantage / 2 -
                   c.entropy * entropy;
        }
    return sum / (t->B * n);
}

static void expect_loss(const char *more, struct coefs c)
{
    struct trainer t;
    char line[400];

    snprintf(
        line, sizeof(line),
        "--variant xl --task numpad:n=2,len=24 --seq 8 --mem 8 --batch 6 --layers 1 --d-model 16 "
        "--heads 2 --threads 1 --lr-warmup 0 --steps 9 --ckpt unused%s",
        more);
    begin(&t, *more ? WHICHES : TASK, line);
    for (int step = 0; step < 3; step++) { /* a whole episode, whose end is worth nothing */
        const double loss = trainer_step(&t, 0).loss, want = by_hand(&t, t.L, c);
        /* Values, advantages and targets below 2^4 are rounded to float. */
        const double within = 3e-6;
        cr_expect_float_eq(loss, want, within, "step %d: %.9g, not %.9g", step, loss, want);
        const double of[] = {c.discount, c.trace, c.value, c.entropy};
        for (int i = 0; i < 4; i++)
            for (int k = i + 1; k < 4; k++) {
                double other[4];
                memcpy(other, of, sizeof(of));
                other[i] = of[k];
                other[k] = of[i];
                const struct coefs x = {other[0], other[1], other[2], other[3]};
                cr_expect(fabs(by_hand(&t, t.L, x) - want) > 10 * within,
                          "step %d: the same with numbers %d and %d exchanged", step, i, k);
            }
    }
}

Test(train_options, of_a_step_on_a_task)
{
    expect_loss("", (struct coefs){said("discount"), said("trace"), said("value-coef"),
                                   said("entropy-coef")});
    expect_loss(" --discount 0 --trace 1 --value-coef 0.5 --entropy-coef 0.01",
                (struct coefs){0, 1, 0.5, 0.01});
    expect_loss(" --discount 1 --trace 0 --value-coef 0.5 --entropy-coef 0.01",
                (struct coefs){1, 0, 0.5, 0.01});
}
