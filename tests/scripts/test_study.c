/* SPDX-License-Identifier: MIT
 *
 * scripts/study.sh and scripts/variants.sh on two variants and two steps: every registered variant
 * has its row, a second start repeats nothing, and text written by hand stays. */
#include "tests/support/program.h"
#include "tests/support/sanitized.h"
#include "tests/support/tmp_folder.h"
#include "variants/variant.h"

#include <string.h>

enum { LINE = 2048 };

/* The command line of a script with settings for a minute, and texts of minimal length. */
#define PREPARE                                                                                    \
    "TOP=$(cd \"$(dirname \"$BENCH\")\" && while [ ! -f scripts/study.sh ]; do cd ..; "            \
    "[ \"$PWD\" != / ] || exit 1; done; pwd); "                                                    \
    "export MODELS='%s %s' STEPS=2 STEPS_COPY=2 EVAL_BYTES=2000 SEEDS=1 LAGS=8 ROUNDS=1 JOBS=2 "   \
    "SWEEP='--no-check --max-time 0.003 --min-samples 3 --warmup-ms 0 --block-ms 0.5' "            \
    "STUDY_DIR=\"$PWD/work\" VARIANTS_DIR=\"$PWD/work\" TABLES_DIR=\"$PWD/tables\" "               \
    "BENCH_SHARED=\"$PWD\"; "
#define TEXTS                                                                                      \
    "mkdir corpora && cd corpora && seq 1 9999 >books.train.txt && seq 2 999 >books.valid.txt && " \
    "seq 3 999 >books.test.txt && xz books.train.txt"

static int n_variants(void)
{
    int n = 0;

    while (variants[n])
        n++;
    return n;
}

/* The first and the last of the registry. */
static void models(const char *two[2])
{
    two[0] = variants[0]->name;
    two[1] = variants[n_variants() - 1]->name;
}

/* Two that can be scored after any past: the first ones that keep states of earlier segments. */
static void models_with_memory(const char *two[2])
{
    int found = 0;

    for (int i = 0; i < n_variants() && found < 2; i++)
        if (variants[i]->mem->recurrent)
            two[found++] = variants[i]->name;
    cr_assert_eq(found, 2);
}

static struct ran script(const char *const two[2], const char *words)
{
    char line[LINE];

    snprintf(line, sizeof(line), PREPARE "\"$TOP/scripts/\"%s", two[0], two[1], words);
    return run_shell(folder, line);
}

static void make_texts(void)
{
    if (SANITIZED)
        cr_skip_test("the program is as usual, the scripts are what is tested");
    struct ran r = run_shell(folder, TEXTS);
    if (r.code)
        cr_skip_test("no xz");
    ran_free(&r);
}

static int count(const char *text, const char *word)
{
    int n = 0;

    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        n++;
    return n;
}

static struct bytes read_made(const char *name)
{
    char path[FILE_PATH];
    struct bytes text;

    folder_path(path, name);
    cr_assert_eq(file_read(&text, path, NULL), OK, "no %s", name);
    return text;
}

TestSuite(study, .init = folder_make, .fini = folder_remove, .timeout = 200);

Test(study, every_variant_has_a_row)
{
    const char *two[2];

    make_texts();
    models(two);
    for (int i = 0; i < 4; i++) { /* one by one, because of the time limit */
        static const char *const part[] = {"books", "copy", "speed", "tables"};
        char words[64];
        snprintf(words, sizeof(words), "variants.sh %s", part[i]);
        struct ran r = script(two, words);
        expect_exit(&r, 0);
        cr_expect_eq(count(r.out.data, "     2 steps"), i < 2 ? 2 : 0, "%s", r.out.data);
        ran_free(&r);
    }

    struct bytes page = read_made("tables/variants.md");
    for (int i = 0; i < n_variants(); i++) {
        char row[128];
        const bool known = i == 0 || i == n_variants() - 1;
        snprintf(row, sizeof(row), "\n| %s | %s", variants[i]->name, known ? "" : " | ");
        const char *const at = strstr(page.data, row);
        cr_expect(at, "no row \"%s\" in\n%s", row + 1, page.data);
        /* Parameters are known, or they are not. */
        if (at)
            cr_expect_eq(at[strlen(row)] >= '1' && at[strlen(row)] <= '9', known, "%.60s", at);
    }
    free(page.data);
}

Test(study, a_second_start_keeps_everything)
{
    const char *two[2];

    make_texts();
    models_with_memory(two);
    struct ran r = script(two, "variants.sh copy");
    expect_exit(&r, 0);
    ran_free(&r);
    r = script(two, "variants.sh copy");
    expect_exit(&r, 0);
    cr_expect_eq(count(r.out.data, "already there"), 4, "%s", r.out.data);
    ran_free(&r);
    r = script(two, "study.sh copy"); /* another study's models */
    expect_exit(&r, 0);
    ran_free(&r);
    r = script(two, "study.sh tables");
    expect_exit(&r, 0);
    ran_free(&r);
    r = run_shell(folder, "echo of my own >>tables/README.md; cp tables/README.md kept");
    ran_free(&r);
    r = script(two, "study.sh tables");
    expect_exit(&r, 0);
    ran_free(&r);

    struct bytes before = read_made("kept"), after = read_made("tables/README.md");
    cr_expect_str_eq(after.data, before.data);
    cr_expect(strstr(after.data, "8 symbols back"), "%s", after.data);
    free(before.data);
    free(after.data);
}

Test(study, another_command_is_not_taken_for_it)
{
    const char *two[2];

    make_texts();
    models_with_memory(two);
    struct ran r = script(two, "variants.sh copy");
    expect_exit(&r, 0);
    ran_free(&r);
    r = run_shell(folder, "for f in work/copy/*.safetensors.cmd; do echo other >$f; done");
    ran_free(&r);
    r = script(two, "variants.sh copy");
    cr_expect_eq(r.code, 1);
    expect_said(&r, "is another command  -> remove it");
    ran_free(&r);
}

Test(study, mistakes)
{
    static const char *const scripts[] = {"variants.sh", "study.sh"};
    const char *two[2];

    models(two);
    for (int i = 0; i < 2; i++) {
        char words[64], said[64];
        snprintf(words, sizeof(words), "%s everything", scripts[i]);
        snprintf(said, sizeof(said), "%s: unknown part 'everything'  -> books", scripts[i]);
        struct ran r = script(two, words);
        cr_expect_eq(r.code, 2);
        expect_said(&r, said);
        ran_free(&r);
        snprintf(words, sizeof(words), "%s tables", scripts[i]);
        r = script(two, words);
        cr_expect_eq(r.code, 77);
        expect_said(&r, "nothing is trained and scored");
        ran_free(&r);
    }
}
