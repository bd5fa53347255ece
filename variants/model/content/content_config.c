/* SPDX-License-Identifier: MIT
 *
 * What makes no sense together with attention by content: it chooses its pairs itself. */
#include "content.h"

const char *content_looks_ahead(const struct config *c)
{
    const struct content *const form = c->mixer->content;

    return form->looks_ahead ? form->looks_ahead(c) : NULL;
}

bool content_is_alone(const struct config *c) { return c->V == 0; }

enum status content_check(const struct config *c, struct err *e)
{
    const char *const why = content_looks_ahead(c);
    if (why && !content_is_alone(c))
        return fail(e, E_USAGE, "%s: no language model: %s  -> use attention or a layer alone",
                    c->variant->name, why);
    return OK;
}
