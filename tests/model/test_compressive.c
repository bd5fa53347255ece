/* SPDX-License-Identifier: MIT
 *
 * Memory whose oldest rows are compressed: its contents against a list of rows kept by hand, one
 * row to one against a longer plain memory, the loss that trains the compression against finite
 * differences, and what is refused. */
#include "tests/support/every_backend.h"
#include "tests/support/finite.h"
#include "tests/support/model.h"
#include "variants/model/sublayer/sublayer_compress.h"

enum { B = 2, L = 5, V = 11, D = 12 };

static struct config compressing(enum compress kind, int cmem, int ratio)
{
    struct config c = config_default(variant_find("compressive"), D, 3, 5, 17, 2, V);

    set_choice(&c, "compress", compress_name[kind]);
    set_number(&c, "cmem", cmem);
    set_number(&c, "c_ratio", ratio);
    c.max_seq = 64;
    return c;
}

/* ---- contents ------------------------------------------------------------------------------- */

enum { MAX_ROWS = 128 };
struct list {
    int n;
    double row[MAX_ROWS][D];
};

static void drop_front(struct list *l, int n)
{
    l->n -= n;
    memmove(l->row, l->row + n, sizeof(l->row[0]) * (size_t)l->n);
}

static void compress_by_hand(const struct sublayer *s, const struct list *m, double y[D])
{
    const int ratio = compressive_of(s->c)->ratio;

    for (int d = 0; d < D; d++) {
        double sum = 0, most = -INFINITY, conv = 0;
        for (int t = 0; t < ratio; t++) {
            sum += m->row[t][d];
            most = fmax(most, m->row[t][d]);
        }
        if (compressive_of(s->c)->form == COMPRESS_CONV) {
            conv = (double)s->compress[1].data[d];
            for (int e = 0; e < D; e++)
                for (int t = 0; t < ratio; t++)
                    conv += (double)s->compress[0].data[(d * D + e) * ratio + t] * m->row[t][e];
        }
        y[d] = compressive_of(s->c)->form == COMPRESS_MEAN  ? sum / ratio
               : compressive_of(s->c)->form == COMPRESS_MAX ? most
                                                            : conv;
    }
}

/* One row at a time: a full group leaves as soon as m is `plain` + ratio rows long; of cm the
 * newest stay. */
static void remember_by_hand(const struct sublayer *s, struct list *cm, struct list *m,
                             const float *x)
{
    for (int d = 0; d < D; d++)
        m->row[m->n][d] = (double)x[d];
    m->n++;
    if (m->n < s->compressed.plain + compressive_of(s->c)->ratio)
        return;
    compress_by_hand(s, m, cm->row[cm->n++]);
    drop_front(m, compressive_of(s->c)->ratio);
    if (cm->n > compressive_of(s->c)->rows)
        drop_front(cm, 1);
}

static void expect_rows(const struct cache *c, int b, int first, const struct list *want,
                        const char *what)
{
    for (int i = 0; i < want->n; i++)
        for (int d = 0; d < D; d++) {
            const double got = (double)cache_rows(c, b)[(first + i) * D + d];
            /* a sum of D * ratio products of numbers that rarely leave 4, and its rounding */
            cr_assert_leq(fabs(got - want->row[i][d]), 2 * 4 * D * 4 * 4 * U, "%s, row %d", what,
                          i);
        }
}

TEST_EACH(int *backend, compressive, memory_is_its_definition, every_backend(), .timeout = 240)
{
    static const int pieces[] = {5, 1, 4, 5, 2, 2, 5, 5, 1, 3};

    for (int form = 0; form < 3 * 4; form++) {
        const struct config c = compressing((enum compress)(form % 3), 3, 1 + form / 3);
        static struct list cm[B], m[B];
        struct model t;
        model_open(&t, &c, backends[*backend]->name, 1, MEM_HIDDEN, (struct extent){B, L, 11});
        struct sublayer *const s = sublayers_attention(&t.lm.sublayers, 1);
        memset(cm, 0, sizeof(cm)), memset(m, 0, sizeof(m));
        cr_assert_eq(s->compressed.plain, 11 - 3 - (compressive_of(&c)->ratio - 1));
        for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
            float x[B * L * D];
            rng_normal(x, ARRAY_LEN(x), SEED + i, rng_stream("rows"), 0, 1);
            sublayer_remember(&t.g, s, &t.lm.sublayers.work[2], x, B, pieces[i]);
            for (int b = 0; b < B; b++) {
                for (int r = 0; r < pieces[i]; r++)
                    remember_by_hand(s, &cm[b], &m[b], x + (b * pieces[i] + r) * D);
                const char *const what = kept_text(
                    "%s, %s, %d to 1, piece %zu", backends[*backend]->name,
                    compress_name[compressive_of(&c)->form], compressive_of(&c)->ratio, i);
                cr_assert_eq(s->memory.compressed, cm[b].n, "%s", what);
                cr_assert_eq(s->memory.M, cm[b].n + m[b].n, "%s", what);
                expect_rows(&s->memory, b, 0, &cm[b], what);
                expect_rows(&s->memory, b, cm[b].n, &m[b], what);
            }
        }
        cr_expect_eq(cm->n, 3); /* it was full before */
    }
}

/* ---- one row to one ------------------------------------------------------------------------- */

/* Compressing one row to itself is a longer plain memory. */
Test(compressive, one_to_one_is_a_longer_memory, .timeout = 240)
{
    enum { TEXT = 26 };
    struct config plain = config_default(variant_find("xl"), D, 3, 5, 17, 2, V);

    plain.max_seq = 64;
    for (int M = 2; M <= 14; M += 4)
        for (int n = 1; n <= L; n++) {
            const struct config c = compressing((enum compress)(n % 2), M / 2, 1);
            const struct extent max = {B, n, M};
            struct model got, want;
            model_open(&got, &c, "ref", 1, MEM_HIDDEN, max);
            model_open(&want, &plain, "ref", 1, MEM_HIDDEN, max);
            float *x = model_stream(&got, 0, B, TEXT, n), *y = model_stream(&want, 0, B, TEXT, n);
            for (int i = 0; i < B * TEXT * V; i++)
                cr_assert(x[i] == y[i], "mem %d, seq %d: %.9g, not %.9g", M, n, (double)x[i],
                          (double)y[i]);
        }
}

/* ---- what trains it ------------------------------------------------------------------------- */

struct trained {
    struct model m;
    int32_t tokens[B * L], targets[B * L];
};

static void open_trained(struct trained *t, const struct config *c, const char *backend)
{
    struct model *const m = &t->m;

    model_open_trained(m, c, backend, 1, MEM_HIDDEN, (struct extent){B, L, 9});
    for (int i = 0; i < m->lm.params.n; i++)
        if (strstr(m->lm.params.v[i].name, "compress"))
            quantise(m->lm.params.v[i].data, m->lm.params.v[i].n);
    lm_build_tables(&m->lm, &m->g);
}

static void segment(struct trained *t, int first)
{
    for (int i = 0; i < B * L; i++) {
        t->tokens[i] = token_of(&t->m, i / L, first + i % L);
        t->targets[i] = token_of(&t->m, i / L, first + i % L + 1);
    }
    lm_forward(&t->m.lm, &t->m.g, t->tokens, B, L, L, t->targets, t->m.nll);
}

static double lost(void *ctx)
{
    struct trained *t = ctx;

    segment(t, 3 * L);
    return lm_reconstruction(&t->m.lm, &t->m.g, B, L);
}

static void reach_full_memory(struct trained *t)
{
    for (int i = 0; i < 3; i++) {
        segment(t, i * L);
        lm_commit(&t->m.lm, L);
    }
}

/* The language-model loss does not depend on these weights: their gradient is that of the
 * reconstruction loss, a mean of squares near 1, each good to some 64 U. */
Test(compressive, convolution_is_trained_by_what_is_lost, .timeout = 240)
{
    static const enum wiring wirings[] = {WIRING_POST, WIRING_PRE};

    for (size_t w = 0; w < ARRAY_LEN(wirings); w++)
        for (int ratio = 1; ratio <= 3; ratio++) {
            struct config c = compressing(COMPRESS_CONV, 3, ratio);
            struct trained t;
            int n = 0;
            c.wiring = wirings[w];
            c.kv_heads = ratio == 2 ? 1 : 3;
            open_trained(&t, &c, "ref");
            reach_full_memory(&t);
            const double value = lost(&t);
            const struct scalar f = {lost, &t, 64 * U * fmax(value, 1), 0x1p-6};
            cr_assert_gt(value, 0);
            params_zero_grad(&t.m.lm.params);
            lm_backward(&t.m.lm, &t.m.g, t.tokens, t.targets, B, L);
            for (const struct param *p = t.m.lm.params.v; p < t.m.lm.params.v + t.m.lm.params.n;
                 p++) {
                if (!strstr(p->name, "compress"))
                    continue;
                n++;
                expect_gradient(&f, kept_text("%s %d %s", wiring_name[c.wiring], ratio, p->name),
                                p->data, p->grad, p->n, 512 * U, 2 * f.noise / f.step);
            }
            cr_expect_eq(n, 4);
        }
}

/* The other weights have the same gradients as in a model that compresses by the same weights
 * untrained. */
Test(compressive, nothing_else_is_trained_by_it)
{
    const struct config c = compressing(COMPRESS_CONV, 3, 2);
    struct trained t;

    open_trained(&t, &c, "ref");
    reach_full_memory(&t);
    cr_assert_gt(lost(&t), 0);
    params_zero_grad(&t.m.lm.params);
    for (int i = 0; i < t.m.lm.sublayers.n; i++)
        sublayer_reconstruction_grad(&t.m.g, &t.m.lm.sublayers.at[i], &t.m.lm.sublayers.work[i], B,
                                     L);
    for (const struct param *p = t.m.lm.params.v; p < t.m.lm.params.v + t.m.lm.params.n; p++) {
        bool any = false;
        for (size_t k = 0; k < p->n; k++)
            any = any || p->grad[k] != 0;
        cr_expect_eq(any, strstr(p->name, "compress") != NULL, "%s", p->name);
    }
}

/* ---- the rest ------------------------------------------------------------------------------- */

Test(compressive, fills_its_memory)
{
    for (int piece = 1; piece <= L; piece++) {
        const struct config c = compressing(COMPRESS_MEAN, 4, 3);
        struct model t;
        model_open(&t, &c, "ref", 1, MEM_HIDDEN, (struct extent){B, L, 13});
        struct sublayer *const s = sublayers_attention(&t.lm.sublayers, 0);
        static const float x[B * L * D];
        for (int done = 0; done < compressed_reach(s); done += piece)
            sublayer_remember(&t.g, s, &t.lm.sublayers.work[0], x, B,
                              min_int(piece, compressed_reach(s) - done));
        cr_expect(s->memory.M == 13 && s->memory.compressed == 4, "piece %d", piece);
    }
}

Test(compressive, keeps_hidden_states_only)
{
    const struct config c = compressing(COMPRESS_MEAN, 4, 3);
    struct model m = {.g = open_engine("ref", 1)};

    MUST(lm_init(&m.lm, &c, &failure));
    REFUSED(model_bind(&m, MEM_KV, (struct extent){B, L, 13}, false, &failure), E_UNSUPPORTED,
            "-> use --mem-kind hidden");
    lm_free(&m.lm);
}
