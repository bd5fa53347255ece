/* SPDX-License-Identifier: MIT
 *
 * bench list cells. */
#include "list_cases.h"
#include "commands.h"
#include "harness/machine/topo.h"
#include "harness/plan/plan.h"
#include "harness/util/text_table.h"

enum column {
    INDEX,
    GROUP,
    CASE_ID,
    VARIANT,
    BACKEND,
    WORKLOAD,
    PHASE,
    MEM_KIND,
    SEQ,
    MEM,
    BATCH,
    LAYERS,
    D_MODEL,
    HEADS,
    KV_HEADS,
    D_HEAD,
    D_INNER,
    GATE,
    NORM,
    CLIP,
    CLAMP_LEN,
    SAME_LENGTH,
    FFN,
    NORM_KIND,
    MASK,
    MASK_OF_HEADS,
    RNN_CELL,
    HALT,
    SETTINGS,
    THREADS,
    REPRO,
    COLUMN_COUNT
};

/* Named as in the tables; an empty field does not apply to the cell. */
static const struct text_table_column columns[COLUMN_COUNT] = {
    [INDEX] = {"index", true, false},
    [GROUP] = {"group", true, false},
    [CASE_ID] = {"case_id", false, false},
    [VARIANT] = {"variant", false, false},
    [BACKEND] = {"backend", false, false},
    [WORKLOAD] = {"workload", false, false},
    [PHASE] = {"phase", false, true},
    [MEM_KIND] = {"mem_kind", false, false},
    [SEQ] = {"seq_tokens", true, false},
    [MEM] = {"mem_tokens", true, false},
    [BATCH] = {"batch_size", true, false},
    [LAYERS] = {"layers", true, false},
    [D_MODEL] = {"d_model", true, true},
    [HEADS] = {"heads", true, true},
    [KV_HEADS] = {"kv_heads", true, true},
    [D_HEAD] = {"d_head", true, true},
    [D_INNER] = {"d_inner", true, true},
    [GATE] = {"gate", false, false},
    [NORM] = {"norm", false, true},
    [CLIP] = {"clip", true, false},
    [CLAMP_LEN] = {"clamp_len", true, true},
    [SAME_LENGTH] = {"same_length", true, true},
    [FFN] = {"ffn", false, true},
    [NORM_KIND] = {"norm_kind", false, true},
    [MASK] = {"mask", false, true},
    [MASK_OF_HEADS] = {"mask_heads", false, true},
    [RNN_CELL] = {"rnn_cell", false, true},
    [HALT] = {"halt", false, true},
    [SETTINGS] = {"settings", false, true},
    [THREADS] = {"threads", true, false},
    [REPRO] = {"repro", false, true},
};

static enum status add_cell(struct text_table *s, const struct bench_case *c, struct err *e)
{
    const struct {
        enum column column;
        int n;
    } numbers[] = {
        {INDEX, c->index},
        {GROUP, c->group},
        {SEQ, c->seq},
        {MEM, c->mem},
        {BATCH, c->batch},
        {LAYERS, c->layers},
        {D_MODEL, c->d_model},
        {HEADS, c->heads},
        {KV_HEADS, c->kv_heads},
        {D_HEAD, c->d_head},
        {D_INNER, c->d_inner},
        {CLIP, c->clip},
        {CLAMP_LEN, c->clamp_len},
        {SAME_LENGTH, c->same_length},
        {THREADS, c->threads},
    };
    char digits[ARRAY_LEN(numbers)][16];
    struct case_words words;
    case_describe(&words, c);
    const char *text[COLUMN_COUNT] = {
        [CASE_ID] = c->case_id,
        [VARIANT] = c->variant->name,
        [BACKEND] = c->backend->name,
        [WORKLOAD] = workload_name[c->workload],
        [PHASE] = phase_name[c->phase],
        [MEM_KIND] = mem_kind_name[c->mem_kind],
        [GATE] = c->gate ? c->gate->name : "",
        [NORM] = wiring_name[c->wiring],
        [FFN] = words.ffn,
        [NORM_KIND] = words.norm_kind,
        [MASK] = words.mask,
        [MASK_OF_HEADS] = words.mask_heads,
        [RNN_CELL] = words.rnn_cell,
        [HALT] = words.halt,
        [SETTINGS] = words.settings,
        [REPRO] = c->repro,
    };

    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        snprintf(digits[i], sizeof(digits[i]), "%d", numbers[i].n);
        text[numbers[i].column] = numbers[i].n >= 0 ? digits[i] : "";
    }
    return text_table_add(s, text, e);
}

static enum status physical_cores(int *n, struct err *e)
{
    struct topo *t;
    struct topo_facts facts;
    const enum status st = topo_open(&t, NULL, e);

    if (st != OK)
        return st;
    topo_facts(t, &facts);
    *n = max_int(1, facts.allowed_cores);
    topo_close(t);
    return OK;
}

int list_cases(struct options *opt)
{
    struct text_table s = {.column = columns, .columns = COLUMN_COUNT};
    struct plan p = {0};
    struct err e;
    enum status st = physical_cores(&opt->default_threads, &e);

    if (st == OK)
        st = text_table_select(&s, &opt->columns, &e);
    if (st == OK)
        st = plan_make(&p, opt, &e);
    for (int i = 0; i < p.n && st == OK; i++)
        st = add_cell(&s, &p.cases[i], &e);
    if (st == OK) {
        text_table_print(stdout, &s, (enum format)opt->format);
        if (!opt->quiet)
            fprintf(stderr, "%d cells in %d groups\n", p.n, p.groups);
    }
    const int code = st != OK ? report_error(st, &e) : p.n ? EXIT_FINE : EXIT_NOTHING_TO_DO;
    plan_free(&p);
    text_table_free(&s);
    return code;
}
