/* SPDX-License-Identifier: MIT
 *
 * What bench eval --attention sees of every variant: each attention once, in its layer, with
 * probabilities. */
#include "harness/learn/score/heads.h"
#include "tests/support/kernel/head_rows.h"
#include "tests/support/model.h"
#include "tests/support/tmp_folder.h"

TestSuite(heads_variants, .init = folder_make, .fini = folder_remove, .timeout = 120);

enum { HEADS = 4, SEGMENTS = 2, SEGMENT = 7, PAST = 5, ROWS = 256, PLAIN_KEYS = 64 };

/* Softmaxes of a kind whose probabilities are those of keys; others have none. */
static int softmaxes(const struct sublayer *s)
{
    static const struct {
        const char *kind;
        int n;
    } of[] = {{"attention", 1}, {"synth_dense", 1}, {"synth_random", 1}, {"collab", 1},
              {"feedback", 1},  {"mla", 1},         {"lsra", 1},         {"read", 1},
              {"content", 1},   {"linformer", 1},   {"mca", 1},          {"etc", 2},
              {"isab", 2}};

    const struct mixer *const mixer = s->build ? s->c->mixer : NULL;

    for (size_t i = 0; i < ARRAY_LEN(of); i++)
        if (strcmp(mixer && mixer->build ? mixer->name : s->kind->name, of[i].kind) == 0)
            return of[i].n * config_maps(s->c);
    return 0;
}

static int cases, by_hand, by_values; /* calls that were compared with what */

static struct watched {
    struct heads heads;
    struct attn_watch forward; /* to them */
    const char *name;
    int most_keys;
} watched;

/* softmax of scale q k over the keys up to the query's. */
static void expect_plain(const struct attn *a, int h, int i, const double *p)
{
    const float *const q = a->q + i * a->q_at.row + h * a->dh;
    double sum = 0, e[PLAIN_KEYS] = {0};

    for (int j = 0; j <= a->M + i; j++) {
        const float *const k = a->k + j * a->k_at.row + h / (a->H / a->Hkv) * a->dh;
        double dot = 0;
        for (int d = 0; d < a->dh; d++)
            dot += (double)q[d] * (double)k[d];
        sum += e[j] = exp((double)a->scale * dot);
    }
    for (int j = 0; j < attn_keys(a); j++)
        NUMBERS_OF(watched.name, {p[j], e[j] / sum, 1e-9});
}

/* o is the sum of p v: both sums are of floats. */
static void expect_values(const struct attn *a, int h, int i, const double *p)
{
    for (int d = 0; d < attn_dv(a); d++) {
        const int at = h * attn_dv(a) + d;
        double sum = 0;
        for (int j = 0; j < attn_keys(a); j++)
            sum += p[j] * (double)a->v[j * a->v_at.row + at];
        NUMBERS_OF(watched.name, {a->o[i * a->o_at.row + at], sum, 1e-5});
    }
}

/* ETC: of a text with no more rows than are global the last one is long, in the first softmax. */
static void expect_etc_rows(const struct attn_place *at, const struct attn *a)
{
    cr_expect_eq(a->L, at->part ? SEGMENT - 1 : 1, "part %d: %d rows", at->part, a->L);
    cr_expect_eq(at->first, at->part ? 0 : SEGMENT - 1, "part %d: from %d", at->part, at->first);
}

static void see(void *arg, const struct engine *g, const struct attn_place *at,
                const struct attn *a)
{
    struct watched *const w = arg;
    const int keys = attn_keys(a) + a->sinks;
    const bool plain = attn_terms(a) == 0 && a->causal && !at->p && !a->K;
    double *const p = room(
        1, sizeof(*p) * ((size_t)a->H * (size_t)a->L * (size_t)keys + attn_probabilities_work(a)));

    cr_assert((!plain || keys <= PLAIN_KEYS));
    w->most_keys = max_int(w->most_keys, keys);
    attn_probabilities(g, at, a, p, p + (ptrdiff_t)a->H * a->L * keys);
    for (int row = 0; row < a->H * a->L; row++) {
        const double *const one = p + (ptrdiff_t)row * keys;
        double sum = 0;
        for (int j = 0; j < keys; j++) {
            cr_expect(one[j] >= 0 && one[j] <= 1 + 1e-6, "%s: %g", w->name, one[j]);
            sum += one[j];
        }
        if (sum != 0) /* it sees a key */
            cr_expect_float_eq(sum, 1, 1e-5, "%s: %g", w->name, sum);
        if (plain)
            expect_plain(a, row / a->L, row % a->L, one);
        if (at->p)
            expect_values(a, row / a->L, row % a->L, one);
    }
    if (strcmp(w->name, "etc") == 0)
        expect_etc_rows(at, a);
    by_hand += plain;
    by_values += at->p != NULL;
    w->heads.watch.see(w->heads.watch.arg, g, at, a);
}

/* As many of each attention as it has heads, in its layer. */
static void expect_rows(const struct lm *m, const struct head_row *row, int n)
{
    int attentions = 0, at = 0;

    for (int i = 0; i < m->sublayers.n; i++)
        for (int k = 0; k < softmaxes(&m->sublayers.at[i]); k++) {
            const struct sublayer *const s = &m->sublayers.at[i];
            /* the first after no other has no key */
            const bool some = s->c->attn_extra == &extra_softpick; /* may see nothing */
            const int blind = s->c->attn_extra != &extra_stickbreaking ? 0
                              : m->kind == MEM_NONE                    ? SEGMENTS
                                                                       : 1;
            attentions++;
            cr_assert_lt(at, n, "%s: attention %d has no rows", watched.name, attentions);
            for (int h = 0; at < n && row[at].attention == attentions; h++, at++) {
                NUMBERS_OF(watched.name, {row[at].layer, s->layer + 1}, {row[at].head, h + 1});
                if (s->kind == &sublayer_attention && !s->level && !some) /* counted once */
                    NUMBERS_OF(watched.name, {row[at].queries, SEGMENTS * SEGMENT - blind});
            }
            NUMBERS_OF(watched.name, {row[at - 1].head, s->c->H});
        }
    cr_expect_eq(at, n, "%s: %d rows of no attention", watched.name, n - at);
    for (int i = 0; i < n; i++) {
        const struct head_row *const r = &row[i];
        cr_expect(r->queries > 0, "%s: no query of attention %d", watched.name, r->attention);
        cr_expect(r->visible >= 1 && r->visible <= watched.most_keys, "%s: %g keys", watched.name,
                  r->visible);
        /* the mean of logarithms is the logarithm of the mean at most; numbers have 6 digits */
        cr_expect(r->entropy >= 0 && r->entropy <= log(r->visible) + 1e-5, "%s: %g nats of %g keys",
                  watched.name, r->entropy, r->visible);
        cr_expect(r->keys90 >= 1 && r->keys90 <= r->visible, "%s: %g of %g keys", watched.name,
                  r->keys90, r->visible);
        cr_expect(r->rank90 >= 1 && r->values >= 1, "%s: ranks %g and %g", watched.name, r->rank90,
                  r->values);
        if (row[i].head > 1)
            cr_expect(r->apart >= 0 && r->apart <= 1, "%s: %g", watched.name, r->apart);
    }
}

static struct config small(const struct variant *v)
{
    struct config c = config_default(v, 24, HEADS, 6, 17, 2, 11);

    c.max_seq = 64;
    return c;
}

static void expect_seen(struct config c, enum mem_kind kind)
{
    const bool whole = config_mem(&c)->cached; /* nothing leaves its cache */
    const int M = kind == MEM_NONE ? 0 : whole ? (SEGMENTS - 1) * SEGMENT : PAST;
    static struct head_row row[ROWS];
    struct model m;

    if (config_check(&c, &failure) != OK)
        return;
    model_open(&m, &c, "ref", 1, kind, (struct extent){2, SEGMENT, M});
    watched = (struct watched){.name = c.variant->name};
    heads_watch(&watched.heads, &m.g);
    watched.forward = (struct attn_watch){.see = see, .arg = &watched};
    m.g.watch = &watched.forward;
    lm_build_tables(&m.lm, &m.g);
    lm_forget(&m.lm);
    for (int first = 0; first < SEGMENTS * SEGMENT; first += SEGMENT) {
        heads_pass(&watched.heads, 0);
        model_segment(&m, 0, 2, first, SEGMENT, SEGMENT);
        lm_commit(&m.lm, SEGMENT);
    }
    int expected = 0;
    for (int i = 0; i < m.lm.sublayers.n; i++)
        expected += softmaxes(&m.lm.sublayers.at[i]);
    NUMBERS_OF(watched.name, {heads_seen(&watched.heads, &failure), expected ? OK : E_UNSUPPORTED});
    const char *const path = in_folder("rows.csv");
    MUST(heads_write(&watched.heads, path, &failure));
    expect_rows(&m.lm, row, read_rows(path, row, ROWS));
    cases++;
    heads_free(&watched.heads);
}

Test(heads_variants, rows_of_every_attention)
{
    static const enum mem_kind kinds[] = {MEM_NONE, MEM_HIDDEN, MEM_KV};

    for (int v = 0; variants[v]; v++)
        for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
            const struct config c = small(variants[v]);
            if (kinds[k] == MEM_NONE || mem_can(config_mem(&c), kinds[k]))
                expect_seen(c, kinds[k]);
        }
    cr_expect_gt(cases, 200, "%d", cases);
    cr_expect_gt(by_hand, 50, "%d", by_hand);
    cr_expect_gt(by_values, 20, "%d", by_values);
}

/* Its scores are one call of the core, its probabilities another. */
Test(heads_variants, evolving_scores_count_once)
{
    struct config c = small(variant_find("predictive"));

    set_choice(&c, "pred_form", "evolving");
    expect_seen(c, MEM_NONE);
    cr_expect_eq(cases, 1);
}
