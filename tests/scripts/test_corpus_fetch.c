/* SPDX-License-Identifier: MIT
 *
 * scripts/corpus.sh on local archives, by file URLs: the published split, the check of the
 * checksum, and no remains of a failed fetch. */
#include "tests/support/program.h"
#include "tests/support/tmp_folder.h"

TestSuite(corpus_fetch, .init = folder_make, .fini = folder_remove, .timeout = 240);

#define ZIP "python3 -m zipfile -c "

/* The folder is the source of archives. */
static struct ran fetch(int code, const char *before, const char *words)
{
    return shell_exits(code, NULL,
                       "export CORPUS_DIR=\"$PWD/texts\" CORPUS_URL=\"file://$PWD/home\"; %s "
                       "$SRC/scripts/corpus.sh %s",
                       before, words);
}

#define SUM(archive) "CORPUS_SHA256=$(sha256sum <home/" archive " | cut -c1-64) "

Test(corpus_fetch, splits_by_position)
{
    need_programs("curl unzip python3");
    must_shell("mkdir home && cd home && seq 1000 1199 >text8 && " ZIP
               "text8.zip text8 && mv text8 ..");
    struct ran r = fetch(0, SUM("text8.zip"), "text8");
    HAS(r.out.data, "--corpus text8.train --valid text8.valid");
    /* 200 lines of 5 bytes. */
    must_shell("[ $(stat -c %%s texts/text8.train) = 900 ]");
    must_shell("[ $(stat -c %%s texts/text8.valid) = 50 ]");
    must_shell("[ $(stat -c %%s texts/text8.test) = 50 ]");
    must_shell("cat texts/text8.train texts/text8.valid texts/text8.test | cmp - text8");
    must_shell("[ \"$(ls -A texts | wc -l)\" = 3 ]");

    r = fetch(0, "rm -r home;", "text8"); /* an existing file is not fetched again */
    HAS(r.out.data, "already here");
}

Test(corpus_fetch, takes_published_splits)
{
    need_programs("curl unzip python3");
    must_shell("mkdir -p home wikitext-103-raw && for p in train valid test; do echo $p "
               ">wikitext-103-raw/wiki.$p.raw; done && " ZIP
               "home/wikitext-103-raw-v1.zip wikitext-103-raw");
    fetch(0, SUM("wikitext-103-raw-v1.zip"), "wikitext103");
    for (int i = 0; i < 3; i++) {
        static const char *const parts[] = {"train", "valid", "test"};
        must_shell("[ \"$(cat texts/wikitext103.%s)\" = %s ]", parts[i], parts[i]);
    }
}

Test(corpus_fetch, another_checksum_keeps_nothing)
{
    need_programs("curl unzip python3");
    must_shell("mkdir home && cd home && echo forged >enwik8 && " ZIP "enwik8.zip enwik8");
    struct ran sum = run_shell("sha256sum <home/enwik8.zip | cut -c1-64");
    struct ran r = fetch(1, "", "enwik8");
    sum.out.data[64] = '\0';
    expect_said(&r, sum.out.data);
    expect_said(&r, "not 547994d9980ebed1288380d652999f38a14fe291a6247c157c3d33d4932534bc");
    expect_said(&r, "nothing was kept  -> ");
    must_shell("[ -z \"$(ls -A texts)\" ]");
}

Test(corpus_fetch, mistakes)
{
    need_programs("curl unzip python3");
    struct ran r = fetch(2, "", "enwik9");
    expect_said(&r, "unknown text 'enwik9'  -> enwik8, text8, wikitext103 or all");
    must_shell("[ ! -e texts ]");
    r = fetch(1, "", "text8");
    expect_said(&r, "cannot fetch file://");
    must_shell("[ -z \"$(ls -A texts)\" ]");
}
