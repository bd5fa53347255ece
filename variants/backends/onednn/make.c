/* SPDX-License-Identifier: MIT
 *
 * Choosing the implementation, memory objects and work space of a primitive. */
#include "make.h"

enum { FEW_ROWS = 12 }; /* with fewer rows, copying b does not pay */

/* Work space shared by all primitives that fit: a thread runs them one at a time. */
struct space {
    struct space *older; /* primitives created with it still use it */
    unsigned char *at;
    size_t slice, slots; /* bytes per thread */
};

void context_error(struct context *w, const struct key *key, const char *what, const char *detail)
{
    if (w->failed)
        return;
    w->failed = true;
    fail(&w->why, E_UNSUPPORTED,
         "oneDNN %s %s for %d x %d x %d%s%s, alpha %g, beta %g  -> use another backend", what,
         detail, key->m, key->n, key->k, key->form & FORM_TA ? ", a transposed" : "",
         key->form & FORM_TB ? ", b transposed" : "", (double)float_of_bits(key->alpha),
         (double)float_of_bits(key->beta));
}

/* Aligned to cache lines and zeroed; counted in held_bytes. */
static void *context_alloc(struct context *w, size_t bytes)
{
    const size_t rounded = round_up(bytes, 64);
    void *at = aligned_alloc(64, rounded);

    NEED(at);
    w->held_bytes += rounded;
    return memset(at, 0, rounded);
}

static const struct space *space_for(struct context *w, size_t bytes, size_t slots)
{
    struct space *s = w->space;

    if (s && s->slice >= bytes && s->slots >= slots)
        return s;
    s = context_alloc(w, sizeof(*s));
    s->slice = round_up(bytes, 4096) +
               64; /* slices a whole number of pages apart would share cache sets */
    s->slots = slots;
    s->at = context_alloc(w, s->slice * slots);
    s->older = w->space;
    return w->space = s;
}

/* ---- products and norms, described -------------------------------------------------------- */

/* What to create: a product or a norm. */
struct request {
    bool norm;
    struct matmul product;
    struct layout rows, vector; /* of a norm: its data, and both scale and shift */
    float eps;
};

static dnnl_status_t lay_out_one(struct layout *l, const struct key *key, ptrdiff_t head, int rows,
                                 int cols, ptrdiff_t row, ptrdiff_t col)
{
    if (key->heads)
        return layout_heads(l, (int)key->heads, head, rows, cols, row, col);
    return layout_strided(l, rows, cols, row, col);
}

static dnnl_status_t request_product(struct context *w, struct matmul *mm, const struct key *key)
{
    const bool ta = key->form & FORM_TA, tb = key->form & FORM_TB;

    mm->alpha = float_of_bits(key->alpha);
    mm->beta = float_of_bits(key->beta);
    mm->relu = key->form & FORM_RELU;
    mm->biased = key->form & FORM_BIAS;
    const bool narrow = key->form & FORM_BF16;
    dnnl_status_t st = narrow ? layout_bf16(&mm->src, key->m, key->k, false)
                              : lay_out_one(&mm->src, key, key->head_a, key->m, key->k,
                                            ta ? 1 : key->lda, ta ? key->lda : 1);
    if (st == dnnl_success && narrow)
        st = layout_bf16(&mm->weights, key->k, key->n, true);
    else if (st == dnnl_success && key->form & FORM_PACKED)
        st = layout_copy(&mm->weights,
                         &packing_for(&w->packings, w->engine, key->n, key->k)->layout);
    else if (st == dnnl_success)
        st = lay_out_one(&mm->weights, key, key->head_b, key->k, key->n, tb ? 1 : key->ldb,
                         tb ? key->ldb : 1);
    CHECK(!mm->biased || mm->alpha == 1);
    if (st == dnnl_success && mm->biased)
        st = layout_strided(&mm->bias, 1, key->n, key->n, 1);
    if (st == dnnl_success)
        st = lay_out_one(&mm->dst, key, key->head_c, key->m, key->n, key->ldc, 1);
    return st;
}

static dnnl_status_t request_norm(struct request *o, const struct key *key)
{
    const dnnl_status_t st = layout_strided(&o->rows, key->m, key->n, key->n, 1);

    o->eps = float_of_bits(key->alpha);
    return st == dnnl_success ? layout_vector(&o->vector, key->n) : st;
}

static dnnl_status_t request_from(struct context *w, struct request *o, const struct key *key)
{
    *o = (struct request){.norm = key->form & FORM_NORM};
    return o->norm ? request_norm(o, key) : request_product(w, &o->product, key);
}

static void request_free(struct request *o)
{
    struct layout *const all[] = {&o->product.src,  &o->product.weights,
                                  &o->product.bias, &o->product.dst,
                                  &o->rows,         &o->vector};

    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        layout_free(all[i]);
}

static bool describe(const struct context *w, dnnl_primitive_desc_t *pd, const char **impl,
                     const struct request *o, int nth)
{
    *pd = NULL;
    const dnnl_status_t st = o->norm ? norm_describe(pd, &o->rows, o->eps, w->engine, nth)
                                     : matmul_describe(pd, &o->product, w->engine, nth);
    return st == dnnl_success && dnnl_primitive_desc_query(*pd, dnnl_query_impl_info_str, 0,
                                                           (void *)impl) == dnnl_success;
}

/* ---- choice ------------------------------------------------------------------------------- */

/* For few rows brgemm first copies a plain b, which does not pay. */
static bool brgemm_is_slow(const struct key *key)
{
    return key->m < FEW_ROWS && !(key->form & (FORM_PACKED | FORM_NORM));
}

/* brgemm of version 3 reads some vectors inside wider matrices as if they were dense, and writes them so. */
static bool brgemm_is_wrong(const struct key *key)
{
    const bool ta = key->form & FORM_TA, tb = key->form & FORM_TB;
    const bool a = key->lda > 1 && (ta ? key->m == 1 : key->k == 1);
    const bool b = key->ldb > 1 && (tb ? key->k == 1 : key->n == 1);

    return dnnl_version()->major >= 3 && !(key->form & (FORM_NORM | FORM_BF16)) && !key->heads &&
           (a || b || (key->n == 1 && key->ldc > 1));
}

static bool is_brgemm(const char *impl) { return strncmp(impl, "brg", 3) == 0; }

/* The library's next choice that is neither brgemm nor the fallback, else `first`. */
static dnnl_primitive_desc_t choose_other(const struct context *w, struct primitive *p,
                                          const struct request *o, dnnl_primitive_desc_t first)
{
    dnnl_primitive_desc_t other;
    const char *name;

    for (int nth = 1; describe(w, &other, &name, o, nth) && !strstr(name, "ref"); nth++) {
        if (!is_brgemm(name)) {
            dnnl_primitive_desc_destroy(first);
            p->impl = name;
            return other;
        }
        dnnl_primitive_desc_destroy(other);
    }
    if (other)
        dnnl_primitive_desc_destroy(other);
    return first;
}

/* NULL, with the error recorded, if only the fallback is left. */
static dnnl_primitive_desc_t choose(struct context *w, struct primitive *p, const struct request *o)
{
    const bool optional = p->key.form & FORM_OPTIONAL;
    dnnl_primitive_desc_t pd;

    if (!describe(w, &pd, &p->impl, o, 0)) {
        if (!optional)
            context_error(w, &p->key, "has no", "implementation");
        return NULL;
    }
    if (is_brgemm(p->impl) && brgemm_is_slow(&p->key))
        pd = choose_other(w, p, o, pd);
    if (strstr(p->impl, "ref")) {
        if (!optional)
            context_error(w, &p->key, "would be slow as", p->impl);
        dnnl_primitive_desc_destroy(pd);
        return NULL;
    }
    return pd;
}

/* ---- operands of a call ------------------------------------------------------------------- */

struct operand {
    int arg;
    const struct layout *layout;
    void *at;
};

/* Returns their number. */
static int list_operands(struct primitive *p, const struct request *o, const struct layout *scratch,
                         struct operand list[OPERANDS])
{
    const struct matmul *mm = &o->product;

    p->biased = o->norm || mm->biased;
    if (o->norm) {
        list[SRC] = (struct operand){DNNL_ARG_SRC, &o->rows, NULL};
        list[WEIGHTS] = (struct operand){DNNL_ARG_SCALE, &o->vector, NULL};
        list[BIAS] = (struct operand){DNNL_ARG_SHIFT, &o->vector, NULL};
        list[DST] = (struct operand){DNNL_ARG_DST, &o->rows, NULL};
    } else {
        list[SRC] = (struct operand){DNNL_ARG_SRC, &mm->src, NULL};
        list[WEIGHTS] = (struct operand){DNNL_ARG_WEIGHTS, &mm->weights, NULL};
        list[DST] = (struct operand){DNNL_ARG_DST, &mm->dst, NULL};
        if (p->biased)
            list[BIAS] = (struct operand){DNNL_ARG_BIAS, &mm->bias, NULL};
    }
    list[SCRATCH] = (struct operand){DNNL_ARG_SCRATCHPAD, scratch, NULL};
    return p->biased ? OPERANDS : OPERANDS - 1;
}

static dnnl_status_t make_slots(struct context *w, struct primitive *p, const struct request *o,
                                const_dnnl_primitive_desc_t pd)
{
    struct layout scratch = {0};
    struct operand list[OPERANDS];
    dnnl_status_t st = layout_query(&scratch, pd, dnnl_query_scratchpad_md);

    if (st != dnnl_success)
        return st;
    p->operands = list_operands(p, o, &scratch, list);
    const struct space *space = space_for(w, layout_bytes(&scratch), p->key.slots);
    p->slot = context_alloc(w, p->key.slots * sizeof(*p->slot));
    if (p->key.form & FORM_BF16)
        p->rows =
            context_alloc(w, p->key.slots * sizeof(*p->rows) * (size_t)p->key.m * (size_t)p->key.k);
    for (uint32_t t = 0; t < p->key.slots && st == dnnl_success; t++) {
        struct slot *s = &p->slot[t];
        list[SCRATCH].at = space->at + t * space->slice;
        st = dnnl_stream_create(&s->stream, w->engine, dnnl_stream_default_flags);
        for (int i = 0; i < p->operands && st == dnnl_success; i++) {
            s->arg[i].arg = list[i].arg;
            st = layout_memory(&s->arg[i].memory, list[i].layout, w->engine, list[i].at);
        }
    }
    layout_free(&scratch);
    return st;
}

/* The number of threads of a primitive is fixed at creation and read again at execution. */
struct primitive *primitive_make(struct context *w, const struct key *key)
{
    struct request request;
    struct primitive *p = context_alloc(w, sizeof(*p));
    const int threads = omp_get_max_threads();
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t st = request_from(w, &request, key);

    p->key = *key;
    omp_set_num_threads(key->threads);
    if (brgemm_is_wrong(key)) {
        p->plain = !(key->form & FORM_OPTIONAL);
        p->impl = "sgemm";
    } else if (st == dnnl_success && (pd = choose(w, p, &request))) {
        st = make_slots(w, p, &request, pd);
        if (st == dnnl_success)
            st = dnnl_primitive_create(&p->run, pd);
    }
    if (st != dnnl_success) {
        p->run = NULL;
        if (!(key->form & FORM_OPTIONAL))
            context_error(w, key, "reports", dnnl_status2str(st));
    }
    omp_set_num_threads(threads);
    if (pd)
        dnnl_primitive_desc_destroy(pd);
    request_free(&request);
    return p;
}
