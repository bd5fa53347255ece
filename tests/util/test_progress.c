/* SPDX-License-Identifier: MIT
 *
 * Durations as people read them. The line itself: tests/measure/test_console.c. */
#include "harness/util/progress.h"
#include "tests/support/failure.h"

Test(progress, durations)
{
    TEXTS({duration_text(0).s, "0 s"}, {duration_text(0.26).s, "0.3 s"},
          {duration_text(12.4).s, "12 s"}, {duration_text(59.6).s, "1 min 0 s"},
          {duration_text(100).s, "1 min 40 s"}, {duration_text(3600 * 25 + 60 * 7).s, "25 h 7 min"},
          {duration_text(-5).s, "0 s"});
}
