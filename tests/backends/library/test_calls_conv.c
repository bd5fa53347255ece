/* SPDX-License-Identifier: MIT
 *
 * The fuzz target of short convolutions without a fuzzer: whatever is passed to the library is answered,
 * alike by every level of vector instructions. */
#define LLVMFuzzerTestOneInput try_conv
#include "tests/fuzz/fuzz_library_conv.c"
#include "tests/support/kernel/random_calls.h"

Test(library_calls_conv, whatever_is_passed_is_answered, .timeout = 240)
{
    expect_answers(try_conv, 4000);
}
