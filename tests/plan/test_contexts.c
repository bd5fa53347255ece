/* SPDX-License-Identifier: MIT
 *
 * Where the context of a case is, where nothing says so. */
#include "tests/support/command_line.h"
#include "tests/support/failure.h"

/* What --mem-kind auto means: inference holds its context as a deployment does, training as it must. */
Test(contexts, auto_is_how_a_model_is_deployed)
{
    static const struct {
        const char *variant, *how;
        enum mem_kind kind;
    } cases[] = {
        {"vanilla", "-w layer", MEM_KV},
        {"vanilla", "-w segment", MEM_KV},
        {"vanilla", "-w decode", MEM_KV},
        {"vanilla", "-w request", MEM_KV},
        {"vanilla", "-w train", MEM_RECOMPUTE},
        {"vanilla", "-w layer --phase fwd_bwd", MEM_RECOMPUTE},
        {"learned", "-w decode", MEM_KV},
        {"alrfou", "-w layer", MEM_KV},
        {"llama", "-w segment", MEM_KV},
        {"gqa", "-w layer", MEM_KV},
        {"window", "-w layer", MEM_KV},
        {"shaw", "-w layer", MEM_KV},
        {"xl", "-w layer", MEM_KV},
        {"xl", "-w decode", MEM_KV},
        {"xl", "-w train", MEM_HIDDEN},
        {"xl", "-w layer --phase fwd_bwd", MEM_HIDDEN},
        {"gtrxl", "-w segment", MEM_KV},
        {"mla", "-w layer", MEM_KV},
        {"vanilla", "-w cross", MEM_KV},
        {"vanilla", "-w cross --phase fwd_bwd", MEM_HIDDEN},
        {"compressive", "-w layer", MEM_HIDDEN},
        {"compressive", "-w decode", MEM_HIDDEN},
        {"gla", "-w layer", MEM_STATE},
        {"gla", "-w train", MEM_STATE},
        {"linear", "-w layer", MEM_STATE},
        {"linear", "-w train", MEM_RECOMPUTE},
        {"gdn-hybrid", "-w segment", MEM_KV},
        {"gdn-hybrid", "-w train", MEM_HIDDEN},
        {"tupe", "-w layer", MEM_RECOMPUTE},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *const line =
            kept_text("-b ref --seq 8 --mem 4 -V %s %s", cases[i].variant, cases[i].how);
        struct plan p = planned("%s", line);
        cr_expect_eq(p.n, 1, "%s", line);
        cr_expect_eq(p.cases[0].mem_kind, cases[i].kind, "%s: %s", line,
                     mem_kind_name[p.cases[0].mem_kind]);
    }
}
