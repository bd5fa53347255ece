/* SPDX-License-Identifier: MIT
 *
 * Remarks become words and are read back; other words of a detail are not remarks. */
#include "harness/table/remarks.h"

#include <criterion/criterion.h>

Test(remarks, words_come_back)
{
    char text[96];

    for (unsigned r = 0; r < REMARKS; r++) {
        remarks_print(text, sizeof(text), r);
        cr_expect_eq(remarks_of_row("ok", text), r, "%u as \"%s\"", r, text);
    }
    cr_expect_str_eq(text, "unchecked noisy few sampled throttled beyond mixed clock own embedded");
}

Test(remarks, whole_words_of_ok_rows_only)
{
    cr_expect_eq(remarks_of_row("failed", "unchecked"), 0);
    cr_expect_eq(remarks_of_row("ok", "fewer uncheckednoisy"), 0);
    cr_expect_eq(remarks_of_row("ok", " later  few"), REMARK_FEW);
}
