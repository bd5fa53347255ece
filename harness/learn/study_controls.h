/* SPDX-License-Identifier: MIT
 *
 * The controls of a study whose variants are compared each with its own: the same model without the
 * idea, which the variant names (variants/variant.h). */
#ifndef STUDY_CONTROLS_H
#define STUDY_CONTROLS_H

#include "study_file.h"
#include "variants/model/skeleton.h"

/* Give each variant its control, and add those that the file does not have, once each: an added one
 * is named as a command line names it, and compared with none. The options of a variant's line are
 * its control's, too; they and the skeleton come before what its control says itself. E_USAGE for a
 * line whose words name no variant. */
enum status study_add_controls(struct study *s, struct err *e);

/* The skeleton of a variant's models: what its options say, or those of all trainings, or the file. */
enum skeleton study_skeleton(const struct study *s, const struct study_item *variant);

#endif
