/* SPDX-License-Identifier: MIT
 *
 * Rankings. Backends of one group are measured in turns, so their blocks are pairs; what was
 * measured at different moments is compared as such. */
#include "ranking.h"

#include "harness/table/keys.h"
#include "pairing.h"
#include "variants/backends/outside.h"

/* Input and state of a ranking. */
struct maker {
    const struct run *run;
    enum ranked ranked;
    struct pairing pairing;
    bool again; /* a shape turned out to be by CPU time: its first comparisons were not */
};

static const struct latency_row *row_at(const struct run *run, size_t i)
{
    return (const struct latency_row *)run->latency.row + i;
}

/* ---- which rows take part ----------------------------------------------------------------- */

static bool is_ref(const struct latency_row *r) { return strcmp(r->backend, "ref") == 0; }

/* The same but for the backend. */
static bool same_problem(const struct latency_row *a, const struct latency_row *b)
{
    static const char *const but[] = {"backend", NULL};

    return rows_alike(&tables[TABLE_LATENCY], a, b, but);
}

static bool takes_part(const struct maker *m, const struct latency_row *r)
{
    const struct run *run = m->run;

    if (strcmp(r->status, row_status_name[ROW_OK]) != 0 || !(r->median_ns > 0))
        return false;
    /* What a kernel from outside refused, another backend has run: "ggml@0.25.3:attention" is its own. */
    if (m->ranked == RANKED_BACKENDS && backend_is_outside(r->backend) && !strchr(r->impl, '@'))
        return false;
    for (size_t i = 0; i < run->latency.n && m->ranked == RANKED_VARIANTS && is_ref(r); i++) {
        const struct latency_row *other = row_at(run, i);
        if (!is_ref(other) && strcmp(other->status, row_status_name[ROW_OK]) == 0 &&
            same_problem(r, other))
            return false;
    }
    return true;
}

static bool same_setting(const struct latency_row *a, const struct latency_row *b)
{
    static const char *const but[] = {"variant", "backend", "seq_tokens", "mem_tokens", NULL};

    return rows_alike(&tables[TABLE_LATENCY], a, b, but);
}

static bool same_shape(const struct maker *m, const struct latency_row *a,
                       const struct latency_row *b)
{
    static const char *const but[] = {"variant", "backend", NULL};

    return m->ranked == RANKED_BACKENDS ? same_problem(a, b)
                                        : rows_alike(&tables[TABLE_LATENCY], a, b, but);
}

static bool same_contestant(const struct maker *m, const struct latency_row *a,
                            const struct latency_row *b)
{
    return m->ranked == RANKED_BACKENDS ? strcmp(a->backend, b->backend) == 0
                                        : rows_same_model(a, b);
}

/* ---- one setting -------------------------------------------------------------------------- */

static struct place *place_at(const struct ranking *r, int i, int s)
{
    struct place *const all = r->v[i].place;

    CHECK(all);
    return &all[s];
}

static int shape_of(const struct maker *m, const struct ranking *r, const struct latency_row *row)
{
    for (int s = 0; s < r->shapes; s++)
        if (same_shape(m, r->shape[s], row))
            return s;
    return -1;
}

/* `like[i]` is a row of contestant i. */
static int contestant_of(const struct maker *m, const struct latency_row *const *like, int n,
                         const struct latency_row *row)
{
    for (int i = 0; i < n; i++)
        if (like[i] && same_contestant(m, like[i], row))
            return i;
    return -1;
}

static struct interval interval_of(const struct latency_row *r)
{
    return (struct interval){r->ci95_low_ns, r->median_ns, r->ci95_high_ns};
}

static bool is_noisy(const struct latency_row *r)
{
    return remarks_of_row(r->status, r->status_detail) & REMARK_NOISY;
}

/* In shape s. */
static struct change change_between(struct maker *m, const struct ranking *r, int s,
                                    const struct latency_row *before,
                                    const struct latency_row *after)
{
    enum { SEED = 1 }; /* of the resampling: the same run is always ranked alike */
    const struct series series[SIDES] = {run_series(m->run, before->case_id),
                                         run_series(m->run, after->case_id)};
    struct change c;
    bool together;

    if (series[BEFORE].n == 0 || series[AFTER].n == 0)
        return change_of_intervals(interval_of(before), interval_of(after),
                                   is_noisy(before) || is_noisy(after), 0);
    m->pairing.by_cpu = r->cpu[s];
    c = pairing_change(&m->pairing, &series[BEFORE], &series[AFTER], true, (int)after->threads, 0,
                       SEED, &together);
    if (change_by_cpu(&c) && !r->cpu[s])
        r->cpu[s] = m->again = true;
    return c;
}

/* Of two rows of one contestant in shape s; medians decide where the ratio is not known. */
static bool is_faster(struct maker *m, const struct ranking *r, int s, const struct latency_row *a,
                      const struct latency_row *b)
{
    const double d = change_between(m, r, s, b, a).log.mid;

    return isnan(d) ? row_ns(a, r->cpu[s]) < row_ns(b, r->cpu[s]) : d < 0;
}

static void list(struct maker *m, const struct latency_row *const *rows, int n, struct ranking *r)
{
    const struct latency_row **like = need_room((size_t)n + 1, sizeof(const struct latency_row *));

    r->shape = need_room((size_t)n + 1, sizeof(const struct latency_row *));
    r->leader = need_room((size_t)n + 1, sizeof(*r->leader));
    r->v = need_room((size_t)n + 1, sizeof(*r->v));
    for (int i = 0; i < n; i++) {
        if (shape_of(m, r, rows[i]) < 0)
            r->shape[r->shapes++] = rows[i];
        if (contestant_of(m, like, r->n, rows[i]) < 0)
            like[r->n++] = rows[i];
    }
    for (int i = 0; i < r->n; i++) {
        r->v[i].place = need_room((size_t)r->shapes, sizeof(*r->v[i].place));
        r->v[i].bits = NAN;
        if (m->ranked == RANKED_BACKENDS)
            text_put(r->v[i].name, TEXT_SIZE, like[i]->backend);
        else
            row_model_name(like[i], &m->run->latency, r->v[i].name, TEXT_SIZE);
    }
    for (int i = 0; i < n; i++) {
        const int s = shape_of(m, r, rows[i]);
        struct place *p = place_at(r, contestant_of(m, like, r->n, rows[i]), s);
        if (!p->row || is_faster(m, r, s, rows[i], p->row))
            p->row = rows[i];
    }
    free(like);
}

/* The changes of a shape from its leader. The contestant with the least ratio below 1; -1 = none. */
static int rank_shape(struct maker *m, struct ranking *r, int s)
{
    const int leader = r->leader[s];
    double least = 0;
    int faster = -1;

    place_at(r, leader, s)->change = (struct change){0};
    for (int i = 0; i < r->n; i++) {
        struct place *const p = place_at(r, i, s);
        if (!p->row || i == leader)
            continue;
        p->change = change_between(m, r, s, place_at(r, leader, s)->row, p->row);
        if (p->change.log.mid < least) {
            least = p->change.log.mid;
            faster = i;
        }
    }
    return faster;
}

/* The leader of each shape, and the changes from it. */
static void rank_shapes(struct maker *m, struct ranking *r)
{
    for (int s = 0; s < r->shapes; s++) {
        r->leader[s] = -1;
        for (int i = 0; i < r->n; i++) {
            const struct latency_row *row = place_at(r, i, s)->row;
            if (row &&
                (r->leader[s] < 0 ||
                 row_ns(row, r->cpu[s]) < row_ns(place_at(r, r->leader[s], s)->row, r->cpu[s])))
                r->leader[s] = i;
        }
        int faster = rank_shape(m, r, s);
        for (int tries = 1; faster >= 0 && tries < r->n; tries++) {
            r->leader[s] = faster;
            faster = rank_shape(m, r, s);
        }
    }
}

static bool is_common(const struct ranking *r, int s)
{
    for (int i = 0; i < r->n; i++)
        if (!place_at(r, i, s)->row)
            return false;
    return true;
}

double ranking_ns(const struct ranking *r, int i, int s)
{
    const struct place *const first = place_at(r, r->leader[s], s), *const p = place_at(r, i, s);

    if (!p->row)
        return NAN;
    return isnan(p->change.log.mid) ? row_ns(p->row, r->cpu[s])
                                    : row_ns(first->row, r->cpu[s]) * exp(p->change.log.mid);
}

static double sum_of_logs(const struct ranking *r, int i)
{
    double sum = 0;

    for (int s = 0; s < r->shapes; s++)
        if (is_common(r, s))
            sum += log(row_ns(place_at(r, i, s)->row, r->cpu[s]));
    return sum;
}

static void swap(struct ranking *r, int a, int b)
{
    const struct contestant v = r->v[a];

    r->v[a] = r->v[b];
    r->v[b] = v;
    for (int s = 0; s < r->shapes; s++)
        r->leader[s] = r->leader[s] == a ? b : r->leader[s] == b ? a : r->leader[s];
}

/* Contestants in order; where they ran nothing in common, as they came. */
static void sort(struct ranking *r)
{
    for (int i = 1; i < r->n; i++)
        for (int k = i; k > 0 && sum_of_logs(r, k) < sum_of_logs(r, k - 1); k--)
            swap(r, k, k - 1);
}

/* The others in the order of their ratios to the leader. */
static void sort_by_ratio(struct ranking *r)
{
    for (int i = 2; i < r->n; i++)
        for (int k = i; k > 1 && r->v[k].change.log.mid < r->v[k - 1].change.log.mid; k--)
            swap(r, k, k - 1);
}

/* The means of changes from v[0]. The contestant with the least ratio below 1; -1 = none.
 * `changes` [shapes] is work space. */
static int rank_means(struct maker *m, struct ranking *r, struct change *changes)
{
    double least = 0;
    int faster = -1;

    for (int i = 0; i < r->n; i++) {
        struct contestant *const v = &r->v[i];
        int n = 0;
        for (int s = 0; s < r->shapes; s++)
            if (i > 0 && is_common(r, s))
                changes[n++] = r->leader[s] == 0 ? place_at(r, i, s)->change
                                                 : change_between(m, r, s, place_at(r, 0, s)->row,
                                                                  place_at(r, i, s)->row);
        v->change = i == 0 ? (struct change){0} : change_mean(changes, n, 0);
        if (v->change.log.mid < least) {
            least = v->change.log.mid;
            faster = i;
        }
    }
    return faster;
}

static void rank_over_shapes(struct maker *m, struct ranking *r)
{
    struct change *changes = need_room((size_t)r->shapes, sizeof(*changes));

    int faster = rank_means(m, r, changes);
    for (int tries = 1; faster >= 0 && tries < r->n; tries++) {
        swap(r, 0, faster);
        faster = rank_means(m, r, changes);
    }
    sort_by_ratio(r);
    free(changes);
}

static double joules_per_token(const struct latency_row *row)
{
    return row->energy_j / (row->tokens_per_s * row->median_ns * 1e-9);
}

/* What was not read is NAN, and makes the mean NAN. */
static void add_energy(struct ranking *r)
{
    for (int i = 0; i < r->n; i++) {
        double sum = 0;
        for (int s = 0; s < r->shapes; s++)
            if (is_common(r, s))
                sum += log(joules_per_token(place_at(r, i, s)->row));
        r->v[i].joules = r->common > 0 ? exp(sum / r->common) : NAN;
    }
}

static void ranking_free(struct ranking *r)
{
    for (int i = 0; i < r->n; i++)
        free(r->v[i].place);
    free(r->v);
    free(r->shape);
    free(r->leader);
    free(r->cpu);
    *r = (struct ranking){0};
}

static void rank(struct maker *m, const struct latency_row *const *rows, int n, struct ranking *r)
{
    bool *const cpu = need_room((size_t)n + 1, sizeof(*cpu)); /* room for a shape of each row */

    do {
        r->cpu = NULL;
        ranking_free(r);
        r->cpu = cpu;
        m->again = false;
        list(m, rows, n, r);
        rank_shapes(m, r);
        for (int s = 0; s < r->shapes; s++)
            r->common += is_common(r, s);
        sort(r);
        rank_over_shapes(m, r);
    } while (m->again);
    add_energy(r);
}

/* ---- perplexity --------------------------------------------------------------------------- */

/* Bits per unit of the model with the memory of the ranking's rows, where it was scored once. */
static void add_bits(struct rankings *all, const struct run *run, struct ranking *r)
{
    const struct perplexity_row *scored = run->perplexity.row;

    for (int i = 0; i < r->n; i++) {
        const struct latency_row *row = NULL;
        for (int s = 0; s < r->shapes; s++)
            if (place_at(r, i, s)->row &&
                (!row || place_at(r, i, s)->row->mem_tokens > row->mem_tokens))
                row = place_at(r, i, s)->row;
        int found = 0;
        for (size_t k = 0; row && k < run->perplexity.n; k++)
            if (strcmp(scored[k].status, row_status_name[ROW_OK]) == 0 &&
                strcmp(scored[k].variant, row->variant) == 0 &&
                scored[k].mem_tokens == row->mem_tokens && isfinite(scored[k].bits_per_unit)) {
                r->v[i].bits = scored[k].bits_per_unit;
                text_put(all->unit, sizeof(all->unit), scored[k].unit);
                text_put(all->corpus, sizeof(all->corpus), scored[k].corpus);
                all->floor_bits = log2(scored[k].ppl_floor);
                found++;
            }
        if (found > 1)
            r->v[i].bits = NAN;
    }
}

/* A weight of a narrower type counts by its bytes. */
static void add_parameters(const struct run *run, struct ranking *r)
{
    const struct memory_row *const memory = run->memory.row;

    for (int i = 0; i < r->n; i++) {
        const struct latency_row *row = NULL;
        for (int s = 0; s < r->shapes && !row; s++)
            row = place_at(r, i, s)->row;
        r->v[i].parameters = NAN;
        for (size_t k = 0; row && k < run->memory.n; k++)
            if (strcmp(memory[k].case_id, row->case_id) == 0 && memory[k].weights_bytes > 0)
                r->v[i].parameters = (double)memory[k].weights_bytes / sizeof(float);
    }
}

/* ---- all settings ------------------------------------------------------------------------- */

void rankings_free(struct rankings *r)
{
    for (int i = 0; i < r->n; i++)
        ranking_free(&r->v[i]);
    free(r->v);
    *r = (struct rankings){0};
}

/* The rows of the setting of row `first`, which leave `todo`. */
static int rows_of_setting(const struct run *run, size_t first, bool *todo,
                           const struct latency_row **rows)
{
    int n = 0;

    for (size_t i = first; i < run->latency.n; i++)
        if (todo[i] && same_setting(row_at(run, first), row_at(run, i))) {
            rows[n++] = row_at(run, i);
            todo[i] = false;
        }
    return n;
}

struct rankings rankings_make(const struct run *run, enum ranked what)
{
    struct maker m = {.run = run, .ranked = what, .pairing = pairing_open(run, run)};
    struct rankings out = {.floor_bits = NAN};
    bool *todo = need_room(run->latency.n + 1, sizeof(*todo));
    const struct latency_row **rows =
        need_room(run->latency.n + 1, sizeof(const struct latency_row *));

    for (size_t i = 0; i < run->latency.n; i++)
        todo[i] = takes_part(&m, row_at(run, i));
    for (size_t i = 0; i < run->latency.n; i++) {
        if (!todo[i])
            continue;
        GROW_SMALL(out.v, out.n);
        struct ranking *const r = &out.v[out.n++];
        *r = (struct ranking){0};
        rank(&m, rows, rows_of_setting(run, i, todo, rows), r);
        if (r->n < 2) {
            ranking_free(r);
            out.n--;
        } else if (what == RANKED_VARIANTS) {
            add_bits(&out, run, r);
            add_parameters(run, r);
        }
    }
    pairing_close(&m.pairing);
    free(todo);
    free(rows);
    return out;
}
