/* SPDX-License-Identifier: MIT
 *
 * Matching rows and comparing them. */
#include "compare.h"

#include "harness/measure/pairing.h"
#include "harness/table/keys.h"

struct comparison *comparisons_add(struct comparisons *c)
{
    GROW_SMALL(c->v, c->n);
    struct comparison *const one = &c->v[c->n++];
    *one = (struct comparison){.line = c->n, .before_pct = NAN};
    one->change.log = (struct interval){NAN, NAN, NAN};
    one->change.verdict = VERDICT_UNCLEAR;
    for (int s = 0; s < SIDES; s++)
        one->change.median[s] = one->row_ns[s] = one->arena_bytes[s] = one->instructions[s] =
            one->nll[s] = NAN;
    return one;
}

void comparisons_free(struct comparisons *c)
{
    free(c->v);
    *c = (struct comparisons){0};
}

double comparison_ns(const struct comparison *c, int side)
{
    return isfinite(c->row_ns[side]) ? c->row_ns[side] : c->change.median[side];
}

static void add_note(struct comparison *c, const char *text)
{
    text_join(c->note, sizeof(c->note), "; ", text);
}

void comparison_exact(struct comparison *c)
{
    char text[160];

    if (isfinite(c->arena_bytes[BEFORE]) && isfinite(c->arena_bytes[AFTER]) &&
        c->arena_bytes[BEFORE] != c->arena_bytes[AFTER]) {
        const double more = c->arena_bytes[AFTER] - c->arena_bytes[BEFORE];
        snprintf(text, sizeof(text), "arena %s -> %s (%+.0f bytes)",
                 units_bytes(c->arena_bytes[BEFORE]).s, units_bytes(c->arena_bytes[AFTER]).s, more);
        add_note(c, text);
        c->changed = true;
    }
    /* Written so that a NaN on one side is a change. */
    if ((isfinite(c->nll[BEFORE]) || isfinite(c->nll[AFTER])) &&
        !(fabs(c->nll[AFTER] - c->nll[BEFORE]) <= NLL_TOLERANCE)) {
        snprintf(text, sizeof(text), "NLL %.6f -> %.6f nats", c->nll[BEFORE], c->nll[AFTER]);
        add_note(c, text);
        c->changed = true;
    }
}

enum verdict comparison_exact_verdict(const struct comparison *c)
{
    return isfinite(c->nll[BEFORE]) && isfinite(c->nll[AFTER]) ? VERDICT_SAME : VERDICT_UNCLEAR;
}

/* ---- times -------------------------------------------------------------------------------- */

/* Is the side's row not ok? Then the note says why. */
static bool note_status(struct comparison *c, const char *side, const char *status,
                        const char *detail)
{
    char text[LINE_SIZE];

    if (strcmp(status, row_status_name[ROW_OK]) == 0)
        return false;
    snprintf(text, sizeof(text), "%.60s: %.60s (%.600s)", side, status, detail);
    add_note(c, text);
    return true;
}

/* Everything that follows from two rows alone. */
static void compare_rows(struct comparisons *all, struct comparison *c, const struct pairing *b,
                         const struct run *run[SIDES], const struct latency_row *row[SIDES],
                         bool paired, uint64_t seed)
{
    struct series series[SIDES];
    bool together;

    for (int s = 0; s < SIDES; s++) {
        text_put(c->case_id[s], TEXT_SIZE, row[s]->case_id);
        c->arena_bytes[s] = run_arena_bytes(run[s], row[s]->case_id);
        series[s] = run_series(run[s], row[s]->case_id);
        if (note_status(c, c->name[s], row[s]->status, row[s]->status_detail))
            return;
    }
    c->before_pct =
        50 * (row[BEFORE]->ci95_high_ns - row[BEFORE]->ci95_low_ns) / row[BEFORE]->median_ns;
    for (int s = 0; s < SIDES; s++)
        c->row_ns[s] = row[s]->median_ns;
    if (strcmp(row[BEFORE]->host_id, row[AFTER]->host_id) != 0) {
        all->other_machine++;
        add_note(c, "other machine");
        return;
    }
    c->change = pairing_change(b, &series[BEFORE], &series[AFTER], paired, (int)row[AFTER]->threads,
                               c->threshold, seed, &together);
    if (paired && !together)
        add_note(c, "not measured together");
    if (c->change.noisy) /* how many: samples_disturbed */
        add_note(c, "most samples were preempted");
}

/* ---- two runs ----------------------------------------------------------------------------- */

/* Among the rows that have no partner. */
static void find_held_otherwise(struct comparisons *c, const struct run *run[SIDES],
                                const struct keys keys[SIDES])
{
    static const char *const but[] = {"mem_kind", NULL};
    const struct latency_row *rows[SIDES] = {run[BEFORE]->latency.row, run[AFTER]->latency.row};

    for (int k = 0; k < keys[BEFORE].n; k++)
        for (int i = 0; i < keys[AFTER].n; i++) {
            const struct latency_row *const old = &rows[BEFORE][k], *const new = &rows[AFTER][i];
            if (keys[BEFORE].used[k] || keys[AFTER].used[i] ||
                !rows_alike(&tables[TABLE_LATENCY], old, new, but))
                continue;
            c->held_otherwise++;
            c->held[BEFORE] = old->mem_kind;
            c->held[AFTER] = new->mem_kind;
        }
}

static void compare_latency(struct comparisons *c, const struct run *run[SIDES], double threshold,
                            uint64_t seed)
{
    const struct latency_row *rows[SIDES] = {run[BEFORE]->latency.row, run[AFTER]->latency.row};
    struct keys keys[SIDES];
    struct pairing b = pairing_open(run[BEFORE], run[AFTER]);

    for (int s = 0; s < SIDES; s++)
        keys[s] = keys_make(TABLE_LATENCY, &run[s]->latency, NULL);
    for (int i = 0; i < keys[AFTER].n; i++) {
        const int k = keys_match(&keys[BEFORE], &keys[AFTER], i);
        if (k < 0) {
            c->unmatched[AFTER]++;
            continue;
        }
        keys[AFTER].used[i] = true;
        struct comparison *one = comparisons_add(c);
        const struct latency_row *row[SIDES] = {&rows[BEFORE][k], &rows[AFTER][i]};
        one->threshold = threshold;
        text_put(one->name[BEFORE], TEXT_SIZE, "old");
        text_put(one->name[AFTER], TEXT_SIZE, "new");
        row_label(row[AFTER], NULL, one->label, sizeof(one->label));
        compare_rows(c, one, &b, run, row, false, seed);
        comparison_exact(one);
    }
    c->unmatched[BEFORE] += keys_unused(&keys[BEFORE]);
    find_held_otherwise(c, run, keys);
    keys_free(&keys[BEFORE]);
    keys_free(&keys[AFTER]);
    pairing_close(&b);
}

static void compare_perplexity(struct comparisons *c, const struct run *run[SIDES])
{
    struct keys keys[SIDES];

    for (int s = 0; s < SIDES; s++)
        keys[s] = keys_make(TABLE_PERPLEXITY, &run[s]->perplexity, NULL);
    for (int i = 0; i < keys[AFTER].n; i++) {
        const int k = keys_match(&keys[BEFORE], &keys[AFTER], i);
        if (k < 0) {
            c->unmatched[AFTER]++;
            continue;
        }
        struct comparison *one = comparisons_add(c);
        const struct perplexity_row *row[SIDES] = {
            (const struct perplexity_row *)run[BEFORE]->perplexity.row + k,
            (const struct perplexity_row *)run[AFTER]->perplexity.row + i};
        one->exact = true;
        for (int s = 0; s < SIDES; s++) {
            text_put(one->name[s], TEXT_SIZE, s == BEFORE ? "old" : "new");
            text_put(one->case_id[s], TEXT_SIZE, row[s]->case_id);
            one->nll[s] = row[s]->nll_nats_per_token;
            note_status(one, one->name[s], row[s]->status, row[s]->status_detail);
        }
        char mem[MEM_TEXT];
        mem_text(mem, row[AFTER]->mem_tokens);
        snprintf(one->label, sizeof(one->label), "perplexity %.60s seq=%lld mem=%s",
                 row[AFTER]->variant, (long long)row[AFTER]->seq_tokens, mem);
        comparison_exact(one);
    }
    c->unmatched[BEFORE] += keys_unused(&keys[BEFORE]);
    keys_free(&keys[BEFORE]);
    keys_free(&keys[AFTER]);
}

void compare_runs(struct comparisons *c, const struct run *before, const struct run *after,
                  double threshold, uint64_t seed)
{
    const struct run *run[SIDES] = {before, after};

    compare_latency(c, run, threshold, seed);
    compare_perplexity(c, run);
}

/* ---- one axis ----------------------------------------------------------------------------- */

static bool has_value(const struct latency_row *row, const struct axis *a, const char *value)
{
    char num[NUMBER_SIZE];

    return strcmp(row_field(&tables[TABLE_LATENCY], a->column, row, num), value) == 0;
}

/* The base row of the same problem as row i; -1 if there is none, -2 if there are two. */
static int find_base(const struct keys *keys, const struct latency_row *rows, const struct axis *a,
                     const char *base, int i)
{
    int found = -1;

    for (int k = 0; k < keys->n; k++)
        if (has_value(&rows[k], a, base) && strcmp(keys->key[k], keys->key[i]) == 0)
            found = found == -1 ? k : -2;
    return found;
}

static enum status ambiguous(const struct latency_row *row, const struct axis *a, struct err *e)
{
    char label[256];

    row_label(row, a, label, sizeof(label));
    return fail(e, E_USAGE,
                "%s: more than one row has these columns and the same %s  -> sweep fewer axes at "
                "once",
                label, a->word);
}

static void compare_one(struct comparisons *c, const struct run *run, const struct pairing *b,
                        const struct axis *a, int base, int i, double threshold, uint64_t seed)
{
    const struct latency_row *rows = run->latency.row;
    const struct latency_row *row[SIDES] = {&rows[base], &rows[i]};
    const struct run *runs[SIDES] = {run, run};
    struct comparison *one = comparisons_add(c);
    char num[NUMBER_SIZE];

    one->threshold = threshold;
    one->line = base;
    row_label(row[BEFORE], a, one->label, sizeof(one->label));
    for (int s = 0; s < SIDES; s++)
        text_put(one->name[s], TEXT_SIZE,
                 row_field(&tables[TABLE_LATENCY], a->column, row[s], num));
    compare_rows(c, one, b, runs, row, a->inside_group, seed);
}

enum status compare_axis(struct comparisons *c, const struct run *run, const char *axis,
                         const char *base, double threshold, uint64_t seed, struct err *e)
{
    const struct latency_row *rows = run->latency.row;
    struct axis a;
    char num[NUMBER_SIZE];
    enum status st = OK;

    TRY(axis_find(&a, axis, e));
    struct keys keys = keys_make(TABLE_LATENCY, &run->latency, &a);
    struct pairing b = pairing_open(run, run);
    if (keys.n > 0 && !base)
        base = row_field(&tables[TABLE_LATENCY], a.column, &rows[0], num);
    bool there = false;
    for (int i = 0; i < keys.n; i++)
        there = there || has_value(&rows[i], &a, base);
    if (keys.n > 0 && !there)
        st = axis_no_value(&a, base, &run->latency, run->dir, e);
    for (int i = 0; i < keys.n && st == OK; i++) {
        const int at = find_base(&keys, rows, &a, base, i);
        if (at == -2)
            st = ambiguous(&rows[i], &a, e);
        else if (at == -1)
            c->unmatched[AFTER]++;
        else if (at != i)
            compare_one(c, run, &b, &a, at, i, threshold, seed);
    }
    keys_free(&keys);
    pairing_close(&b);
    return st;
}
