/* SPDX-License-Identifier: MIT
 *
 * The hook that checks the subject of a commit (.githooks/commit-msg). */
#include "tests/support/program.h"
#include "tests/support/tmp_folder.h"

TestSuite(commit_msg, .init = folder_make, .fini = folder_remove, .timeout = 240);

Test(commit_msg, takes_area_what_up_to_72_characters)
{
    static const struct {
        const char *subject;
        int code;
    } row[] = {
        {"simd: keep the far row in a register", 0},
        {"lock, fileio, safetensors: no waiting for pipes", 0},
        {"Merge branch 'main'", 0},
        {"a: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 0},
        {"a: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 1},
        {"Keep the far row in a register", 1},
        {"simd:no blank", 1},
        {"simd: a full stop.", 1},
        {"simd:", 1},
        {"", 1},
    };

    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++)
        shell_exits(row[i].code, NULL,
                    "echo \"%s\" >m && echo body >>m && $SRC/.githooks/commit-msg m",
                    row[i].subject);
}
