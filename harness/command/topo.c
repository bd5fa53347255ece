/* SPDX-License-Identifier: MIT
 *
 * `bench topo`: what of the machine decides where threads go, where they would go, and with
 * --roofline their measured peaks. What else there is hwloc's lstopo draws. As a table for people, or as rows key,value,unit, in which "plan.2" is
 * where two threads go and "peak_flop_per_s_avx2.2" their measured peak. */
#include "commands.h"

#include "harness/figure/figure.h"
#include "harness/machine/env_row.h"
#include "harness/worker/peak_child.h"

/* The facts for one number of threads. */
struct pin_plan {
    int threads;
    int *cpus;
    struct peaks peaks; /* zeros unless --roofline */
};

struct machine {
    const struct options *opt;
    struct topo *topo;
    struct env_facts env;
    struct pin_plan *teams;
    int n_teams;
};

/* ---- gathering ---------------------------------------------------------------------------- */

static enum status plan_team(const struct machine *r, struct pin_plan *m, int threads,
                             struct err *e)
{
    m->threads = threads;
    m->cpus = need_room((size_t)threads, sizeof(*m->cpus));
    return topo_plan(r->topo, r->opt->pin, threads, m->cpus, e);
}

/* The thread counts asked for, else one and one per allowed core. */
static enum status plan_teams(struct machine *r, struct err *e)
{
    const struct ints *const asked = &r->opt->threads;
    const int cores = env_threads(r->topo);
    const int usual[] = {1, cores};
    const int *const counts = asked->n > 0 ? asked->v : usual;
    const int n = asked->n > 0 ? asked->n : 1 + (cores > 1);

    r->teams = need_room((size_t)n, sizeof(*r->teams));
    for (int i = 0; i < n; i++) {
        r->n_teams = i + 1;
        TRY(plan_team(r, &r->teams[i], counts[i], e));
    }
    return OK;
}

static enum status measure_teams(struct machine *r, struct err *e)
{
    const enum isa most = (enum isa)r->opt->max_isa;
    struct child_setup setup;
    enum status st = child_setup_open(&setup, r->opt, e);

    for (int i = 0; i < r->n_teams && st == OK; i++) {
        struct pin_plan *const m = &r->teams[i];
        st = setup.isolate == ISOLATE_NONE
                 ? peak_run_in_process(r->topo, m->threads, m->cpus, PEAK_TIME_S, &m->peaks, e)
                 : peaks_measure(&setup, m->threads, m->cpus, most, PEAK_TIME_S, &m->peaks, e);
    }
    child_setup_close(&setup);
    return st;
}

/* "0,2,4": thread i runs on the i-th; "any" if threads are not pinned. */
static char *cpus_text(const struct pin_plan *m)
{
    struct bytes text;
    FILE *const f = bytes_begin(&text);

    for (int i = 0; i < m->threads && m->cpus[0] >= 0; i++)
        fprintf(f, "%s%d", i ? "," : "", m->cpus[i]);
    if (m->cpus[0] < 0)
        fputs("any", f);
    return bytes_end(f, &text);
}

/* ---- rows --------------------------------------------------------------------------------- */

static const struct text_table_column columns[] = {
    {.name = "key"}, {.name = "value"}, {.name = "unit"}};

static void row(const char *key, const char *unit, const char *value)
{
    const char *const text[] = {key, value, unit};

    text_row_print(stdout, FORMAT_CSV, columns, text, ARRAY_LEN(columns));
}

static void peak_row(const char *what, int threads, const char *unit, double value)
{
    char key[96], text[NUMBER_SIZE];

    snprintf(key, sizeof(key), "%s.%d", what, threads);
    row(key, unit, text_number(text, "%.0f", value > 0 ? value : NAN)); /* else not measured */
}

static void print_team_rows(const struct machine *r, const struct pin_plan *m)
{
    char key[64], *const cpus = cpus_text(m);

    snprintf(key, sizeof(key), "plan.%d", m->threads);
    row(key, "", cpus);
    free(cpus);
    if (!r->opt->roofline)
        return;
    for (enum isa isa = 0; isa < ISA_COUNT; isa++) {
        snprintf(key, sizeof(key), "peak_flop_per_s_%s", isa_name[isa]);
        peak_row(key, m->threads, "flop/s", m->peaks.flops[isa]);
    }
    peak_row("read_byte_per_s_l1", m->threads, "bytes/s", m->peaks.l1);
    peak_row("read_byte_per_s_l2", m->threads, "bytes/s", m->peaks.l2);
    peak_row("read_byte_per_s_l3", m->threads, "bytes/s", m->peaks.l3);
    peak_row("read_byte_per_s_dram", m->threads, "bytes/s", m->peaks.dram);
}

/* Columns of env.csv. */
static void print_rows(const struct machine *r)
{
    static const char *const facts[] = {"host_id",
                                        "cpu_model",
                                        "isa",
                                        "max_isa",
                                        "hypervisor",
                                        "packages",
                                        "numa_nodes",
                                        "cores",
                                        "cpus",
                                        "smt",
                                        "allowed_cores",
                                        "allowed_cpus",
                                        "cpuset",
                                        "core_kinds",
                                        "cpu_quota",
                                        "l1d_bytes",
                                        "l2_bytes",
                                        "l3_bytes",
                                        "l3_count",
                                        "memory_bytes",
                                        "memory_free_bytes",
                                        "huge_pages",
                                        "governor",
                                        "boost",
                                        "hwloc_version",
                                        "env_overrides",
                                        "clock_resolution_ns",
                                        "clock_overhead_ns"};
    const struct table *const t = &tables[TABLE_ENV];
    char text[NUMBER_SIZE];

    text_row_print(stdout, FORMAT_CSV, columns, NULL, ARRAY_LEN(columns));
    for (size_t i = 0; i < ARRAY_LEN(facts); i++) {
        const int at = find_column(t, facts[i]);
        row(facts[i], t->columns[at].unit, row_field(t, at, &r->env.row, text));
    }
    row("pin", "", r->opt->pin);
    for (int i = 0; i < r->n_teams; i++)
        print_team_rows(r, &r->teams[i]);
}

/* ---- table -------------------------------------------------------------------------------- */

static void print_machine(const struct machine *r)
{
    const struct topo_facts *const t = &r->env.topo;
    char line[256];

    env_summary(&r->env, line, sizeof(line));
    text_line(stdout, "%s", line);
    putchar('\n');
    printf("cores       %d, %d allowed\n", t->cores, t->allowed_cores);
    printf("CPUs        %d, %d allowed (cpuset %s)\n", t->cpus, t->allowed_cpus, t->cpuset);
    if (isfinite(r->env.quota.cpus))
        printf("quota       %.3g CPUs\n", r->env.quota.cpus);
    if (t->kinds > 1)
        printf("core kinds  %d: threads go to the %d core%s of the fastest first\n", t->kinds,
               t->fast_cores, plural(t->fast_cores));
    for (int i = 0; t->kinds > 1 && i < t->kinds; i++) {
        char cpus[256];
        topo_kind(r->topo, i, cpus, sizeof(cpus));
        printf("  kind %-5d CPUs %s%s\n", i, cpus,
               i == 0 ? " (--pin p-cores)" : " (--pin e-cores)");
    }
    printf("SMT         %s\n", t->smt ? "yes: threads go to cores first, then to siblings" : "no");
    if (r->env.row.memory_bytes > 0)
        printf("memory      %s, %s free\n", units_bytes((double)r->env.row.memory_bytes).s,
               units_bytes((double)r->env.row.memory_free_bytes).s);
    else
        puts("memory      not known: /proc is empty");
    printf("huge pages  %s\n",
           r->env.row.huge_pages[0] ? r->env.row.huge_pages : "not in this kernel");
    printf("governor    %s\n", r->env.row.governor);
    if (r->env.row.env_overrides[0])
        printf("overrides   %s\n", r->env.row.env_overrides);
}

static const char *giga(double x, char buf[32])
{
    if (x > 0)
        snprintf(buf, 32, "%.1f", x * 1e-9);
    else
        snprintf(buf, 32, "-");
    return buf;
}

static int peak_width(enum isa isa) { return max_int(8, (int)strlen(isa_name[isa])); }

/* Two lines: what the columns are of, and the names of the levels. */
static void print_peaks_head(void)
{
    int f32 = -1;

    for (enum isa isa = 0; isa < ISA_COUNT; isa++)
        f32 += peak_of_bf16(isa) ? 0 : 1 + peak_width(isa);
    printf("\n%7s  %*s", "", f32, "GFLOP/s of f32");
    for (enum isa isa = 0; isa < ISA_COUNT; isa++)
        if (peak_of_bf16(isa))
            printf(" %*s", peak_width(isa), "of bf16");
    printf("  %27s\n%7s ", "GB/s read", "threads");
    for (enum isa isa = 0; isa < ISA_COUNT; isa++)
        printf(" %*s", peak_width(isa), isa_name[isa]);
    printf("  %6s %6s %6s %6s\n", "L1", "L2", "L3", "DRAM");
}

static void print_table(const struct machine *r)
{
    char b[4][32];

    print_machine(r);
    printf("\n%7s  CPUs (--pin %s)\n", "threads", r->opt->pin);
    for (int i = 0; i < r->n_teams; i++) {
        char *const cpus = cpus_text(&r->teams[i]);
        printf("%7d  %s\n", r->teams[i].threads, cpus);
        free(cpus);
    }
    if (!r->opt->roofline)
        return;
    print_peaks_head();
    for (int i = 0; i < r->n_teams; i++) {
        const struct peaks *const p = &r->teams[i].peaks;
        printf("%7d ", p->threads);
        for (enum isa isa = 0; isa < ISA_COUNT; isa++)
            printf(" %*s", peak_width(isa), giga(p->flops[isa], b[0]));
        printf("  %6s %6s %6s %6s\n", giga(p->l1, b[0]), giga(p->l2, b[1]), giga(p->l3, b[2]),
               giga(p->dram, b[3]));
    }
}

/* The largest team's peaks as a figure; if there is none, a line says why: the table has them all.
 */
static enum status draw_roofline(const struct machine *r, struct err *e)
{
    enum { NARROWEST = 40, WIDEST = 120 };
    struct env_row *const row = need_room(1, sizeof(*row));
    struct plot_data d = {0};
    struct bytes drawn = {0};
    struct plot p;
    const int threads = r->teams[r->n_teams - 1].threads;

    row_clear(row, tables[TABLE_ENV].columns, (size_t)tables[TABLE_ENV].n);
    env_row_peaks(row, &r->teams[r->n_teams - 1].peaks);
    d.table[TABLE_ENV] = (struct rows){.row = row, .n = 1};
    enum status st = plot_make(&p, plot_figure("roofline"), &d, e);
    if (st != OK) {
        free(row);
        return st;
    }
    st = plot_draw(&drawn, &p, PLOT_TERMINAL,
                   clamp_int(terminal_width(STDOUT_FILENO), NARROWEST, WIDEST), e);
    if (st == OK)
        printf("\n%d thread%s\n%s", threads, threads == 1 ? "" : "s",
               drawn.data + strspn(drawn.data, "\f"));
    else if (st == E_UNSUPPORTED || st == E_CHILD)
        text_line(stderr, "note: no drawing: %s", e->msg);
    free(drawn.data);
    plot_free(&p);
    free(row);
    return st == E_UNSUPPORTED || st == E_CHILD ? OK : st;
}

/* ---- command ------------------------------------------------------------------------------ */

static enum status run(struct machine *r, struct err *e)
{
    int format = r->opt->format;

    TRY(topo_open(&r->topo, NULL, e));
    if (format == FORMAT_AUTO)
        format = isatty(STDOUT_FILENO) ? FORMAT_TABLE : FORMAT_CSV;
    if (format != FORMAT_TABLE && format != FORMAT_CSV)
        return fail(e, E_USAGE, "bench topo has no --format %s  -> use table or csv",
                    format_name[format]);
    env_gather(r->topo, &r->env);
    TRY(plan_teams(r, e));
    if (r->opt->roofline)
        TRY(measure_teams(r, e));
    if (format == FORMAT_CSV)
        print_rows(r);
    else
        print_table(r);
    return format == FORMAT_TABLE && r->opt->roofline ? draw_roofline(r, e) : OK;
}

enum status cmd_topo(struct options *opt, int *code, struct err *e)
{
    struct machine *const r = need_room(1, sizeof(*r));

    r->opt = opt;
    cpu_limit((enum isa)opt->max_isa);
    const enum status st = run(r, e);
    for (int i = 0; i < r->n_teams; i++)
        free(r->teams[i].cpus);
    free(r->teams);
    topo_close(r->topo);
    free(r);
    return st;
}
