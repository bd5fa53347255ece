/* SPDX-License-Identifier: MIT
 *
 * The matrix: what is multiplied, in which order, what filters leave, and error texts. */
#include "tests/support/command_line.h"
#include "tests/support/failure.h"
#include "tests/support/kernel/simd.h"
#include "variants/model/config/control.h"

/* The number of cases of a line that can run. */
static int count(const char *line)
{
    struct plan p = planned("%s", line);
    plan_drop_unsupported(&p);
    const int n = p.n;
    return n;
}

/* In f32. */
static int usable_backends(void)
{
    int n = 0;

    for (int i = 0; backends[i]; i++)
        n += backends[i]->adds == ELEM_F32 && backend_usable(backends[i], NULL) == OK;
    return n;
}

/* ---- what is multiplied --------------------------------------------------------------------- */

Test(plan, presets_are_base_variants_and_usable_backends)
{
    struct options o;
    struct plan p;

    must_plan(&p, &o, "");
    const int fast = max_int(1, usable_backends() - 1); /* without ref, if there is another */
    NUMBERS({p.groups, 4 * 2}, {p.n, p.groups * BASE_VARIANTS * fast});
    for (int i = 0; i < p.n; i++) {
        const struct bench_case *const c = &p.cases[i];
        cr_expect(c->index == i && c->opt == &o && c->threads == 3 && c->layers == 1);
        cr_expect(c->batch == 1 && c->config.D == 512 && c->config.H == 8 && c->config.dh == 64);
        cr_expect(c->config.F == 2048 && c->workload == WORK_LAYER && c->phase == PHASE_FWD);
        cr_expect_eq(c->mem_kind, MEM_KV);
    }
}

Test(plan, axes_that_do_not_apply_do_not_multiply)
{
    const char *const one = "-b ref --seq 8 --mem 4 ";
    static const struct {
        const char *line;
        int n;
    } cases[] = {
        {"-V xl,shaw --clip 4,8,16", 4},
        {"-V shaw --clip 4,8,16", 3},
        {"-V shaw,gtrxl --gate gru,input", 3},
        {"-V gtrxl --gate gru,input", 2},
        {"-V gtrxl --gate gru,input --workload attn,layer", 3},
        {"-V vanilla,shaw,xl --clip 4,8 --clamp-len 3 --same-length", 4},
        {"-V shaw,rpr,shaw", 1},
        {"-V xl -b ref,ref", 1},
        {"-V all,xl", 0}, /* as many as there are */
        {"-V base", BASE_VARIANTS},
        {"-V xl,base", BASE_VARIANTS},
        {"-V all --clip 5 --clamp-len 7 --same-length --mask window=4", 0}, /* no error */
        {"-V span,xl --clamp-len 7,8", 3},
        {"-V funnel -w segment --clamp-len 7,8", 2},
        {"-V xl --norm pre,post --norm-kind layer,rms --clamp-len 0,5", 8},
        {"-V rezero,xl --norm-kind layer,rms", 3},
        {"-V xl --workload attn,layer --layers 2,3", 2},
        {"-V xl --workload segment --layers 2,3", 2},
        {"-V xl --workload decode --seq 16,32", 1},
        {"-V xl --workload decode,layer --seq 16,32", 4}, /* 8, 16 and 32 for the layer */
        {"-V xl --threads 1,2 --batch 1..4", 6},
        {"-V xl --mem-kind auto,hidden,kv,recompute", 2},
        {"-V vanilla --mem-kind auto,hidden,kv,recompute", 2},
        {"-V vanilla,xl --mem-kind kv", 2},
        {"-V tupe,xl --mem-kind kv", 1},
        {"-V vanilla,xl --mem-kind recompute", 1},
        {"-V xl --workload attn --mem-kind auto,hidden,kv", 1},
        {"-V xl --workload attn --mem-kind recompute", 1},
        {"-V xl,bert,alibi --direction causal,both --mem 0", 6}, /* 0 and 4 rows */
        {"-V xl --direction causal,both --mem 0,4", 3},          /* no past that sees ahead */
        {"-V vanilla,bert,xl --workload cross --mem 0,4 --mem-kind hidden,kv", 4},
        {"-V vanilla,bert,xl --workload request --mem 0,4 --seq 2,3", 6}, /* 2, 3 and 8 */
        {"-V vanilla,bert,xl,gla --workload encdec --mem 0,4", 2},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *const line = kept_text("%s%s", one, cases[i].line);
        int n = cases[i].n;
        for (int v = 0; cases[i].n == 0 && variants[v]; v++)
            n += !variants[v]->bidirectional /* those have no past of 4 rows */ &&
                 !variants[v]->whole && /* those no layer alone */
                 !control_acts_between_layers(variants[v]);
        cr_expect_eq(count(line), n, "%s makes %d", line, count(line));
    }
}

/* Every variant is in one family, and --variant, --filter and studies take the same word for it. */
Test(plan, families)
{
    int all = 0;

    for (enum family f = 0; f < FAMILY_COUNT; f++) {
        int n = 0;
        for (int v = 0; variants[v]; v++)
            n += variant_family(v) == f;
        cr_expect_gt(n, 0, "no variant is in %s", family_name[f]);
        all += n;
        const char *const line =
            kept_text("-b ref -w layer --seq 8 --mem 0 -V family:%s", family_name[f]);
        struct plan p = planned("%s", line);
        for (int i = 0; i < p.n; i++) {
            int v = 0;
            while (variants[v] != p.cases[i].variant)
                v++;
            cr_expect_eq(variant_family(v), f, "%s is not in %s", variants[v]->name,
                         family_name[f]);
        }
        cr_expect_geq(p.n, n, "%s", line);
    }
    cr_expect(!variants[all], "each variant counts once");
}

Test(plan, what_sees_ahead_has_no_past_and_no_next_token)
{
    static const struct {
        const char *line;
        enum status st;
    } cases[] = {
        {"-V bert --workload decode", E_UNSUPPORTED},
        {"-V bert --mem 4", E_UNSUPPORTED},
        {"-V xl --direction both --mem 512", E_UNSUPPORTED},
        {"-V xl --workload segment,train --direction both --mem 0", E_UNSUPPORTED},
        {"-V alibi --direction both --mem 0", E_USAGE}, /* no distances of the future */
        {"-V bert --direction causal --mem 0", E_USAGE},
        {"-V xl --workload cross --mem 4", E_UNSUPPORTED}, /* positions in its scores */
        {"-V vanilla --workload cross --mem 0", E_UNSUPPORTED},
        {"-V vanilla --workload cross --mem 4 --direction both", E_UNSUPPORTED},
        {"-V vanilla --workload cross --mem 4 --layer-windows 3", E_UNSUPPORTED},
        {"-V vanilla --workload encdec --mem 0", E_UNSUPPORTED},
        {"-V alibi --workload encdec --mem 4", E_UNSUPPORTED}, /* no distances of the future */
        {"-V bert --workload encdec --mem 4", E_UNSUPPORTED},
        {"-V vanilla --workload encdec --mem 4", OK},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct plan p;
        cr_expect_eq(try_plan(&p, cases[i].line, &failure), cases[i].st, "%s: %s", cases[i].line,
                     failure.msg);
    }
}

static void expect_chosen(const struct bench_case *c, const char *name, const char *want)
{
    char text[CHOICE_TEXT];

    case_print(text, chosen_find(name), c);
    cr_expect_str_eq(text, want, "%s of %s", name, c->repro);
}

Test(plan, corners)
{
    struct plan p =
        planned("-b ref -V vanilla,gtrxl,shaw -w attn,layer,segment,decode --seq 8 --mem 0,4");
    cr_expect_eq(p.n, 4 * 3 * 2);
    for (int i = 0; i < p.n; i++) {
        const struct bench_case *const c = &p.cases[i];
        const bool recurrent = variant_mem(c->variant)->recurrent;
        const bool decode = c->workload == WORK_DECODE, attn = c->workload == WORK_ATTN;
        NUMBERS({c->seq, decode ? 1 : 8},
                {c->layers, decode || c->workload == WORK_SEGMENT ? DEFAULT_LAYERS : 1},
                {c->mem_kind, attn ? MEM_NONE : MEM_KV});
        expect_chosen(c, "gate", !attn && c->variant->gate ? c->variant->gate->name : "");
        expect_chosen(c, "clip", c->variant->pos->clips ? "16" : "");
        expect_chosen(c, "clamp-len", c->variant->pos->clamps ? "0" : "");
        expect_chosen(c, "same-length", recurrent ? "0" : "");
        expect_chosen(c, "norm_place", attn ? "" : wiring_name[c->variant->wiring]);
    }
}

/* ---- order ---------------------------------------------------------------------------------- */

static int place_of(const struct variant *v)
{
    int i = 0;

    while (variants[i] != v)
        i++;
    return i;
}

Test(plan, groups_are_shapes)
{
    struct plan p =
        planned("-w attn,decode,layer,segment --layers 2,3 --seq 8,16 --mem 0,4 --batch 1,2 "
                "--threads 1,2 --gate gru,input --clip 2,4 --mem-kind hidden,kv,auto");
    for (int i = 1; i < p.n; i++) {
        const struct bench_case *const a = &p.cases[i - 1], *const b = &p.cases[i];
        cr_expect(b->group == a->group || b->group == a->group + 1);
        cr_expect_eq(b->group == a->group, same_shape(a, b), "cases %d and %d", i - 1, i);
        if (b->group != a->group)
            continue;
        cr_expect_leq(place_of(a->variant), place_of(b->variant));
        const bool alike = a->variant == b->variant && a->config.gate == b->config.gate;
        if (alike)
            cr_expect_leq(a->config.clip, b->config.clip);
        if (alike && a->config.clip == b->config.clip)
            cr_expect_leq(a->mem_kind, b->mem_kind);
    }
    cr_expect_eq(p.cases[p.n - 1].group, p.groups - 1);
    /* A shape never comes back later. */
    for (int i = 0; i < p.n; i++)
        for (int k = i + 1; k < p.n; k++)
            cr_assert(p.cases[i].group == p.cases[k].group ||
                      !same_shape(&p.cases[i], &p.cases[k]));
}

/* ---- filters -------------------------------------------------------------------------------- */

Test(plan, filters)
{
    const char *const base = "-V vanilla,shaw,gtrxl -b ref -w attn,layer --seq 51,512 --mem 0,4 ";
    static const struct {
        const char *line;
        int n; /* of 24 */
    } cases[] = {
        {"--filter variant:shaw", 8},
        {"--filter !variant:shaw", 16},
        {"--filter variant=shaw", 8},
        {"--filter variant:rpr", 8},              /* an alias */
        {"--filter variant:family:positions", 8}, /* shaw */
        {"--filter !variant:family:full", 16},
        {"--filter seq:51", 12},
        {"--filter seq=51", 12},
        {"--filter seq<512", 12},
        {"--filter seq<=512", 24},
        {"--filter seq_tokens>51", 12},
        {"--filter seq>=51", 24},
        {"--filter !seq>51", 12},
        {"--filter seq:51 --filter mem:4", 6},
        {"--filter workload:attn --filter !variant:vanilla", 8},
        {"--filter clip:16", 8},
        {"--filter clip<99", 8}, /* variants without --clip match nothing */
        {"--filter gate:gru", 4},
        {"--filter mem-kind:kv", 12},
        {"--filter threads:3", 24},
        {"--filter d_model<=512 --filter backend:ref", 24},
    };

    cr_assert_eq(count(base), 24);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *const line = kept_text("%s%s", base, cases[i].line);
        cr_expect_eq(count(line), cases[i].n, "%s leaves %d", cases[i].line, count(line));
    }
}

/* A value that no registry knows would match nothing. */
Test(plan, filters_with_unknown_values)
{
    EACH_TEXT (line, "--filter variant:sha", "--filter !backend:avx3", "--filter workload:lyer",
               "--filter gate=gur") {
        struct options o;
        struct plan p;
        MUST(parse_words(&o, line, &failure));
        cr_expect_eq(plan_make(&p, &o, &failure), E_USAGE, "%s", line);
        HAS(failure.msg, "unknown ", "  -> ");
    }
}

/* What a variant cannot run is in the plan, with the reason; alone it is an error. */
Test(plan, unsupported_cases_say_why)
{
    static const char *const lines[] = {"-V linear,xl --workload attn", "-V tupe,xl --mem-kind kv",
                                        "-V xl,vanilla --mem-kind recompute",
                                        "-V linear,xl --mem-kind hidden"};
    static const char *const first[] = {"linear", "tupe", "xl", "linear"};
    static const enum mem_kind kind[] = {MEM_NONE, MEM_KV, MEM_RECOMPUTE, MEM_HIDDEN};

    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        const char *const line = kept_text("-b ref --seq 8 --mem 4 %s", lines[i]);
        struct plan p = planned("%s", line);
        cr_assert_eq(p.n, 2, "%s", line);
        cr_expect_str_eq(p.cases[0].variant->name, first[i]);
        cr_expect_not_null(p.cases[0].unsupported, "%s", line);
        cr_expect_eq(p.cases[0].mem_kind, kind[i], "%s", line);
        cr_expect_null(p.cases[1].unsupported);
        cr_expect_str_neq(p.cases[0].case_id, p.cases[1].case_id);
        cr_expect_eq(plan_drop_unsupported(&p), 1);
        cr_expect_eq(p.n, 1);
    }
}

/* All of the past is a state: a case of its own where there is one. */
Test(plan, all_of_the_past)
{
    char text[MEM_TEXT];

    struct plan p = planned("-V vanilla,linear,retnet -w segment -b ref --seq 8 --mem 4,all");
    cr_assert_eq(p.n, 6);
    for (int i = 0; i < 3; i++) {
        const struct bench_case *const some = &p.cases[i], *const all = &p.cases[3 + i];
        cr_expect(some->mem == 4 && all->mem == MEM_ALL && !some->unsupported);
        cr_expect_eq(all->unsupported == NULL, i > 0, "%s", all->variant->name);
        cr_expect(i == 0 || all->mem_kind == MEM_STATE);
        cr_expect_str_neq(some->case_id, all->case_id);
        HAS(all->repro, "--mem all ");
        mem_text(text, all->mem);
        cr_expect_str_eq(text, "all");
    }
    p = planned("-V linear -w train -b ref --seq 8 --mem 4,all");
    cr_expect(p.n == 2 && p.cases[0].mem_kind == MEM_RECOMPUTE && p.cases[1].mem_kind == MEM_STATE);
    p = planned("-V linear -w decode -b ref --mem 4,all --filter mem:all");
    cr_expect(p.n == 1 && p.cases[0].mem == MEM_ALL);
    p = planned("-V linear -w decode -b ref --mem 4,all --filter mem<=4");
    cr_expect(p.n == 1 && p.cases[0].mem == 4);
    p = planned("-V linear,xl -w attn,layer -b ref --seq 8 --mem all");
    cr_expect_eq(plan_drop_unsupported(&p), 3);
}

Test(plan, filtered_groups_are_numbered_without_holes)
{
    struct plan p = planned("-V xl -b ref --seq 8,16,32 --mem 0 --filter !seq:16");
    cr_assert(p.n == 2 && p.groups == 2);
    cr_expect(p.cases[0].group == 0 && p.cases[1].group == 1 && p.cases[1].index == 1);
}

/* ---- errors --------------------------------------------------------------------------------- */

Test(plan, errors_say_what_to_do)
{
    static const struct {
        const char *line;
        enum status st;
        const char *text;
    } cases[] = {
        {"--variant xll", E_USAGE,
         "unknown variant \"xll\"  -> did you mean xl?  (see: bench list variants"},
        {"--variant xll", E_USAGE, "unknown variant \"xll\"  -> did you mean xl?  (see: bench"},
        {"--variant family:spars", E_USAGE, "unknown family \"spars\"  -> did you mean sparse?"},
        {"--filter variant:family:spars", E_USAGE,
         "unknown family \"spars\"  -> did you mean sparse?"},
        {"--variant zzzzzzz", E_USAGE,
         "unknown variant \"zzzzzzz\"  -> use one of vanilla, shaw, "},
        {"--backend openbals", E_USAGE, "unknown backend \"openbals\"  -> did you mean openblas?"},
        {"--backend onednn", E_UNSUPPORTED, "backend onednn was not built in  -> "},
        {"--filter seq", E_USAGE, "--filter \"seq\": no comparison  -> write key:value"},
        {"--filter sqe<=3", E_USAGE, "unknown filter key \"sqe\"  -> did you mean seq?"},
        {"--filter seq<=", E_USAGE, "--filter \"seq<=\": no value"},
        {"--filter seq<=x", E_USAGE, "--filter \"x\": not a whole number"},
        {"--filter variant<3", E_USAGE, "--filter \"variant<3\": variant is a word"},
        {"-V tupe --mem-kind kv", E_USAGE,
         "--mem-kind kv does not apply to tupe in --workload layer: "},
        {"-V vanilla --mem-kind hidden", E_USAGE,
         "--mem-kind hidden does not apply to vanilla in --workload layer: "},
        {"-V xl -w request --mem 0", E_USAGE,
         "--mem 0 does not apply to xl in --workload request: "},
        {"-V gla -w request --mem all", E_USAGE,
         "--mem all does not apply to gla in --workload request: "},
        {"-V gla -w encdec --mem 4", E_UNSUPPORTED,
         "--workload encdec: gla: an encoder sees its text in both directions"},
        {"-V xl -w attn,layer --vocab 9", E_USAGE,
         "--vocab 9 does not apply: no whole model runs  -> leave it out"},
        {"-V vanilla --mem all", E_USAGE, "--mem all does not apply to vanilla"},
        {"-V linear --mem all -w attn", E_USAGE, "--mem all does not apply to linear"},
        {"-V linear --mem all --mem-kind recompute", E_USAGE, "--mem all does not apply to linear"},
        {"-V vanilla -w segment --pos none", E_USAGE, "--pos none does not apply to vanilla"},
        {"-V xl --mem-kind recompute", E_USAGE, "--mem-kind recompute does not apply to xl"},
        {"-V vanilla,rope --gate gru", E_USAGE, "--gate gru does not apply to vanilla"},
        {"-V rope --workload attn --ffn gelu", E_USAGE, "--ffn gelu does not apply to rope"},
        {"-V gla --kv-heads 2", E_USAGE, "--kv-heads 2 does not apply to gla"},
        {"-V gtrxl --norm post", E_USAGE, "gtrxl: norm post with a gate"},
        {"-V vanilla --d-model 511 --heads 7", E_USAGE, "vanilla: --d-model 511 is odd"},
        {"-V vanilla,shaw,xl,gtrxl --backend ref --seq 1..4096+1 --mem 0..4095+1", E_USAGE,
         "about 6.7e+07 layer cases, more than"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct plan p;
        struct err e = {""};
        if (strstr(cases[i].line, "openbals") && !backend_find("openblas"))
            continue; /* a library that was not built in is no suggestion */
        if (strstr(cases[i].line, "onednn") && backend_find("onednn"))
            continue;
        cr_expect_eq(try_plan(&p, cases[i].line, &e), cases[i].st, "%s", cases[i].line);
        cr_expect(strncmp(e.msg, cases[i].text, strlen(cases[i].text)) == 0, "%s gives: %s",
                  cases[i].line, e.msg);
        cr_expect(p.n == 0 && !p.cases);
    }
}

/* ... unless they stand in a file, which is for the variants that have them: --clip here. */
/* What sees a whole text has neither a past nor a next token: one line that says what it runs. */
Test(plan, bidirectional_variants_refuse_what_has_a_past)
{
    static const char *const lines[] = {"-w segment --mem 0", "-w decode --mem 0",
                                        "-w train --mem 0", "-w layer --mem 8", "-w cross --mem 0"};
    int having = 0;

    for (int v = 0; variants[v]; v++)
        for (size_t i = 0; i < ARRAY_LEN(lines) && variants[v]->bidirectional; i++) {
            struct options o;
            struct plan p = {0};
            struct err e = {""};
            const char *const line =
                kept_text("-b ref --seq 8 -V %s %s", variants[v]->name, lines[i]);
            cr_assert_eq(parse_words(&o, line, &e), OK, "%s: %s", line, e.msg);
            cr_expect_eq(plan_make(&p, &o, &e), E_UNSUPPORTED, "%s: %s", line, e.msg);
            cr_expect(strstr(e.msg, "  -> ") && !strchr(e.msg, '\n'), "%s: %s", line, e.msg);
            /* attention alone only where there is some */
            cr_expect(!variants[v]->mixer || !strstr(e.msg, "attn"), "%s: %s", line, e.msg);
            plan_free(&p);
            having++;
        }
    cr_expect_gt(having, 0);
}

Test(plan, files_of_options_are_for_many_variants)
{
    struct plan p = planned("@harness/sweeps/headline.args --variant xl -b ref");
    cr_expect_eq(p.n, 6);
}

Test(plan, a_named_backend_must_be_usable)
{
    for (int i = 0; backends[i]; i++) {
        struct plan p;
        struct err e, why;
        const enum status usable = backend_usable(backends[i], &why);
        const char *const line = kept_text("-V xl --backend %s", backends[i]->name);
        cr_expect_eq(try_plan(&p, line, &e), usable, "%s", line);
        if (usable != OK)
            cr_expect_str_eq(e.msg, why.msg);
    }
}

/* ---- the model of a case --------------------------------------------------------------------- */

Test(plan, config_of_a_case)
{
    struct plan p =
        planned("-V vanilla,shaw,xl,gtrxl -b ref -w segment --seq 8 --mem 24 --layers 3 "
                "--d-model 64 --heads 4 --d-head 10 --clip 5 --clamp-len 7 --same-length "
                "--gate input");
    cr_assert_eq(p.n, 4);
    for (int i = 0; i < p.n; i++) {
        const struct config c = p.cases[i].config;
        const bool recurrent = variant_mem(c.variant)->recurrent;
        cr_expect(c.D == 64 && c.H == 4 && c.dh == 10 && c.F == 256 && c.N == 3 && c.V == 256);
        cr_expect(c.mem_len == 24 && c.max_seq == (recurrent ? 8 : 32));
        NUMBERS({c.window, recurrent ? 24 : 0}, {c.same_length, recurrent},
                {c.clamp_len, c.pos->clamps ? 7 : 0});
        if (c.pos->clips)
            cr_expect(c.clip == 5 && c.rel_rows == 6);
        cr_expect_eq(c.gate, c.variant->gate ? gate_find("input") : NULL);
    }

    p = planned("-V xl -b ref -w layer,request --seq 8 --mem 5 --vocab 99");
    cr_assert_eq(p.n, 2);
    cr_expect(p.cases[0].config.V == 0 && !strstr(p.cases[0].repro, "--vocab"));
    cr_expect(p.cases[1].config.V == 99 && strstr(p.cases[1].repro, " --vocab 99 "));
    cr_expect_eq(p.cases[1].config.mem_len, 12); /* the last new token is not read */

    p = planned("-V xl -b ref -w layer --seq 8 --mem 0 --same-length --norm pre");
    cr_assert_eq(p.n, 1);
    const struct config c = p.cases[0].config;
    cr_expect(c.window == 0 && c.same_length && c.V == 0 && c.N == 1 && c.wiring == WIRING_PRE);
}

/* The reference is chosen only if it is alone; a list's order does not matter to a SIMD level. */
Test(plan, the_fastest_of_a_list)
{
    const struct backend *const alone[] = {&backend_ref, NULL};
    const struct backend *const simd = backend_find(SIMD);
    const struct backend *const two[] = {&backend_ref, simd, NULL};
    const struct backend *const turned[] = {simd, &backend_ref, NULL};
    const bool usable = backend_usable(simd, NULL) == OK;
    const struct backend *const of_all = lookup_fastest(backends, ELEM_F32);

    cr_expect_eq(lookup_fastest(alone, ELEM_F32), &backend_ref);
    cr_expect_eq(lookup_fastest(two, ELEM_F32), usable ? simd : &backend_ref);
    if (usable) /* the first one that can be chosen */
        cr_expect_eq(lookup_fastest(turned, ELEM_F32), simd);
    cr_expect(backend_usable(of_all, NULL) == OK);
    for (int i = 0; backends[i]; i++)
        cr_expect(of_all->needs >= backends[i]->needs || backends[i]->adds != ELEM_F32 ||
                  backend_usable(backends[i], NULL) != OK);
    const struct backend *adds = NULL; /* the last one that adds a type is chosen for that type */
    for (int i = 0; backends[i]; i++)
        if (backends[i]->adds != ELEM_F32 && backend_usable(backends[i], NULL) == OK)
            adds = backends[i];
    if (adds)
        cr_expect_eq(lookup_fastest(backends, adds->adds), adds);
}

/* Unless they are named, backends that add a type run cases of that type alone. */
Test(plan, a_backend_that_adds_a_type)
{
    const struct backend *b = NULL;
    int more = 0; /* usable ones */
    for (int i = 0; backends[i]; i++)
        if (backends[i]->adds != ELEM_F32) {
            b = backends[i];
            more += backend_usable(b, NULL) == OK;
        }
    if (!b)
        cr_skip_test("no backend of this architecture adds a type");

    cr_expect_eq(backend_acting(b, ELEM_BF16), b);
    cr_expect_eq(backend_acting(b, ELEM_Q8), backend_find(b->inherits));
    cr_expect_eq(backend_acting(backend_find(SIMD), ELEM_F32), backend_find(SIMD));
    struct plan p = planned("-V rope -b auto -w layer --seq 8 --mem 0 --dtype f32,bf16,q8");
    cr_expect_eq(p.n, 3 * usable_backends() + more);
    for (int i = 0; i < p.n; i++)
        cr_expect(p.cases[i].backend->adds == ELEM_F32 || p.cases[i].config.dtype == ELEM_BF16);
    if (backend_usable(b, NULL) != OK)
        return;

    p = planned("-V rope -w layer --seq 8 --mem 0 --dtype f32,bf16,q8 -b %s", b->name);
    cr_expect_eq(p.n, 3);
}
