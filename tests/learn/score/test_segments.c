/* SPDX-License-Identifier: MIT
 *
 * What a segment sees of those before it, asked of every causal variant and of published models through
 * the trainer and the scorer: nothing with --mem 0; with a memory what is within its reach, and no more. */
#include "harness/learn/score/losses.h"
#include "tests/support/kernel/simd.h"
#include "tests/support/model.h"
#include "tests/support/open_trainer.h"
#include "tests/support/published_folder.h"
#include "tests/support/score_line.h"
#include "tests/support/trains.h"
#include "tests/support/words.h"

/* No block of keys ends where a segment does. */
enum {
    SEG = 18,
    SEGMENTS = 6,
    TEXT = SEG * SEGMENTS + 1,
    LAYERS = 2,
    PAST = 8,
    LINE = 3 * FILE_PATH
};

#define EVAL "-b " SIMD " "

/* The text, of bytes or of the ids of a published model; the symbols [from, to) are others. */
static void write_text(const char *name, bool ids, int from, int to)
{
    int32_t id[TEXT];
    uint8_t byte[TEXT];

    for (int i = 0; i < TEXT; i++) {
        id[i] = (5 * i + i * i / 7 + (i >= from && i < to)) % 11 + 1;
        byte[i] = (uint8_t)('a' + id[i]);
    }
    folder_put(name, ids ? (void *)id : (void *)byte, ids ? sizeof(id) : sizeof(byte));
}

/* The losses of a text under a checkpoint. */
static void losses(double nll[TEXT - 1], const char *ckpt, bool ids, const char *text, int mem)
{
    struct losses l;
    struct report r;

    const char *const path = in_folder("losses");
    MUST(score_line(&r, &failure,
                    EVAL "--seq %d --mem %d --ckpt %s --corpus %s/%s --losses %s%s%s%s%s", SEG, mem,
                    ckpt, folder, text, path, ids ? " --tokens " : "", ids ? folder : "",
                    ids ? "/" : "", ids ? text : ""));
    MUST(losses_read(&l, path, &failure));
    cr_assert_eq(l.n, TEXT - 1);
    for (int i = 0; i < TEXT - 1; i++)
        nll[i] = (double)l.nll[i];
    losses_close(&l);
}

/* Tokens before and with the one at place i of a segment that can change its loss. */
static int reach(const struct variant *v, int mem, int i)
{
    const bool window = !variant_mem(v)->recurrent && !variant_mem(v)->state;

    return (int)synthetic_reach(window, LAYERS, mem, SEG, i);
}

/* Symbol p of the text "a", whose losses were these, is another one. */
static void expect_reach(const struct variant *v, const char *ckpt, bool ids, int mem, int p,
                         bool endless, const double was[TEXT - 1])
{
    double is[TEXT - 1];
    const int next = (p / SEG + 1) * SEG; /* where the next segment begins */
    bool changes = false;

    write_text("b", ids, p, p + 1);
    losses(is, ckpt, ids, "b", mem);
    for (int i = p + 1; i < TEXT - 1; i++) {
        const bool may = i < next || (mem && (endless || i - p < reach(v, mem, i % SEG)));
        cr_expect(may || was[i] == is[i], "%s --mem %d: symbol %d, loss %d: %.9g %.9g", ckpt, mem,
                  p, i, was[i], is[i]);
        changes |= i >= next && was[i] != is[i];
    }
    if (mem && p % SEG == SEG - 1)
        cr_expect(changes, "%s --mem %d: symbol %d changes no segment after it", ckpt, mem, p);
}

/* ---- trainings ------------------------------------------------------------------------------ */

/* Without learning from its fourth step on: the loss of the fifth segment, where the fourth is as the
 * text says, and what `ckpt` has then; `valid`: nats of the same text. */
static double fifth(const char *model, bool ids, const char *text, int mem, const char *ckpt,
                    double *valid)
{
    struct options o;
    struct trainer t;
    char line[LINE];
    double loss = 0;
    const char *const what = ids ? "tokens" : "corpus";

    snprintf(line, sizeof(line),
             "train %s --pin none --threads 1 -b " SIMD
             " --seq %d --mem %d --batch 1 --%s %s/%s --valid "
             "%s/%s --steps 6 --lr 0.01 --lr-warmup 0 --schedule constant --ckpt unused",
             model, SEG, mem, what, folder, text, folder, text);
    cr_assert_eq(parse_words(&o, line, &failure), OK, "%s: %s", line, failure.msg);
    cr_assert_eq(train_settle(&o, 1, &failure), OK, "%s: %s", line, failure.msg);
    cr_assert_eq(trainer_open(&t, &o, &failure), OK, "%s: %s", model, failure.msg);
    for (int i = 0; i < 5; i++) {
        o.lr = i < 3 ? o.lr : 1e-30; /* below half a unit of every weight */
        loss = trainer_step(&t, 0).loss;
    }
    if (ckpt)
        MUST(trainer_save(&t, ckpt, 0, &failure));
    *valid = trainer_validate(&t).nll * (TEXT - 1);
    return loss;
}

/* Nats of the whole text. */
static double sum_of(const char *ckpt, bool ids, int mem)
{
    double nll[TEXT - 1], sum = 0;

    losses(nll, ckpt, ids, "a", mem);
    for (int i = 0; i < TEXT - 1; i++)
        sum += nll[i];
    return sum;
}

/* Returns whether the fourth segment changes the fifth's loss. Validation sums what the scorer does, which
 * rounds each loss to float: half a unit of losses below 16 each. */
static bool training_sees(const char *model, bool ids, int mem, const char *ckpt)
{
    double valid, other;

    write_text("a", ids, 0, 0);
    write_text("b", ids, 3 * SEG + 1, 4 * SEG); /* the third predicts its first */
    const double b = fifth(model, ids, "b", mem, NULL, &other);
    const double a = fifth(model, ids, "a", mem, ckpt, &valid);
    const double sum = sum_of(ckpt, ids, mem);
    cr_expect_float_eq(valid, sum, 1e-5 * sum, "%s --mem %d: validation %.9g, score %.9g", model,
                       mem, valid, sum);
    return a != b;
}

/* ---- variants and families ------------------------------------------------------------------ */

TestSuite(segments, .init = folder_make, .fini = folder_remove, .timeout = 240);

/* Does it carry more than the newest rows of each layer's input: states and slots, rows that others were
 * compressed to or that the same layer left, further rows of convolutions? */
static bool carries_more(const struct variant *v)
{
    return is_word_of("compressive erniedoc feedback sepconv evolved", v->name) ||
           variant_mem(v)->state;
}

static void expect_sees(int v)
{
    static const int places[] = {0, SEG / 2, SEG - 1, SEG, 2 * SEG - 1};
    const struct variant *const of = variants[v];

    if (!trains(of))
        return;
    const char *const ckpt = in_folder(of->name); /* which failures name */
    const char *const model =
        kept_text("--variant %s --layers %d --d-model 16 --heads 2", of->name, LAYERS);
    for (int mem = 0; mem <= PAST; mem += PAST) {
        /* PowerNorm divides by means of the batches before. */
        const bool sees = mem > 0 || of->norm_kind == NORM_POWER;
        cr_expect_eq(training_sees(model, false, mem, ckpt), sees, "%s --mem %d", of->name, mem);
        double was[TEXT - 1];
        losses(was, ckpt, false, "a", mem);
        for (size_t i = 0; i < ARRAY_LEN(places); i++)
            expect_reach(of, ckpt, false, mem, places[i], carries_more(of), was);
    }
}

TEST_EACH(int *part, segments, see_their_memory_alone, every_part(), .timeout = 240)
{
    for (int v = 0; variants[v]; v++)
        if (v % PARTS == *part && sampled((size_t)(v / PARTS), 2))
            expect_sees(v);
}

/* Folders and files of published models; the scorer and the trainer read them as they are. */
Test(segments, of_published_models_are_alone)
{
    DIR *const d = opendir(PUBLISHED);
    int n = 0, trained = 0;

    cr_assert_not_null(d);
    for (const struct dirent *of; (of = readdir(d));) {
        char from[FILE_PATH], model[FILE_PATH + 8];
        if (strchr(of->d_name, '.')) /* no folder of a model */
            continue;
        snprintf(from, sizeof(from), "%s/%s%s", PUBLISHED, of->d_name,
                 strncmp(of->d_name, "gguf", 4) == 0 ? "/model.gguf" : "");
        double was[TEXT - 1];
        write_text("a", true, 0, 0);
        losses(was, from, true, "a", 0);
        expect_reach(NULL, from, true, 0, SEG - 1, false, was);
        n++;
        if (strcmp(of->d_name, "qwen3_next") != 0 && strcmp(of->d_name, "qwen3_5_text") != 0 &&
            strcmp(of->d_name, "mamba2") != 0)
            continue;
        snprintf(model, sizeof(model), "--from %s", from);
        cr_expect_not(training_sees(model, true, 0, in_folder("model.safetensors")), "%s", from);
        trained++;
    }
    closedir(d);
    cr_expect(n > 40 && trained == 3, "%d models, %d trained", n, trained);
}

/* ---- floors and tasks ----------------------------------------------------------------------- */

static void open_line(struct trainer *t, const char *line)
{
    struct options o;

    MUST(parse_words(&o, line, &failure));
    training_settle(&o);
    training_begin(t, o);
}

#define SMALL                                                                                      \
    "train --pin none --threads 1 -b ref --layers 1 --d-model 8 --heads 2 --batch 2 --ckpt m "

/* The true source's loss within reach: of segments of 4 alone, a lag of 5 is never seen, whatever the model
 * could carry. */
Test(segments, floors_are_of_what_is_seen)
{
    static const char *const models[] = {"rope", "gdn-hybrid", "gla", "memformer", "rtransformer"};
    struct report r;
    double floor[ARRAY_LEN(models)];

    const char *const ckpt = in_folder("model.safetensors");
    for (size_t i = 0; i < ARRAY_LEN(models); i++) {
        struct trainer t;
        const char *const line = kept_text(
            SMALL "--corpus copy:lag=5,p=0.9,alphabet=8 --seq 4 --mem 0 --variant %s", models[i]);
        open_line(&t, line);
        floor[i] = trainer_validate(&t).floor;
        MUST(trainer_save_weights(&t, ckpt, &failure));
        cr_expect_eq(floor[i], floor[0], "%s: %g, not %g", models[i], floor[i], floor[0]);
        MUST(score_line(&r, &failure,
                        EVAL "--corpus copy:lag=5,p=0.9,alphabet=8 --bytes 400 --seq 4 "
                             "--mem 0 --ckpt %s",
                        ckpt));
        cr_expect_float_eq(r.nll_floor, log(8), 1e-9, "%s", models[i]);
    }
    cr_expect_float_eq(floor[0], log(8), 1e-9, "%g", floor[0]);
}

/* The position that the next segment of a task begins at is counted where it has a past. */
Test(segments, of_tasks_are_alone)
{
    for (int mem = 0; mem <= 8; mem += 8) {
        struct trainer t;
        open_line(
            &t, kept_text(SMALL "--task tmaze:len=20 --seq 8 --mem %d --variant gdn-hybrid", mem));
        trainer_step(&t, 0);
        cr_expect_eq(t.lm.position, mem ? 8 : 0);
        trainer_validate(&t);
        cr_expect(mem ? t.valid_lm.position > 0 : t.valid_lm.position == 0);
    }
}
