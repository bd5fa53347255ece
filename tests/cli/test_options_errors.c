/* SPDX-License-Identifier: MIT
 *
 * Error texts of invalid command lines, with their status. */
#include "tests/support/command_line.h"

#include <criterion/criterion.h>

Test(options, errors_say_what_to_do)
{
    static const struct {
        const char *line;
        enum status st;
        const char *text;
    } cases[] = {
        {"--seq 128..", E_USAGE,
         "--seq \"128..\": range has no end  -> write 128..1024, 128..1024*2, 128..1024+128 or "
         "128,256"},
        {"plot r --variant xl", E_USAGE,
         "--variant does not apply to plot  -> choose rows with plot --filter KEY:VALUE"},
        {"report r -o f --filter seq:8", E_USAGE, "--filter does not apply to report  ->"},
        {"plot r --filter seq:8", OK, ""},
        {"--launches 2 --isolate none", E_USAGE,
         "--launches 2 and --isolate none exclude each other: there is one process  -> leave one "
         "of "
         "them out"},
        {"--launches 0", E_USAGE, "--launches \"0\" is too small  -> use 1 or more"},
        {"--launches 33", E_USAGE, "--launches \"33\" is too large  -> use at most 32"},
        {"--launches 1 --isolate none", OK, ""},
        {"--seq 128..4096*1", E_USAGE,
         "--seq 128..4096*1 never ends  -> use a factor of 2 or more"},
        {"--seq 128..4096+0", E_USAGE, "--seq 128..4096+0 never ends  -> use a step of 1 or more"},
        {"--mem 0..512", E_USAGE, "--mem 0..512 never ends  -> write 0,1..512, or"},
        {"--mem 0..", E_USAGE, "--mem \"0..\": range has no end  -> write 0..1024+128 or 0,128"},
        {"--seq ..5", E_USAGE, "--seq \"..5\": range has no start  ->"},
        {"--seq 512..128", E_USAGE, "--seq \"512..128\": range goes down  -> write 128..512"},
        {"--seq 1..2*", E_USAGE, "--seq \"1..2*\": not a whole number"},
        {"--seq ''", E_USAGE, "--seq has an empty value  ->"},
        {"--seq 1,,2", E_USAGE, "--seq \"1,,2\": empty item  -> write 128,256"},
        {"--seq 1,", E_USAGE, "--seq \"1,\": empty item"},
        {"--seq 12x", E_USAGE, "--seq \"12x\": not a whole number  -> write one such as 128"},
        {"--seq 1.5", E_USAGE, "--seq \"1.5\": not a whole number"},
        {"--seq 0", E_USAGE, "--seq \"0\" is too small  -> use 1 or more"},
        {"--mem -1", E_USAGE, "--mem \"-1\" is too small  -> use 0 or more"},
        {"--seq 9999999999999999999999", E_USAGE, "--seq \"9999999999999999999999\" is too large"},
        {"--seq 268435457", E_USAGE, "--seq \"268435457\" is too large  -> use at most 268435456"},
        {"--seq 1..99999+1", E_USAGE, "--seq \"1..99999+1\": more than 4096 values"},
        {"--heads 5 --d-model 256", E_USAGE,
         "--heads 5 does not divide --d-model 256  -> use 4 or 8, or give --d-head"},
        {"--heads 300 --d-model 256", E_USAGE,
         "--heads 300 does not divide --d-model 256  -> use 256, or give --d-head"},
        {"--sqe 3", E_USAGE, "unknown option --sqe  -> did you mean --seq?"},
        {"--sqe=3", E_USAGE, "unknown option --sqe  -> did you mean --seq?"},
        {"--zzzzzz", E_USAGE, "unknown option --zzzzzz  -> see: bench help"},
        {"--memx", E_USAGE, "unknown option --memx  -> did you mean --mem?"},
        {"--me 3", E_USAGE,
         "option --me is ambiguous  -> write one of --mem, --mem-kind, --membind"},
        {"-Z", E_USAGE, "unknown option -Z  -> see: bench help"},
        {"-qZ", E_USAGE, "unknown option -Z"},
        {"--seq", E_USAGE, "--seq needs a value  -> write --seq 128..1024"},
        {"-s", E_USAGE, "--seq needs a value"},
        {"--strict=1", E_USAGE, "--strict takes no value"},
        {"--workload lyer", E_USAGE,
         "unknown --workload \"lyer\"  -> did you mean layer?  (attn, "},
        {"--mem-kind hiden", E_USAGE, "unknown --mem-kind \"hiden\"  -> did you mean hidden?"},
        {"--format cvs", E_USAGE, "unknown --format \"cvs\"  -> did you mean csv?"},
        {"export --to json5", E_USAGE, "unknown --to \"json5\"  -> did you mean json?"},
        {"--format zzzz", E_USAGE, "unknown --format \"zzzz\"  -> use one of auto, table"},
        {"--rnn-cell lstmm", E_USAGE,
         "unknown --rnn-cell \"lstmm\"  -> did you mean lstm?  (rnn, "},
        {"--halt greves", E_USAGE, "unknown --halt \"greves\"  -> did you mean graves?  (none, "},
        {"--set", E_USAGE, "--set needs a value  -> write --set NAME=N,..."},
        {"plot r --set experts=2", E_USAGE, "--set does not apply to plot"},
        {"--gate gruu", E_USAGE, "unknown --gate \"gruu\"  -> did you mean gru?  (gru, "},
        {"--norm pst", E_USAGE, "unknown --norm \"pst\"  -> did you mean post?"},
        {"--pin compct", E_USAGE, "unknown --pin \"compct\"  -> did you mean compact?"},
        {"--pin nonsense", E_USAGE,
         "unknown --pin \"nonsense\"  -> give the placement of threads: compact, scatter, p-cores "
         "or "
         "e-cores (where cores are unlike), none or a list of CPUs"},
        {"--variant xl,,shaw", E_USAGE, "--variant \"xl,,shaw\": empty item"},
        {"--variant ''", E_USAGE, "--variant \"\": empty item"},
        {"--impl ''", E_USAGE, "--impl has an empty value"},
        {"--out ''", E_USAGE, "--out has an empty value"},
        {"--resume=", E_USAGE, "--resume= without a folder"},
        {"--seed -1", E_USAGE, "--seed \"-1\": not a seed"},
        {"--seed 18446744073709551616", E_USAGE, "--seed \"18446744073709551616\": not a seed"},
        {"--max-time 0", E_USAGE, "--max-time 0 is too small  -> use more than 0"},
        {"--max-time nan", E_USAGE, "--max-time \"nan\": not a number"},
        {"--max-time 1e999", E_USAGE, "--max-time \"1e999\": not a number"},
        {"--max-time 3s", E_USAGE, "--max-time \"3s\": not a number"},
        {"--target-ci 101", E_USAGE, "--target-ci 101 is too large  -> use at most 100"},
        {"--d-model 0", E_USAGE, "--d-model \"0\" is too small"},
        {"--golden x", E_USAGE, "--golden does not apply to sweep  -> use it with check"},
        {"--axis backend", E_USAGE, "--axis does not apply to sweep  -> use it with compare"},
        {"--threshold 0", E_USAGE, "--threshold"},
        {"--onednn-max-isa avx3", E_USAGE, "unknown --onednn-max-isa \"avx3\""},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct options o;
        struct err e = {""};
        cr_expect_eq(parse_words(&o, cases[i].line, &e), cases[i].st, "%s", cases[i].line);
        cr_expect(strncmp(e.msg, cases[i].text, strlen(cases[i].text)) == 0, "%s gives: %s",
                  cases[i].line, e.msg);
    }
}
