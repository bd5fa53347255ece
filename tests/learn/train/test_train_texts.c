/* SPDX-License-Identifier: MIT
 *
 * Which part of which text is trained on and which validates, on every way that a text comes in: the
 * parts share no token and are the whole together, and a training reads its own one only. */
#include "harness/learn/train/train_texts.h"
#include "tests/support/command_line.h"
#include "tests/support/open_trainer.h"
#include "tests/support/published_folder.h"

TestSuite(train_texts, .init = folder_make, .fini = folder_remove, .timeout = 120);

#define MODEL " --variant xl --layers 1 --d-model 16 --heads 2 --mem 4"
#define SIZES                                                                                      \
    " --seq 8 --batch 2 --steps 4 --lr-warmup 0 --backend ref --threads 1 --pin none --ckpt "      \
    "unused "

static void begin(struct trainer *t, const char *line)
{
    struct options *const o = room(1, sizeof(*o));
    char words[3 * FILE_PATH];

    cr_assert_lt(snprintf(words, sizeof(words), "train" SIZES "%s", line), (int)sizeof(words));
    cr_assert_eq(parse_words(o, words, &failure), OK, "%s: %s", line, failure.msg);
    training_settle(o);
    training_open(t, o);
}

/* ---- files ---------------------------------------------------------------------------------- */

enum { N = 1000, TAIL = N / 20, LONG = 800000 };

/* `n` times `one`, but `other` in the last twentieth. */
static void put_tail(const char *name, const void *one, const void *other, size_t size, int n)
{
    char *const all = room(1, (size_t)n * size);

    for (int i = 0; i < n; i++)
        memcpy(all + (size_t)i * size, i < n - n / 20 ? one : other, size);
    folder_put(name, all, (size_t)n * size);
}

/* A checkpoint to go on from. */
static void put_checkpoint(const char *name, const char *line)
{
    struct trainer t;

    begin(&t, line);
    const char *const path = in_folder(name);
    MUST(train_texts_keep(&t, path, &failure));
    MUST(trainer_save_weights(&t, path, &failure));
}

/* No token of the other part is read in two rounds through the text, nor one of the text by the
 * validation. */
static void expect_reads(struct trainer *t, int32_t ours, int32_t theirs, const char *line)
{
    const int hidden = t->lm.c.V - 1; /* of --objective mlm */
    const size_t part = t->text.n / (size_t)t->B / (size_t)t->L;

    for (size_t step = 0; step < 2 * part && step < 300; step++) {
        trainer_step(t, 0);
        for (int i = 0; i < t->B * t->L; i++) {
            cr_assert(t->tokens[i] == ours || (t->hidden && t->tokens[i] == hidden),
                      "%s, step %zu: %d", line, step, t->tokens[i]);
            cr_assert(t->hidden || t->targets[i] == ours, "%s, step %zu", line, step);
        }
    }
    t->valid.n = TAIL - 10;
    trainer_validate(t);
    cr_expect(t->tokens[0] == theirs || (t->hidden && t->tokens[0] == hidden), "%s", line);
    cr_expect(t->targets[0] == theirs, "%s", line);
}

/* A text of one kind of token, whose last twentieth is of another. */
Test(train_texts, the_last_twentieth_of_a_text_validates)
{
    static const struct {
        const char *line; /* %s: the folder */
        int n;
        bool ids;
    } ways[] = {
        {MODEL " --corpus %s/text", N, false},
        {MODEL " --corpus %s/long", LONG, false},
        {" --variant bert --layers 1 --d-model 16 --heads 2 --objective mlm --corpus %s/text", N,
         false},
        {MODEL " --corpus %s/words --tokenizer %s/model", N, true},
        {" --from %s/bytes.safetensors --corpus %s/text", N, false},
        {" --from %s/model --corpus %s/words", N, true},
        {" --from %s/model --corpus %s/words --tokenizer %s/model", N, true},
        {" --from %s/words.safetensors --corpus %s/words", N, true},
        {" --from %s/model --tokens %s/ids --tokens-type uint16", N, true},
        {" --from %s/model --tokens %s/longids --tokens-type uint16", LONG, true},
    };

    published_copy("gpt2_plain");
    published_write("vocab.txt", "<eos>\n<unk>\na\ntext\nof\n", 22);
    put_tail("text", "a", "z", 1, N);
    put_tail("long", "a", "z", 1, LONG);
    put_tail("words", "text ", "of   ", 5, N - 1); /* and the end of the line */
    put_tail("ids", &(uint16_t){7}, &(uint16_t){9}, 2, N);
    put_tail("longids", &(uint16_t){7}, &(uint16_t){9}, 2, LONG);
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        struct trainer t;
        char line[3 * FILE_PATH];
        if (i == 4) {
            snprintf(line, sizeof(line), MODEL " --corpus %s/text", folder);
            put_checkpoint("bytes.safetensors", line);
            snprintf(line, sizeof(line), MODEL " --corpus %s/words --tokenizer %s/model", folder,
                     folder);
            put_checkpoint("words.safetensors", line);
        }
        snprintf(line, sizeof(line), ways[i].line, folder, folder, folder);
        begin(&t, line);
        const int tail = ways[i].n / 20;
        NUMBERS_OF(line, {ways[i].ids, t.text.ids != NULL}, {(int)t.text.n, ways[i].n - tail},
                   {(int)t.valid.n, min_int(tail, VALID_TOKENS)});
        /* One behind the other, in one array: nothing is in both, and nothing between them. */
        cr_expect(t.text.ids ? t.valid.ids == t.text.ids + t.text.n
                             : t.valid.at == t.text.at + t.text.n,
                  "%s", line);
        const int32_t ours = text_token(&t.text, 0), theirs = text_token(&t.valid, 0);
        cr_expect_neq(ours, theirs, "%s", line);
        for (size_t k = 0; k < t.text.n; k++)
            cr_assert_eq(text_token(&t.text, k), ours, "%s: token %zu", line, k);
        for (size_t k = 0; k + 1 < t.valid.n; k++)
            cr_assert_eq(text_token(&t.valid, k), theirs, "%s: token %zu", line, k);
        expect_reads(&t, ours, theirs, line);
    }
}

/* With --valid all of the text is trained on. */
Test(train_texts, a_text_of_its_own_validates)
{
    static const struct {
        const char *line;
        bool ids;
    } ways[] = {
        {MODEL " --corpus %s/text --valid %s/other", false},
        {" --variant bert --layers 1 --d-model 16 --heads 2 --objective mlm --corpus %s/text "
         "--valid "
         "%s/other",
         false},
        {" --from %s/model --corpus %s/words --valid %s/otherwords", true},
        {" --from %s/model --tokens %s/ids --tokens-type uint16 --valid %s/otherids", true},
    };

    published_copy("gpt2_plain");
    published_write("vocab.txt", "<eos>\n<unk>\na\ntext\nof\n", 22);
    put_tail("text", "a", "a", 1, N);
    put_tail("other", "z", "z", 1, TAIL);
    put_tail("words", "text ", "text ", 5, N - 1); /* and the end of the line */
    put_tail("otherwords", "of ", "of ", 3, TAIL - 1);
    put_tail("ids", &(uint16_t){7}, &(uint16_t){7}, 2, N);
    put_tail("otherids", &(uint16_t){9}, &(uint16_t){9}, 2, TAIL);
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        struct trainer t;
        const char *const line = kept_text(ways[i].line, folder, folder, folder);
        begin(&t, line);
        cr_expect(t.text.n == N && t.valid.n == TAIL, "%s: %zu, %zu", line, t.text.n, t.valid.n);
        cr_expect_eq(ways[i].ids, t.text.ids != NULL && t.valid.ids != NULL, "%s", line);
        expect_reads(&t, text_token(&t.text, 0), text_token(&t.valid, 0), line);
        cr_expect_neq(text_token(&t.text, 0), text_token(&t.valid, 0), "%s", line);
    }
}

/* ---- sources -------------------------------------------------------------------------------- */

static void expect_split(const struct text_part *part, const struct synthetic *s, enum split split,
                         const char *line)
{
    uint8_t *const symbols = room(1, part->n);

    for (int i = 0; i < SPLIT_COUNT; i++) {
        synthetic_fill(s, (enum split)i, symbols, part->n);
        cr_expect_eq(memcmp(symbols, part->at, part->n) == 0, i == (int)split, "%s: split %d", line,
                     i);
    }
}

/* Text and validation are two streams of the source, neither of them the one that is scored later. */
Test(train_texts, sources_have_a_stream_for_each)
{
    put_checkpoint("own.safetensors", MODEL " --corpus copy:lag=3,alphabet=5");
    EACH_TEXT (words, MODEL " --corpus copy:lag=3,alphabet=5",
               MODEL " --corpus copy:lag=3,alphabet=5 --valid copy:lag=3,alphabet=5",
               " --variant bert --layers 1 --d-model 16 --heads 2 --objective mlm --corpus "
               "copy:lag=3,alphabet=5",
               " --variant vanilla --layers 1 --d-model 16 --heads 2 --objective seq2seq --corpus "
               "reverse:n=8,alphabet=5",
               " --from %s/own.safetensors") {
        struct trainer t;
        const char *const line = kept_text(words, folder);
        begin(&t, line);
        cr_expect_eq((int)t.valid.n, VALID_TOKENS, "%s", line);
        expect_split(&t.text, &t.corpus.synthetic, SPLIT_TRAIN, line);
        expect_split(&t.valid, &t.corpus.synthetic, SPLIT_VALID, line);
    }
}
