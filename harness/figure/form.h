/* SPDX-License-Identifier: MIT
 *
 * A text with placeholders: {{name}} is a value, {{#name}} and {{/name}}, on lines of their own,
 * enclose a part that is repeated. Values are not expanded again. */
#pragma once

#include "variants/base/base.h"

struct form {
    FILE *out;
    const char *file; /* name, for messages */
    void *arg;
    enum status (*put)(void *arg, const char *value, bool *known);
    /* Go to the next item of a part; *more = false after the last. */
    enum status (*next)(void *arg, const char *part, bool *more, bool *known);
};

/* E_IO for an unknown name, a part without an end, and more than 8 parts in each other. */
enum status form_fill(const struct form *f, const char *text, struct err *e);
