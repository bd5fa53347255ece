/* SPDX-License-Identifier: MIT
 *
 * A measuring child that misbehaves on demand. The parent starts children by running its own
 * program again as "bench worker ..."; in the test runner, this child answers. */
#pragma once

/* Behaviour of the children by variant and backend: "xl/avx2=wrong xl/ref=segv-block". The default
 * is "fine". An environment variable passes it to them. */
#define FAKE_PLAN "FAKE_CHILDREN"

/* Words:
 *   fine         errors 0, blocks of 1 ms
 *   big          an arena of 1 GB
 *   wrong        off by 3.1e-2 at [0,17,201]
 *   nmse         largest error small, mean square error not
 *   nan          an error that is no number
 *   cpu          sees another CPU
 *   greet        greets with another version
 *   absent       refuses to open: not available here
 *   nomem        refuses to place: no memory
 *   garble       answers blocks with nonsense
 *   mute         never answers the request "place"
 *   exit-block   ends with exit code 3 at its second block
 *   stop-block   is stopped, as by SIGSTOP, at its second block
 *   layout       blocks of 2 ms in every launch but the first
 *   segv-again   dies when it is opened in every launch but the first
 *   segv-open segv-place segv-block kill-block   dies of a signal there */
#define FAKE_CPU "fake cpu"
