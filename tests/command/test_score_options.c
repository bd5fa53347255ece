/* SPDX-License-Identifier: MIT
 *
 * Every option of bench eval and generate that decides a number arrives where it belongs: its default
 * spelled out changes nothing, another value changes what comes out, and no two options do so alike. An
 * option without a row fails. */
#include "harness/cli/option_table.h"
#include "tests/support/program.h"
#include "tests/support/tmp_folder.h"
#include "tests/support/words.h"

TestSuite(score_options, .init = folder_make, .fini = folder_remove, .timeout = 240);

/* `with`: what the option needs beside it. `usual`: its default, NULL = no value says it. */
struct row {
    const char *name, *model, *with, *value, *usual;
};

#define PINNED "--pin none --threads 1 --backend ref -q "
#define SCORES                                                                                     \
    PINNED "--isolate none --format csv --columns "                                                \
           "nll_sum,tokens_scored,ppl,ppl_word,kl_nats,mla,layers_run "
#define TWO "--mask 'window=5;window=9'"

static const struct row of_eval[] = {
    {"act-dtype", "rope", "--dtype q8", "q8", "f32"},
    {"batch", "xl", "", "3", "1"},
    {"bos", "xl", "--count hf --seq 24", "33", "auto"},
    {"bytes", "xl", "", "150", "0"},
    {"clamp-len", "xl", "", "3", "0"},
    {"count", "xl", "--seq 24", "hf", "stream"},
    {"detok", "xl", "", "wikitext", "none"},
    {"doc-sep", "xl", "", "line", "none"},
    {"dtype", "rope", "", "bf16", "f32"},
    {"exit-patience", "exit-patience", "", "1", "2"},
    {"exit-tau", "exit", "", "0.97", "0.5"},
    {"halt-eps", "universal", "", "0.6", "0.01"},
    {"head-windows", "multiscale", "", "3,6", NULL},
    {"kv-dtype", "rope", "--mem-kind kv", "q8", "f32"},
    {"layer-rope-base", "rope", "", "300,0", "10000,10000"},
    {"layer-windows", "rope", "", "4,7", "0,0"},
    {"mask", "window", "", "window=5", "window=64"},
    {"mask-heads", "window", TWO, "1,1", "0,1"},
    {"mask-layers", "window", TWO, "1,0", NULL},
    {"mem", "xl", "", "7", "0,512"},
    {"mem-kind", "gla", "--mem 6", "recompute", "state"},
    {"mem-start", "xl", "--mem 16", "zeros", "auto"},
    {"mla", "mla", "", "absorbed", "expanded"},
    {"rope-factor", "rope", "--rope-scaling ntk", "3", "4"},
    {"rope-scaling", "rope", "", "linear", "none"},
    {"same-length", "xl", "--mem 8", "", NULL},
    {"seq", "xl", "", "24", "128"},
    {"stride", "xl", "--count hf --seq 24", "7", "24"},
    {"text-join", "xl", "", "blank", "none"},
    {"tokenizer", "words", "", "other", "words.d"},
    {"tokens", "xl", "", "ids", NULL},
    {"tokens-type", "xl", "--tokens ids", "uint16", "auto"},
    {"unit", "xl", "", "word", "token"},
};

/* They name files, machines, or how results are shown (test_eval_choices has --choices, test_lora --lora); --episodes
 * are of tasks (test_eval_task), and an end that --ignore-eos passes is had by published models (test_generate). */
static const char of_no_number[] =
    "attention backend choices ckpt columns corpus episodes format help ignore-eos help-all "
    "huge-pages "
    "impl isolate lora losses max-isa membind onednn-max-isa openblas-core out pin progress "
    "prompt-file quiet raw resume strict threads usage version";

#define CHANCE "--temperature 1"
#define WRITES PINNED "--new-tokens 40 --prompt abcdefgh "

static const struct row of_generate[] = {
    {"act-dtype", "rope", "--dtype q8 --new-tokens 400 " CHANCE, "q8", "f32"},
    {"new-tokens", "xl", "", "23", "40"},
    {"prompt", "xl", "", "bcdefghi", NULL},
    {"seed", "xl", CHANCE, "5", "1"},
    {"temperature", "xl", "", "1.5", "0"},
    {"top-k", "xl", CHANCE, "3", "0"},
    {"top-p", "xl", CHANCE, "0.4", "1"},
};

/* ---- every option has a row ------------------------------------------------------------------ */

static bool has_row(const struct row *row, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(row[i].name, name) == 0)
            return true;
    return is_word_of(of_no_number, name);
}

/* The choices of a model that both commands take are asked of eval. */
Test(score_options, every_option_has_a_row)
{
    for (int i = 0; i < option_count; i++) {
        const struct option_spec *const s = &option_specs[i];
        const bool scored = has_row(of_eval, ARRAY_LEN(of_eval), s->name);
        if (option_is_for(s, CMD_EVAL))
            cr_expect(scored, "--%s of eval has no row", s->name);
        if (option_is_for(s, CMD_GENERATE))
            cr_expect(scored || has_row(of_generate, ARRAY_LEN(of_generate), s->name),
                      "--%s of generate has no row", s->name);
    }
}

/* ---- what comes out --------------------------------------------------------------------------- */

enum { LINE = 600, OUT = 2048 };

static void write_text(void)
{
    const char *path = in_folder("text");
    FILE *const f = fopen(path, "w");
    cr_assert_not_null(f);
    for (int i = 0; i < 60; i++)
        fprintf(f, "a line %d @-@ of %.*s words %d .\n%s", i * i % 97, i % 5 + 1, &"xyzxyz"[i % 2],
                i, i % 7 == 6 ? "\n" : "");
    cr_assert_eq(fclose(f), 0);
    path = in_folder("ids");
    FILE *const g = fopen(path, "wb");
    cr_assert_not_null(g);
    for (int32_t i = 0; i < 200; i++) {
        const int32_t id = (i * i + 3 * i) % 90 + 33;
        cr_assert_eq(fwrite(&id, sizeof(id), 1, g), 1);
    }
    cr_assert_eq(fclose(g), 0);
}

static void make_models(void)
{
#define TRAIN                                                                                      \
    "$BENCH train --corpus text --d-model 16 --heads 2 --seq 16 --mem 16 --batch 2 --steps 20 "    \
    "--lr 0.02 " PINNED

    EACH_TEXT (word, "xl", "rope", "exit", "universal", "gla", "mla", "window", "multiscale")
        must_shell(TRAIN "--layers 2 --variant %s --ckpt %s", word, word);
    must_shell(TRAIN "--layers 4 --variant exit-patience --ckpt exit-patience");
    must_shell("mkdir words.d other && tr -s ' \\n' '\\n' <text | sort -u >all && (echo '<eos>'; "
               "echo '<unk>'; cat all) >words.d/vocab.txt && (echo '<eos>'; echo '<unk>'; sort -r "
               "all) >other/vocab.txt");
    must_shell(TRAIN "--layers 2 --variant rope --tokenizer words.d --valid text --ckpt words");
}

static void output(char out[OUT], const char *line)
{
    struct ran r = must_shell("%s", line);
    cr_expect(r.out.n > 0 && r.out.n < OUT, "%s", line);
    snprintf(out, OUT, "%s", r.out.data);
}

static void expect_rows(const struct row *row, size_t n, const char *command, const char *all)
{
    char(*const is)[OUT] = room(n, OUT), (*const plains)[OUT] = room(n, OUT);

    for (size_t i = 0; i < n; i++) {
        const struct row *const o = &row[i];
        char usual[OUT];
        size_t like = 0; /* the first row of the same start, whose output is that of all */
        while (strcmp(row[like].model, o->model) != 0 || strcmp(row[like].with, o->with) != 0)
            like++;
        const char *const start =
            kept_text("exec \"$BENCH\" %s --ckpt %s %s%s", command, o->model, all, o->with);
        const char *const plain = plains[like];
        if (like == i)
            output(plains[i], start);
        const bool flag = !*o->value;
        output(is[i], kept_text("%s --%s%s%s%s", start, o->name, flag ? "" : "='", o->value,
                                flag ? "" : "'"));
        cr_expect_str_neq(is[i], plain, "--%s %s changes nothing", o->name, o->value);
        if (o->usual) {
            output(usual, kept_text("%s --%s='%s'", start, o->name, o->usual));
            cr_expect_str_eq(usual, plain, "--%s %s is not the default: %s, not %s", o->name,
                             o->usual, usual, plain);
        }
        for (size_t k = 0; k < i; k++)
            cr_expect(strcmp(row[k].model, o->model) != 0 || strcmp(is[k], is[i]) != 0,
                      "--%s does what --%s does: %s", o->name, row[k].name, is[i]);
    }
}

Test(score_options, of_eval)
{
    write_text();
    make_models();
    expect_rows(of_eval, ARRAY_LEN(of_eval), "eval", "--corpus text " SCORES);
}

Test(score_options, of_generate)
{
    write_text();
    make_models();
    expect_rows(of_generate, ARRAY_LEN(of_generate), "generate", WRITES);
}
