/* SPDX-License-Identifier: MIT
 *
 * bench eval of a checkpoint that has learnt a task: its return beside that of actions at random and
 * of the best policy. */
#include "tests/support/program.h"
#include "tests/support/tmp_folder.h"

TestSuite(eval_task, .init = folder_make, .fini = folder_remove, .timeout = 120);

#define TRAIN                                                                                      \
    "train --task catch:delay=3 --backend ref --threads 1 --pin none --layers 1 --d-model 8 "      \
    "--heads 2 --seq 4 --batch 8 --steps 3 -q --ckpt m --variant "

/* A past that is remembered, carried as a state, and shown again. */
static const char *const models[] = {"xl --mem 8", "minlstm --mem all", "vanilla --mem 4"};

static void scores(const char *more, double out[6])
{
    struct ran r = must_bench("eval --ckpt m --backend ref --threads 1 --pin none --format csv "
                              "--columns return,ci95_low,ci95_high,random,optimum,episodes %s",
                              more);
    const char *const row = strchr(r.out.data, '\n');
    cr_assert_not_null(row);
    cr_assert_eq(sscanf(row, "%lf,%lf,%lf,%lf,%lf,%lf", &out[0], &out[1], &out[2], &out[3], &out[4],
                        &out[5]),
                 6, "%s", r.out.data);
}

Test(eval_task, returns_lie_where_they_can)
{
    for (size_t i = 0; i < sizeof(models) / sizeof(*models); i++) {
        double first[6], again[6], other[6];
        must_bench(TRAIN "%s --force", models[i]);
        scores("--episodes 120", first);
        scores("--episodes 120", again);
        scores("--episodes 60", other);
        cr_expect_arr_eq(first, again, sizeof(first), "%s", models[i]);
        cr_expect(memcmp(first, other, 3 * sizeof(*first)) != 0, "%s", models[i]);
        cr_expect_eq(first[5], 120);
        const double error = (first[2] - first[1]) / 2 / 1.96;
        cr_expect(first[1] < first[0] && first[0] < first[2], "%s", models[i]);
        cr_expect_leq(first[0], first[4] + 5 * error, "above the optimum: %s", models[i]);
        cr_expect_lt(first[3], first[4]);
    }
}

/* The same weights, trained without a past and with all of it: they play alike where an episode is within
 * the window, and otherwise only the latter remembers its beginning. */
Test(eval_task, sees_as_far_back_as_in_its_training)
{
    for (int seq = 3; seq <= 9; seq += 6) {
        double score[2][6];
        for (int all = 0; all < 2; all++) {
            must_bench("train --task tmaze:len=6 --variant gla --backend ref --threads 1 --pin "
                       "none --layers 1 --d-model 8 --heads 2 --batch 4 --steps 2 --lr 1e-30 -q "
                       "--ckpt m --force --seq %d --mem %s",
                       seq, all ? "all" : "0");
            scores("--episodes 2000", score[all]);
        }
        cr_expect_eq(score[0][0] == score[1][0], seq == 9, "seq %d: %g, %g", seq, score[0][0],
                     score[1][0]);
    }
}

/* The first n episodes of any larger number: one more adds its own return, 0 or 1, and no other, one
 * before, at and after each multiple of those that are played at once (50). Their mean's interval is
 * the normal one of n returns. */
Test(eval_task, episodes_are_the_first_of_more)
{
    static const int numbers[] = {1, 2, 49, 50, 51, 60, 99, 100, 101, 120, 150, 151};
    double before = 0;

    must_bench(TRAIN "%s", models[0]);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
        const int n = numbers[i], more = n - (i ? numbers[i - 1] : 0);
        double got[6];
        const char *const words = kept_text("--episodes %d", n);
        if (n == 1) { /* has no interval */
            struct ran r = must_bench("eval --ckpt m --backend ref --threads 1 --pin none --format "
                                      "csv --columns return,ci95_low --episodes 1");
            cr_assert_eq(sscanf(strchr(r.out.data, '\n'), "%lf", &got[0]), 1, "%s", r.out.data);
            cr_expect_str_eq(strchr(strchr(r.out.data, '\n'), ','), ",\n");
        } else {
            scores(words, got);
            cr_expect_eq(got[5], n);
        }
        const double sum = round(got[0] * n), mean = sum / n;
        cr_expect_float_eq(got[0], mean, 1e-4, "%d: %g is not a mean of zeros and ones", n, got[0]);
        cr_expect(sum >= before && sum <= before + more, "%d: %g after %g", n, sum, before);
        const double error = 1.959964 * sqrt((sum - sum * mean) / (n - 1.0) / n);
        if (n > 1) {
            cr_expect_float_eq(got[1], mean - error, 1e-4, "%d", n);
            cr_expect_float_eq(got[2], mean + error, 1e-4, "%d", n);
        }
        before = sum;
    }
    cr_expect(before > 0 && before < 151, "all alike tell nothing");
}

Test(eval_task, what_is_refused)
{
    must_bench(TRAIN "minlstm --mem all");
    bench_exits(2, "--corpus does not apply to eval of a task  -> ",
                "eval --ckpt m --corpus copy:");
    bench_exits(2, NULL, "eval --ckpt m --episodes 0");
}

/* An episode of catch, step by step: the ball, four steps of nothing, the paddle; only the last step
 * pays, and does if the paddle, moved by what was done, is below the ball. */
Test(eval_task, an_episode_is_printed)
{
    struct ran r = must_bench(TRAIN "xl --mem 8");
    int paid = 0, columns = 0;

    for (int seed = 1; seed <= 12; seed++) {
        int ball = 0, paddle = 2, step, sees, does, n = 0;
        double reward;
        r = must_bench("generate --ckpt m --backend ref --threads 1 --pin none --seed %d", seed);
        for (const char *at = strchr(r.out.data, '\n'); at && at[1];
             at = strchr(at + 1, '\n'), n++) {
            cr_assert_eq(sscanf(at, "%d %d %d %lf", &step, &sees, &does, &reward), 4, "%s", at);
            cr_expect_eq(step, n);
            ball = n == 0 ? sees : ball;
            cr_expect(n == 0 ? sees < 5 : sees == (n < 4 ? 5 : 6 + paddle), "%s", r.out.data);
            if (n >= 4)
                paddle += does - 1 < 0 ? (paddle > 0 ? -1 : 0) : does - 1 > 0 ? paddle < 4 : 0;
            cr_expect_eq(reward, n == 5 && paddle == ball, "%s", r.out.data);
            paid += reward == 1;
        }
        cr_expect_eq(n, 6);
        columns |= 1 << ball;
        struct ran again =
            run_bench("generate --ckpt m --backend ref --threads 1 --pin none --seed %d", seed);
        cr_expect_str_eq(again.out.data, r.out.data);
    }
    cr_expect(columns & (columns - 1), "one ball in all episodes");
    cr_expect_lt(paid, 12);
    bench_exits(2, "  -> ", "generate --ckpt m --prompt x");
}
