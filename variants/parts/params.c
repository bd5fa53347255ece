/* SPDX-License-Identifier: MIT
 *
 * A model's named tensors: declared by the parts, placed in the arena, filled from a seed or a
 * checkpoint. */
#include "params.h"
#include "variants/base/rng.h"

const char *const param_group_name[PARAM_GROUPS + 1] = {"matrices", "output", "embeddings", "norms",
                                                        "biases",   "others", NULL};

static enum param_group group_of(enum init init, int rank)
{
    return init == INIT_LINEAR && rank > 1 ? PARAM_MATRICES
           : init == INIT_EMBED            ? PARAM_EMBEDDINGS
           : init == INIT_ONE              ? PARAM_NORMS
           : init == INIT_ZERO             ? PARAM_BIASES
                                           : PARAM_OTHERS;
}

int params_add(struct params *p, enum init init, float init_arg, int rank, const int *shape,
               const char *fmt, ...)
{
    if (p->n == p->cap) {
        p->cap = p->cap ? 2 * p->cap : 32;
        p->v = realloc(p->v, (size_t)p->cap * sizeof(*p->v));
        NEED(p->v);
    }
    struct param *new = &p->v[p->n];
    *new = (struct param){.rank = rank, .n = 1, .init = init, .init_arg = init_arg, .stack = 1};

    new->group = group_of(init, rank);

    VPRINT(new->name, sizeof(new->name), fmt);
    CHECK(*new->name &&strlen(new->name) < sizeof(new->name) - 1);

    for (int i = 0; i < rank; i++) {
        new->shape[i] = shape[i];
        new->n *= (size_t)shape[i];
    }
    new->maps = new->group == PARAM_MATRICES;
    for (int i = 0; i < rank - 2; i++)
        new->maps *= shape[i];
    return p->n++;
}

int params_matrix(struct params *p, int out, int in, const char *prefix, const char *name)
{
    return params_add(p, INIT_LINEAR, 0, 2, (const int[]){out, in}, "%s%s", prefix, name);
}

int params_narrows(struct params *p, int i)
{
    p->v[i].narrows = true;
    return i;
}

int params_map(struct params *p, int out, int in, const char *prefix, const char *name)
{
    return params_narrows(p, params_matrix(p, out, in, prefix, name));
}

void params_wide(struct params *p, int i) { p->v[i].wide = true; }

void params_chooses(struct params *p, int i) { p->v[i].wide = p->v[i].chooses = true; }

int params_vector(struct params *p, enum init init, float init_arg, int n, const char *prefix,
                  const char *name)
{
    return params_add(p, init, init_arg, 1, &n, "%s%s", prefix, name);
}

int params_residual(struct params *p, int i)
{
    p->v[i].residual = true;
    return i;
}

void params_ramp(struct params *p, int i, struct ramp ramp)
{
    CHECK(p->v[i].n / (size_t)p->v[i].shape[p->v[i].rank - 1] <= RAMP_ROWS);
    p->v[i].init = INIT_RAMP;
    p->v[i].ramp = ramp;
}

void params_bound(struct params *p, int i, float least, float most)
{
    p->v[i].bounded = true;
    p->v[i].least = least;
    p->v[i].most = most;
}

void param_keep_bounds(struct param *p)
{
    for (size_t i = 0; p->bounded && i < p->n; i++)
        p->data[i] = p->data[i] < p->least  ? p->least
                     : p->data[i] > p->most ? p->most
                                            : p->data[i]; /* propagates NaN */
}

void params_buffer(struct params *p, int i) { p->v[i].buffer = true; }

const struct param *params_find(const struct params *p, const char *name)
{
    for (int i = 0; i < p->n; i++)
        if (strcmp(p->v[i].name, name) == 0)
            return &p->v[i];
    return NULL;
}

void params_stack(struct params *p, int first, int count)
{
    for (int i = first; i < first + count; i++) {
        struct param *w = &p->v[i];
        CHECK(i < p->n && w->stack == 1 && w->rank == 2 && w->init == INIT_LINEAR);
        CHECK(w->shape[1] == p->v[first].shape[1]);
        w->stack = 0;
    }
    p->v[first].stack = count;
}

int param_out(const struct param *w)
{
    int out = w->shape[0];

    for (int i = 1; i < w->stack; i++)
        out += w[i].shape[0];
    return out;
}

/* ---- element types ------------------------------------------------------------------------ */

static bool is_weight(const struct param *w)
{
    return w->group == PARAM_MATRICES || w->group == PARAM_OUTPUT || w->group == PARAM_EMBEDDINGS;
}

enum status params_hold(struct params *p, enum elem elem, enum row_elem rows,
                        const struct engine *g, struct err *e)
{
    const bool quantises = rows == ROWS_Q8 && elem_in_blocks(elem);

    if (g->lacks[elem])
        return fail(e, E_UNSUPPORTED, "unsupported in %s: %s  -> use another backend",
                    elem_name[elem], g->lacks[elem]);
    for (int i = 0; i < p->n; i++) {
        struct param *const w = &p->v[i];
        if ((elem == ELEM_BF16 || quantises) && w->chooses)
            return fail(e, E_UNSUPPORTED,
                        "unsupported in %s: %s chooses, and rounded rows choose otherwise  -> "
                        "use --dtype f32, or q8, q4 or q4_1 with --act-dtype f32",
                        elem_name[elem], w->name);
        if (elem != ELEM_F32 && is_weight(w) && !w->narrows && !w->wide)
            return fail(
                e, E_UNSUPPORTED,
                "unsupported in %s: %s is not read by plain products only  -> use --dtype f32",
                elem_name[elem], w->name);
        w->elem = w->narrows ? elem : ELEM_F32;
        w->quantises = w->narrows && quantises;
    }
    return OK;
}

static int row_length(const struct param *w) { return w->shape[w->rank - 1]; }

static size_t narrow_bytes(const struct param *w)
{
    return w->n / (size_t)row_length(w) * elem_row_bytes(w->elem, row_length(w));
}

void param_set(struct param *p, const float *values)
{
    const int n = row_length(p);
    const size_t row = elem_row_bytes(p->elem, n);
    char *const to = p->elem == ELEM_F32 ? (char *)p->data : p->narrow;

    for (size_t i = 0; i < p->n / (size_t)n; i++)
        elem_narrow(p->elem, to + i * row, values + i * (size_t)n, n);
}

struct param param_rows(const struct param *p, ptrdiff_t first, int n)
{
    const int length = row_length(p);
    const ptrdiff_t at = first * length;

    return (struct param){
        .rank = 2,
        .shape = {n, length},
        .n = (size_t)n * (size_t)length,
        .stack = 1,
        .elem = p->elem,
        .quantises = p->quantises,
        .data = p->data ? p->data + at : NULL,
        .narrow =
            p->narrow ? (char *)p->narrow + (size_t)first * elem_row_bytes(p->elem, length) : NULL,
        .grad = p->grad ? p->grad + at : NULL,
    };
}

void param_row(const struct param *p, ptrdiff_t i, float *to)
{
    const int n = row_length(p);
    const char *const rows = p->elem == ELEM_F32 ? (const char *)p->data : p->narrow;

    elem_widen(p->elem, to, rows + (size_t)i * elem_row_bytes(p->elem, n), 0, n);
}

/* Elements of a tensor and of those stacked after it. */
static size_t stack_floats(const struct param *w)
{
    size_t n = w->n;

    for (int i = 1; i < w->stack; i++)
        n += w[i].n;
    return n;
}

/* Bytes of a narrow tensor and of those stacked after it. */
static size_t stack_bytes(const struct param *w)
{
    size_t n = narrow_bytes(w);

    for (int i = 1; i < w->stack; i++)
        n += narrow_bytes(&w[i]);
    return n;
}

void params_place(struct params *p, struct arena *a)
{
    for (int i = 0; i < p->n; i++) {
        struct param *w = &p->v[i];
        if (w->borrowed)
            continue;
        if (w->elem == ELEM_F32)
            w->data = w->stack ? arena_f32(a, PART_WEIGHTS, stack_floats(w)) : w[-1].data + w[-1].n;
        else
            w->narrow = w->stack ? arena_take(a, PART_WEIGHTS, stack_bytes(w))
                                 : (char *)w[-1].narrow + narrow_bytes(&w[-1]);
    }
}

void params_borrow(struct params *p, const struct params *from)
{
    CHECK(p->n == from->n);
    for (int i = 0; i < p->n; i++) {
        p->v[i].data = from->v[i].data;
        p->v[i].elem = from->v[i].elem;
        p->v[i].quantises = from->v[i].quantises;
        p->v[i].narrow = from->v[i].narrow;
        p->v[i].packed = from->v[i].packed;
        p->v[i].borrowed = true;
    }
}

void params_place_grad(struct params *p, struct arena *a)
{
    for (int i = 0; i < p->n; i++) {
        struct param *w = &p->v[i];
        w->grad = w->stack ? arena_f32(a, PART_GRADIENTS, stack_floats(w)) : w[-1].grad + w[-1].n;
    }
}

void params_zero_grad(struct params *p)
{
    for (int i = 0; i < p->n; i++)
        memset(p->v[i].grad, 0, p->v[i].n * sizeof(float));
}

/* A weight W [out,in], or the stack it begins, as the b of x W^T. */
static struct gemm product_of(const struct param *p, int rows)
{
    return (struct gemm){.tb = true,
                         .m = rows,
                         .n = param_out(p),
                         .k = p->shape[1],
                         .b = p->data,
                         .ldb = p->shape[1],
                         .elem = p->elem,
                         .b_narrow = p->narrow,
                         .quantises = p->quantises};
}

void params_place_packed(struct params *p, const struct engine *g, int rows, struct arena *a)
{
    for (int i = 0; i < p->n; i++) {
        struct param *w = &p->v[i];
        if (w->borrowed || w->init != INIT_LINEAR || w->rank != 2 || !w->stack ||
            (w->elem != ELEM_F32 && !w->quantises) || !g->packed_floats)
            continue;
        const struct gemm like = product_of(w, rows);
        const size_t n = g->packed_floats(&like);
        w->packed = n ? arena_f32(a, PART_SCRATCH, n) : NULL;
    }
}

void params_pack(struct params *p, const struct engine *g)
{
    for (int i = 0; i < p->n; i++)
        if (p->v[i].packed && !p->v[i].borrowed) {
            const struct gemm like = product_of(&p->v[i], 0);
            g->pack(p->v[i].packed, &like);
        }
}

static void fill_ramp(struct param *p)
{
    const struct ramp *const r = &p->ramp;
    const int n = p->shape[p->rank - 1];

    for (size_t i = 0; i < p->n; i++) {
        const double x = (double)(i % (size_t)n) / max_int(1, r->open ? n : n - 1);
        const double way = pow(x, (double)r->power[i / (size_t)n]);
        p->data[i] = (float)((double)r->from + ((double)r->to - (double)r->from) * way);
    }
}

static void unit_rows(struct param *p)
{
    const size_t n = (size_t)p->shape[p->rank - 1];

    for (float *row = p->data; row < p->data + p->n; row += n) {
        double squares = 0;
        for (size_t e = 0; e < n; e++)
            squares += (double)row[e] * (double)row[e];
        for (size_t e = 0; e < n; e++)
            row[e] = (float)((double)row[e] / sqrt(squares));
    }
}

/* Element i of those that follow from its place or are evenly distributed. */
static float element(const struct param *p, uint64_t seed, uint64_t stream, size_t i)
{
    switch (p->init) {
    case INIT_CONST:
        return p->init_arg;
    case INIT_UNIFORM:
        return p->init_arg * (float)rng_uniform(seed, stream, i);
    case INIT_UNIFORM_BOTH:
        return p->init_arg * (float)(2 * rng_uniform(seed, stream, i) - 1);
    case INIT_LOG:
        return (float)log(1 + ((double)p->init_arg - 1) * rng_uniform(seed, stream, i));
    case INIT_LOG_COUNT:
        return (float)log(1 + (double)(i % (size_t)row_length(p)));
    case INIT_STEP:
        return (float)log(expm1(exp(log(0.001) + log(100) * rng_uniform(seed, stream, i))));
    case INIT_TURNS:
        return (float)(i % (size_t)p->init_arg);
    default: /* INIT_FREQUENCIES */
        return (float)pow(10000, -(double)i / (double)p->n);
    }
}

/* Linear maps preserve the variance of their input, embeddings have rows of unit length before
 * emb_scale, tables and biases are small. These are benchmark weights, not a training recipe:
 * scores should have a spread of about one, and every term should affect the checked results. */
static void fill(struct param *p, uint64_t seed)
{
    const uint64_t stream = rng_stream(p->name);
    const size_t width = (size_t)row_length(p);

    switch (p->init) {
    case INIT_LINEAR:
    case INIT_EMBED:
        rng_normal(p->data, p->n, seed, stream, 0, 1 / sqrtf((float)width));
        break;
    case INIT_TABLE:
        rng_normal(p->data, p->n, seed, stream, 0, 0.2f);
        break;
    case INIT_ONE:
        rng_normal(p->data, p->n, seed, stream, 1, 0.02f);
        break;
    case INIT_ZERO:
    case INIT_OFF:
        rng_normal(p->data, p->n, seed, stream, 0, 0.02f);
        break;
    case INIT_NORMAL:
        rng_normal(p->data, p->n, seed, stream, 0, p->init_arg);
        break;
    case INIT_RAMP:
        fill_ramp(p);
        break;
    case INIT_UNIT:
        rng_normal(p->data, p->n, seed, stream, 0, 1);
        unit_rows(p);
        break;
    case INIT_CENTRE:
        rng_normal(p->data, p->n, seed, stream, 0, 0.02f);
        for (ptrdiff_t i = 0; i < p->shape[0]; i++) {
            const ptrdiff_t row = (i * p->shape[0] + i) * p->shape[2] + (ptrdiff_t)p->init_arg;
            p->data[row * p->shape[3] + p->shape[3] / 2] += 1;
        }
        break;
    case INIT_EYE: /* square, near the identity, or several of these */
        rng_normal(p->data, p->n, seed, stream, 0, 0.02f);
        for (size_t row = 0; row < p->n / width; row++)
            p->data[row * width + row % width] += 1;
        break;
    default:
        for (size_t i = 0; i < p->n; i++)
            p->data[i] = element(p, seed, stream, i);
    }
    param_keep_bounds(p);
}

/* The values that it has as float, rounded. */
static void fill_narrow(struct param *p, uint64_t seed)
{
    float *const values = malloc(p->n * sizeof(*values));

    NEED(values);
    p->data = values;
    fill(p, seed);
    p->data = NULL;
    param_set(p, values);
    free(values);
}

void params_init(struct params *p, uint64_t seed, int threads)
{
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (int i = 0; i < p->n; i++)
        if (p->v[i].elem == ELEM_F32)
            fill(&p->v[i], seed);
        else
            fill_narrow(&p->v[i], seed);
}

/* What papers begin with, where a benchmark's values spread to show that each of them has an effect. */
static void begin(struct param *p)
{
    const float sd = 0.02f, spread = 0.2f;

    for (size_t i = 0; i < p->n; i++)
        switch (p->init) {
        case INIT_ONE:
            p->data[i] = 1;
            break;
        case INIT_ZERO:
        case INIT_OFF:
            p->data[i] = 0;
            break;
        case INIT_TABLE:
            p->data[i] *= sd / spread;
            break;
        default:
            return;
        }
}

void params_init_training(struct params *p, uint64_t seed, float residual, int threads)
{
    params_init(p, seed, threads);
    for (int i = 0; i < p->n; i++) {
        struct param *const w = &p->v[i];
        CHECK(w->data); /* what is trained is f32 */
        begin(w);
        for (size_t e = 0; e < w->n && w->residual && residual != 1; e++)
            w->data[e] *= residual;
    }
}

void params_free(struct params *p)
{
    free(p->v);
    *p = (struct params){0};
}
