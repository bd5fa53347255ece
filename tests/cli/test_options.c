/* SPDX-License-Identifier: MIT
 *
 * The command line: the grammar of values, where they come from, and what --resume compares.
 * Error texts are test_options_errors.c's. */
#include "harness/cli/option_table.h"
#include "tests/support/command_line.h"
#include "tests/support/kernel/simd.h"
#include "tests/support/program.h"
#include "tests/support/tmp_folder.h"

static void must_parse(struct options *o, const char *line)
{
    const enum status st = parse_words(o, line, &failure);

    cr_assert_eq(st, OK, "%s: %s", line, failure.msg);
}

/* ---- values -------------------------------------------------------------------------------- */

Test(options, presets)
{
    struct options o;

    forget_settings();
    must_parse(&o, "");
    cr_expect_str_eq(o.command, "sweep");
    cr_expect(o.variants.n == 1 && strcmp(o.variants.v[0], "base") == 0);
    cr_expect(o.backends.n == 1 && strcmp(o.backends.v[0], "fast") == 0);
    cr_expect(o.workloads.n == 1 && strcmp(o.workloads.v[0], "layer") == 0);
    cr_expect(o.seq.n == 4 && o.seq.v[0] == 128 && o.seq.v[3] == 1024);
    cr_expect(o.mem.n == 2 && o.mem.v[0] == 0 && o.mem.v[1] == 512);
    cr_expect(o.batch.n == 1 && o.layers.n == 0 && o.threads.n == 0 && *o.settings == '\0');
    for (int i = 0; i < MODEL_CHOICE_COUNT; i++)
        cr_expect_eq(o.chosen[i].n, 0, "--%s", model_choices[i].option);
    cr_expect(o.d_model == 512 && o.heads == 8 && o.d_head == 0 && o.d_inner == 0);
    cr_expect(!o.impl && !o.openblas_core);
    cr_expect(o.max_isa == ISA_COUNT - 1 && o.seed == 1 && o.check && o.isolate == ISOLATE_EXEC);
    cr_expect(o.min_samples == 15 && o.max_time_s == 3 && o.target_ci_pct == 1);
    cr_expect(o.block_ms == 5 && o.warmup_ms == 300 && o.order == ORDER_INTERLEAVE);
    NUMBERS({o.cache, CACHE_HOT}, {o.huge_pages, HUGE_MADVISE}, {o.format, FORMAT_AUTO},
            {o.raw, RAW_ZST}, {o.progress, PROGRESS_AUTO}, {o.argc, 1});
    TEXTS({o.pin, "compact"}, {o.membind, "local"}, {o.out, "results"}, {o.argv[0], "bench"});
    cr_expect(o.color == COLOR_AUTO && !o.resume && !o.quiet && !o.strict && !o.verbose);
}

Test(options, ranges)
{
    static const struct {
        const char *text;
        int n, v[8];
    } cases[] = {
        {"7", 1, {7}},
        {"3,1,2", 3, {3, 1, 2}},
        {"128..1024", 4, {128, 256, 512, 1024}},
        {"128..1000", 3, {128, 256, 512}},
        {"100..100", 1, {100}},
        {"1..100*10", 3, {1, 10, 100}},
        {"0..64+16", 5, {0, 16, 32, 48, 64}},
        {"0..60+16", 4, {0, 16, 32, 48}},
        {"5..6*1000000000", 1, {5}},
        {"1k,1Ki,2M,1Mi", 4, {1000, 1024, 2000000, 1048576}},
        {"1k..8k", 4, {1000, 2000, 4000, 8000}},
        {"1Ki..3Ki+1Ki", 3, {1024, 2048, 3072}},
        {"1,1..4,2", 3, {1, 2, 4}},
        {"268435456", 1, {268435456}},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct ints got = {0};
        cr_expect_eq(range_parse(&got, "--x", cases[i].text, 0, VALUE_MAX, &failure), OK, "%s: %s",
                     cases[i].text, failure.msg);
        cr_expect_eq(got.n, cases[i].n, "%s has %d values", cases[i].text, got.n);
        for (int k = 0; k < got.n && k < cases[i].n; k++)
            cr_expect_eq(got.v[k], cases[i].v[k], "%s: %d", cases[i].text, got.v[k]);
        free(got.v);
    }
}

/* Words among numbers, and back. */
Test(options, words_in_ranges)
{
    static const char *const words[] = {"all", "none", NULL};
    struct ints got = {0};
    struct options o;

    cr_assert_eq(range_parse_words(&got, "--x", "none,4..8,all,4,all", words, 0, 8, &failure), OK);
    cr_expect(got.n == 4 && got.v[0] == -2 && got.v[1] == 4 && got.v[2] == 8 && got.v[3] == -1);
    cr_expect_eq(range_parse_words(&got, "--x", "all..8", words, 0, 8, &failure), E_USAGE);
    cr_expect_eq(range_parse_words(&got, "--x", "-1", words, 0, 8, &failure), E_USAGE);
    free(got.v);
    forget_settings();
    must_parse(&o, "sweep --mem 0,all,128");
    cr_expect(o.mem.n == 3 && o.mem.v[1] == MEM_ALL);
    char *const text = kept(options_canonical(&o, CONTINUED_RUN));
    HAS(text, "mem=0,all,128\n");
    options_free(&o);
    cr_expect_eq(options_parse_line(&o, "--seq all", &failure), E_USAGE);
    options_free(&o);
}

Test(options, every_kind_of_value)
{
    struct options o;

    forget_settings();
    must_parse(&o, "sweep -V xl,shaw -b ref --seq=64 -m0 -N 2,3 --seed 18446744073709551615 "
                   "--max-time 0.25 --cache cold --no-check --same-length -vvq --norm pre "
                   "--pin 0,2-3 --membind 1 --huge-pages madvise --max-isa " SIMD " --out /x/y "
                   "--resume=old --ckpt a.safetensors --bytes 64Ki --columns a,b -n -- -word");
    TEXTS({o.command, "sweep"}, {o.chosen[CHOICE_norm_place].v[0], "pre"}, {o.pin, "0,2-3"},
          {o.membind, "1"}, {o.out, "/x/y"}, {o.ckpt, "a.safetensors"});
    cr_expect(o.variants.n == 2 && strcmp(o.variants.v[1], "shaw") == 0);
    cr_expect(o.seq.n == 1 && o.seq.v[0] == 64 && o.mem.n == 1 && o.mem.v[0] == 0);
    cr_expect(o.layers.n == 2 && o.layers.v[1] == 3 && o.seed == UINT64_MAX);
    cr_expect(o.max_time_s == 0.25 && o.cache == CACHE_COLD && !o.check);
    NUMBERS({o.chosen[CHOICE_same_length].n, 1}, {o.chosen[CHOICE_norm_place].n, 1});
    cr_expect(o.verbose == 2 && o.quiet && o.dry_run && o.max_isa == ISA_SIMD);
    cr_expect(o.huge_pages == HUGE_MADVISE && o.bytes == 65536 && o.columns.n == 2);
    cr_expect(o.resume && strcmp(o.resume_dir, "old") == 0);
    cr_expect(o.words.n == 1 && strcmp(o.words.v[0], "-word") == 0);
}

Test(options, lists_grow_from_their_first_use)
{
    struct options o;

    must_parse(&o, "list cases --seq 8 --variant xl --seq 16,8 --variant shaw,xl --filter seq=8 "
                   "--filter mem=0");
    cr_expect(o.seq.n == 2 && o.seq.v[0] == 8 && o.seq.v[1] == 16);
    cr_expect(o.variants.n == 2 && strcmp(o.variants.v[0], "xl") == 0);
    cr_expect(o.filters.n == 2 && o.words.n == 1 && strcmp(o.words.v[0], "cases") == 0);
}

Test(options, quick_stands_for_others)
{
    struct options o;

    must_parse(&o, "--quick --max-time 2");
    cr_expect(o.max_time_s == 2 && o.min_samples == 6 && o.warmup_ms == 20);
    must_parse(&o, "--max-time 2 --quick");
    cr_expect(o.max_time_s == 0.1);
    must_parse(&o, "--seq 7 --quick"); /* what was chosen stays */
    cr_expect(o.seq.n == 1 && o.seq.v[0] == 7 && o.bytes == 4096);
    cr_expect(o.backends.n == 1 && strcmp(o.backends.v[0], "fast") == 0);
    must_parse(&o, "--quick");
    cr_expect(o.seq.n == 1 && o.seq.v[0] == 128 && o.mem.n == 2);
    must_parse(&o, "rerun 0 --quick");
    cr_expect(o.max_time_s == 0.1 && o.bytes == 0);
    must_parse(&o, "gate --quick"); /* which takes no --max-time */
    cr_expect(o.min_samples == 6 && o.warmup_ms == 20 && o.max_time_s == 3);
}

/* ---- environment --------------------------------------------------------------------------- */

Test(options, environment_is_between_preset_and_user)
{
    struct options o;

    forget_settings();
    EACH_TEXT (setting, "BENCH_MAX_TIME=1", "BENCH_SEQ=32,64", "BENCH_MIN_SAMPLES=7",
               "BENCH_STRICT=1", "BENCH_NO_CHECK=0", "BENCH_SAME_LENGTH=yes",
               "BENCH_HEADS=", "BENCH_VERSION=12")
        putenv((char *)setting);
    must_parse(&o, "--min-samples 9 --seq 16");
    cr_expect(o.max_time_s == 1 && o.min_samples == 9 && o.strict && o.check);
    cr_expect(o.chosen[CHOICE_same_length].n == 1 && o.heads == 8 && !o.version);
    cr_expect(o.seq.n == 1 && o.seq.v[0] == 16);
    cr_expect(options_given(&o, "max-time") && !options_given(&o, "heads"));

    for (const char *name = "worker\0" WORKER_EARLIER "\0"; *name; name += strlen(name) + 1) {
        must_parse(&o, name);
        cr_expect(o.max_time_s == 3 && o.seq.n == 4, "a child obeys its command line only");
    }

    cr_assert_eq(options_parse_line(&o, "--mem 3", &failure), OK);
    cr_expect(o.max_time_s == 3 && o.mem.n == 1 && !o.strict);
    options_free(&o);

    setenv("BENCH_SEQ", "128..", 1);
    cr_expect_eq(parse_words(&o, "", &failure), E_USAGE);
    cr_expect(strncmp(failure.msg, "BENCH_SEQ: --seq \"128..\": range has no end", 40) == 0, "%s",
              failure.msg);
    options_free(&o);
}

Test(options, conventions)
{
    struct options o;

    forget_settings();
    setenv("NO_COLOR", "1", 1);
    setenv("CI", "true", 1);
    must_parse(&o, "");
    cr_expect(o.color == COLOR_NEVER && o.progress == PROGRESS_PLAIN);
    must_parse(&o, "--color always --progress bar");
    cr_expect(o.color == COLOR_ALWAYS && o.progress == PROGRESS_BAR);
    forget_settings();
    setenv("TERM", "dumb", 1);
    must_parse(&o, "");
    cr_expect(o.color == COLOR_NEVER && o.progress == PROGRESS_PLAIN);
}

/* ---- @files -------------------------------------------------------------------------------- */

static void enter_folder(void)
{
    folder_make();
    cr_assert_eq(chdir(folder), 0);
}

Test(options, files_hold_options, .init = enter_folder, .fini = folder_remove)
{
    struct options o;

    folder_put_text("outer.args",
                    "# a comment --seq 1\n--seq 8,16 # behind\r\n\n@inner.args\n--out "
                    "\"two words\" --ckpt 'it''s' --mem 3\n@empty.args");
    folder_put_text("inner.args", "--heads\n4\n--d-model 64\n");
    folder_put_text("empty.args", "# nothing\n");
    must_parse(&o, "@outer.args --mem 4");
    TEXTS({o.command, "sweep"}, {o.out, "two words"}, {o.ckpt, "its"});
    cr_expect(o.seq.n == 2 && o.seq.v[1] == 16 && o.heads == 4 && o.d_model == 64);
    cr_expect(o.mem.n == 1 && o.mem.v[0] == 4, "the command line replaces what the file says");
}

/* What stands beside an @file overrides it, wherever it stands; lists of one level grow. */
Test(options, files_are_overridden_from_outside, .init = enter_folder, .fini = folder_remove)
{
    struct options o;

    folder_put_text("outer.args",
                    "--variant shaw --variant rope --seq 8 --quick\n@inner.args --seq 16\n");
    folder_put_text("inner.args",
                    "--variant gtrxl --seq 32 --mem 1 --mem 2 --heads 4 --filter mem=1\n");
    EACH_TEXT (line, "@outer.args --variant xl --heads 2 --max-time 7",
               "--variant xl --heads 2 --max-time 7 @outer.args") {
        must_parse(&o, line);
        cr_expect(o.variants.n == 1 && strcmp(o.variants.v[0], "xl") == 0, "%s", line);
        cr_expect(o.heads == 2 && o.max_time_s == 7 && o.min_samples == 6, "%s", line);
        cr_expect(o.seq.n == 2 && o.seq.v[0] == 8 && o.seq.v[1] == 16, "%s", line);
        cr_expect(o.mem.n == 2 && o.mem.v[0] == 1 && o.mem.v[1] == 2, "%s", line);
        cr_expect_eq(o.filters.n, 1, "%s", line);
    }
}

Test(options, files_are_found_from_the_executable)
{
    struct options o;
    char path[PATH_MAX];

    cr_assert_eq(chdir("/"), 0);
    cr_assert(options_locate(path, sizeof(path), "harness/sweeps/smoke.args"),
              "the test program is not inside the repository");
    must_parse(&o, "@harness/sweeps/smoke.args");
    cr_expect(o.workloads.n == 1 && o.seq.n == 1 && o.seq.v[0] == 17);
    must_parse(&o, "@harness/sweeps/headline.args");
    cr_expect(o.workloads.n == 1 && strcmp(o.workloads.v[0], "attn") == 0);
    cr_expect_not(options_locate(path, sizeof(path), "no/such/file"));
    cr_expect_str_eq(path, "no/such/file");
}

Test(options, file_errors_name_file_and_line, .init = enter_folder, .fini = folder_remove)
{
    static const struct {
        const char *line;
        enum status st;
        const char *text;
    } cases[] = {
        {"@outer.args", E_USAGE, "bad.args line 3: unknown option --sqe  -> did you mean --seq?"},
        {"@quote.args", E_USAGE, "quote.args line 2: quote \" is not closed"},
        {"@self.args", E_USAGE, "self.args line 1: @self.args: files nest deeper than 8"},
        {"@lost.args", E_IO, "lost.args line 1: cannot read @gone.args: No such file"},
        {"@gone.args", E_IO, "cannot read @gone.args: No such file"},
        {"@/tmp", E_IO, "cannot read @/tmp: not a regular file"},
        {"@", E_USAGE, "@ without a file"},
    };

    folder_put_text("bad.args", "--seq 8\n\n  --sqe 9\n");
    folder_put_text("outer.args", "--mem 3\n@bad.args\n");
    folder_put_text("self.args", "@self.args\n");
    folder_put_text("quote.args", "--seq 1\n--out \"open\n--mem 1\n");
    folder_put_text("lost.args", "@gone.args\n");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct options o;
        REFUSED(parse_words(&o, cases[i].line, &failure), cases[i].st, cases[i].text);
        cr_expect_eq(strstr(failure.msg, cases[i].text), failure.msg, "%s", failure.msg);
    }
}

/* ---- resume -------------------------------------------------------------------------------- */

Test(options, resume_compares_what_matters)
{
    static const struct {
        const char *line, *said;
    } others[] = {{"--threads 4", "--threads 2, now 4"},
                  {"--d-model 256 --threads 2", "--d-model 512, now 256"},
                  {"--impl fused --threads 2", "--impl none, now fused"}};
    struct options before, now;
    char *stored;

    forget_settings();
    must_parse(&before, "--seq 128..512 --max-time 0.3 --out a");
    before.default_threads = 2;
    stored = kept(options_canonical(&before, CONTINUED_RUN));
    cr_expect(strstr(stored, "seq=128,256,512\n") != NULL, "%s", stored);
    cr_expect(strstr(stored, "threads=2\n") != NULL, "%s", stored);

    must_parse(&now, "--seq 128,256,512 --max-time 0.30 --out b -q --format csv --resume=a");
    now.default_threads = 2;
    cr_expect_eq(options_resumable(&now, stored, NULL, "a", &failure), OK, "%s", failure.msg);
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        char line[128], said[160];
        snprintf(line, sizeof(line), "--seq 128..512 --max-time 0.3 %s", others[i].line);
        snprintf(
            said, sizeof(said),
            "cannot resume results/x: made with %s  -> give the options that it was begun with",
            others[i].said);
        must_parse(&now, line);
        cr_expect_eq(options_resumable(&now, stored, NULL, "results/x", &failure), E_USAGE);
        cr_expect_str_eq(failure.msg, said);
    }
}

static void expect_continued(const char *first, const char *line, const char *whole)
{
    struct options before, now, both;

    must_parse(&before, first);
    before.default_threads = 2;
    char *const stored = kept(options_canonical(&before, CONTINUED_RUN));
    must_parse(&now, line);
    MUST(options_continue(&now, stored, CONTINUED_RUN, &failure));
    must_parse(&both, whole);
    now.default_threads = both.default_threads = 2;
    char *const is = kept(options_canonical(&now, CONTINUED_RUN));
    cr_expect_str_eq(is, kept(options_canonical(&both, CONTINUED_RUN)));
    options_free(&now); /* it has grown since it was kept */
}

Test(options, what_is_continued_has_its_options)
{
    static const char many[] =
        "--variant window,xl --mask window=4,global=1 --filter mask:window=4,global=1 --filter "
        "seq<=9 --gate gru,output --same-length --no-check --max-time 0.3 --seed "
        "18446744073709551615 "
        "--corpus copy:lag=3,p=0.9,alphabet=4 --pin 0,1 --kv-heads 2 --set experts=4,moe_k=1 "
        "--clip 3,9 --layers 2 --threads 2 --impl fused --order given --shard 1/2";

    forget_settings();
    expect_continued(many, "--resume", many);
    expect_continued("", "--resume", "");
    expect_continued("--seq 3", "--resume --format csv", "--seq 3");
    expect_continued("--seq 3,4", "--resume --seq 5 --filter seq<=9", "--seq 5 --filter seq<=9");
}

/* Only options that are not of what is continued come from the environment. */
Test(options, the_environment_of_what_is_continued)
{
    struct options o;

    forget_settings();
    setenv("BENCH_GATE", "highway", 1);
    setenv("BENCH_BATCH", "7", 1);
    setenv("BENCH_QUIET", "1", 1);
    must_parse(&o, "--resume");
    cr_expect_eq(o.batch.v[0], 7);
    MUST(options_continue(&o, "batch=1\nseq=3\n", CONTINUED_RUN, &failure));
    cr_expect(o.batch.n == 1 && o.batch.v[0] == 1 && o.chosen[CHOICE_gate].n == 0);
    cr_expect(o.seq.n == 1 && o.seq.v[0] == 3 && o.quiet && o.resume);
    options_free(&o);
    forget_settings();
    must_parse(&o, "--resume");
    cr_expect_eq(options_continue(&o, "none-such=1\n", CONTINUED_RUN, &failure), E_USAGE);
    cr_expect_eq(options_continue(&o, "none-such=\n", CONTINUED_RUN, &failure), OK);
    cr_expect_eq(options_continue(&o, "seq=x\n", CONTINUED_RUN, &failure), E_USAGE);
    options_free(&o);
}

/* Defaults of the command do not replace what was said: train has a --d-model of its own. */
Test(options, a_training_keeps_the_general_default)
{
    struct options o, now;

    forget_settings();
    must_parse(&o, "train --variant xl --d-model 512 --lr 0.5 --ckpt a");
    char *const stored = kept(options_canonical(&o, CONTINUED_TRAINING));
    cr_expect_not(strstr(stored, "ckpt="), "%s", stored);
    must_parse(&now, "train --ckpt b --resume --lr 0.25");
    MUST(options_continue(&now, stored, CONTINUED_TRAINING, &failure));
    NUMBERS({now.d_model, 512}, {now.lr, 0.25});
    TEXTS({now.ckpt, "b"}, {now.variants.v[0], "xl"});
    options_free(&now);
}

/* ---- defaults that follow from others ------------------------------------------------------- */

/* One of two values that the option takes; false for one that no default sets. */
static bool a_value(char text[64], const struct option_spec *s, int which)
{
    switch (s->kind) {
    case KIND_INT:
    case KIND_SEED:
        snprintf(text, 64, "%d", s->lo + 1 + which);
        return true;
    case KIND_INTS:
        snprintf(text, 64, "%d,%d", max_int(s->lo, 0) + 3 + which, max_int(s->lo, 0) + 7);
        return true;
    case KIND_DECIMAL:
        snprintf(text, 64, "%g", s->lo + (which + 1) * (s->hi - s->lo) / 4.0);
        return true;
    case KIND_WORD:
    case KIND_TEXT:
    case KIND_PATH:
    case KIND_NAMES:
        snprintf(text, 64, "%s", s->words ? s->words[which] : which ? "one" : "another");
        return true;
    default:
        return false;
    }
}

static void expect_value(const struct options *o, const struct option_spec *s, const char *want,
                         const char *when)
{
    char *const is = kept(option_value(o, s));

    cr_expect_str_eq(is, want, "--%s, %s: %s, not %s", s->name, when, is, want);
}

/* Of any option the first one holds: it is nearer to what was asked for. It replaces the defaults of
 * the table and of the command, and nothing that was given. */
Test(options, the_first_default_that_follows_from_others_holds)
{
    int n = 0;

    forget_settings();
    for (int i = 0; i < option_count; i++) {
        const struct option_spec *const s = &option_specs[i];
        char one[64], two[64], line[160];
        struct options o;
        if (!a_value(one, s, 0) || !a_value(two, s, 1))
            continue;
        n++;
        for (int command = 0; command < COMMAND_COUNT; command++) {
            if (!command_specs[command].doc)
                continue;
            must_parse(&o, command_specs[command].name);
            MUST(options_default(&o, s->name, one, &failure));
            MUST(options_default(&o, s->name, two, &failure));
            expect_value(&o, s, one, command_specs[command].name);
            cr_expect_not(options_given(&o, s->name), "--%s", s->name);
            options_free(&o);
            if (!option_is_for(s, command) || s->at == offsetof(struct options, shard))
                continue;
            snprintf(line, sizeof(line), "%s --%s %s", command_specs[command].name, s->name, two);
            if (parse_words(&o, line, &failure) == OK) {
                MUST(options_default(&o, s->name, one, &failure));
                expect_value(&o, s, two, line);
            }
            options_free(&o);
        }
    }
    cr_expect_gt(n, 60);
}

/* What was begun with the general default goes on with it, though another would follow now. */
Test(options, what_is_continued_keeps_its_defaults)
{
    static const char *const names[] = {"eval", "train"};

    forget_settings();
    for (int kind = 0; kind < 2; kind++)
        for (int i = 0; i < option_count; i++) {
            const struct option_spec *const s = &option_specs[i];
            const enum continued continued = kind ? CONTINUED_TRAINING : CONTINUED_RUN;
            char other[64], stored[160];
            struct options o;
            if (!s->preset || !option_is_continued(s, continued) || !a_value(other, s, 0))
                continue;
            must_parse(&o, kept_text("%s --resume", names[kind]));
            char *const usual = kept(option_value(&o, s));
            snprintf(stored, sizeof(stored), "%s=%s\n", s->name, usual);
            MUST(options_continue(&o, stored, continued, &failure));
            MUST(options_default(&o, s->name, other, &failure));
            expect_value(&o, s, usual, stored);
            options_free(&o);
        }
}
