/* SPDX-License-Identifier: MIT
 *
 * Presets of --count, which say how published perplexities are counted. A preset only gives other
 * options their values. */
#pragma once

#include "windows.h"

/* Give the options that --count decides its values, unless the user gave them; `context` is the
 * window of the model, 0 = unknown. E_USAGE for what does not go together. */
enum status counting_preset(struct options *o, int context, struct err *e);

/* Print them, as " --name value", where they are not those of a plain stream of bytes. */
void counting_print(FILE *f, const struct options *o);

/* Are there ids without the text that they were made of? Then no word and byte is known. */
bool counting_lacks_text(const struct options *o);

/* Parts that the options of an eval ask for. What several leave of a text's end is dropped: its words
 * and bytes count for nothing. */
int counting_batch(const struct options *o);
