/* SPDX-License-Identifier: MIT
 *
 * Sums and counts of a text, in each way in which published perplexities are counted, against
 * those that the published programs gave for the same model (tests/counted); presets, and what is
 * refused. */
#include "harness/learn/source/texts.h"
#include "tests/support/failure.h"
#include "tests/support/score_line.h"
#include "tests/support/words.h"

TestSuite(counting, .timeout = 120);

/* ---- numbers of published programs ---------------------------------------------------------- */

enum { PAIRS, WORDS_ONLY };

static enum status score_counted(struct report *r, int of, const char *line, struct err *e)
{
    char text[FILE_PATH], dir[FILE_PATH];

    cr_assert(options_locate(text, sizeof(text), "tests/counted/text.txt"));
    cr_assert(options_locate(dir, sizeof(dir),
                             of == PAIRS ? "tests/counted/pairs" : "tests/counted/words"));
    return score_line(r, e, "-b ref --ckpt %s/ours.safetensors --corpus %s --tokenizer %s %s", dir,
                      text, dir, line);
}

#define XL "--bos none --seq 16 --mem 24" /* as Transformer-XL counts */

/* Sums to 2e-6, as float allows; counts exactly. Words NAN: the text is not counted. The sum with a token
 * over the first of each window is our own. */
Test(counting, sums_are_those_of_published_programs)
{
    static const struct {
        int of;
        const char *line;
        double sum, tokens, words, bytes;
    } cases[] = {
        {PAIRS, "--count lm-eval", 3647.337280073256, 419, 213, 859},
        {PAIRS, "--count hf --text-join none", 4077.214918654859, 453, 209, 859},
        {PAIRS, "--count hf --text-join none --stride 16", 3933.339492738467, 439, 209, 859},
        {PAIRS, "--count hf --text-join none --stride 5", 3397.8426096178455, 379, 209, 859},
        {PAIRS, "--count hf", 4181.92864431286, 482, 209, 859},
        {PAIRS, "--count hf --stride 16", 4097.015385749366, 467, 209, 859},
        {PAIRS, "--count hf --stride 5", 3554.1820983697294, 403, 209, 859},
        {PAIRS, "--count hf --text-join none --bos each", 4002.5960643291473, 454, 209, 859},
        {WORDS_ONLY, XL, 1315.1257827127379, 225, 225, 859},
        {WORDS_ONLY, XL " --mem-kind kv", 1315.1257827127379, 225, 225, 859},
        {WORDS_ONLY, XL " --batch 4", 1279.4171877157305, 220, 220, NAN},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct report r;
        cr_assert_eq(score_counted(&r, cases[i].of, cases[i].line, &failure), OK, "%s: %s",
                     cases[i].line, failure.msg);
        NUMBERS_OF(cases[i].line, {r.nll_sum, cases[i].sum, 2e-6 * cases[i].sum},
                   {r.tokens_counted, cases[i].tokens});
        cr_expect(r.words == cases[i].words || (isnan(r.words) && isnan(cases[i].words)),
                  "%s: %g words", cases[i].line, r.words);
        cr_expect(r.text_bytes == cases[i].bytes || (isnan(r.text_bytes) && isnan(cases[i].bytes)),
                  "%s: %g bytes", cases[i].line, r.text_bytes);
        cr_expect_float_eq(r.nll, r.nll_sum / r.tokens_counted, 1e-12);
        cr_expect(cases[i].of == WORDS_ONLY ? r.oov == 122 : isnan(r.oov), "%g words", r.oov);
    }
}

/* Windows of one token each add up to the stream; zeros change it, and the past of documents. */
Test(counting, a_stream_counts_each_token_once)
{
    static const char *const lines[] = {"--seq 16 --mem 24", "--seq 16 --mem 24 --mem-start zeros",
                                        "--seq 16 --mem 24 --doc-sep wikitext"};
    double sum[3];

    for (int i = 0; i < 3; i++) {
        struct report r;
        MUST(score_counted(&r, WORDS_ONLY, lines[i], &failure));
        cr_expect_eq(r.tokens_counted, i == 2 ? 223 : 225);
        sum[i] = r.nll_sum;
    }
    cr_expect_float_eq(sum[0], 1315.1257827127379, 1e-3);
    cr_expect_gt(fabs(sum[1] - sum[0]), 1);
    cr_expect_gt(fabs(sum[2] - sum[0]), 1);
}

/* Losses by the place of a token in its segment are those of all streams: of 1, 2 to 3, 4 to 7, ..
 * tokens each. */
Test(counting, places_are_those_of_each_stream)
{
    enum { SEQ = 16, TOKENS = 226 };

    for (int batch = 1; batch <= 5; batch++) {
        struct report r;
        int each = 0;
        double sum = 0, n[SCORE_PLACES] = {0};
        const char *const line = kept_text(XL " --batch %d", batch);
        MUST(score_counted(&r, WORDS_ONLY, line, &failure));
        for (; each < TOKENS / batch - 1; each++) {
            int k = 0;
            for (int place = each % SEQ + 1; place > 1; place /= 2)
                k++;
            n[k] += batch;
        }
        cr_expect_eq(r.tokens_counted, batch * each, "%s: %g", line, r.tokens_counted);
        double at[SCORE_PLACES];
        score_places(&r, at);
        for (int k = 0; k < SCORE_PLACES; k++) {
            cr_expect_eq(isnan(at[k]), n[k] == 0, "%s: place %d", line, k);
            sum += n[k] > 0 ? n[k] * at[k] : 0;
        }
        NUMBERS_OF(line, {sum, r.nll_sum, 1e-9 * r.nll_sum});
    }
}

/* ---- presets and refusals ------------------------------------------------------------------- */

Test(counting, presets_give_way_to_what_is_given)
{
    struct options o;

    MUST(parse_words(&o, "eval --count lm-eval --unit byte", &failure));
    MUST(counting_preset(&o, 48, &failure));
    cr_expect(o.seq.n == 1 && o.seq.v[0] == 48 && o.mem.n == 1 && o.mem.v[0] == 0);
    cr_expect(o.detok && !o.join && o.unit == UNIT_BYTE);
    cr_expect_str_eq(o.doc_sep, "wikitext");
    options_free(&o);
    MUST(parse_words(&o, "eval --count hf --seq 64 --text-join none", &failure));
    MUST(counting_preset(&o, 0, &failure));
    cr_expect(o.seq.n == 1 && o.seq.v[0] == 64 && !o.join);
    options_free(&o);
}

/* What a row's line says is read back as the same options, whatever a preset would give. */
Test(counting, lines_say_all)
{
    EACH_TEXT (what, "--count hf --text-join none --stride 3 --seq 8",
               "--count lm-eval --bos 7 --detok none", "--batch 3 --mem-start zeros",
               "--doc-sep \"a b\" --bos none --unit byte", "--count hf --tokens ids") {
        struct options o, back;
        const char *const words = kept_text("%s", what);
        MUST(options_parse_line(&o, words, &failure));
        MUST(counting_preset(&o, 32, &failure));
        char *const said = PRINTED(f, counting_print(f, &o));
        cr_assert_eq(options_parse_line(&back, said, &failure), OK, "%s: %s", said, failure.msg);
        cr_expect(back.count == o.count && back.unit == o.unit && back.stride == o.stride &&
                      back.detok == o.detok && back.join == o.join &&
                      back.mem_begin == o.mem_begin && back.batch.v[0] == o.batch.v[0],
                  "%s", said);
        TEXTS({back.bos, o.bos}, {back.doc_sep, o.doc_sep});
        cr_expect_eq(back.tokens != NULL, o.tokens != NULL);
        options_free(&o);
        options_free(&back);
    }
}

Test(counting, what_does_not_go_together_is_refused)
{
    static const char lines[] =
        "--count hf --mem 8|--count lm-eval --batch 2|--count hf --losses x|--stride 4|"
        "--count hf --seq 8 --stride 9|--bos often|--bos each|--count lm-eval --bos none|"
        "--tokens a --tokenizer b|--tokens a --detok wikitext|--batch 2 --losses x|"
        "--tokens a --bytes 10|--tokens a --unit word|--tokens a --corpus a --unit byte|"
        "--tokens-type int64|--batch 2 --unit byte";

    for (char **line = words_between(lines, "|"); *line; line++) {
        struct options o;
        const char *const words = kept_text("eval %s", *line);
        cr_assert_eq(parse_words(&o, words, &failure), OK, "%s: %s", *line, failure.msg);
        cr_expect_eq(counting_preset(&o, 32, &failure), E_USAGE, "%s", *line);
        options_free(&o);
    }
}

/* The message names what to use. */
Test(counting, what_is_gone_says_what_to_use)
{
    static const char *const lines[][2] = {{"eval --count chunks", "--stride 256"},
                                           {"eval --count gptq", "--count hf --seq 2048"},
                                           {"eval --count xl", "--mem 1600"}};

    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        struct options o;
        REFUSED(parse_words(&o, lines[i][0], &failure), E_USAGE, lines[i][1]);
    }
}

/* Bytes are tokens, too, but no byte begins a text. */
Test(counting, no_token_begins_a_text_of_bytes)
{
    struct options o;
    struct corpus c;
    struct texts t;
    char text[FILE_PATH];

    cr_assert(options_locate(text, sizeof(text), "tests/counted/text.txt"));
    MUST(corpus_open(&c, text, SPLIT_TEST, 0, &failure));
    MUST(parse_words(&o, "eval --count lm-eval", &failure));
    MUST(counting_preset(&o, 32, &failure));
    cr_expect_eq(texts_make(&t, &c, &o, NULL, &failure), E_USAGE);
    texts_free(&t);
    cr_assert_eq(options_default(&o, "bos", "10", &failure), OK);
    cr_expect_eq(texts_make(&t, &c, &o, NULL, &failure), OK, "%s", failure.msg);
    cr_expect(t.n_docs == 3 && t.docs[1].given == 1 && t.ids[t.docs[2].begin] == 10);
    cr_expect(t.words == 213 && t.bytes == 859);
    texts_free(&t);
    options_free(&o);
    corpus_close(&c);
}
