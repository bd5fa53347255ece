/* SPDX-License-Identifier: MIT
 *
 * The parts of attention, in the order in which they declare their parameters: NAME is a word here
 * and is defined in model/attention/NAME.c, or with its variant. term_NAME adds to scores, head_NAME
 * maps queries, keys, values or outputs of heads. The hooks of a part: model/attention/around.h. */
#pragma once

/* clang-format off */
#define AROUND_PARTS(X) \
    X(head_qk_norm) X(term_forget) X(head_gate) X(term_cope) X(term_localness) X(term_man) \
    X(term_predict) X(term_camtl) X(head_diff) X(head_capsules) X(head_values) \
    X(head_disagree) X(head_guide) X(head_ssmax)
/* clang-format on */

#define X(name) extern const struct around_part name;
struct around_part;
AROUND_PARTS(X)
#undef X
