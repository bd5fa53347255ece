/* SPDX-License-Identifier: MIT
 *
 * scripts/corpus.sh on local archives, by file URLs: the published split, the check of the
 * checksum, and no remains of a failed fetch. */
#include "tests/support/program.h"
#include "tests/support/tmp_folder.h"

#include <stdlib.h>

TestSuite(corpus_fetch, .init = folder_make, .fini = folder_remove, .timeout = 240);

/* Find $SCRIPT, and make the folder the source of archives. */
#define PREPARE                                                                                    \
    "SCRIPT=$(cd \"$(dirname \"$BENCH\")\" && while [ ! -f scripts/corpus.sh ]; do cd ..; "        \
    "[ \"$PWD\" != / ] || exit 1; done; pwd)/scripts/corpus.sh; export CORPUS_DIR=\"$PWD/texts\" " \
    "CORPUS_URL=\"file://$PWD/home\"; "
#define ZIP "python3 -m zipfile -c "

static void need(const char *tools)
{
    char line[128];
    snprintf(line, sizeof(line), "command -v %s >/dev/null && python3 -c 'import zipfile'", tools);
    if (system(line) != 0) // NOLINT: a fixed line
        cr_skip_test("no %s, python3's zipfile", tools);
}

static struct ran fetch(const char *before, const char *words)
{
    char line[2048];
    snprintf(line, sizeof(line), PREPARE "%s \"$SCRIPT\" %s", before, words);
    return run_shell(folder, line);
}

static void make(const char *line) { shell_exits(folder, 0, NULL, line); }

static void expect_shell(const char *line) { shell_exits(folder, 0, NULL, line); }

#define SUM(archive) "CORPUS_SHA256=$(sha256sum <home/" archive " | cut -c1-64) "

Test(corpus_fetch, splits_by_position)
{
    need("curl");
    need("unzip");
    make("mkdir home && cd home && seq 1000 1199 >text8 && " ZIP "text8.zip text8 && mv text8 ..");
    struct ran r = fetch(SUM("text8.zip"), "text8");
    expect_exit(&r, 0);
    HAS(r.out.data, "--corpus text8.train --valid text8.valid");
    /* 200 lines of 5 bytes. */
    expect_shell("[ $(stat -c %s texts/text8.train) = 900 ]");
    expect_shell("[ $(stat -c %s texts/text8.valid) = 50 ]");
    expect_shell("[ $(stat -c %s texts/text8.test) = 50 ]");
    expect_shell("cat texts/text8.train texts/text8.valid texts/text8.test | cmp - text8");
    expect_shell("[ \"$(ls -A texts | wc -l)\" = 3 ]");

    r = fetch("rm -r home;", "text8"); /* an existing file is not fetched again */
    expect_exit(&r, 0);
    HAS(r.out.data, "already here");
}

Test(corpus_fetch, takes_published_splits)
{
    need("curl");
    need("unzip");
    make("mkdir -p home wikitext-103-raw && for p in train valid test; do "
         "echo $p >wikitext-103-raw/wiki.$p.raw; done && " ZIP
         "home/wikitext-103-raw-v1.zip wikitext-103-raw");
    struct ran r = fetch(SUM("wikitext-103-raw-v1.zip"), "wikitext103");
    expect_exit(&r, 0);
    for (int i = 0; i < 3; i++) {
        static const char *const parts[] = {"train", "valid", "test"};
        char line[128];
        snprintf(line, sizeof(line), "[ \"$(cat texts/wikitext103.%s)\" = %s ]", parts[i],
                 parts[i]);
        expect_shell(line);
    }
}

Test(corpus_fetch, another_checksum_keeps_nothing)
{
    need("curl");
    need("unzip");
    make("mkdir home && cd home && echo forged >enwik8 && " ZIP "enwik8.zip enwik8");
    struct ran sum = run_shell(folder, "sha256sum <home/enwik8.zip | cut -c1-64");
    struct ran r = fetch("", "enwik8");
    cr_expect_eq(r.code, 1);
    sum.out.data[64] = '\0';
    expect_said(&r, sum.out.data);
    expect_said(&r, "not 547994d9980ebed1288380d652999f38a14fe291a6247c157c3d33d4932534bc");
    expect_said(&r, "nothing was kept  -> ");
    expect_shell("[ -z \"$(ls -A texts)\" ]");
}

Test(corpus_fetch, mistakes)
{
    need("curl");
    need("unzip");
    struct ran r = fetch("", "enwik9");
    cr_expect_eq(r.code, 2);
    expect_said(&r, "unknown text 'enwik9'  -> enwik8, text8, wikitext103 or all");
    expect_shell("[ ! -e texts ]");
    r = fetch("", "text8");
    cr_expect_eq(r.code, 1);
    expect_said(&r, "cannot fetch file://");
    expect_shell("[ -z \"$(ls -A texts)\" ]");
}
