/* SPDX-License-Identifier: MIT
 *
 * Cases with a backward pass, from options to rows: which there are, their names and rows, and that
 * rerun and --resume support them. */
#include "tests/support/command_line.h"
#include "tests/support/program.h"
#include "tests/support/tmp_folder.h"

TestSuite(phase, .timeout = 120);

#define EACH "-V base -b ref --seq 8 --mem 0,4 "

static int count(const char *line)
{
    struct plan p = planned("%s", line);
    const int n = p.n;
    return n;
}

Test(phase, is_an_axis_of_attn_and_layer)
{
    const int attn = count(EACH "-w attn"), both = count(EACH "-w attn,layer");

    cr_expect_eq(count(EACH "-w attn --phase fwd_bwd"), attn);
    cr_expect_eq(count(EACH "-w attn,layer --phase fwd,fwd_bwd"), 2 * both);
    cr_expect_eq(count(EACH "-w train"), both - attn, "once, whatever the phase");
    cr_expect_eq(count(EACH "-w train --phase fwd,fwd_bwd"), both - attn);
}

Test(phase, train_keeps_hidden_states)
{
    struct plan p = planned(EACH "-w train,layer --phase fwd_bwd");
    for (int i = 0; i < p.n; i++) {
        const struct bench_case *c = &p.cases[i];
        NUMBERS({c->phase, PHASE_FWD_BWD},
                {c->mem_kind, variant_mem(c->variant)->recurrent ? MEM_HIDDEN : MEM_RECOMPUTE},
                {c->layers, c->workload == WORK_TRAIN ? DEFAULT_LAYERS : 1});
    }
}

/* Phases do not share a group, and a case's line makes that case and no other. */
Test(phase, repro_lines_make_their_cases)
{
    struct plan p = planned(EACH "-w attn,layer,train --phase fwd,fwd_bwd");
    for (int i = 0; i < p.n; i++) {
        struct plan one = planned("%s", p.cases[i].repro);
        cr_assert_eq(one.n, 1, "%s", p.cases[i].repro);
        cr_expect_str_eq(one.cases[0].case_id, p.cases[i].case_id);
        cr_expect(one.cases[0].phase == p.cases[i].phase &&
                  one.cases[0].workload == p.cases[i].workload);
        for (int k = 0; k < i; k++) {
            cr_expect(strcmp(p.cases[k].case_id, p.cases[i].case_id) != 0);
            cr_expect(p.cases[k].group != p.cases[i].group || p.cases[k].phase == p.cases[i].phase);
        }
    }
}

Test(phase, refusals_say_what_to_do)
{
    static const struct {
        const char *line, *text;
    } cases[] = {
        {"-w segment --phase fwd_bwd",
         "--phase fwd_bwd does not apply to --workload segment, "
         "which is forward only  -> use attn, layer, cross or encdec, "},
        {"-w layer,decode --phase fwd,fwd_bwd",
         "--phase fwd_bwd does not apply to --workload decode"},
        {"-V xl -w train --mem-kind kv", "--mem-kind kv has no backward pass: its weights change "
                                         " -> use hidden or auto"},
        {"-V xl -w layer --phase fwd_bwd --mem-kind kv", "--mem-kind kv has no backward pass"},
        {"-V xl -w layer --phase fwd,fwd_bwd --mem-kind kv", "--mem-kind kv has no backward pass"},
        {"-V xl -w train --mem-kind hidden,kv", "--mem-kind kv has no backward pass"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct options o;
        struct plan p;
        struct err e = {""};
        cr_assert_eq(parse_words(&o, cases[i].line, &e), OK, "%s", e.msg);
        cr_expect_eq(plan_make(&p, &o, &e), E_USAGE, "%s", cases[i].line);
        cr_expect(strncmp(e.msg, cases[i].text, strlen(cases[i].text)) == 0, "%s gives: %s",
                  cases[i].line, e.msg);
    }
}

/* ---- runs --------------------------------------------------------------------------------- */

static void expect_row(const struct latency_row *r, const struct memory_row *m)
{
    const bool train = strcmp(r->workload, "train") == 0, both = strcmp(r->phase, "fwd") != 0;

    cr_expect_str_eq(r->status, "ok", "%s: %s", r->repro, r->status_detail);
    cr_expect_str_eq(m->case_id, r->case_id);
    cr_expect(!train || both);
    cr_expect(r->max_rel_err <= r->err_limit && r->err_limit > 0 && r->flop_count > 0, "%s",
              r->repro);
    cr_expect_eq(m->gradients_bytes > 0, both, "%s", r->repro);
    cr_expect_eq(m->optimizer_bytes, train ? 2 * m->weights_bytes : 0, "%s", r->repro);
    if (train)
        cr_expect_eq(m->gradients_bytes, m->weights_bytes, "%s", r->repro);
}

Test(phase, rows_rerun_and_resume, .init = folder_make, .fini = folder_remove)
{
#define AXES "-V base -b auto -w attn,layer,train --phase fwd,fwd_bwd --seq 8 --mem 12 --layers 2 "
    struct ran r = must_bench("-q " AXES TINY);
    char trained[TEXT_SIZE] = "";

    struct rows latency = must_read("r/latest", TABLE_LATENCY);
    struct rows memory = must_read("r/latest", TABLE_MEMORY);
    const struct latency_row *row = latency.row;
    cr_assert(latency.n > 0 && memory.n == latency.n);
    for (size_t i = 0; i < latency.n; i++) {
        expect_row(&row[i], (const struct memory_row *)memory.row + i);
        if (strcmp(row[i].workload, "train") == 0)
            text_put(trained, sizeof(trained), row[i].case_id);
    }
    must_bench("--resume=r/latest " AXES TINY);
    struct rows after = must_read("r/latest", TABLE_LATENCY);
    cr_expect_eq(after.n, latency.n, "cases that are there were measured again");
    r = must_bench("rerun %s -q --format csv --max-time 0.003 --min-samples 3 --warmup-ms 0 "
                   "--block-ms 0.5 --out r",
                   trained);
    cr_expect(*trained && strstr(r.out.data, trained), "%s", r.out.data);
}
