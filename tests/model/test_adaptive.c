/* SPDX-License-Identifier: MIT
 *
 * Words in clusters: probabilities from their definition, gradients by finite differences in every
 * variant, what is refused, and memory that begins with zeros. */
#include "tests/support/trained.h"
#include "variants/model/content/content.h"

TestSuite(adaptive, .timeout = 240);

static const struct clusters {
    const char *cutoffs, *d_embed, *div_val, *tie_projs;
    bool tied;
} forms[] = {
    {"3,6", "", "1", "", true},      {"3,6", "8", "2", "0,1,1", true}, {"4", "7", "1", "1,0", true},
    {"2,5,7", "27", "3", "", false}, {"", "5", "1", "", true},         {"3,6", "9", "1", "", false},
    {"", "12", "2", "1", false},     {"1,10", "12", "1", "", true},
};
enum { FORMS = sizeof(forms) / sizeof(forms[0]) };

static void put_clusters(struct config *c, const struct clusters *f)
{
    set_choice(c, "cutoffs", f->cutoffs);
    set_choice(c, "d_embed", f->d_embed);
    set_choice(c, "div_val", f->div_val);
    set_choice(c, "tie_projs", f->tie_projs);
    c->tied = f->tied;
}

/* ---- probabilities ------------------------------------------------------------------------ */

/* Row `row` of the parameter, or NULL. */
static const float *row_of(const struct lm *m, const char *name, int i, int row)
{
    const struct param *const p = params_find(&m->params, kept_text(name, i));
    return p ? p->data + (ptrdiff_t)row * (p->rank > 1 ? p->shape[1] : 1) : NULL;
}

/* Logit of word x in cluster i from h [D], or of entry -1 - k for a cluster k; *size bounds the
 * terms that are summed. */
static double logit(const struct lm *m, const float *h, int i, int x, double *size)
{
    const struct config *const c = &m->c;
    const struct adaptive *const a = &c->adaptive;
    const bool one = a->div == 1;
    const int first = i ? a->cut[i - 1] : 0, table = one ? 0 : i, row = one ? x : x - first;
    const float *const W = x < 0     ? row_of(m, "out.cluster.weight", 0, -1 - x)
                           : c->tied ? row_of(m, "embed.%d.weight", table, row)
                                     : row_of(m, "out.%d.weight", table, row);
    const float b =
        x < 0 ? *row_of(m, "out.cluster.bias", 0, -1 - x) : *row_of(m, "out.%d.bias", table, row);
    int width = a->E ? a->E : c->D;
    const bool maps = !one || width != c->D, shared = a->n_tie && a->tie[i];
    double sum = (double)b;

    for (int k = 0; k < i; k++)
        width /= a->div;
    *size = fabs(sum);
    for (int e = 0; e < width; e++) {
        double z = maps ? 0 : (double)h[e], of_z = fabs(z);
        for (int d = 0; maps && d < c->D; d++) {
            const double term =
                (double)h[d] * (double)row_of(m, shared ? "embed_proj.%d" : "out_proj.%d",
                                              shared ? table : i, d)[e];
            z += term;
            of_z += fabs(term);
        }
        sum += z * (double)W[e];
        *size += of_z * fabs((double)W[e]);
    }
    return sum;
}

static double log_softmax(const struct lm *m, const float *h, int i, int from, int to, int x,
                          double *size)
{
    double sum = 0, most = 0, of;
    const double own = logit(m, h, i, x, &of);

    *size = of;
    for (int v = from; v < to; v++) {
        sum += exp(logit(m, h, i, v, &of) - own);
        most = fmax(most, of);
    }
    *size += most;
    return -log(sum);
}

/* Both parts are sums of up to D E products and a logarithm of a sum: `size` bounds their terms. */
static double log_p(const struct lm *m, const float *h, int x, double *size)
{
    const struct adaptive *const a = &m->c.adaptive;
    int i = 0;
    double more;

    while (i < a->n && x >= a->cut[i])
        i++;
    const int head = a->n ? a->cut[0] : m->c.V;
    const double in_head = log_softmax(m, h, 0, -a->n, head, i ? -i : x, size);
    if (i == 0)
        return in_head;
    const double in_tail =
        log_softmax(m, h, i, a->cut[i - 1], i < a->n ? a->cut[i] : m->c.V, x, &more);
    *size += more;
    return in_head + in_tail;
}

Test(adaptive, probabilities_are_those_of_the_definition)
{
    for (int b = 0; backends[b]; b++)
        for (int f = 0; f < FORMS; f++) {
            struct config c = config_default(variant_find("xl"), 12, 3, 4, 17, 2, 11);
            struct model m;
            if (backend_usable(backends[b], NULL) != OK)
                continue;
            put_clusters(&c, &forms[f]);
            model_open(&m, &c, backends[b]->name, 2, MEM_HIDDEN, (struct extent){2, 6, 4});
            model_segment(&m, 0, 2, 0, 6, 6);
            lm_all(&m.lm, &m.g, 12);
            for (int r = 0; r < 12; r++) {
                double all = 0;
                for (int x = 0; x < c.V; x++) {
                    double size;
                    const double want = log_p(&m.lm, m.lm.h + r * c.D, x, &size);
                    const double got = (double)m.lm.logits[r * c.V + x];
                    all += exp(got);
                    cr_expect_float_eq(got, want, 16 * U * (size + 4),
                                       "%s, form %d, word %d: %g %g", backends[b]->name, f, x, got,
                                       want);
                }
                const int next = token_of(&m, r / 6, r % 6 + 1);
                cr_expect_float_eq(all, 1, 64 * U);
                cr_expect_float_eq((double)m.nll[r], -(double)m.lm.logits[r * c.V + next], 1e-5);
            }
        }
}

/* By the words of the last segment: maps of the input, the head for every row, a tail for each row
 * whose target lies in it. All layers are the same as those of a plain model. */
Test(adaptive, flop_count_the_tails_that_were_needed)
{
    static const int D = 12, E = 8, V = 11;
    struct config c = config_default(variant_find("xl"), D, 3, 4, 17, 2, V), plain = c;
    const int32_t tokens[] = {0, 2, 3, 6, 7, 10}, targets[] = {1, 1, 4, 9, 9, 2};
    struct model m, of_plain;
    float nll[6];

    put_clusters(&c, &(struct clusters){"3,6", "8", "2", "0,1,1", true});
    model_open(&m, &c, "ref", 1, MEM_HIDDEN, (struct extent){1, 6, 4});
    model_open(&of_plain, &plain, "ref", 1, MEM_HIDDEN, (struct extent){1, 6, 4});
    lm_forward(&m.lm, &m.g, tokens, 1, 6, 6, targets, nll);
    const double layers = lm_flop(&of_plain.lm, 1, 6, 0, 6) - 2.0 * 6 * D * V;
    const double in = 2.0 * D * (2 * E + 1 * E / 2 + 3 * E / 4); /* words of each cluster */
    const double head = 6 * 2.0 * (D * E + E * (3 + 2));
    const double tails = 2.0 * (D * E / 2 + E / 2 * 3) + 2 * 2.0 * (D * E / 4 + E / 4 * 5);
    cr_expect_float_eq(lm_flop(&m.lm, 1, 6, 0, 6), layers + in + head + tails, 1e-6);
    lm_all(&m.lm, &m.g, 6);
    const double all = 2.0 * (D * E / 2 + E / 2 * 3) + 2.0 * (D * E / 4 + E / 4 * 5);
    cr_expect_float_eq(lm_flop(&m.lm, 1, 6, 0, 6), layers + in + head + 6 * all, 1e-6);
}

/* ---- gradients ---------------------------------------------------------------------------- */

static bool is_of_words(const char *name)
{
    return strncmp(name, "embed", 5) == 0 || strncmp(name, "out", 3) == 0;
}

/* Bounds: test_grad_lm.c. */
static bool expect_derivatives(struct trained *t)
{
    struct params *const p = &t->m.lm.params;
    const struct scalar f = {loss, t, 8 * U * log(t->m.lm.c.V), 0x1p-6};
    bool smooth = true;

    run_backward(t);
    for (const struct param *w = p->v; w < p->v + p->n && smooth; w++)
        if (is_of_words(w->name))
            smooth = expect_gradient_aside(
                &f, kept_text("%s: %s", t->m.lm.c.variant->name, w->name), w->data, w->grad, w->n,
                128 * U, 2 * f.noise / f.step, DIRECTIONS);
    return smooth;
}

static bool jumps(const struct config *c)
{
    return (c->mixer && c->mixer->content && c->mixer->content->numbers) ||
           (c->ffn && c->ffn->chose);
}

TEST_EACH(int *part, adaptive, is_differentiated_in_every_variant, every_part(), .timeout = 240)
{
    int count = 0;

    while (variants[count])
        count++;
    for (int v = *part; v < count; v += PARTS) {
        const struct form form = default_form(v);
        struct config c = wired(&form, 0);
        bool smooth = false;
        if (c.pos->from_tokens || c.logit_cap != 0 || !trains(variants[v]) || jumps(&c) ||
            c.norm_kind == NORM_ADA)
            continue;
        c.ffn_bias = true;
        put_clusters(&c, &forms[v % FORMS]);
        MUST(config_check(&c, &failure));
        for (uint64_t seed = SEED; seed < SEED + 8 && !smooth; seed++) {
            struct trained t;
            open_trained(&t, &c, "ref", 1);
            params_init(&t.m.lm.params, seed, 1);
            avoid_corners(&t.m.lm.params);
            remember(&t);
            smooth = expect_derivatives(&t);
        }
        cr_expect(smooth, "%s: a corner is near everywhere", variants[v]->name);
    }
}

/* ---- what is refused ------------------------------------------------------------------------ */

Test(adaptive, clusters_that_make_no_sense_are_refused)
{
    static const struct clusters bad[] = {
        {"6,3", "", "1", "", true},        {"3,11", "", "1", "", true},
        {"0,3", "", "1", "", true},        {"3,3", "", "1", "", true},
        {"3,6", "4", "4", "", true},       {"3,6", "", "1", "0,1", true},
        {"3,6", "", "1", "0,1,1,1", true},
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct config c = config_default(variant_find("xl"), 12, 3, 4, 17, 2, 11);
        put_clusters(&c, &bad[i]);
        cr_expect_eq(config_check(&c, &failure), E_USAGE, "%s %s", bad[i].cutoffs,
                     bad[i].tie_projs);
    }
}

/* ---- memory of zeros ------------------------------------------------------------------------ */

/* Cached hidden states and cached keys and values are the same model; empty memory is another. */
Test(adaptive, zeros_are_attended_to_however_they_are_remembered)
{
    EACH_TEXT (name, "xl", "vanilla")
        for (int norm = WIRING_POST; norm <= WIRING_PRE; norm++) {
            struct config c = config_default(variant_find(name), 12, 3, 4, 17, 2, 11);
            float got[3][2 * 4 * 11];
            c.wiring = (enum wiring)norm;
            c.mem_len = 7; /* more than a segment */
            for (int k = 0; k < 3; k++) {
                struct model m;
                model_open(&m, &c, "ref", 1, k == 1 ? MEM_KV : MEM_HIDDEN,
                           (struct extent){2, 4, 7});
                if (k < 2)
                    MUST(lm_zeros(&m.lm, &m.g, 2, &failure));
                model_segment(&m, 0, 2, 0, 4, 4);
                memcpy(got[k], m.lm.logits, sizeof(got[k]));
            }
            cr_expect_lt(case_error(got[1], got[0], ARRAY_LEN(got[0])), 1, "%s", name);
            cr_expect_gt(case_error(got[2], got[0], ARRAY_LEN(got[0])), 100, "%s", name);
        }
}

Test(adaptive, a_state_does_not_begin_with_zeros)
{
    struct config c = config_default(variant_find("gla"), 12, 3, 4, 17, 2, 11);
    struct model m;

    model_open(&m, &c, "ref", 1, MEM_STATE, (struct extent){1, 4, 0});
    cr_expect_eq(lm_zeros(&m.lm, &m.g, 1, &failure), E_UNSUPPORTED);
}
