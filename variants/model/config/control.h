/* SPDX-License-Identifier: MIT
 *
 * The control of a variant: the same model without its idea, which struct variant names as a command
 * line does. What the two differ in, as far as a layer or a whole model shows it. */
#pragma once

#include "variants/variant.h"

/* The control's model, of the sizes of `c`, with layers as many as `N`. The variant must have a control. */
struct config control_config(const struct config *c, int N);

enum { DIFFERENCES_MOST = 48 };
struct differences {
    const char *name[DIFFERENCES_MOST]; /* of columns and settings, each once */
    int n;
    bool
        idea; /* more than norms, biases, feed-forward networks and what is added to the embedding */
};
/* What two models differ in, as far as it shows in that scope. */
struct differences control_differences(const struct config *a, const struct config *b,
                                       enum scope scope);

/* Are its positions, which are not the control's, added to the embedding alone, as the control's are?
 * Layers then show none. The variant must have a control. */
bool control_embeds_positions(const struct config *c);

/* Does the idea act between layers: does its model differ from the control's, but one layer of it not?
 * Only differences in the idea count. */
bool control_acts_between_layers(const struct variant *v);

/* Is it such an idea, and are so many layers too few for it: one, or none that attends of a stack? */
bool control_hides(const struct variant *v, int layers);
