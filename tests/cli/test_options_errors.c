/* SPDX-License-Identifier: MIT
 *
 * Error texts of invalid command lines, with their status. */
#include "tests/support/command_line.h"

#include <criterion/criterion.h>

Test(options, errors_say_what_to_do)
{
    static const char *const cases[][2] = {
        /* "": it is right */
        {"--seq 128..",
         "--seq \"128..\": range has no end  -> write 128..1024, 128..1024*2, 128..1024+128 or "
         "128,256"},
        {"plot r --variant xl",
         "--variant does not apply to plot  -> choose rows with plot --filter KEY:VALUE"},
        {"report r -o f --filter seq:8", "--filter does not apply to report  ->"},
        {"plot r --filter seq:8", ""},
        {"--launches 2 --isolate none", "--launches 2 and --isolate none exclude each other: there "
                                        "is one process  -> leave one of them out"},
        {"--launches 0", "--launches \"0\" is too small  -> use 1 or more"},
        {"--launches 33", "--launches \"33\" is too large  -> use at most 32"},
        {"--launches 1 --isolate none", ""},
        {"--seq 128..4096*1", "--seq 128..4096*1 never ends  -> use a factor of 2 or more"},
        {"--seq 128..4096+0", "--seq 128..4096+0 never ends  -> use a step of 1 or more"},
        {"--mem 0..512", "--mem 0..512 never ends  -> write 0,1..512, or"},
        {"--mem 0..", "--mem \"0..\": range has no end  -> write 0..1024+128 or 0,128"},
        {"--seq ..5", "--seq \"..5\": range has no start  ->"},
        {"--seq 512..128", "--seq \"512..128\": range goes down  -> write 128..512"},
        {"--seq 1..2*", "--seq \"1..2*\": not a whole number"},
        {"--seq ''", "--seq has an empty value  ->"},
        {"--seq 1,,2", "--seq \"1,,2\": empty item  -> write 128,256"},
        {"--seq 1,", "--seq \"1,\": empty item"},
        {"--seq 12x", "--seq \"12x\": not a whole number  -> write one such as 128"},
        {"--seq 1.5", "--seq \"1.5\": not a whole number"},
        {"--seq 0", "--seq \"0\" is too small  -> use 1 or more"},
        {"--mem -1", "--mem \"-1\" is too small  -> use 0 or more"},
        {"--seq 9999999999999999999999", "--seq \"9999999999999999999999\" is too large"},
        {"--seq 268435457", "--seq \"268435457\" is too large  -> use at most 268435456"},
        {"--seq 1..99999+1", "--seq \"1..99999+1\": more than 4096 values"},
        {"--heads 5 --d-model 256",
         "--heads 5 does not divide --d-model 256  -> use 4 or 8, or give --d-head"},
        {"--heads 300 --d-model 256",
         "--heads 300 does not divide --d-model 256  -> use 256, or give --d-head"},
        {"--sqe 3", "unknown option --sqe  -> did you mean --seq?"},
        {"--sqe=3", "unknown option --sqe  -> did you mean --seq?"},
        {"--zzzzzz", "unknown option --zzzzzz  -> see: bench help"},
        {"--memx", "unknown option --memx  -> did you mean --mem?"},
        {"--me 3", "option --me is ambiguous  -> write one of --mem, --mem-kind, --membind"},
        {"-Z", "unknown option -Z  -> see: bench help"},
        {"-qZ", "unknown option -Z"},
        {"--seq", "--seq needs a value  -> write --seq 128..1024"},
        {"-s", "--seq needs a value"},
        {"--strict=1", "--strict takes no value"},
        {"--workload lyer", "unknown --workload \"lyer\"  -> did you mean layer?  (attn, "},
        {"--mem-kind hiden", "unknown --mem-kind \"hiden\"  -> did you mean hidden?"},
        {"--format cvs", "unknown --format \"cvs\"  -> did you mean csv?"},
        {"export --to json5", "unknown --to \"json5\"  -> did you mean json?"},
        {"--format zzzz", "unknown --format \"zzzz\"  -> use one of auto, table"},
        {"--rnn-cell lstmm", "unknown --rnn-cell \"lstmm\"  -> did you mean lstm?  (rnn, "},
        {"--halt greves", "unknown --halt \"greves\"  -> did you mean graves?  (none, "},
        {"--set", "--set needs a value  -> write --set NAME=N,..."},
        {"plot r --set experts=2", "--set does not apply to plot"},
        {"--gate gruu", "unknown --gate \"gruu\"  -> did you mean gru?  (gru, "},
        {"--norm pst", "unknown --norm \"pst\"  -> did you mean post?"},
        {"--pin compct", "unknown --pin \"compct\"  -> did you mean compact?"},
        {"--pin nonsense",
         "unknown --pin \"nonsense\"  -> give the placement of threads: compact, scatter, p-cores "
         "or e-cores (where cores are unlike), none or a list of CPUs"},
        {"--variant xl,,shaw", "--variant \"xl,,shaw\": empty item"},
        {"--variant ''", "--variant \"\": empty item"},
        {"--impl ''", "--impl has an empty value"},
        {"--out ''", "--out has an empty value"},
        {"--resume=", "--resume= without a folder"},
        {"--seed -1", "--seed \"-1\": not a seed"},
        {"--seed 18446744073709551616", "--seed \"18446744073709551616\": not a seed"},
        {"--max-time 0", "--max-time 0 is too small  -> use more than 0"},
        {"--max-time nan", "--max-time \"nan\": not a number"},
        {"--max-time 1e999", "--max-time \"1e999\": not a number"},
        {"--max-time 3s", "--max-time \"3s\": not a number"},
        {"--target-ci 101", "--target-ci 101 is too large  -> use at most 100"},
        {"--d-model 0", "--d-model \"0\" is too small"},
        {"--golden x", "--golden does not apply to sweep  -> use it with check"},
        {"--axis backend", "--axis does not apply to sweep  -> use it with compare"},
        {"--threshold 0", "--threshold"},
        {"--onednn-max-isa avx3", "unknown --onednn-max-isa \"avx3\""},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct options o;
        struct err e = {""};
        cr_expect_eq(parse_words(&o, cases[i][0], &e), *cases[i][1] ? E_USAGE : OK, "%s",
                     cases[i][0]);
        cr_expect(strncmp(e.msg, cases[i][1], strlen(cases[i][1])) == 0, "%s gives: %s",
                  cases[i][0], e.msg);
    }
}
