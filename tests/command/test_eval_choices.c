/* SPDX-License-Identifier: MIT
 *
 * bench eval --choices: log-likelihoods are losses of the same bytes as a text, shares those of its rows. */
#include "harness/learn/score/losses.h"
#include "harness/measure/stats.h"
#include "tests/support/program.h"
#include "tests/support/tmp_folder.h"

#define RUN " --backend ref --threads 1 --pin none -q "
#define TRAIN "train --variant rope --heads 2 --mem 0 --batch 2 --ckpt m" RUN

TestSuite(eval_choices, .init = folder_make, .fini = folder_remove, .timeout = 240);

/* Minus the losses of the last `own` bytes, with what the model reads before them. */
static double by_losses(const char *context, const char *text, int own)
{
    struct losses l;
    double sum = 0;
    const char *const both = kept(need_text("%s%s", context, text));

    folder_put_text("one", both + max_int((int)strlen(both) - 17, 0));
    must_shell("$BENCH eval --ckpt m --corpus one --seq 16 --mem 0 --losses o --out u" RUN
               "&& mv o/* loss");
    MUST(losses_read(&l, in_folder("loss"), &failure));
    for (size_t i = l.n - (size_t)own; i < l.n; i++)
        sum -= (double)l.nll[i];
    losses_close(&l);
    return sum;
}

Test(eval_choices, likelihoods_and_shares)
{
    static struct {
        const char *context, *text[2];
        int own, gold;
    } cases[] = {
        {"a line 3", {NULL, "of~"}, 4, 0}, /* NULL: the greedy one */
        {"a line 3", {"of~", NULL}, 3, 1},
        {"a line 3  ", {"of~", " ~~~"}, 5, 0},
        {"a", {"xy", "xy"}, 2, 1}, /* of equals the first is chosen */
        {"a", {"b", "~~~~~~~~~~"}, 1, 1},
        {"a", {"c", "~~~~~~~~~~"}, 1, 1},
        {"a line 30 of xyz words @ ", {"900", "x"}, 4, 0},
        {"a", {"\u65e5\u65e5\u65e5", "~~"}, 9, 1},
        {"a   ", {"~", "~~~~~~"}, 4, 1},
    };
    enum { N = ARRAY_LEN(cases) };
    double right[4] = {0}, exact = 0;
    struct bytes lines;
    FILE *const f = bytes_begin(&lines);

    must_shell("for i in $(seq 40); do echo \"a line $i of xyz words @ $((i * i))\"; done >text");
    must_bench(TRAIN "--corpus text --layers 2 --d-model 16 --seq 16 --steps 60 --lr 0.02");
    struct ran r = must_bench("generate --ckpt m --prompt 'a line 3' --new-tokens 4" RUN);
    r.out.data[strcspn(r.out.data, "\n")] = '\0';
    cases[0].text[0] = cases[1].text[1] = r.out.data + strlen("a line 3");
    for (size_t i = 0; i < N; i++)
        fprintf(f, "{\"context\":\"%s\",\"continuations\":[\"%s\",\"%s\"],\"gold\":%d}\n",
                cases[i].context, cases[i].text[0], cases[i].text[1], cases[i].gold);
    folder_put_text("q", kept(bytes_end(f, &lines)));
    r = must_shell("$BENCH eval --ckpt m --choices q --losses l --out runs" RUN
                   ">all && tail -n +2 l/*");
    const char *at = r.out.data;
    for (size_t i = 0; i < N; i++) {
        int greedy[2], gold[2];
        double nats[2], length[2][4] = {{1}, {1}};
        for (int k = 0; k < 2; k++, at = strchr(at, '\n') + 1)
            cr_assert_eq(sscanf(at, "%*d,%*d,%d,%lf,%d,%lf,%lf,%lf", &gold[k], &nats[k], &greedy[k],
                                &length[k][3], &length[k][2], &length[k][1]),
                         6, "%s", r.out.data);
        const int to = cases[i].gold;
        const double want = by_losses(cases[i].context, cases[i].text[0], cases[i].own);
        cr_expect_float_eq(nats[0], want, 1e-5 * fabs(want), "%zu: %g, not %g", i, nats[0], want);
        cr_expect(gold[to] && !gold[!to] && length[0][3] == cases[i].own, "%zu", i);
        cr_expect(i > 1 || (greedy[i] && !greedy[!i]), "%zu", i);
        exact += greedy[to];
        for (int by = 0; by < 4; by++) {
            const double more = nats[to] / length[to][by] - nats[!to] / length[!to][by];
            right[by] += to == 0 ? more >= 0 : more > 0;
        }
    }
    const struct perplexity_row *const row = must_read("runs/latest", TABLE_PERPLEXITY).row;
    const double got[][3] = {
        {row->accuracy, row->accuracy_ci95_low, row->accuracy_ci95_high},
        {row->acc_norm, row->acc_norm_ci95_low, row->acc_norm_ci95_high},
        {row->acc_bytes, row->acc_bytes_ci95_low, row->acc_bytes_ci95_high},
        {row->acc_tokens, row->acc_tokens_ci95_low, row->acc_tokens_ci95_high}};
    for (int by = 0; by < 4; by++) {
        const struct interval ci = stats_share(right[by] / N, N);
        cr_expect(got[by][0] == ci.mid && got[by][1] == ci.low && got[by][2] == ci.high, "%d", by);
        for (int k = 0; k < by; k++)
            cr_expect_neq(right[k], right[by], "%d and %d tell nothing apart", k, by);
    }
    cr_expect(row->exact_match == exact / N && exact < N && row->segments == N);
    must_shell("$BENCH %s --out again" RUN, row->repro);
    cr_expect_eq(
        ((const struct perplexity_row *)must_read("again/latest", TABLE_PERPLEXITY).row)->nll_sum,
        row->nll_sum);
    bench_exits(2, "--corpus does not apply to --choices  -> ",
                "eval --ckpt m --choices q --corpus text" RUN);
    bench_exits(2, "--mem 0", "eval --ckpt m --choices q --mem 8" RUN);
    bench_exits(2, "eval needs a checkpoint", "eval --choices q" RUN);
    bench_exits(2, "eval needs a checkpoint", "eval --count hf --corpus text" RUN);
    folder_put_text("q", "{}");
    bench_exits(7, "q: line 1: no context", "eval --ckpt m --choices q" RUN);
}

/* More tokens than there are rows of logits at once, of so many words. */
Test(eval_choices, greedy_in_blocks)
{
    must_shell("mkdir w && (echo '<eos>'; echo '<unk>'; seq 8300) >w/vocab.txt && seq 300 | tr "
               "'\\n' ' ' >text");
    must_bench(
        TRAIN "--corpus text --valid text --tokenizer w --layers 1 --d-model 8 --seq 80 --steps 1");
    must_shell("$BENCH generate --ckpt m --prompt 7 --new-tokens 70" RUN
               "| tr -d '\\n' | sed 's/^7//' >t && "
               "sed 's/$/ 5/' t >more && [ $(wc -w <t) = 70 ] && printf "
               "'{\"context\":\"7\",\"continuations\":"
               "[\"%%s\",\"%%s\"],\"gold\":0}' \"$(cat t)\" \"$(cat more)\" >q");
    must_bench("eval --ckpt m --choices q --losses l --out runs" RUN);
    struct ran r = must_shell("cut -d, -f5,6 l/* | tr '\\n' ' '");
    cr_expect_str_eq(r.out.data, "greedy,tokens 1,70 0,71 ");
}
