/* SPDX-License-Identifier: MIT
 *
 * What the last forward pass of a sub-layer shows besides its output. */
#include "reader.h"

/* x[n] are indices or counts. */
static void compare_indices(struct run *r, const char *name, const float *x, size_t n)
{
    int32_t *const whole = calloc(n + 1, sizeof(*whole));

    NEED(whole);
    for (size_t k = 0; k < n; k++)
        whole[k] = (int32_t)x[k];
    golden_compare_whole(r, name, whole, n);
    free(whole);
}

void golden_shown(struct run *r, const struct sublayer *s, const struct work *w)
{
    for (int i = 0;; i++) {
        struct shown shown = {0};
        char name[TENSOR_NAME];
        if (!s->kind->shows || !s->kind->shows(s, w, r->max, i, &shown))
            return;
        snprintf(name, sizeof(name), "out.%s", shown.name);
        shown.to = calloc(shown.n + 1, sizeof(*shown.to));
        NEED(shown.to);
        s->kind->shows(s, w, r->max, i, &shown);
        if (shown.whole)
            compare_indices(r, name, shown.to, shown.n);
        else
            golden_compare(r, name, shown.to, shown.n);
        free(shown.to);
    }
}
