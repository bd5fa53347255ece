/* SPDX-License-Identifier: MIT
 *
 * Muon. Products are the engine's; what is left is element-wise. */
#include "muon.h"

const char *const muon_scale_name[] = {"adamw", "shape", NULL};

/* One map of a parameter: W [rows,columns], W = data + i * rows * columns. */
struct shape {
    int rows, columns;
};

static struct shape shape_of(const struct param *p)
{
    const int rows = p->shape[p->rank - 2], columns = p->shape[p->rank - 1];

    if ((size_t)p->maps * (size_t)rows * (size_t)columns == p->n)
        return (struct shape){rows, columns};
    return (struct shape){p->shape[0],
                          (int)(p->n / (size_t)p->shape[0])}; /* one, of all it reads */
}

bool muon_steps(const struct param *p) { return p->group == PARAM_MATRICES && !p->buffer; }

double square_added(double square, const float *x, ptrdiff_t n, int threads)
{
    enum { BLOCKS = 64 };
    const ptrdiff_t block = (n + BLOCKS - 1) / BLOCKS;
    double part[BLOCKS];

#pragma omp parallel for num_threads(team_for(threads, n))
    for (int b = 0; b < BLOCKS; b++) {
        const ptrdiff_t first = b * block, left = n - first, here = left < block ? left : block;
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (ptrdiff_t e = 0; e < here; e++)
            sum += (double)x[first + e] * (double)x[first + e];
        part[b] = sum;
    }
    for (int b = 0; b < BLOCKS; b++)
        square += part[b];
    return square;
}

void muon_bind(struct muon *u, const struct params *p, struct arena *a)
{
    size_t map = 0, square = 0;

    for (int i = 0; i < p->n; i++) {
        if (!muon_steps(&p->v[i]))
            continue;
        const struct shape s = shape_of(&p->v[i]);
        const size_t r = (size_t)min_int(s.rows, s.columns);
        const size_t n = (size_t)s.rows * (size_t)s.columns;
        map = n > map ? n : map;
        square = r * r > square ? r * r : square;
    }
    u->x = arena_f32(a, PART_SCRATCH, map);
    u->y = arena_f32(a, PART_SCRATCH, map);
    u->a = arena_f32(a, PART_SCRATCH, square);
    u->b = arena_f32(a, PART_SCRATCH, square);
}

/* to [columns,rows] = from [rows,columns] turned. */
static void turn(float *to, const float *from, int rows, int columns, int threads)
{
#pragma omp parallel for num_threads(team_for(threads, (ptrdiff_t)rows *columns))
    for (int j = 0; j < columns; j++)
        for (int i = 0; i < rows; i++)
            to[(ptrdiff_t)j * rows + i] = from[(ptrdiff_t)i * columns + j];
}

static void product(const struct engine *g, struct gemm p)
{
    p.rounds = g->rounds;
    g->ops.gemm(&p);
}

/* x [r,c], r <= c, becomes nearly orthogonal; y is work space of its size. Returns which of the two
 * has the result. */
static float *orthogonal(const struct muon *u, float *x, float *y, int r, int c,
                         const struct engine *g)
{
    enum { STEPS = 5 };
    static const float by[] = {3.4445f, -4.7750f, 2.0315f};
    const size_t n = (size_t)r * (size_t)c;
    const float norm = (float)(1 / (sqrt(square_added(0, x, (ptrdiff_t)n, g->threads)) + 1e-7));

    for (size_t e = 0; e < n; e++)
        x[e] *= norm;
    for (int i = 0; i < STEPS; i++) {
        product(g, mm_of(g, NT, r, r, c, 1, x, c, x, c, 0, u->a, r));
        memcpy(u->b, u->a, sizeof(float) * (size_t)r * (size_t)r);
        product(g, mm_of(g, NN, r, r, r, by[2], u->a, r, u->a, r, by[1], u->b, r));
        memcpy(y, x, sizeof(float) * n);
        product(g, mm_of(g, NN, r, c, r, 1, u->b, r, x, c, by[0], y, c));
        float *const next = y;
        y = x;
        x = next;
    }
    return x;
}

static double factor(enum muon_scale by, struct shape s)
{
    const double out = s.rows, in = s.columns;

    return by == MUON_ADAMW ? 0.2 * sqrt(fmax(out, in)) : sqrt(fmax(1, out / in));
}

/* The next momentum, and in u->x the update that follows from it. */
static void look_ahead(const struct muon *u, float *m, const float *grad, ptrdiff_t n, double scale,
                       int threads)
{
    const float b = 0.95f, by = (float)scale;

#pragma omp parallel for simd num_threads(team_for(threads, n))
    for (ptrdiff_t e = 0; e < n; e++) {
        const float g = (1 - b) * (by * grad[e]);
        m[e] = b * m[e] + g;
        u->x[e] = b * m[e] + g;
    }
}

void muon_update(const struct muon *u, const struct param *p, float *m, const struct engine *g,
                 enum muon_scale by, double lr, double decay, double scale)
{
    const struct shape s = shape_of(p);
    const ptrdiff_t n = (ptrdiff_t)s.rows * s.columns;
    const bool high = s.rows > s.columns;
    const float shrink = (float)(1 - lr * decay), step = (float)(lr * factor(by, s));

    for (int i = 0; i < p->maps; i++) {
        float *const data = p->data + i * n, *x;
        look_ahead(u, m + i * n, p->grad + i * n, n, scale, g->threads);
        if (high)
            turn(u->y, u->x, s.rows, s.columns, g->threads);
        x = high ? orthogonal(u, u->y, u->x, s.columns, s.rows, g)
                 : orthogonal(u, u->x, u->y, s.rows, s.columns, g);
        if (high) {
            float *const back = x == u->x ? u->y : u->x;
            turn(back, x, s.columns, s.rows, g->threads);
            x = back;
        }
#pragma omp parallel for simd num_threads(team_for(g->threads, n))
        for (ptrdiff_t e = 0; e < n; e++)
            data[e] = shrink * data[e] - step * x[e];
    }
}
