/* SPDX-License-Identifier: MIT
 *
 * The fuzz target of recurrences without a fuzzer: whatever is passed to the library is answered, alike by
 * every level of vector instructions, and by the equations of the header. */
#define LLVMFuzzerTestOneInput try_recurrence
#include "tests/fuzz/fuzz_library_recurrence.c"
#include "tests/support/kernel/random_calls.h"

Test(library_calls_recurrence, whatever_is_passed_is_answered, .timeout = 240)
{
    expect_answers(try_recurrence, 4000);
}
