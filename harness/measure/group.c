/* SPDX-License-Identifier: MIT
 *
 * One group, step by step: start all children, which count what they need; decide what fits in
 * memory together; make the reference outputs; place and check; measure in rounds; end. Then start
 * all again for the next launch, without the checks.
 *
 * Cases that compute the same (variant and its choices; backend and memory kind do not matter)
 * share one reference output in a memory file, made by the ref backend in double: by a ref case of
 * the group, or else by a ref child that is not measured. */
#include "group.h"

#include "estimate.h"
#include "harness/machine/env.h"
#include "harness/table/rundir.h"
#include "harness/worker/reference.h"
#include "variants/base/rng.h"

struct member {
    struct child child;
    struct result *result;
    int problem;  /* index of its reference */
    bool alive;   /* child started and neither broken, wrong nor too large */
    bool in_part; /* belongs to this part or an earlier one */
    bool placed;  /* the step was taken, with any outcome */
    int launches; /* that are measured */
};

struct group {
    struct member *m;
    int n;
    int n_problems;
    int *reference;            /* [n_problems] file descriptors */
    bool *made;                /* [n_problems] the reference output exists */
    int *part;                 /* [n] members that are measured now */
    const struct options *opt; /* of all cases: how to measure */
    int launch;                /* now, from 0 */
    int rounds;                /* begun: one for each launch of a part */
    const struct child_setup *setup;
    const struct group_hooks *hooks;
};

/* ---- status ------------------------------------------------------------------------------- */

/* Finish the member's row with this status. */
static void set_status(struct member *m, enum row_status status, const char *detail)
{
    m->result->status = status;
    text_put(m->result->detail, sizeof(m->result->detail), detail);
}

static void set_interrupted(struct member *m)
{
    set_status(m, ROW_INTERRUPTED,
               m->result->n > 0 ? "while it was measured" : "before it was measured");
}

/* A child that dies after the user's Ctrl-C died because of it: it may share the terminal. */
static void drop(const struct group *g, struct member *m, enum status st, const char *detail)
{
    if (*g->setup->stop)
        set_interrupted(m);
    else
        set_status(m, row_status_of(st), detail);
    m->alive = false;
}

/* ---- references --------------------------------------------------------------------------- */

static void number_problems(struct group *g)
{
    for (int i = 0; i < g->n; i++) {
        g->m[i].problem = -1;
        for (int k = 0; k < i && g->m[i].problem < 0; k++)
            if (case_same_problem(g->m[i].result->bcase, g->m[k].result->bcase))
                g->m[i].problem = g->m[k].problem;
        if (g->m[i].problem < 0)
            g->m[i].problem = g->n_problems++;
    }
}

/* The first ref case of a problem makes its reference. */
static struct member *maker_of(const struct group *g, int problem)
{
    for (int i = 0; i < g->n; i++)
        if (g->m[i].problem == problem && g->m[i].result->bcase->backend == &backend_ref)
            return &g->m[i];
    return NULL;
}

static enum role role_of(const struct group *g, const struct member *m)
{
    if (!m->result->bcase->opt->check || g->launch > 0)
        return ROLE_NONE;
    return maker_of(g, m->problem) == m ? ROLE_MAKE : ROLE_COMPARE;
}

/* ---- placing ------------------------------------------------------------------------------ */

static void check(struct member *m)
{
    char detail[LINE_SIZE];

    if (!report_is_wrong(m->result->bcase, &m->child.report, detail))
        return;
    set_status(m, ROW_WRONG, detail);
    m->alive = false;
}

/* Tell that the case begins something; a child may be silent for longer if it is expected to. */
static double patience_for(const struct group *g, const struct bench_case *c, enum group_wait what,
                           double usual_s)
{
    enum { TIMES = 10 };
    const double expected_s = g->hooks->waits ? g->hooks->waits(g->hooks->arg, c, what) : 0;

    return usual_s > 0 ? fmax(usual_s, TIMES * expected_s) : 0;
}

static void place(struct group *g, struct member *m)
{
    double *const patience_s = &m->child.protocol.patience_s;
    const double usual_s = *patience_s;
    struct err why;

    *patience_s =
        patience_for(g, m->result->bcase, g->launch > 0 ? WAIT_AGAIN : WAIT_PLACE, usual_s);
    const enum status st = child_place(&m->child, &why);
    *patience_s = usual_s;

    if (st != OK)
        drop(g, m, st, why.msg);
    else if (role_of(g, m) != ROLE_NONE)
        check(m);
}

static enum status make_reference(struct group *g, struct member *m, struct err *e)
{
    const struct bench_case *c = m->result->bcase;
    struct child_setup setup = *g->setup;

    setup.patience_s = patience_for(g, c, WAIT_REFERENCE, setup.patience_s);
    return reference_make(&g->reference[m->problem], c, &setup, check_limit_s(c->opt), e);
}

/* Make the reference of a problem unless it exists. */
static void ensure_reference(struct group *g, struct member *m)
{
    struct err why;
    enum status st;
    struct member *maker = maker_of(g, m->problem);

    if (g->made[m->problem] || !m->alive || role_of(g, m) == ROLE_NONE)
        return;
    if (maker && maker->alive && maker->in_part)
        place(g, maker);
    if (maker && maker->alive && maker->in_part)
        g->made[m->problem] = true;
    else if ((st = make_reference(g, m, &why)) == OK)
        g->made[m->problem] = true;
    else
        drop(g, m, st, why.msg);
}

/* Place and check the members of a part; a maker is placed when its first reader needs it. */
static void place_part(struct group *g, const int *part, int n)
{
    for (int i = 0; i < n; i++)
        g->m[part[i]].in_part = true;
    for (int i = 0; i < n && !*g->setup->stop; i++) {
        struct member *m = &g->m[part[i]];
        if (maker_of(g, m->problem) != m || role_of(g, m) == ROLE_NONE)
            ensure_reference(g, m);
    }
    for (int i = 0; i < n && !*g->setup->stop; i++) {
        struct member *m = &g->m[part[i]];
        const bool placed = role_of(g, m) == ROLE_MAKE && g->made[m->problem];
        if (m->alive && !placed && !m->placed)
            place(g, m);
        m->placed = true;
        if (m->alive && role_of(g, m) == ROLE_MAKE)
            g->made[m->problem] = true;
    }
}

/* ---- measuring ---------------------------------------------------------------------------- */

struct part_run {
    struct group *g;
    const int *member; /* [n] by side */
    uint32_t first_round;
};

static enum status keep_sample(void *arg, int side, const struct sample *s, const struct outcome *o,
                               struct err *e)
{
    const struct part_run *p = arg;
    struct result *r = p->g->m[p->member[side]].result;

    r->outcome = *o;
    if (!s)
        return OK;
    TRY(GROW(r->samples, r->n, e));
    struct sample *kept = &r->samples[r->n++];
    *kept = *s;
    kept->round += p->first_round;
    kept->launch = (uint32_t)p->g->launch;
    return p->g->hooks->sample(p->g->hooks->arg, r, kept, e);
}

static struct schedule schedule_of(const struct group *g)
{
    const struct options *o = g->opt;

    return (struct schedule){
        .max_time_s = o->max_time_s,
        .min_samples = o->min_samples,
        .target_ci = o->target_ci_pct / 100,
        .block_ms = o->block_ms,
        .warmup_ms = o->warmup_ms,
        .interleave = o->order == ORDER_INTERLEAVE,
        .seed = o->seed,
        .gap_ms = 2,
        .launches = case_launches(o),
        .stop = g->setup->stop,
    };
}

static enum status measure_part(struct group *g, const int *part, int n, struct err *e)
{
    enum {
        ROUNDS_APART = 1000000
    }; /* separates the rounds of different parts and launches, which are not pairs */
    struct side *side = need_room((size_t)n, sizeof(*side));
    struct outcome *out = need_room((size_t)n, sizeof(*out));
    int *member = need_room((size_t)n, sizeof(*member)), live = 0;
    const struct schedule s = schedule_of(g);
    enum status st = OK;

    for (int i = 0; i < n; i++)
        if (g->m[part[i]].alive) {
            member[live] = part[i];
            side[live++] = (struct side){child_block, {&g->m[part[i]].child}, 1};
        }
    struct part_run p = {g, member, (uint32_t)(g->rounds++ * ROUNDS_APART)};
    if (g->hooks->waits)
        g->hooks->waits(g->hooks->arg, g->m[part[0]].result->bcase, WAIT_MEASURE);
    const struct quota quota = quota_find("");
    const int64_t before = quota_throttled(&quota);
    if (live > 0)
        st = measure(side, live, &s, keep_sample, &p, out, e);
    const int64_t throttled = quota_throttled(&quota) - before;
    for (int i = 0; i < live; i++) {
        struct member *m = &g->m[member[i]];
        m->result->limited = isfinite(quota.cpus);
        m->result->throttled += throttled;
        m->result->outcome = out[i];
        if (out[i].stop == STOP_FAILED) /* want of memory skips only what was not begun */
            drop(g, m, out[i].status == E_NOMEM ? E_CHILD : out[i].status, out[i].err.msg);
        else if (out[i].stop == STOP_INTERRUPTED)
            set_interrupted(m);
        else
            m->launches = g->launch + 1;
    }
    free(side);
    free(out);
    free(member);
    return st;
}

/* ---- memory ------------------------------------------------------------------------------- */

/* Cases too large for any part become rows that say so. */
static void skip_oversized(struct group *g)
{
    for (int i = 0; i < g->n; i++) {
        struct member *m = &g->m[i];
        const double need = m->child.report.arena_bytes;
        char label[160], detail[LINE_SIZE];
        if (!m->alive || need <= g->setup->memory_bytes)
            continue;
        case_label(m->result->bcase, label, sizeof(label));
        snprintf(detail, sizeof(detail),
                 "%s needs %s, %s free  -> row marked skipped(memory); lower --seq or --batch",
                 label, units_bytes(need).s, units_bytes(g->setup->memory_bytes).s);
        g->hooks->warn(g->hooks->arg, detail);
        set_status(m, ROW_SKIPPED, "memory");
        m->alive = false;
    }
}

/* Members from `from` on that fit together with the shared one; returns the number of entries of
 * `part`. The shared case is the group's first, so that ratios across parts can be paired. */
static int next_part(const struct group *g, int shared, int *from, int *part)
{
    double used = 0;
    int n = 0;

    if (shared >= 0) {
        part[n++] = shared;
        used = g->m[shared].child.report.arena_bytes;
    }
    for (; *from < g->n; ++*from) {
        const double need = g->m[*from].child.report.arena_bytes;
        if (!g->m[*from].alive || *from == shared)
            continue;
        if (used + need > g->setup->memory_bytes && n > (shared >= 0))
            break;
        part[n++] = *from;
        used += need;
    }
    return n;
}

static enum status run_parts(struct group *g, struct err *e)
{
    int shared = -1, from = 0;
    enum status st = OK;

    while (st == OK && from < g->n) {
        const int n = next_part(g, shared, &from, g->part);
        if (n <= (shared >= 0))
            break;
        place_part(g, g->part, n);
        st = *g->setup->stop ? fail(e, E_INTERRUPTED, "interrupted")
                             : measure_part(g, g->part, n, e);
        for (int i = 0; i < n; i++) /* free the others; the next part shares the first */
            if (g->part[i] != g->part[0] || from >= g->n)
                child_close(&g->m[g->part[i]].child);
        shared = g->part[0];
    }
    return st;
}

/* ---- starting ----------------------------------------------------------------------------- */

static void start_one(struct group *g, struct member *m, const struct child_setup *setup)
{
    int *reference = &g->reference[m->problem];
    enum status st = OK;
    struct err why;

    if (m->result->bcase->unsupported) {
        drop(g, m, E_UNSUPPORTED, m->result->bcase->unsupported);
        return;
    }
    st = reference_open(reference, &why);
    if (st == OK)
        st = child_open(&m->child, m->result->bcase, setup, role_of(g, m), *reference, &why);
    m->alive = true;
    if (st != OK)
        drop(g, m, st, why.msg);
    else if (strcmp(m->child.report.cpu, g->setup->cpu) != 0)
        drop(g, m, E_CHILD, "the child sees another CPU than its parent  -> use --isolate fork");
}

static enum status start_all(struct group *g, struct err *e)
{
    for (int i = 0; i < g->n && !*g->setup->stop; i++) {
        utc_text(g->m[i].result->started_at_utc, time(NULL));
        start_one(g, &g->m[i], g->setup);
    }
    return *g->setup->stop ? fail(e, E_INTERRUPTED, "interrupted") : OK;
}

/* ---- further launches ---------------------------------------------------------------------- */

/* Up to a page of padding: the stack begins elsewhere, also where the kernel does not move it. */
static int padding_of(const struct group *g)
{
    return (int)(rng_u32(g->opt->seed, rng_stream("launch.padding"), (uint64_t)g->launch) % 4096) +
           1;
}

/* Every block takes longer than the time for all: one launch must do. */
static bool is_long(const struct result *r)
{
    double fastest = INFINITY;

    for (int i = 0; i < r->n; i++)
        fastest = fmin(fastest, r->samples[i].wall_ns);
    return r->n > 0 && fastest > 1e9 * r->bcase->opt->max_time_s;
}

/* Start what is still measured anew. */
static enum status start_again(struct group *g, struct err *e)
{
    struct child_setup setup = *g->setup;

    setup.environment = env_padded(g->setup->environment, padding_of(g));
    for (int i = 0; i < g->n && !*g->setup->stop; i++) {
        struct member *const m = &g->m[i];
        m->alive = m->alive && !is_long(m->result);
        if (!m->alive)
            continue;
        m->placed = false;
        m->child = (struct child){.protocol.fd = -1};
        start_one(g, m, &setup);
    }
    env_free(setup.environment);
    return *g->setup->stop ? fail(e, E_INTERRUPTED, "interrupted") : OK;
}

/* End all children; the first launch's reports are those of the rows. */
static void end_launch(struct group *g)
{
    for (int i = 0; i < g->n; i++) {
        child_close(&g->m[i].child);
        if (g->launch == 0)
            g->m[i].result->report = g->m[i].child.report;
    }
}

static enum status run_launches(struct group *g, struct err *e)
{
    const int launches = case_launches(g->opt);
    enum status st = start_all(g, e);

    if (st == OK)
        skip_oversized(g);
    if (st == OK)
        st = run_parts(g, e);
    end_launch(g);
    for (g->launch = 1; g->launch < launches && st == OK; g->launch++) {
        st = start_again(g, e);
        if (st == OK)
            st = run_parts(g, e);
        end_launch(g);
    }
    for (int i = 0; i < g->n; i++)
        if (st != OK && g->m[i].result->status == ROW_OK && g->m[i].launches < launches &&
            !(g->m[i].launches > 0 && is_long(g->m[i].result)))
            set_interrupted(&g->m[i]);
    return st;
}

/* ---- the group ----------------------------------------------------------------------------- */

/* That of the fastest tenth of the group's blocks: single ones run at a rate that does not last. */
static double shortest_spin(const struct result *results, int n)
{
    int blocks = 0, k = 0;

    for (int i = 0; i < n; i++)
        blocks += results[i].n;
    double *const spin = need_room((size_t)max_int(1, blocks), sizeof(*spin));
    for (int i = 0; i < n; i++)
        for (int j = 0; j < results[i].n; j++)
            spin[k++] = results[i].samples[j].spin_ns > 0 ? results[i].samples[j].spin_ns : NAN;
    sort_numbers(spin, blocks);
    const double shortest = stats_quantile(spin, blocks, 0.1);
    free(spin);
    return shortest;
}

enum status group_measure(const struct bench_case *const *cases, int n,
                          const struct child_setup *setup, const struct group_hooks *hooks,
                          struct result *results, struct err *e)
{
    struct group g = {.n = n, .opt = cases[0]->opt, .setup = setup, .hooks = hooks};

    g.m = need_room((size_t)n, sizeof(*g.m));
    g.reference = need_room((size_t)n, sizeof(*g.reference));
    g.part = need_room((size_t)n, sizeof(*g.part));
    g.made = need_room((size_t)n, sizeof(*g.made));
    for (int i = 0; i < n; i++) {
        results[i] = (struct result){.bcase = cases[i]};
        g.m[i].result = &results[i];
        g.m[i].child.protocol.fd = -1;
        g.reference[i] = -1;
    }
    number_problems(&g);
    const enum status st = run_launches(&g, e);
    const double spin_ns = shortest_spin(results, n);
    for (int i = 0; i < n; i++) {
        results[i].spin_ns = spin_ns;
        if (g.reference[i] >= 0)
            close(g.reference[i]);
        result_finish(&results[i]);
    }
    child_unpin(setup);
    free(g.m);
    free(g.reference);
    free(g.part);
    free(g.made);
    return st;
}
