/* SPDX-License-Identifier: MIT
 *
 * libFuzzer target: any bytes, scored as a checkpoint of a language model, as bench eval does. */
#include "harness/learn/score/score.h"
#include "structure.h"
#include "tests/support/kernel/simd.h"

#include <unistd.h>

MUTATES_SAFETENSORS

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char *const names[] = {"ref", SIMD};
    static struct topo *topo;
    struct err e = {""};
    char path[MEMORY_PATH], line[256];
    const int fd = memory_file(bytes, size, path);

    if (!topo)
        CHECK(topo_open(&topo, NULL, &e) == OK);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct options opt = {0};
        snprintf(
            line, sizeof(line),
            "--ckpt %s --backend %s --corpus copy:lag=3,alphabet=16 --bytes 40 --seq 8 --mem 6 "
            "--threads 1 --pin none",
            path, names[i]);
        CHECK(options_parse_line(&opt, line, &e) == OK);
        struct scorer s = {.opt = &opt, .topo = topo};
        if (score_run(&s, SPLIT_TEST, &e) == OK)
            CHECK(s.report.impl[0] && s.report.tokens_counted > 0);
        options_free(&opt);
    }
    close(fd);
    return 0;
}
