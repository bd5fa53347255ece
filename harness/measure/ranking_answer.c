/* SPDX-License-Identifier: MIT
 *
 * What a ranking says to do, in sentences that follow from its verdicts and intervals. */
#include "ranking_text.h"

/* ---- pieces ------------------------------------------------------------------------------- */

void flow_put(struct flow *l, const char *text)
{
    const int n = terminal_columns(text);

    if (l->at > l->indent && l->at + 1 + n > l->width) {
        fprintf(l->f, "\n%*s", l->indent, "");
        l->at = l->indent;
    } else if (l->at > l->indent) {
        fputc(' ', l->f);
        l->at++;
    }
    fputs(text, l->f);
    l->at += n;
}

/* Does the column have one value in the first shapes of all rankings? */
static bool all_agree(const struct rankings *all, int column)
{
    const struct table *t = &tables[TABLE_LATENCY];
    char num[2][NUMBER_SIZE];

    for (int i = 1; i < all->n; i++)
        if (strcmp(row_field(t, column, all->v[0].shape[0], num[0]),
                   row_field(t, column, all->v[i].shape[0], num[1])) != 0)
            return false;
    return true;
}

void ranking_setting(const struct rankings *all, const struct ranking *r, char *buf, size_t size)
{
    static const char *const of_shape[] = {"variant",    "backend",  "workload", "seq_tokens",
                                           "mem_tokens", "settings", NULL};
    const struct table *t = &tables[TABLE_LATENCY];
    const struct latency_row *row = r->shape[0];
    char num[NUMBER_SIZE];

    text_put(buf, size, row->workload);
    for (int i = 0; i < KEY_COUNT; i++) {
        const char *const name = t->columns[i].name;
        const int choice = chosen_find(name);
        if (choice < 0 || choice == CASE_mem_kind || choice == CASE_kv_heads ||
            (choice >= CASE_BEFORE_MODEL && choice <= SETTINGS_CHOICE) ||
            word_index(name, of_shape) >= 0 || all_agree(all, i))
            continue;
        text_append(buf, size, " %s=%s", name, row_field(t, i, row, num));
    }
}

void contestant_backends(const struct ranking *r, const struct contestant *v, const char *between,
                         char *buf, size_t size)
{
    buf[0] = '\0';
    for (int s = 0; s < r->shapes; s++) {
        bool again = !v->place[s].row;
        for (int k = 0; k < s && !again; k++)
            again =
                v->place[k].row && strcmp(v->place[k].row->backend, v->place[s].row->backend) == 0;
        if (!again)
            text_join(buf, size, between, v->place[s].row->backend);
    }
}

/* ---- the answer --------------------------------------------------------------------------- */

enum { SENTENCE = 1024 };

static bool undecided(const struct change *c)
{
    return isfinite(c->log.mid) && (c->verdict == VERDICT_UNSHOWN || c->verdict == VERDICT_SAME);
}

/* Seconds of timed blocks of the case that was timed longest. */
static double spent_s(const struct ranking *r)
{
    double most = 0;

    for (int i = 0; i < r->n; i++)
        for (int s = 0; s < r->shapes; s++) {
            const struct latency_row *const row = r->v[i].place[s].row;
            if (row && row->samples != I64_EMPTY && row->inner_calls != I64_EMPTY)
                most = fmax(most, (double)row->samples * (double)row->inner_calls * row->median_ns *
                                      1e-9);
        }
    return most;
}

/* The time after which the interval no longer has 1 inside if the ratio stays: its width goes as
 * one over the root of the time. NAN: not known, or longer than anybody waits. */
static double deciding_s(const struct ranking *r, const struct change *c)
{
    enum { LONGEST_S = 600 };
    const struct interval *const x = &c->log;
    const double near = x->mid > 0 ? x->mid - x->low : x->high - x->mid;
    const double s = spent_s(r) * pow(near / x->mid, 2);

    return s > 0 && s <= LONGEST_S ? s : NAN;
}

/* "1.50 to 2.00"; "up to 2.00" from a first number that is 1 to the digits shown */
static void times_text(const struct change *c, char *buf, size_t size)
{
    const struct unit_text low = units_ratio(exp(c->log.low)), high = units_ratio(exp(c->log.high));

    if (strcmp(low.s, high.s) == 0)
        snprintf(buf, size, "%.*s", (int)strcspn(low.s, "x"), low.s);
    else if (strcmp(low.s, units_ratio(1).s) == 0)
        snprintf(buf, size, "up to %.*s", (int)strcspn(high.s, "x"), high.s);
    else
        snprintf(buf, size, "%.*s to %.*s", (int)strcspn(low.s, "x"), low.s,
                 (int)strcspn(high.s, "x"), high.s);
}

/* The fastest, and those that are not shown to differ from it. */
static bool candidate(const struct ranking *r, int i)
{
    return i == 0 || undecided(&r->v[i].change);
}

/* " on avx2" in buf, if all candidates ran on the same backends; else "". */
static void say_shared_backends(const struct ranking *r, char *buf, size_t size)
{
    char first[TEXT_SIZE], other[TEXT_SIZE];

    contestant_backends(r, &r->v[0], " or ", first, sizeof(first));
    snprintf(buf, size, " on %s", first);
    for (int i = 1; i < r->n; i++) {
        contestant_backends(r, &r->v[i], " or ", other, sizeof(other));
        if (candidate(r, i) && strcmp(first, other) != 0)
            *buf = '\0';
    }
}

/* "gqa on avx2", "gqa, window or rope on avx2", "gqa on avx2 or rope on onednn", "gqa on avx2 or one
 * of 7 others" */
static void say_candidates(const struct ranking *r, int ties, enum ranked what, char *buf,
                           size_t size)
{
    enum { NAMED = 3 };
    char shared[TEXT_SIZE + 8] = "", own[TEXT_SIZE];
    int left = ties;

    *buf = '\0';
    if (what == RANKED_VARIANTS && ties <= NAMED)
        say_shared_backends(r, shared, sizeof(shared));
    for (int i = 0; i < r->n && (i == 0 || ties <= NAMED); i++) {
        if (!candidate(r, i))
            continue;
        text_append(buf, size, "%s%s", i == 0 ? "" : left ? ", " : " or ", r->v[i].name);
        if (what == RANKED_VARIANTS && !*shared) {
            contestant_backends(r, &r->v[i], " or ", own, sizeof(own));
            text_append(buf, size, " on %s", own);
        }
        left--;
    }
    if (ties > NAMED)
        text_append(buf, size, " or one of %d others", ties);
    else
        text_append(buf, size, "%s", shared);
}

/* " (context: kv)", " (context: kv or state)": how the candidates hold what came before; "" = none did. */
static void say_contexts(const struct ranking *r, char *buf, size_t size)
{
    bool held[MEM_KIND_COUNT] = {false};

    for (int i = 0; i < r->n; i++)
        for (int s = 0; s < r->shapes && candidate(r, i); s++) {
            const struct latency_row *const row = r->v[i].place[s].row;
            const int kind =
                row && row->mem_tokens != 0 ? word_index(row->mem_kind, mem_kind_name) : 0;
            held[max_int(kind, 0)] = true;
        }
    *buf = '\0';
    for (int k = MEM_NONE + 1; k < MEM_KIND_COUNT; k++)
        if (held[k])
            text_append(buf, size, "%s%s", *buf ? " or " : " (context: ", mem_kind_name[k]);
    if (*buf)
        text_append(buf, size, ")");
}

/* "Use gqa on avx2: 1.5 to 2 times as fast as rope, the next." `next` is the first that is not
 * undecided; r->n if all `ties` are. */
static void say_what_to_use(const struct ranking *r, int ties, int next, enum ranked what,
                            char *buf, size_t size)
{
    char names[SENTENCE / 2], contexts[64], times[64];

    if (next == r->n) {
        snprintf(buf, size, "No %s is shown to be the fastest.",
                 what == RANKED_VARIANTS ? "variant" : "backend");
        return;
    }
    const struct change *const c = &r->v[next].change;
    say_candidates(r, ties, what, names, sizeof(names));
    say_contexts(r, contexts, sizeof(contexts));
    times_text(c, times, sizeof(times));
    snprintf(buf, size, "%s %s%s: %s times as fast as %s%s",
             c->verdict == VERDICT_SLOWER ? "Use" : "Probably use", names, contexts, times,
             r->v[next].name, r->n > 2 ? ", the next" : "");
    if (r->common > 1)
        text_append(buf, size, " (mean of %d %ss)", r->common,
                    what == RANKED_VARIANTS ? "shape" : "case");
    text_append(buf, size, ".");
}

/* "gqa against rope is undecided; --max-time 3 would decide it." */
static void say_undecided(const struct ranking *r, int i, char *buf, size_t size)
{
    const struct change *const c = &r->v[i].change;
    const double s = deciding_s(r, c);

    text_append(buf, size, " %s against %s is undecided", r->v[0].name, r->v[i].name);
    if (c->few)
        text_append(buf, size, ": too few samples.");
    else if (c->doubt > 0)
        text_append(buf, size, " on this busy machine.");
    else if (isfinite(s))
        text_append(buf, size, "; --max-time %.0f would decide it.", ceil(s));
    else if (isfinite(c->log.high))
        text_append(buf, size, ": they differ by less than %s.",
                    units_pct(fmax(0.1, change_pct(fmax(fabs(c->log.low), fabs(c->log.high))))).s);
    else
        text_append(buf, size, ".");
}

/* " Quality: xl 1.073 bits per symbol, shaw 3.998; less is better." Said where the leader in time is
 * not that in quality: who reads one sentence only must not take the fast one for the good one. */
static void say_quality(const struct rankings *all, const struct ranking *r, char *buf, size_t size)
{
    int best = 0;

    for (int i = 1; i < r->n; i++)
        if (r->v[i].bits < r->v[best].bits)
            best = i;
    if (best > 0)
        text_append(buf, size, " Quality: %s %.3f bits per %s, %s %.3f; less is better.",
                    r->v[best].name, r->v[best].bits, all->unit, r->v[0].name, r->v[0].bits);
}

void rankings_answer(FILE *f, const struct rankings *all, enum ranked what, int width)
{
    char text[SENTENCE], setting[256];

    for (int k = 0; k < all->n; k++) {
        const struct ranking *const r = &all->v[k];
        int ties = 0, tie = 0, next = r->n;
        if (r->common == 0)
            continue;
        for (int i = r->n - 1; i > 0; i--)
            if (undecided(&r->v[i].change)) {
                tie = i;
                ties++;
            } else {
                next = i;
            }
        struct flow l = {f, width, 0, 0};
        ranking_setting(all, r, setting, sizeof(setting));
        if (all->n > 1) {
            snprintf(text, sizeof(text), "%s:", setting);
            flow_put(&l, text);
        }
        say_what_to_use(r, ties, next, what, text, sizeof(text));
        if (ties > 0) /* the first of those undecided is the closest question */
            say_undecided(r, tie, text, sizeof(text));
        say_quality(all, r, text, sizeof(text));
        for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
            flow_put(&l, word);
        fputc('\n', f);
    }
}
