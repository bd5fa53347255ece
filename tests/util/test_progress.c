/* SPDX-License-Identifier: MIT
 *
 * Durations as people read them. The line itself: tests/measure/test_console.c. */
#include "harness/util/progress.h"
#include "tests/support/compared.h"

Test(progress, durations)
{
    TEXTS_IN(struct duration_text, {duration_text(0), "0 s"}, {duration_text(0.26), "0.3 s"},
             {duration_text(12.4), "12 s"}, {duration_text(59.6), "1 min 0 s"},
             {duration_text(100), "1 min 40 s"}, {duration_text(3600 * 25 + 60 * 7), "25 h 7 min"},
             {duration_text(-5), "0 s"});
}
