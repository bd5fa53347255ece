/* SPDX-License-Identifier: MIT
 *
 * How the cases of every operation run: on the reference, on the subject with one thread and
 * separate outputs, and with several threads in place; then the comparison. */
#include "op_cases.h"
#include "op_inner.h"

#include "harness/machine/clock.h"
#include "variants/backends/outside.h"
#include "variants/base/arena.h"

/* Row `op` of the table; NULL after the last. */
static const struct op_row *row_of(int op)
{
    static const struct {
        const struct op_row *rows;
        int n;
    } parts[] = {
        {op_products, PRODUCT_ROWS}, {op_softmaxes, SOFTMAX_ROWS}, {op_norms, NORM_ROWS},
        {op_acts, ACT_ROWS},         {op_gates, GATE_ROWS},        {op_attns, ATTN_ROWS},
        {op_recurs, RECUR_ROWS},
    };

    for (size_t i = 0; i < ARRAY_LEN(parts); op -= parts[i++].n)
        if (op < parts[i].n)
            return &parts[i].rows[op];
    return NULL;
}

bool library_adds(const struct engine *g, int op)
{
    return backend_is_outside(g->backend->name) ||
           backend_find(g->provider[op < 0 ? OP_gemm : op])->core != NULL;
}

const char *op_case_name(int op) { return row_of(op) ? row_of(op)->name : NULL; }

enum elem op_case_elem(int op) { return row_of(op)->elem; }

int op_case_count(int op) { return row_of(op)->cases; }

/* ---- for makers ------------------------------------------------------------------------------ */

static float *keep(struct trial *t, float *at, size_t n, bool scratch)
{
    CHECK(t->n_buffers < MAX_BUFFERS);
    t->buffer[t->n_buffers++] = (struct buffer){at, n, scratch};
    return at;
}

float *operand(struct trial *t, size_t n, const char *name, float mean, float sd)
{
    return keep(t, normal(n, name, mean, sd), n, false);
}

float *operand_positive(struct trial *t, size_t n, const char *name)
{
    return keep(t, positive(n, name), n, false);
}

float *constant(struct trial *t, size_t n, float value)
{
    float *const at = keep(t, guarded(n), n, false);

    for (size_t i = 0; i < n; i++)
        at[i] = value;
    return at;
}

float *scratch(struct trial *t, size_t n) { return keep(t, guarded(n), n, true); }

struct output *output(struct trial *t, const char *name, size_t n, const float *first)
{
    struct output *o = &t->out[t->n_out++];

    CHECK(t->n_out <= MAX_OUTPUTS);
    *o = (struct output){.name = name,
                         .n = n,
                         .first = first,
                         .want = guarded(n),
                         .one = guarded(n),
                         .got = guarded(n),
                         .bound = need_room(n + 1, sizeof(double))};
    return o;
}

struct output *output_sums(struct trial *t, const char *name, size_t n)
{
    return output(t, name, n, constant(t, n, 0.5f));
}

double sum_bound(double each, double total) { return each + 4 * U * (fabs(total) + 1); }

const int op_sizes[OP_SIZES][2] = {{1, 1},   {3, 2},   {5, 7},   {2, 8},    {3, 9},
                                   {33, 15}, {3, 16},  {9, 17},  {65, 17},  {3, 31},
                                   {3, 33},  {31, 37}, {5, 130}, {33, 1003}};
const int op_grad_sizes[OP_GRAD_SIZES][2] = {{1, 1},   {3, 2},   {2, 8},   {5, 7},    {33, 15},
                                             {65, 17}, {31, 37}, {5, 130}, {70, 1003}};
const int op_square[2] = {512, 512};

void set_size(struct trial *t, const int size[2])
{
    t->rows = size[0];
    t->n = size[1];
    t->size = (size_t)t->rows * (size_t)t->n;
}

double largest(const float *x, size_t n)
{
    double most = 0;

    for (size_t i = 0; i < n; i++)
        if (isfinite(x[i]) && x[i] != GUARD_VALUE)
            most = fmax(most, fabs((double)x[i]));
    return most;
}

enum { GUARD_BYTES = 64 };

void *workspace(struct trial *t, size_t bytes)
{
    const size_t size = round_up(bytes + GUARD_BYTES, 64);

    if (!t->work || t->work_bytes != bytes) {
        free(t->work);
        t->work = aligned_alloc(64, size);
        NEED(t->work);
        t->work_bytes = bytes;
        memset(t->work, 0xff, size);
    } else if (!t->timed)
        memset(t->work, 0xff, size);
    return t->work;
}

/* ---- one case -------------------------------------------------------------------------------- */

struct trial *trial_new(const struct op_row *row, int at)
{
    struct trial *t = need_room(1, sizeof(*t));

    t->elem = row->elem;
    row->make(t, at);
    return t;
}

void trial_free(struct trial *t)
{
    for (int k = 0; k < t->n_out; k++) {
        release(t->out[k].want), release(t->out[k].one), release(t->out[k].got);
        free(t->out[k].bound);
    }
    for (int k = 0; k < t->n_buffers; k++)
        release(t->buffer[k].at);
    if (t->has_attn)
        free_operands(&t->attn);
    free(t->work);
    free(t);
}

void trial_reset(struct trial *t, float *const *out)
{
    for (int k = 0; k < t->n_out; k++) {
        const struct output *o = &t->out[k];
        for (size_t i = 0; i < o->n; i++)
            out[k][i] = o->first ? o->first[i] : GUARD_VALUE;
    }
    for (int k = 0; k < t->n_buffers; k++)
        if (t->buffer[k].scratch)
            memset(t->buffer[k].at, 0xff, t->buffer[k].n * sizeof(float));
}

enum side { WANT, ONE, GOT };

static void arrays_of(const struct trial *t, enum side side, float *out[MAX_OUTPUTS])
{
    for (int k = 0; k < t->n_out; k++) {
        const struct output *o = &t->out[k];
        out[k] = side == WANT ? o->want : side == ONE ? o->one : o->got;
    }
}

/* False if the engine refuses. */
static bool run_side(struct trial *t, const struct op_row *row, const struct engine *on,
                     enum side side)
{
    struct engine g = *on;
    float *out[MAX_OUTPUTS];

    arrays_of(t, side, out);
    trial_reset(t, out);
    t->is_subject = side != WANT;
    t->in_place = side == GOT && t->over;
    g.threads = side == GOT ? t->threads : 1;
    t->refusal.msg[0] = '\0';
    row->run(&g, t, out);
    if (!t->refusal.msg[0] && t->is_subject && g.backend->ran) {
        char names[128];
        struct err e;
        if (g.backend->ran(names, sizeof(names), &e) != OK)
            t->refusal = e;
    }
    return !t->refusal.msg[0];
}

/* The worst of an array in units of its bounds; *place is where. */
static double worst_of(const struct output *o, const float *got, size_t *place)
{
    double worst = 0;

    for (size_t i = 0; i < o->n; i++) {
        if (isinf(o->bound[i]) || (o->zero_for_nan && isnan(o->want[i]) && got[i] == 0))
            continue;
        const double e = in_bounds((double)got[i], (double)o->want[i], o->bound[i]);
        if (e > worst)
            worst = e, *place = i;
    }
    return worst;
}

/* Mean square error relative to the mean square of the result. */
static double mean_square(const struct output *o)
{
    double off = 0, power = 0;

    for (size_t i = 0; i < o->n; i++)
        if (o->want[i] != GUARD_VALUE) {
            const double d = (double)o->got[i] - (double)o->want[i];
            off += d * d;
            power += (double)o->want[i] * (double)o->want[i];
        }
    return off > 0 ? off / power : 0;
}

/* NULL, or what is wrong with the k-th output, formatted into `text`. */
static bool output_wrong(const struct trial *t, const struct op_row *row, int k, char *text,
                         size_t size)
{
    const struct output *o = &t->out[k];
    size_t at = 0;
    const double one = worst_of(o, o->one, &at), got = worst_of(o, o->got, &at);
    const double square = row->mean_square && k == 0 ? mean_square(o) : 0;

    if (!(one <= 1) || !(got <= 1))
        snprintf(text, size, "%s[%zu] = %.9g, not %.9g: %.3g of the bound", o->name, at,
                 (double)(got <= 1 ? o->one : o->got)[at], (double)o->want[at], fmax(one, got));
    else if (!(square <= 1e-10))
        snprintf(text, size, "%s: normalised mean-square error %.2g", o->name, square);
    else if (!guards_intact(o->one, o->n) || !guards_intact(o->got, o->n))
        snprintf(text, size, "%s: written beyond its end", o->name);
    else if (row->same_bits && !library_adds(t->subject, row->op) &&
             memcmp(o->one, o->got, o->n * sizeof(float)) != 0)
        snprintf(text, size, "%s: %d threads%s change bits", o->name, t->threads,
                 t->over ? " in place" : "");
    else
        return false;
    return true;
}

static bool buffers_wrong(const struct trial *t, char *text, size_t size)
{
    const char *what = NULL;

    for (int k = 0; k < t->n_buffers; k++)
        if (!guards_intact(t->buffer[k].at, t->buffer[k].n))
            what = t->buffer[k].scratch ? "work space" : "an operand";
    for (int i = 0; t->work && i < GUARD_BYTES; i++)
        if (t->work[t->work_bytes + (size_t)i] != 0xff)
            what = "work space";
    snprintf(text, size, "%s: written beyond its end", what ? what : "");
    return what;
}

enum outcome { RIGHT, WRONG, REFUSED };

static void run_reference(struct trial *t, const struct op_row *row, const struct engine *ref)
{
    CHECK(run_side(t, row, ref, WANT));
    row->bounds(t);
}

static enum outcome run_subject(struct trial *t, const struct op_row *row, const struct engine *g,
                                char *text, size_t size)
{
    t->subject = g;
    t->threads = g->threads;
    if (row->subject)
        row->subject(t);
    if (!run_side(t, row, t->subject, ONE))
        return REFUSED;
    if (buffers_wrong(t, text, size))
        return WRONG;
    if (!run_side(t, row, t->subject, GOT))
        return REFUSED;
    if (buffers_wrong(t, text, size))
        return WRONG;
    for (int k = 0; k < t->n_out; k++)
        if (output_wrong(t, row, k, text, size))
            return WRONG;
    return RIGHT;
}

/* ---- all cases of one operation -------------------------------------------------------------- */

static bool coprime(int a, int b)
{
    for (int rest; b; a = b, b = rest)
        rest = a % b;
    return a == 1;
}

static struct engine reference(void)
{
    struct engine ref;
    struct err e;

    CHECK(engine_open(&ref, "ref", 1, NULL, &e) == OK);
    return ref;
}

/* Case `t`, once run on the reference, on engine g. */
static void check_on(struct trial *t, const struct op_row *row, const struct engine *g,
                     struct op_result *r)
{
    char text[160] = "";

    r->cases++;
    if (g->lacks[row->elem]) {
        snprintf(r->refused, sizeof(r->refused), "%s", g->lacks[row->elem]);
        return;
    }
    const enum outcome outcome = run_subject(t, row, g, text, sizeof(text));
    if (outcome == REFUSED)
        snprintf(r->refused, sizeof(r->refused), "%s", t->refusal.msg);
    if (outcome == WRONG && r->failed++ == 0)
        snprintf(r->first, sizeof(r->first), "%s: %s", t->name, text);
}

void op_check(const struct engine *g, int n, int op, int step, struct op_result *r)
{
    const struct op_row *row = row_of(op);
    const struct engine ref = reference();

    while (step > 1 && !coprime(step, row->cases))
        step++;
    memset(r, 0, sizeof(*r) * (size_t)n);
    for (int at = 0; at < row->cases; at += step) {
        struct trial *t = trial_new(row, at);
        run_reference(t, row, &ref);
        for (int i = 0; i < n; i++)
            check_on(t, row, &g[i], &r[i]);
        trial_free(t);
    }
}

/* ---- speed ----------------------------------------------------------------------------------- */

static double time_once(struct trial *t, const struct op_row *row, const struct engine *g)
{
    float *out[MAX_OUTPUTS];

    arrays_of(t, GOT, out);
    trial_reset(t, out);
    t->is_subject = g == t->subject; /* packed operands belong to the subject */
    const int64_t start = clock_wall_ns();
    row->run(g, t, out);
    return (double)(clock_wall_ns() - start);
}

/* Does the backend implement this itself, or does it only inherit it? */
static bool has(const struct engine *g, const struct op_row *row)
{
    return row->has ? row->has(g) : strcmp(g->provider[row->op], g->backend->name) == 0;
}

/* The number is the fastest of the turns: what the code can do, not what a user will see; sweeps
 * measure that. */
static void time_turns(struct trial *t, const struct op_row *row, const struct op_timing *what,
                       const struct engine *parent)
{
    enum { TURNS = 15 };
    const struct engine *g = t->subject;
    double best = INFINITY, base = INFINITY;

    t->timed = true;
    t->in_place = false;
    for (int turn = 0; turn < TURNS; turn++) {
        best = fmin(best, time_once(t, row, g));
        if (turn < 3 || base < 1e7) /* the reference is slow; three turns are enough */
            base = fmin(base, time_once(t, row, parent));
    }
    if (t->refusal.msg[0]) {
        printf("%-9s %-12s %-20s not timed: %s\n", g->backend->name, row->name, what->shape,
               t->refusal.msg);
        return;
    }
    printf("%-9s %-12s %-20s %8.2f %s  %6.2fx %s\n", g->backend->name, row->name, what->shape,
           what->work / best * 1e9, what->unit, base / best, parent->backend->name);
}

void op_bench(const struct backend *b)
{
    const struct backend *parent = backend_parent(b);
    const struct engine ref = reference();
    struct arena of_g = {0}, of_p = {0};
    struct engine g, p;
    struct err e;

    if (!parent || engine_open(&p, parent->name, 1, NULL, &e) != OK ||
        engine_open(&g, b->name, 1, NULL, &e) != OK)
        return;
    if (engine_place(&g, &of_g, &e) != OK || engine_place(&p, &of_p, &e) != OK) {
        printf("%-9s not timed: %s\n", b->name, e.msg);
        arena_release(&of_g);
        return;
    }
    for (int op = 0; row_of(op); op++)
        for (int k = 0; k < MAX_TIMINGS && row_of(op)->timing[k].shape && has(&g, row_of(op)) &&
                        !g.lacks[row_of(op)->elem];
             k++) {
            const struct op_row *row = row_of(op);
            struct trial *t = trial_new(row, row->cases + k);
            char text[160];
            run_reference(t, row, &ref);
            const enum outcome outcome = run_subject(t, row, &g, text, sizeof(text));
            if (outcome == RIGHT)
                time_turns(t, row, &row->timing[k], &p);
            else
                printf("%-9s %-12s %-20s not timed: %s\n", b->name, row->name, row->timing[k].shape,
                       outcome == WRONG ? text : t->refusal.msg);
            trial_free(t);
        }
    arena_release(&of_g);
    arena_release(&of_p);
}
