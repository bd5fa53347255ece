/* SPDX-License-Identifier: MIT
 *
 * The choices of a model beside its variant, and what the tables record of them: axes of words, and
 * columns that name the model. */
#include "harness/table/case_row.h"
#include "tests/support/command_line.h"
#include "tests/support/sanitized.h"
#include "tests/support/tmp_folder.h"
#include "tests/table/must_rows.h"
#include "variants/model/lm/lm.h"

TestSuite(choices, .timeout = 120);

/* A model of the variant with a past of 64 rows. */
static struct config model_of(const struct variant *v)
{
    struct config c = config_default(v, 24, 2, 12, 48, 2, 16);

    c.mem_len = 64;
    config_numbers_reset(&c);
    return c;
}

/* ---- cases ---------------------------------------------------------------------------------- */

#define CHOSEN                                                                                     \
    "--rnn-cell rnn,lstm --halt none,t2t --set rnn_window=3,rnn_carry=0,experts=2,moe_k=2,"        \
    "features=5,cmem=7,c_ratio=2,persistent=9,span_max=17 --kv-heads 2 "
#define NO_PAST "-b ref -w layer --seq 8 --mem 0 --d-model 32 --heads 4 "
#define SMALL "-b ref --seq 8 --mem 12 --d-model 32 --heads 4 --layers 4 "

/* Does a layer of the case's model have tensors of such a name? */
static bool has_tensor(const struct bench_case *c, const char *part)
{
    struct config config = c->config;
    struct lm lm;
    bool found = false;

    config.V = 8;
    cr_assert_eq(lm_init(&lm, &config, &failure), OK, "%s: %s", c->repro, failure.msg);
    for (int i = 0; i < lm.params.n; i++)
        found = found || strstr(lm.params.v[i].name, part);
    lm_free(&lm);
    return found;
}

/* Does the case have a value of that choice? */
static bool says(const struct bench_case *c, const char *name)
{
    char text[CHOICE_TEXT];

    case_print(text, chosen_find(name), c);
    return *text != '\0';
}

/* A repro line makes the same model again; choices that do not apply are not in it. */
Test(choices, cases_say_what_applies_and_their_line_makes_them_again)
{
    struct plan p = planned("-V all -w attn,layer,segment " SMALL CHOSEN);
    plan_drop_unsupported(&p);
    for (int i = 0; i < p.n; i++) {
        const struct bench_case *const c = &p.cases[i];
        struct plan one = planned("%s", c->repro);
        cr_assert_eq(one.n, 1, "%s", c->repro);
        cr_expect_str_eq(one.cases[0].case_id, c->case_id);
        for (int k = 0; k < CHOICE_COLUMNS; k++) {
            char own[CHOICE_TEXT], back[CHOICE_TEXT];
            case_print(own, k, c);
            case_print(back, k, &one.cases[0]);
            cr_expect_str_eq(back, own, "%s of %s", chosen_at(k).name, c->repro);
        }
        const bool attn = c->workload == WORK_ATTN;
        cr_expect_eq(says(c, "rnn_cell"), !attn && c->variant->rnn_layers > 0);
        cr_expect_eq(says(c, "halt"), c->workload == WORK_SEGMENT && c->variant->loops);
        cr_expect_eq(says(c, "mask"), c->variant->mask != NULL);
        cr_expect_eq(says(c, "ffn"), !attn && has_tensor(c, ".ff"), "%s", c->repro);
        const bool norms = has_tensor(c, ".ln") || c->config.norm_kind == NORM_ADA;
        cr_expect_eq(says(c, "norm"), !attn && norms, "%s", c->repro);
    }
}

Test(choices, axes_of_words_multiply_where_they_apply)
{
    static const struct {
        const char *line;
        int n;
    } cases[] = {
        {"-V rtransformer -w layer --rnn-cell rnn,gru,lstm", 3},
        {"-V rtransformer,universal -w segment --rnn-cell rnn,lstm --halt none,graves,t2t", 5},
        {"-V rtransformer -w attn,layer --rnn-cell rnn,lstm", 3},
        {"-V universal -w layer,segment --halt none,t2t", 3},
        {"-V xl,rtransformer,universal -w segment --rnn-cell rnn,lstm --halt none,t2t", 5},
        {"-V rope -w segment --rope-scaling none,linear,ntk,yarn,llama3,dynamic", 6},
        {"-V rope,xl -w layer --norm parallel,pre", 4},
        {"-V rope,xl -w layer --rope-scaling linear,yarn --rope-factor 8", 3},
        {"-V rope,gla,rwkv6 -w layer --out-gate none", 3},
        {"-V gated,rope -w layer --out-gate elementwise,headwise", 4},
        {"-V yarn --rope-factor 2 -w layer --filter rope_scaling:yarn", 1},
        {"-V rtransformer -w layer --rnn-cell rnn,gru --filter rnn_cell:gru", 1},
        {"-V universal -w segment --halt none,t2t --filter !halt:t2t", 1},
        {"-V xl,mla -w layer --mla expanded,absorbed", 3},
        {"-V mla -w decode --filter mla:absorbed", 1}, /* as usual there */
        {"-V mla -w segment,layer --filter mla:expanded", 2},
        {"-V xl,llama -w layer --filter ffn:swiglu", 1},
        {"-V xl,llama,t5 -w layer --filter norm:rms", 2},
        {"-V xl -w layer --dtype f32,bf16,q8,q4 --act-dtype f32,q8", 6},
        {"-V xl -w layer --dtype f32,q8 --act-dtype q8 --filter act_dtype:q8", 1},
        {"-V rope -w layer --rope-scaling none,linear --rope-factor 2,4", 3},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *const line = kept_text("-b ref --seq 8 --mem 8 %s", cases[i].line);
        struct plan p = planned("%s", line);
        cr_expect_eq(p.n, cases[i].n, "%s: %d cases", line, p.n);
    }
}

/* A choice that no variant has is refused, wherever it is made; one of several may have it. */
Test(choices, none_is_made_in_vain)
{
    static const char *const lines[] = {
        "-V xl -w segment --rnn-cell rnn",
        "-V xl -w segment --halt t2t",
        "-V vanilla --stack rope",
        "-V alibi,xl --rope-scaling yarn",
        "-V rope --rope-factor 2",
        "-V rope --rope-scaling none --rope-factor 2",
        "-V gla,linear --layer-windows 8,0",
        "-V xl --layer-rope-base 0,100",
        "-V rope,gdn --layer-dims 2/4/4/0.5",
        "-V linear,rwkv6 --out-gate headwise",
        "-V streaming --layer-windows 8",
        "-V universal -w segment --layer-windows 8",
        "-V realformer -w segment --layer-windows 8,0",
        "-V mamba --out-gate swish",
        "-V xl -w layer --act-dtype q8",
        "-V xl -w layer --dtype f32,bf16 --act-dtype q8",
    };
    static const char *const others[] = {
        "-V rope,alibi --rope-scaling yarn --rope-factor 2",
        "-V gla,fox --layer-windows 8,0",
        "-V gdn-hybrid -w segment --stack gdn,rope --layer-rope-base 100,0",
        "-V gdn-hybrid -w segment --layer-dims 2/4/4/0.5",
    };

    for (size_t i = 0; i < ARRAY_LEN(lines) + ARRAY_LEN(others); i++) {
        const bool vain = i < ARRAY_LEN(lines);
        const char *const line = vain ? lines[i] : others[i - ARRAY_LEN(lines)];
        struct plan p;
        struct err e = {""};
        cr_expect_eq(try_plan(&p, line, &e), vain ? E_USAGE : OK, "%s: %s", line, e.msg);
        cr_expect(!vain || strstr(e.msg, "  -> "), "%s", e.msg);
    }
}

/* A scaling without a factor has one all the same; a gate is one of attention or of its mixer. */
Test(choices, values_go_with_others)
{
    static const struct {
        const char *line, *name, *value;
    } cases[] = {
        {"-V rope --rope-scaling linear", "rope_factor", "4"},
        {"-V rope --rope-scaling linear --rope-factor 2.5", "rope_factor", "2.5"},
        {"-V rope", "rope_factor", ""},
        {"-V rope", "rope_scaling", "none"},
        {"-V xl", "rope_scaling", ""},
        {"-V rope", "out_gate", "none"},
        {"-V gla", "out_gate", "swish"},
        {"-V rwkv6", "out_gate", ""},
        {"-V gemma", "layer_windows", "4096,0"},
        {"-V gla", "layer_windows", ""},
        {"-V xl --dtype q8", "act_dtype", ""},
        {"-V xl --dtype q8 --act-dtype q8", "act_dtype", "q8"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char line[160], text[CHOICE_TEXT];
        snprintf(line, sizeof(line), "-w layer " SMALL "%s", cases[i].line);
        struct plan p = planned("%s", line);
        case_print(text, chosen_find(cases[i].name), &p.cases[0]);
        cr_expect_str_eq(text, cases[i].value, "%s of %s", cases[i].name, cases[i].line);
    }
}

/* ---- the tables of choices ------------------------------------------------------------------ */

static int column_of(const struct table *t, const char *name)
{
    for (int i = 0; i < t->n; i++)
        if (strcmp(t->columns[i].name, name) == 0)
            return i;
    cr_assert_fail("%s has no column %s", t->name, name);
    return -1;
}

/* Does the expression, with that name of the choice and value, select the case and its row? */
static void expect_found(const char *name, const char *value, const struct bench_case *c,
                         const struct latency_row *row)
{
    for (int negate = 0; negate < 2; negate++) {
        struct filter f;
        const char *const text = kept_text("%s%s:%s", negate ? "!" : "", name, value);
        MUST(filter_parse(&f, text, &failure));
        cr_expect_eq(filter_match(&f, c), !negate, "%s of %s", text, c->repro);
        cr_expect_eq(filter_match_row(&f, &tables[TABLE_LATENCY], row), !negate, "%s of %s", text,
                     c->repro);
    }
}

/* The choice has that value in the case, in its row, in filters, and in the case of its repro line.
 */
static void expect_value(int i, const char *value, const struct bench_case *c)
{
    const struct chosen row = chosen_at(i);
    struct key_row key = key_row_empty();
    struct latency_row latency = latency_row_empty();
    char text[CHOICE_TEXT], number[NUMBER_SIZE];
    struct options again;
    struct plan one = {0};

    case_print(text, i, c);
    cr_expect_str_eq(text, value, "%s of %s", row.name, c->repro);

    key_row_choose(&key, c);
    row_set_key(&tables[TABLE_LATENCY], &latency, &key);
    cr_expect_str_eq(row_field(&tables[TABLE_LATENCY], column_of(&tables[TABLE_LATENCY], row.name),
                               &latency, number),
                     value, "%s of %s", row.name, c->repro);
    expect_found(row.name, value, c, &latency);
    if (chosen_find(row.option) == i)
        expect_found(row.option, value, c, &latency);

    cr_assert_eq(options_parse_line(&again, c->repro, &failure), OK, "%s: %s", c->repro,
                 failure.msg);
    cr_assert_eq(plan_make(&one, &again, &failure), OK, "%s: %s", c->repro, failure.msg);
    cr_assert_eq(one.n, 1, "%s", c->repro);
    case_print(text, i, &one.cases[0]);
    cr_expect_str_eq(text, value, "%s of %s", row.name, c->repro);
    cr_expect_str_eq(one.cases[0].case_id, c->case_id);
    cr_expect(case_same_problem(&one.cases[0], c), "%s", c->repro);
    plan_free(&one);
    options_free(&again);
}

/* A value of the i-th choice of a model, NULL after the last. Options of masks need a mask. */
static const char *value_of(int i, int n)
{
    static const char *const masks[] = {"window=4", "window=4;stride=2", NULL};
    static const char *const mask_heads[] = {"0,1,1,0", NULL};
    static const char *const stacks[] = {"nope", "rope,rope", NULL};
    static const char *const windows[] = {"5", "4,0", NULL};
    static const char *const bases[] = {"100", "10000,0", NULL};
    static const char *const dims[] = {"2/4/8/0.5", "1/4/4/1", NULL};
    static const char *const factors[] = {"2", "2.5", NULL};
    static const char *const shares[] = {"0.25", "1", NULL};
    static const char *const rests[] = {"0.25", "0.5", NULL};
    static const char *const numbers[] = {"5", "7", NULL};
    static const char *const mask_layers[] = {"0", "0,0", NULL};
    static const char *const head_windows[] = {"3", "2,4;3,0", NULL};
    static const char *const directions[] = {"both", NULL}; /* causal is said by nothing */
    static const char *const rows[] = {"q8", NULL};         /* likewise f32 */
    static const char *const flags[] = {"1", NULL};
    static const char *const cutoffs[] = {"20,40", "100", NULL};
    static const char *const widths[] = {"16", "48", NULL};
    static const char *const ties[] = {"0,1", "1,1", NULL};

    switch (model_choices[i].codec) {
    case CODEC_LIST:
    case CODEC_TEXT:
        return i == CHOICE_mask                    ? masks[n]
               : i == CHOICE_stack                 ? stacks[n]
               : i == CHOICE_layer_windows         ? windows[n]
               : i == CHOICE_layer_rope_base       ? bases[n]
               : i == CHOICE_layer_dims            ? dims[n]
               : i == CHOICE_mask_layers           ? mask_layers[n]
               : i == CHOICE_head_windows          ? head_windows[n]
               : i == CHOICE_cutoffs               ? cutoffs[n]
               : i == CHOICE_d_embed               ? widths[n]
               : i == CHOICE_tie_projs             ? ties[n]
               : choice_word(&model_choices[i], 0) ? choice_word(&model_choices[i], n)
                                                   : mask_heads[n];
    case CODEC_REAL:
        return i == CHOICE_exit_tau ? shares[n] : i == CHOICE_halt_eps ? rests[n] : factors[n];
    case CODEC_INT:
        return numbers[n];
    case CODEC_FLAG:
        return flags[n];
    default:
        return i == CHOICE_direction   ? directions[n]
               : i == CHOICE_act_dtype ? rows[n]
                                       : choice_word(&model_choices[i], n);
    }
}

/* Every value of every choice, for every variant that has it. */
Test(choices, rows_of_models_are_the_same_everywhere)
{
    for (int i = 0; i < MODEL_CHOICE_COUNT; i++)
        for (int n = 0; value_of(i, n); n++) {
            int having = 0;
            for (int v = 0; variants[v]; v++) {
                const bool flag = model_choices[i].codec == CODEC_FLAG;
                const bool clusters = i == CHOICE_div_val || i == CHOICE_tie_projs;
                struct config c = model_of(variants[v]);
                struct options o;
                struct plan p = {0};
                c.adaptive.n = clusters;
                c.dtype = i == CHOICE_act_dtype ? ELEM_Q8 : c.dtype;
                if (!choice_applies(&model_choices[i], &c, SCOPE_MODEL))
                    continue;
                const char *const line =
                    kept_text("-V %s %s%s--%s %s", variants[v]->name,
                              i == CHOICE_direction ? NO_PAST : "-w segment " SMALL,
                              i == CHOICE_mask_heads  ? "--mask window=4;stride=2 "
                              : clusters              ? "--cutoffs 20 "
                              : i == CHOICE_act_dtype ? "--dtype q8 "
                                                      : "",
                              model_choices[i].option, flag ? "" : value_of(i, n));
                cr_assert_eq(parse_words(&o, line, &failure), OK, "%s: %s", line, failure.msg);
                o.default_threads = 1;
                if (plan_make(&p, &o, &failure) ==
                    OK) { /* a gate, for example, does not support every
                                                    * norm */
                    cr_assert_eq(p.n, 1, "%s", line);
                    expect_value(CASE_BEFORE_MODEL + i, value_of(i, n), &p.cases[0]);
                    having++;
                }
                plan_free(&p);
            }
            cr_expect_gt(having, 0, "no variant takes --%s %s", model_choices[i].option,
                         value_of(i, n));
        }
}

Test(choices, rows_of_cases_are_the_same_everywhere)
{
    static const struct {
        const char *name, *line, *value;
    } cases[] = {
        {"variant", "-V compressive", "compressive"},
        {"backend", "-V xl", "ref"},
        {"workload", "-V xl -w decode", "decode"},
        {"seq_tokens", "-V xl --seq 9", "9"},
        {"mem_tokens", "-V xl --mem 11", "11"},
        {"phase", "-V xl -w layer --phase fwd_bwd", "fwd_bwd"},
        {"mem_kind", "-V xl --mem-kind kv", "kv"},
        {"batch_size", "-V xl --batch 3", "3"},
        {"layers", "-V xl --layers 5", "5"},
        {"d_model", "-V xl --d-model 48", "48"},
        {"heads", "-V xl --heads 8", "8"},
        {"kv_heads", "-V xl --kv-heads 2", "2"},
        {"d_head", "-V xl --d-head 6", "6"},
        {"d_inner", "-V xl --d-inner 100", "100"},
        {"vocab", "-V xl --vocab 99", "99"},
        {"settings", "-V compressive --set cmem=4,c_ratio=2", "cmem=4,c_ratio=2"},
        {"threads", "-V xl --threads 2", "2"},
    };
    bool tried[CHOICE_COLUMNS] = {false};

    for (size_t k = 0; k < ARRAY_LEN(cases); k++) {
        static const struct {
            const char *option, *usual;
        } rest[] = {{"-w ", "-w segment"},         {"--seq ", "--seq 8"},
                    {"--mem ", "--mem 12"},        {"--d-model ", "--d-model 32"},
                    {"--heads ", "--heads 4"},     {"--layers ", "--layers 2"},
                    {"--threads ", "--threads 1"}, {"-b ", "-b ref"}};
        const int i = chosen_find(cases[k].name);
        char line[256];
        snprintf(line, sizeof(line), "%s", cases[k].line);
        for (size_t r = 0; r < ARRAY_LEN(rest); r++)
            if (!strstr(cases[k].line, rest[r].option))
                snprintf(line + strlen(line), sizeof(line) - strlen(line), " %s", rest[r].usual);
        struct plan p = planned("%s", line);
        cr_assert_eq(p.n, 1, "%s", line);
        expect_value(i, cases[k].value, &p.cases[0]);
        tried[i] = true;
    }
    for (int i = 0; i < CHOICE_COLUMNS; i++)
        cr_expect(tried[i] || (i >= CASE_BEFORE_MODEL && i < SETTINGS_CHOICE), "%s is not tried",
                  chosen_at(i).name);
}

/* Each choice is an option of --help and a column of each table of cases. */
Test(choices, rows_are_options_and_columns)
{
    static const enum table_id of_cases[] = {TABLE_LATENCY, TABLE_MEMORY, TABLE_PERPLEXITY};
    struct ran r = run_bench("help sweep --help-all");

    for (int i = 0; i < CHOICE_COLUMNS; i++) {
        const struct chosen row = chosen_at(i);
        const char *const option = kept_text("--%s", row.option);
        const char *at = strstr(r.out.data, option);
        while (at && !strchr("= ", at[strlen(option)])) /* --mem of --mem-kind */
            at = strstr(at + 1, option);
        cr_expect(at, "--help does not know %s", option);
        cr_expect_eq(chosen_find(row.name), i, "%s is another column", row.name);
        for (size_t t = 0; t < ARRAY_LEN(of_cases); t++) {
            const struct table *const table = &tables[of_cases[t]];
            const bool number = table->columns[column_of(table, row.name)].type == COLUMN_I64;
            cr_expect_eq(number, row.number, "%s of %s", row.name, table->name);
        }
    }
}

/* ---- tables --------------------------------------------------------------------------------- */

static const char *const model[] = {"kv_heads", "ffn",        "norm", "mask",
                                    "rnn_cell", "mask_heads", "halt", "settings"};

Test(choices, rows_identify_the_model, .init = folder_make, .fini = folder_remove)
{
    must_bench("-q -V universal,switch -w segment " SMALL
               "--halt t2t --set experts=3 --kv-heads 2 --threads 1 --quick --max-time 0.003 "
               "--min-samples 3 --warmup-ms 0 --out r");
    struct rows rows = must_read("r/latest", TABLE_LATENCY);
    const struct latency_row *const row = rows.row;
    cr_assert_eq(rows.n, 2);
    cr_expect(row[0].kv_heads == 2 && row[1].kv_heads == 2);
    TEXTS({row[0].halt, "t2t"}, {row[1].halt, ""}, {row[1].settings, "experts=3,moe_k=1"});
    must_bench("rerun %s -q --out r --quick --max-time 0.003 --min-samples 3", row[1].case_id);
    struct rows again = must_read("r/latest", TABLE_LATENCY);
    cr_assert_eq(again.n, 1);
    for (size_t i = 0; i < ARRAY_LEN(model); i++) {
        char a[NUMBER_SIZE], b[NUMBER_SIZE];
        int at = 0;
        while (strcmp(tables[TABLE_LATENCY].columns[at].name, model[i]) != 0)
            at++;
        cr_expect_str_eq(row_field(&tables[TABLE_LATENCY], at, &row[1], a),
                         row_field(&tables[TABLE_LATENCY], at, again.row, b));
    }
}

/* ---- training ------------------------------------------------------------------------------- */

#define TRAIN                                                                                      \
    "train -q -V %s --ckpt m.safetensors --backend ref --threads 1 --seq 8 --mem 12 --batch 2 "    \
    "--layers 2 --d-model 16 --heads 2 --steps 2 --progress none "

/* A checkpoint stores the choices: eval reports them, and training continues with them and no
 * others. */
Test(choices, checkpoints_remember, .init = folder_make, .fini = folder_remove)
{
    static const struct {
        const char *variant, *chosen, *other, *settings, *rnn_cell, *halt;
    } cases[] = {
        {"rtransformer", "--rnn-cell lstm --set rnn_window=3", "--set rnn_window=4",
         "rnn_window=3,rnn_carry=1", "lstm", ""},
        {"universal", "--halt t2t", "--halt none", "", "", "t2t"},
        {"switch", "--set experts=2,moe_k=2", "--set experts=2,moe_k=1", "experts=2,moe_k=2", "",
         ""},
        {"compressive", "--set cmem=4,c_ratio=2", "--set cmem=6", "cmem=4,c_ratio=2", "", ""},
        {"performer", "--set features=5", "--set features=6", "features=5", "", ""},
        {"span", "--set span_max=20", "--set span_max=21", "span_max=20", "", ""},
        {"all-attention", "--set persistent=6", "--set persistent=7", "persistent=6", "", ""},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *const v = cases[i].variant;
        if (!sampled(i, 2))
            continue;
        must_bench(TRAIN "--force %s", v, cases[i].chosen);
        struct ran r = run_bench(TRAIN "--resume %s", v, cases[i].other);
        cr_expect(r.code == 2 && strstr(r.err.data, "cannot resume"), "%s: %s", v, r.err.data);
        for (int said = 0; said < 2; said++) { /* with its choices, and without */
            must_bench(TRAIN "--resume %s", v, said ? cases[i].chosen : "");
        }
        must_bench("eval -q --ckpt m.safetensors --seq 8 --mem 12 --bytes 64 --backend ref "
                   "--threads 1 --out r");
        const struct perplexity_row *const row = must_rows("r/latest", TABLE_PERPLEXITY, 1);
        TEXTS({row->settings, cases[i].settings}, {row->rnn_cell, cases[i].rnn_cell},
              {row->halt, cases[i].halt});
        cr_expect(row->kv_heads == 2 && row->layers == 2, "%s", v);
    }
}
