/* SPDX-License-Identifier: MIT
 *
 * bench check --tokens: published tokenizers ($BENCH_SHARED/import) make the ids that the
 * publishers' programs make; a text that is split otherwise, and files that are wrong. */
#include "tests/support/program.h"
#include "tests/support/tiny_tokenizer.h"

#include <glob.h>

TestSuite(check_tokens, .init = folder_make, .fini = folder_remove, .timeout = 120);

Test(check_tokens, right_and_wrong_texts)
{
    tiny_put(tiny_tokenizer());
    folder_put_text("right", "{\"hex\":\"2074686520ff\",\"ids\":[258,32,239,191,189],"
                             "\"back\":\"2074686520efbfbd\"}\n{\"hex\":\"\",\"ids\":[]}\n");
    struct ran r = must_bench("check --tokens . --golden right");
    HAS(r.out.data, "2 texts, 2 passed, 0 failed");
    folder_put_text("wrong",
                    "{\"hex\":\"68\",\"ids\":[104]}\n{\"hex\":\"6865\",\"ids\":[104,101]}\n"
                    "{\"hex\":\"68\",\"ids\":[104],\"back\":\"69\"}\n");
    r = bench_exits(5, NULL, "check --tokens . --golden wrong --format csv --columns result,what");
    cr_expect_str_eq(r.out.data, "result,what\npassed,wrong:1\nfailed,wrong:2\nfailed,wrong:3\n");
}

Test(check_tokens, files_that_are_wrong)
{
    static const char *const wrong[] = {
        "",
        "x\n",
        "{\"hex\":\"6\",\"ids\":[]}\n",
        "{\"hex\":\"6x\",\"ids\":[]}\n",
        "{\"hex\":\"68\"}\n",
        "{\"hex\":\"68\",\"ids\":[1e3]}\n",
        "{\"hex\":\"68\",\"ids\":[-1]}\n",
        "{\"hex\":\"68\",\"ids\":[261]}\n",
        "{\"hex\":\"68\",\"ids\":[104],\"back\":7}\n",
    };

    tiny_put(tiny_tokenizer());
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        folder_put_text("golden", wrong[i]);
        bench_exits(7, "golden", "check --tokens . --golden golden");
    }
    bench_exits(7, NULL, "check --tokens nowhere --golden golden");
}

Test(check_tokens, options)
{
    EACH_TEXT (wrong, "check --tokens .", "check --tokens . --golden x -V xl",
               "check --tokens . --golden x --bench")
        bench_exits(2, NULL, "%s", wrong);
}

/* Of the package sentencepiece, by scripts/crosscheck/gguf_tokenizers.py. */
Test(check_tokens, sentencepiece)
{
    EACH_TEXT (name, "small", "own")
        must_shell("cd $SRC/tests/golden-tokens/%s && $BENCH check --tokens model.gguf --golden "
                   "golden.jsonl",
                   name);
}

Test(check_tokens, published)
{
    const char *const shared = getenv("BENCH_SHARED");
    glob_t found;

    /* Absolute: a command below runs in another folder. */
    char *const root = kept(realpath(shared ? shared : "../shared", NULL));
    const char *const pattern = kept_text("%s/import/tok_*", root ? root : "");
    if (glob(pattern, 0, NULL, &found) != 0)
        cr_skip_test("no tokenizers in $BENCH_SHARED/import");
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *const dir = found.gl_pathv[i];
        must_bench("check --tokens %s --golden %s/strings.jsonl", dir, dir);
        /* The other form of the same, where there are both. */
        const char *const pair = kept_text("%s/merges.txt", dir);
        if (access(pair, F_OK) != 0)
            continue;
        must_shell(
            "cp %s/vocab.json %s/merges.txt . && $BENCH check --tokens . --golden %s/strings.jsonl",
            dir, dir, dir);
    }
    globfree(&found);
}
