/* SPDX-License-Identifier: MIT
 *
 * The fuzz target of attention without a fuzzer: whatever is passed to the library is answered, alike by
 * every level of vector instructions, and by the equations of the header. */
#define LLVMFuzzerTestOneInput try_attention
#include "tests/fuzz/fuzz_library_attention.c"
#include "tests/support/kernel/random_calls.h"

Test(library_calls_attention, whatever_is_passed_is_answered, .timeout = 240)
{
    expect_answers(try_attention, 16000);
}
