/* SPDX-License-Identifier: MIT
 *
 * Shared by the golden files of published models. Each file lies in the folder of its model. */
#ifndef GOLDEN_IMPORT_H
#define GOLDEN_IMPORT_H

#include "golden_inner.h"
#include "variants/model/weights.h"

enum { IMPORT_NAME = 128, IMPORT_CUTS = 64 };

/* The sum of losses may differ by a part of 2e-6: what is published is rounded no worse. */
#define IMPORT_TOTAL 2e-6

/* Lengths of the segments that a text is cut into; n = 0: none. */
struct import_cuts {
    int n, at[IMPORT_CUTS];
};

/* The model, its config in r->c, and the folder's name in verdicts. */
enum status import_open(struct run *r, struct weights *w, char name[IMPORT_NAME], struct err *e);
/* in.ids [B,T], in the vocabulary. */
enum status import_ids(const struct run *r, const struct tensor **ids, struct err *e);
/* A text of T tokens. */
enum status import_cuts(const struct run *r, struct import_cuts *cuts, int T, struct err *e);

#endif
