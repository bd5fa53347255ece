/* SPDX-License-Identifier: MIT
 *
 * bench check --tokens: a published tokenizer against a file of texts and their ids. */
#include "check_tokens.h"

#include "finding.h"
#include "harness/check/golden_tokens.h"
#include "harness/util/units.h"

#include <math.h>
#include <stdio.h>

struct texts {
    const struct options *opt;
    int n, failed;
};

static void report(void *arg, int line, const char *why)
{
    struct texts *const t = arg;
    char what[FILE_PATH + 32];

    snprintf(what, sizeof(what), "%s:%d", t->opt->golden, line);
    t->n++;
    t->failed += *why != '\0';
    finding_print(t->opt, &(struct finding){.result = *why ? FINDING_FAILED : FINDING_PASSED,
                                            .backend = "",
                                            .kind = "tokens",
                                            .subject = what,
                                            .error = NAN,
                                            .limit = NAN,
                                            .detail = why});
}

/* Options of checking a backend do not apply here. */
static enum status check_options(const struct options *o, struct err *e)
{
    static const char *const others[] = {"variant", "backend", "impl",    "seed",
                                         "bench",   "isolate", "progress"};

    if (!o->golden)
        return fail(e, E_USAGE, "--tokens needs texts and their ids  -> add --golden FILE");
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (options_typed(o, others[i]))
            return fail(e, E_USAGE, "--%s does not apply to --tokens  -> leave it out", others[i]);
    return findings_check(o, e);
}

enum status check_tokens(const struct options *o, int *failed, struct err *e)
{
    struct texts t = {.opt = o};
    struct tokenizer *tokenizer = NULL;
    enum status st = check_options(o, e);

    if (st == OK)
        st = tokenizer_open(&tokenizer, o->tokens, e);
    if (st == OK) {
        findings_begin(o);
        st = golden_tokens(tokenizer, o->golden, report, &t, e);
    }
    tokenizer_close(tokenizer);
    const bool rows = findings_are_rows(o);
    if (st == OK && (!rows || !o->quiet))
        fprintf(rows ? stderr : stdout, "check: %d text%s, %d passed, %d failed\n", t.n,
                plural(t.n), t.n - t.failed, t.failed);
    *failed = t.failed;
    return st;
}
