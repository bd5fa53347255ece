/* SPDX-License-Identifier: MIT
 *
 * Both sides of the requests "peaks" and "rates": the parent asks a child for the peaks of the
 * machine, or how fast the reference runs here, and reads its numbers; the child measures. */
#include "peak_child.h"

/* X(name, member) of struct peaks. */
#define PEAK_OF(ID, name, flags) X(#name, flops[ISA_##ID])
#define FIELDS(X)                                                                                  \
    X("ref", flops[ISA_BASE])                                                                      \
    ISA_LIST(PEAK_OF)                                                                              \
    X("l1", l1)                                                                                    \
    X("l2", l2)                                                                                    \
    X("l3", l3)                                                                                    \
    X("dram", dram)

/* ---- the child ----------------------------------------------------------------------------- */

static enum status measure(const struct options *opt, struct peaks *out, struct err *e)
{
    const int threads = opt->threads.n > 0 ? opt->threads.v[0] : 1;
    int *const cpus = need_room((size_t)threads, sizeof(*cpus));
    struct topo *topo = NULL;
    enum status st = topo_open(&topo, NULL, e);

    if (st == OK)
        st = topo_plan(topo, opt->pin, threads, cpus, e);
    if (st == OK)
        st = peak_run_in_process(topo, threads, cpus, opt->max_time_s, out, e);
    topo_close(topo);
    free(cpus);
    return st;
}

static enum status obey(struct server *s, const char *words, struct err *e)
{
    struct options opt = {0};
    struct peaks p = {0};
    enum status st = options_parse_line(&opt, words, e);

    if (st == OK) {
        cpu_limit((enum isa)opt.max_isa);
        st = measure(&opt, &p, e);
    }
    options_free(&opt);
    TRY(st);
    TRY(protocol_write(&s->protocol, e, "threads %d", p.threads));
    TRY(protocol_write(&s->protocol, e, "busy %d", p.busy));
#define X(name, member) TRY(protocol_write(&s->protocol, e, name " %.0f", p.member));
    FIELDS(X)
#undef X
    return protocol_write(&s->protocol, e, "end");
}

const struct request request_peaks = {"peaks", obey};

/* ---- the parent ---------------------------------------------------------------------------- */

static void field(void *arg, const char *name, const char *value)
{
    struct peaks *const p = arg;

    if (strcmp(name, "threads") == 0)
        p->threads = atoi(value);
    if (strcmp(name, "busy") == 0)
        p->busy = atoi(value);
#define X(its_name, member)                                                                        \
    if (strcmp(name, its_name) == 0)                                                               \
        p->member = strtod(value, NULL);
    FIELDS(X)
#undef X
}

/* Every number arrived and is plausible. */
static bool complete(const struct peaks *p, int threads)
{
    bool good = p->threads == threads;

#define X(name, member) good = good && p->member >= 0 && p->member < 1e18; /* false for NaN */
    FIELDS(X)
#undef X
    return good;
}

enum status peaks_measure(const struct child_setup *setup, int threads, const int *cpus,
                          enum isa most, double seconds, struct peaks *out, struct err *e)
{
    char list[4096] = "none", words[sizeof(list) + 64];
    struct err why;

    *out = (struct peaks){0};
#define X(name, member) out->member = NAN;
    FIELDS(X)
#undef X
    if (cpus[0] >= 0)
        topo_format_cpus(cpus, threads, list, sizeof(list));
    snprintf(words, sizeof(words), "--threads %d --pin %s --max-isa %s --max-time %g", threads,
             list, isa_name[most], seconds);
    enum status st = child_ask(setup, &request_peaks, words, field, out, &why);
    if (st == OK && !complete(out, threads))
        st = fail(&why, E_CHILD, "is incomplete");
    if (st == E_INTERRUPTED)
        return fail(e, st, "interrupted");
    return st == OK ? OK
                    : fail(e, st,
                           "the peak measurement: %.500s  -> repeat it with bench topo --roofline",
                           why.msg);
}

/* ---- rates of the reference ------------------------------------------------------------------ */

/* X(member) of struct reference_rates. */
#define RATES(X)                                                                                   \
    X(products)                                                                                    \
    X(attention)                                                                                   \
    X(backward)                                                                                    \
    X(spent_s)

static enum status obey_rates(struct server *s, const char *words, struct err *e)
{
    struct reference_rates r;
    const int threads = atoi(words);

    if (threads < 1)
        return fail(e, E_CHILD, "unexpected request: rates %.40s", words);
    TRY(reference_rates_measure(&r, threads, e));
#define X(member) TRY(protocol_write(&s->protocol, e, #member " %.17g", r.member));
    RATES(X)
#undef X
    return protocol_write(&s->protocol, e, "end");
}

const struct request request_rates = {"rates", obey_rates};

static void rates_field(void *arg, const char *name, const char *value)
{
    struct reference_rates *const r = arg;

#define X(member)                                                                                  \
    if (strcmp(name, #member) == 0)                                                                \
        r->member = strtod(value, NULL);
    RATES(X)
#undef X
}

enum status reference_rates_in_child(const struct child_setup *setup, struct reference_rates *out,
                                     struct err *e)
{
    char words[16];
    bool good = true;

    *out = (struct reference_rates){0};
    snprintf(words, sizeof(words), "%d", max_int(1, setup->reference_threads));
    const enum status st = child_ask(setup, &request_rates, words, rates_field, out, e);
#define X(member) good = good && out->member > 0 && out->member < 1e18; /* false for NaN */
    RATES(X)
#undef X
    return st == OK && !good ? fail(e, E_CHILD, "a child sent no rates of the reference") : st;
}
