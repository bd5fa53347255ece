/* SPDX-License-Identifier: MIT
 *
 * Choice of the implementation, memory objects and work space of a product. */
#include "onednn_make.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { FEW_ROWS = 12 }; /* fewer do not pay for copying b, which brgemm does with a plain one */

/* Work space of primitives, the same for all that fit: a thread runs one after the other. */
struct space {
    struct space *older; /* primitives that were made with it still use it */
    unsigned char *at;
    size_t slice, slots; /* bytes per thread */
};

static float number(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof(x));
    return x;
}

void workshop_complain(struct workshop *w, const struct key *key, const char *what,
                       const char *detail)
{
    if (w->failed)
        return;
    w->failed = true;
    fail(&w->why, E_UNSUPPORTED,
         "oneDNN %s %s for %d x %d x %d%s%s, alpha %g, beta %g  -> use another backend", what,
         detail, key->m, key->n, key->k, key->form & FORM_TA ? ", a transposed" : "",
         key->form & FORM_TB ? ", b transposed" : "", (double)number(key->alpha),
         (double)number(key->beta));
}

static void *take(struct workshop *w, size_t bytes)
{
    const size_t whole = round_up(bytes, 64);
    void *at = aligned_alloc(64, whole);

    CHECK(at);
    w->held_bytes += whole;
    return memset(at, 0, whole);
}

static const struct space *space_for(struct workshop *w, size_t bytes, size_t slots)
{
    struct space *s = w->space;

    if (s && s->slice >= bytes && s->slots >= slots)
        return s;
    s = take(w, sizeof(*s));
    s->slice = round_up(bytes, 4096) + 64; /* slices at a page's distance would share cache sets */
    s->slots = slots;
    s->at = take(w, s->slice * slots);
    s->older = w->space;
    return w->space = s;
}

static dnnl_status_t lay_out_one(struct layout *l, const struct key *key, ptrdiff_t head, int rows,
                                 int cols, ptrdiff_t row, ptrdiff_t col)
{
    if (key->heads)
        return layout_heads(l, (int)key->heads, head, rows, cols, row, col);
    return layout_strided(l, rows, cols, row, col);
}

static dnnl_status_t lay_out(struct workshop *w, struct matmul *mm, const struct key *key)
{
    const bool ta = key->form & FORM_TA, tb = key->form & FORM_TB;
    dnnl_status_t st = lay_out_one(&mm->src, key, key->head_a, key->m, key->k, ta ? 1 : key->lda,
                                   ta ? key->lda : 1);

    if (st == dnnl_success && key->form & FORM_PACKED)
        st = layout_copy(&mm->weights,
                         &packing_for(&w->packings, w->engine, key->n, key->k)->layout);
    else if (st == dnnl_success)
        st = lay_out_one(&mm->weights, key, key->head_b, key->k, key->n, tb ? 1 : key->ldb,
                         tb ? key->ldb : 1);
    if (st == dnnl_success)
        st = lay_out_one(&mm->dst, key, key->head_c, key->m, key->n, key->ldc, 1);
    return st;
}

static bool describe(const struct workshop *w, dnnl_primitive_desc_t *pd, const char **impl,
                     const struct matmul *mm, int nth)
{
    *pd = NULL;
    return matmul_describe(pd, mm, w->engine, nth) == dnnl_success &&
           dnnl_primitive_desc_query(*pd, dnnl_query_impl_info_str, 0, (void *)impl) ==
               dnnl_success;
}

/* The library's first choice, except that for few rows it is brgemm, which
 * copies b, and the second one is not. NULL, with the reason noted, where
 * nothing but the fallback would do. */
static dnnl_primitive_desc_t choose(struct workshop *w, struct product *p, const struct matmul *mm)
{
    const bool packed = p->key.form & FORM_PACKED;
    dnnl_primitive_desc_t first, second;
    const char *name;

    if (!describe(w, &first, &p->impl, mm, 0)) {
        if (!packed)
            workshop_complain(w, &p->key, "has no", "implementation");
        return NULL;
    }
    if (strstr(p->impl, "ref")) {
        if (!packed)
            workshop_complain(w, &p->key, "would fall back to", p->impl);
        dnnl_primitive_desc_destroy(first);
        return NULL;
    }
    if (packed || p->key.m >= FEW_ROWS || strncmp(p->impl, "brg", 3) != 0)
        return first;
    if (describe(w, &second, &name, mm, 1) && !strstr(name, "ref")) {
        dnnl_primitive_desc_destroy(first);
        p->impl = name;
        return second;
    }
    if (second)
        dnnl_primitive_desc_destroy(second);
    return first;
}

static dnnl_status_t make_slots(struct workshop *w, struct product *p, const struct matmul *mm,
                                const_dnnl_primitive_desc_t pd)
{
    static const int arg[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_SCRATCHPAD};
    struct layout scratch = {0};
    dnnl_status_t st = layout_query(&scratch, pd, dnnl_query_scratchpad_md);

    if (st != dnnl_success)
        return st;
    const struct layout *const layout[] = {&mm->src, &mm->weights, &mm->dst, &scratch};
    const struct space *space = space_for(w, layout_bytes(&scratch), p->key.slots);
    p->slot = take(w, p->key.slots * sizeof(*p->slot));
    for (uint32_t t = 0; t < p->key.slots && st == dnnl_success; t++) {
        struct slot *s = &p->slot[t];
        st = dnnl_stream_create(&s->stream, w->engine, dnnl_stream_default_flags);
        for (int i = 0; i < OPERANDS && st == dnnl_success; i++) {
            s->arg[i].arg = arg[i];
            st = layout_memory(&s->arg[i].memory, layout[i], w->engine,
                               i == SCRATCH ? space->at + t * space->slice : DNNL_MEMORY_NONE);
        }
    }
    layout_release(&scratch);
    return st;
}

/* How many threads a primitive uses is fixed when it is made and asked again when it runs. */
struct product *product_make(struct workshop *w, const struct key *key)
{
    struct matmul mm = {.alpha = number(key->alpha), .beta = number(key->beta)};
    struct product *p = take(w, sizeof(*p));
    const int threads = omp_get_max_threads();
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t st = lay_out(w, &mm, key);

    p->key = *key;
    omp_set_num_threads(key->threads);
    if (st == dnnl_success && (pd = choose(w, p, &mm))) {
        st = make_slots(w, p, &mm, pd);
        if (st == dnnl_success)
            st = dnnl_primitive_create(&p->run, pd);
    }
    if (st != dnnl_success) {
        p->run = NULL;
        workshop_complain(w, key, "reports", dnnl_status2str(st));
    }
    omp_set_num_threads(threads);
    if (pd)
        dnnl_primitive_desc_destroy(pd);
    layout_release(&mm.src);
    layout_release(&mm.weights);
    layout_release(&mm.dst);
    return p;
}
