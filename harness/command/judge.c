/* SPDX-License-Identifier: MIT
 *
 * bench judge FILE: four answers about a kernel from a file, by what a child that loads it finds. */
#include "harness/check/judge.h"
#include "child_requests.h"
#include "commands.h"
#include "harness/worker/peak_child.h"
#include "variants/backends/outside.h"

#include <unistd.h>

/* ---- the child ------------------------------------------------------------------------------ */

static void tell(void *arg, const char *what, const char *text)
{
    protocol_write(arg, &(struct err){""}, "%s %s", what, text);
}

/* "judge LINE": what judge() says. */
static enum status obey_judge(struct server *s, const char *words, struct err *e)
{
    struct options o = {0};
    struct topo *topo = NULL;
    struct team team;
    enum status st = options_parse_again(&o, words, e);
    const int threads = o.threads.n > 0 ? o.threads.v[0] : 1;

    if (st == OK)
        st = topo_open(&topo, NULL, e);
    if (st == OK) {
        cpu_limit((enum isa)o.max_isa);
        st = pin_team(&team, topo, "compact", threads, e);
    }
    dup2(STDERR_FILENO, STDOUT_FILENO); /* what the kernel prints is no result */
    if (st == OK)
        st = judge(o.words.v[0], threads, o.seed, tell, &s->protocol, e);
    topo_close(topo);
    options_free(&o);
    return st == OK ? protocol_write(&s->protocol, e, "end") : st;
}

const struct request request_judge = {"judge", obey_judge};

/* ---- the parent ----------------------------------------------------------------------------- */

enum answer { RIGHT, COMPLETE, HONEST, FAST, ANSWERS };
static const char *const answer_name[ANSWERS] = {"right", "complete", "honest", "fast"};
static const struct {
    const char *name;
    enum answer answer;
} traps[] = {{"wrong", RIGHT},     {"stale", RIGHT},         {"crashed", RIGHT},
             {"timed_out", RIGHT}, {"incomplete", COMPLETE}, {"writes_outside", COMPLETE},
             {"defers", HONEST},   {"threads", HONEST},      {"state", HONEST},
             {"too_fast", FAST}};

struct verdict {
    const struct options *o;
    struct text_table table;
    bool bad[ANSWERS], ended;
    char kernel[192], now[256], ran[512], varies[256];
    char **rate; /* see rate_of */
    int rates;
    struct peaks peaks; /* 0 = not known */
    struct topo_facts facts;
};

static void add(struct verdict *v, enum answer a, const char *is, const char *trap,
                const char *evidence)
{
    char name[32];

    snprintf(name, sizeof(name), "%s", trap);
    for (char *c = name; *c; c++)
        *c = *c == '_' ? ' ' : *c;
    text_table_add(&v->table, (const char *const[]){answer_name[a], is, name, evidence});
}

static void fall(struct verdict *v, const char *trap, const char *evidence)
{
    for (size_t i = 0; i < ARRAY_LEN(traps); i++)
        if (strcmp(trap, traps[i].name) == 0) {
            v->bad[traps[i].answer] = true;
            add(v, traps[i].answer, "no", trap, evidence);
        }
}

/* "FLOP BYTES SECONDS FUNCTION" as a share of what the machine can. */
static double rate_of(const struct verdict *v, const char *text, char evidence[256])
{
    char *at;
    const double flop = strtod(text, &at), bytes = strtod(at, &at), s = strtod(at, &at);
    const char *level;
    const double read = peaks_read_s(&v->peaks, &v->facts, bytes, &level) / s;
    double peak = 0;

    for (enum isa isa = 0; isa < ISA_COUNT; isa++)
        if (strstr(at, "bf16") || !peak_of_bf16(isa))
            peak = fmax(peak, v->peaks.flops[isa]);
    snprintf(evidence, 256, "%s: %.3g GFLOP/s", at + 1, flop / s * 1e-9);
    if (peak > 0)
        text_append(evidence, 256, ", %.2g %% of the measured peak", 100 * flop / s / peak);
    if (read > 0)
        text_append(evidence, 256, "; reads %s, %.2g %% of the bandwidth of %s",
                    units_bytes(bytes).s, 100 * read, level);
    return fmax(read, peak > 0 ? flop / s / peak : 0);
}

static void hear(void *arg, const char *name, const char *value)
{
    struct verdict *const v = arg;

    if (strcmp(name, "kernel") == 0)
        snprintf(v->kernel, sizeof(v->kernel), "%s", value);
    else if (strcmp(name, "now") == 0)
        snprintf(v->now, sizeof(v->now), "%s", value);
    else if (strcmp(name, "ran") == 0)
        text_append(v->ran, sizeof(v->ran), "%s%s", v->ran[0] ? "; " : "", value);
    else if (strcmp(name, "varies") == 0)
        text_append(v->varies, sizeof(v->varies), "%s%s", v->varies[0] ? ", " : "", value);
    else if (strcmp(name, "rate") == 0) {
        v->rate = realloc(v->rate, sizeof(*v->rate) * (size_t)(v->rates + 1));
        NEED(v->rate);
        v->rate[v->rates++] = need_text("%s", value);
    } else
        fall(v, name, value);
}

/* A kernel that ended the child, by where it was. */
static void take_end(struct verdict *v, enum status st, const struct err *e)
{
    const bool edge = strncmp(v->now, "edge ", 5) == 0;
    char text[512];

    snprintf(text, sizeof(text), "%.240s: %.200s%s", v->now + (edge ? 5 : 0), e->msg,
             edge ? ", where arrays end at a page that cannot be touched" : "");
    fall(v, st == E_TIMEOUT ? "timed_out" : edge ? "writes_outside" : "crashed", text);
    v->ended = true;
}

/* The larger of these and of those before, which may be of a slower moment. */
static void measure_peaks(struct verdict *v, const struct child_setup *setup, int threads)
{
    const double seconds = 0.05; /* of multiply-adds alone */
    int *const cpus = need_room((size_t)threads, sizeof(*cpus));
    struct peaks now = {0}, *const p = &v->peaks;
    struct topo *topo = NULL;

    if (topo_open(&topo, NULL, NULL) == OK) {
        topo_facts(topo, &v->facts);
        if (topo_plan(topo, "compact", threads, cpus, NULL) != OK ||
            peaks_measure(setup, threads, cpus, cpu_isa(), seconds, &now, NULL) != OK)
            now = (struct peaks){0};
    }
    p->threads = threads;
    for (enum isa isa = 0; isa < ISA_COUNT; isa++)
        p->flops[isa] = fmax(p->flops[isa], now.flops[isa]);
    if (now.busy == 0) { /* else what was read is too little */
        p->l1 = fmax(p->l1, now.l1);
        p->l2 = fmax(p->l2, now.l2);
        p->l3 = fmax(p->l3, now.l3);
        p->dram = fmax(p->dram, now.dram);
    }
    topo_close(topo);
    free(cpus);
}

/* What is faster than the machine is held to peaks that are measured again, a few times. */
static void take_rates(struct verdict *v, const struct child_setup *setup, int threads)
{
    enum { MOST_TIMES = 5 };
    const double most = 1.05;
    char evidence[256];
    int times = 0;

    for (int i = 0; i < v->rates; i++) {
        while (rate_of(v, v->rate[i], evidence) > most && times++ < MOST_TIMES)
            measure_peaks(v, setup, threads);
        if (rate_of(v, v->rate[i], evidence) > most)
            fall(v, "too_fast", evidence);
        else
            add(v, FAST, "yes", "", evidence);
        free(v->rate[i]);
    }
    free(v->rate);
}

/* In the order of the answers. */
static void print(struct verdict *v)
{
    struct text_table sorted = v->table;

    sorted.text = NULL;
    sorted.rows = 0;
    for (int a = 0; a < ANSWERS; a++)
        for (int r = 0; r < v->table.rows; r++) {
            char **const cells = v->table.text + (size_t)r * (size_t)v->table.columns;
            if (strcmp(cells[0], answer_name[a]) == 0)
                text_table_add(&sorted, (const char *const *)cells);
        }
    text_table_print(stdout, &sorted, (enum format)v->o->format);
    text_table_free(&sorted);
}

static int conclude(struct verdict *v)
{
    char all[1024];

    snprintf(all, sizeof(all), "%s: %s; seed %llu", v->kernel, v->ran[0] ? v->ran : "nothing ran",
             (unsigned long long)v->o->seed);
    for (int a = RIGHT; a < FAST && !v->ended; a++)
        if (!v->bad[a])
            add(v, (enum answer)a, "yes", "", a == RIGHT ? all : "");
    if (v->varies[0])
        add(v, RIGHT, "remark", "varies", v->varies);
    return v->bad[RIGHT] || v->bad[COMPLETE] ? EXIT_WRONG_NUMBERS
           : v->bad[HONEST] || v->bad[FAST]  ? EXIT_REGRESSION
                                             : EXIT_FINE;
}

static enum status judge_in_child(struct verdict *v, const struct options *o, struct err *e)
{
    const int threads = o->threads.n > 0 ? o->threads.v[0] : 1;
    char *const line = options_command_line(o);
    struct child_setup setup = {0};
    struct child child = {.protocol.fd = -1};
    enum status st = child_setup_open(&setup, o, e);

    setup.patience_s = outside_patience_s(o->words.v[0]);
    if (st == OK) {
        measure_peaks(v, &setup, threads);
        st = child_begin(&child, &setup, &request_judge, line, e);
    }
    if (st == OK) {
        st = child_answer(&child, hear, v, e);
        child.failed = true; /* a kernel may not end by itself */
        if (st == E_CHILD || st == E_TIMEOUT) {
            take_end(v, st, e);
            st = OK;
        }
    }
    take_rates(v, &setup, threads);
    child_close(&child);
    child_setup_close(&setup);
    free(line);
    return st;
}

enum status cmd_judge(struct options *o, int *code, struct err *e)
{
    static const struct text_table_column columns[] = {
        {.name = "answer"}, {.name = "is"}, {.name = "row"}, {.name = "evidence"}};
    struct verdict v = {.o = o, .table = {.column = columns, .columns = ARRAY_LEN(columns)}};

    if (o->words.n == 0 || !backend_is_outside(o->words.v[0]))
        return fail(
            e, E_USAGE,
            "bench judge takes a kernel by its path, with a /, or exec:COMMAND  -> ./mine.so");
    TRY(outside_usable(o->words.v[0], o, e));
    TRY(text_table_select(&v.table, &o->columns, e));
    const enum status st = judge_in_child(&v, o, e);
    if (st == OK) {
        *code = conclude(&v);
        print(&v);
    }
    text_table_free(&v.table);
    return st;
}
