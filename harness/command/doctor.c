/* SPDX-License-Identifier: MIT
 *
 * bench doctor: is this machine fit to measure on? Each finding has a severity, a reason and the
 * command that repairs it. Settings are only read, never changed. The last finding is measured: the
 * same case against itself, interleaved, which is the smallest difference a sweep can show here. */
#include "commands.h"
#include "harness/measure/session.h"

enum severity { FINE, NOTE, WARN, BAD };
static const char *const severity_name[] = {"ok", "note", "warning", "bad"};

struct doctor {
    struct session s;
    struct text_table text_table;
    int worst; /* enum severity */
};

/* One line of the report; `repair` may be "". */
static void say(struct doctor *d, enum severity severity, const char *what, const char *repair,
                const char *fmt, ...) __attribute__((format(printf, 5, 6)));

static void say(struct doctor *d, enum severity severity, const char *what, const char *repair,
                const char *fmt, ...)
{
    char reason[512];

    VPRINT(reason, sizeof(reason), fmt);
    const char *const row[] = {severity_name[severity], what, reason, repair};
    text_table_add(&d->text_table, row);
    d->worst = max_int(d->worst, severity);
}

/* ---- the machine -------------------------------------------------------------------------- */

static void look_at_cpu(struct doctor *d)
{
    const struct env_facts *f = &d->s.facts;
    const struct topo_facts *t = &f->topo;

    say(d, strcmp(f->row.isa, isa_name[ISA_BASE]) == 0 ? WARN : FINE, "instructions",
        strcmp(f->row.isa, isa_name[ISA_BASE]) == 0 ? "only ref and openblas run here" : "",
        "%s: %s", f->row.cpu_model, f->row.isa);
    say(d, t->smt ? NOTE : FINE, "hardware threads", "",
        t->smt ? "%d cores with several threads each; pinning uses one per core"
               : "%d cores, one thread each",
        t->cores);
    if (t->allowed_cpus < t->cpus)
        say(d, NOTE, "cpuset", "", "%d of %d CPUs allowed (%s)", t->allowed_cpus, t->cpus,
            t->cpuset);
    if (t->kinds > 1)
        say(d, NOTE, "core kinds", "--threads within the fastest",
            "%d kinds of cores; pinning takes the %d of the fastest first", t->kinds,
            t->fast_cores);
    if (isfinite(f->quota.cpus))
        say(d, WARN, "CPU quota", "raise the quota of the control group",
            "%.3g CPUs: more threads are stopped again and again (%lld periods so far)",
            f->quota.cpus, (long long)quota_throttled(&f->quota));
    if (f->row.hypervisor[0])
        say(d, NOTE, "virtual machine", "",
            "%s: neighbours share the machine; trust ratios of one run", f->row.hypervisor);
    if (strcmp(f->row.governor, "none") == 0)
        say(d, f->row.hypervisor[0] ? FINE : NOTE, "frequency governor", "",
            "the kernel shows none: the clock rate cannot be fixed");
    else
        say(d, strcmp(f->row.governor, "performance") == 0 ? FINE : WARN, "frequency governor",
            strcmp(f->row.governor, "performance") == 0 ? ""
                                                        : "cpupower frequency-set -g performance",
            "%s", f->row.governor);
    if (strcmp(f->row.boost, "on") == 0)
        say(d, NOTE, "turbo", "echo 0 > /sys/devices/system/cpu/cpufreq/boost",
            "on: the clock depends on the neighbours' load");
}

static void look_at_load(struct doctor *d)
{
    const struct env_facts *f = &d->s.facts;
    const struct env_ticks before = env_ticks();

    clock_sleep_ms(500);
    const struct env_ticks after = env_ticks();
    const double steal = env_steal_pct(&before, &after);
    const bool busy = f->row.load_1min > 0.3 * f->topo.allowed_cpus;
    say(d, busy ? WARN : FINE, "load", busy ? "stop other jobs (top)" : "",
        "%.2f on %d CPUs over the last minute", f->row.load_1min, f->topo.allowed_cpus);
    say(d, steal > 1 ? WARN : FINE, "stolen time",
        steal > 1 ? "measure at another time, or on another host" : "",
        "%s of the CPU went to other virtual machines in half a second",
        units_pct(isnan(steal) ? 0 : steal).s);
    switch (lock_machine()) {
    case LOCK_OURS:
        say(d, FINE, "other benches", "", "no other bench is measuring");
        break;
    case LOCK_ANOTHERS:
        say(d, WARN, "other benches", "wait until it has ended", "another bench is measuring");
        break;
    case LOCK_NO_FILE:
        say(d, NOTE, "other benches", "set TMPDIR to a folder that can be written",
            "unknown: no lock file can be made in /tmp");
        break;
    }
}

static void look_at_memory(struct doctor *d)
{
    const struct env_facts *f = &d->s.facts;
    const bool never = strcmp(f->row.huge_pages, "never") == 0;

    say(d, FINE, "memory", "", "%s free of %s", units_bytes((double)f->row.memory_free_bytes).s,
        units_bytes((double)f->row.memory_bytes).s);
    say(d, never ? WARN : FINE, "huge pages",
        never ? "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled" : "", "%s",
        f->row.huge_pages[0] ? f->row.huge_pages : "not in this kernel");
}

static void look_at_clock(struct doctor *d)
{
    const struct env_row *const r = &d->s.facts.row;
    const bool slow = r->clock_overhead_ns > 200;

    say(d, slow ? WARN : FINE, "clock", slow ? "choose tsc or kvm-clock as clocksource" : "",
        "%s: %.0f ns a reading, steps of %.0f ns",
        r->clock_source[0] ? r->clock_source : "unknown source", r->clock_overhead_ns,
        r->clock_resolution_ns);
}

/* ---- libraries ---------------------------------------------------------------------------- */

static void look_at_backends(struct doctor *d)
{
    struct err e;

    if (!CPU_MEASURED)
        say(d, NOTE, "kernels",
            "send its developers what this prints: bench doctor; bench check; bench --quick",
            "right under emulation; never measured on such a machine");
    for (int i = 0; backends[i]; i++) {
        struct engine g;
        const enum status st = engine_open(&g, backends[i]->name, 1, NULL, &e);
        char name[64];
        snprintf(name, sizeof(name), "backend %s", backends[i]->name);
        if (st != OK)
            say(d, NOTE, name, "", "%s", e.msg);
        else
            say(d, FINE, name, "", "%s%s%s", backends[i]->core ? backends[i]->core() : "ready",
                backends[i]->config ? ": " : "", backends[i]->config ? backends[i]->config() : "");
    }
    if (d->s.facts.row.env_overrides[0])
        say(d, NOTE, "environment", "unset them, or use --openblas-core",
            "measuring children run without %s", d->s.facts.row.env_overrides);
}

static void look_at_pinning(struct doctor *d)
{
    const int n = d->s.opt->threads.n > 0 ? d->s.opt->threads.v[0] : d->s.opt->default_threads;
    struct team team;
    struct err e;
    const enum status st = pin_team(&team, d->s.topo, d->s.opt->pin, n, &e);

    if (st == OK)
        say(d, FINE, "pinning", "", "%d threads run on CPUs %s, as planned", n, team.cpus);
    else
        say(d, BAD, "pinning", "--pin none", "%s", e.msg);
}

/* ---- the same against itself -------------------------------------------------------------- */

static enum status nothing(void *arg, const struct result *r, const struct sample *s, struct err *e)
{
    return OK;
}

static void no_warning(void *arg, const char *text) { (void)arg, (void)text; }

/* Log ratios of the two cases' blocks, paired by round. */
static struct interval paired(const struct result *a, const struct result *b, int *pairs)
{
    const int n = min_int(a->n, b->n);
    double *room = need_room((size_t)max_int(1, n) * 4, sizeof(*room));
    double *x = room, *y = room + n, *work = room + 2 * (ptrdiff_t)n;

    for (int i = 0; i < n; i++) {
        x[i] = a->samples[i].wall_ns / a->samples[i].calls;
        y[i] = b->samples[i].wall_ns / b->samples[i].calls;
    }
    const struct interval r = stats_log_ratio(x, y, n, work);
    *pairs = n;
    free(room);
    return r;
}

static enum status run_twins(struct doctor *d, struct result twins[2], struct err *e)
{
    const struct group_hooks hooks = {.sample = nothing, .warn = no_warning, .arg = d};
    struct options o = {0};
    struct plan plan = {0};
    char line[256];

    snprintf(line, sizeof(line),
             "--variant %s --backend %s --workload attn --seq 128 --mem 0 --threads 1 "
             "--max-time 2 --min-samples 60 --target-ci 0",
             variants[0]->name, lookup_fastest(backends, ELEM_F32)->name);
    enum status st = options_parse_line(&o, line, e);
    if (st == OK)
        st = plan_make(&plan, &o, e);
    if (st == OK) {
        const struct bench_case *const cases[] = {&plan.cases[0], &plan.cases[0]};
        d->s.setup.memory_bytes = (double)d->s.facts.row.memory_free_bytes;
        st = group_measure(cases, 2, &d->s.setup, &hooks, twins, e);
    }
    if (st == OK && twins[0].status != ROW_OK)
        st = fail(e, E_CHILD, "%s", twins[0].detail);
    plan_free(&plan);
    options_free(&o);
    return st;
}

static void look_at_noise(struct doctor *d)
{
    enum { ENOUGH = 10 };
    struct result twins[2] = {{0}, {0}};
    struct err e;
    int pairs = 0;
    const enum status st = run_twins(d, twins, &e);

    if (st != OK) {
        say(d, BAD, "A/A test", "", "%s", e.msg);
    } else {
        const struct interval r = paired(&twins[0], &twins[1], &pairs);
        const double noise = 100 * (r.high - r.low) / 2;
        const double disturbed = 100.0 * twins[0].sum.disturbed / max_int(1, twins[0].n);
        say(d, pairs < ENOUGH || noise > 3 ? WARN : FINE, "A/A test",
            noise > 3 ? "stop other jobs, or raise --max-time" : "",
            "the same case twice, %d pairs: %+.2f %% [%+.2f %+.2f]; differences under %.1f %% are "
            "noise here; %.0f %% of blocks were interrupted",
            pairs, 100 * r.mid, 100 * r.low, 100 * r.high, fmax(3 * noise, 0.1), disturbed);
    }
    result_free(&twins[0]);
    result_free(&twins[1]);
}

/* ---- the command -------------------------------------------------------------------------- */

enum status cmd_doctor(struct options *opt, int *code, struct err *e)
{
    static const struct text_table_column columns[] = {
        {.name = "severity"},
        {.name = "what", .least = 12},
        {.name = "finding", .least = 20},
        {.name = "fix", .least = 12},
    };
    struct doctor *const d = need_room(1, sizeof(*d));

    d->text_table = (struct text_table){.column = columns, .columns = ARRAY_LEN(columns)};
    enum status st = session_open(&d->s, opt, e);

    if (st == OK) {
        look_at_noise(d); /* first: the parent has no threads yet */
        look_at_cpu(d);
        look_at_load(d);
        look_at_memory(d);
        look_at_clock(d);
        look_at_backends(d);
        look_at_pinning(d);
        st = text_table_select(&d->text_table, &opt->columns, e);
    }
    if (st == OK)
        text_table_print(stdout, &d->text_table, (enum format)opt->format);
    text_table_free(&d->text_table);
    session_close(&d->s);
    if (st == OK && (d->worst >= BAD || (opt->strict && d->worst >= WARN)))
        *code = EXIT_NOT_TRUSTWORTHY;
    free(d);
    return st;
}
