/* SPDX-License-Identifier: MIT
 *
 * What a sweep's table calls its cases: the heading has what all cases of the plan have in common,
 * a row the variant and the choices that are its own. */
#pragma once

#include "harness/plan/case.h"

struct case_labels {
    bool shared[MODEL_CHOICE_COUNT]; /* every case has the same unusual value: said in headings */
    /* As most cases of a workload hold theirs: said in headings; others say it in their row. */
    enum mem_kind context[WORK_COUNT][PHASE_COUNT];
    char dtypes[64];     /* of the plan, if there are several: "f32,bf16" */
    int d_head, d_inner; /* usual ones: in headings; others are in names */
    int excess;          /* columns by which the longest variant and backend pass their columns */
};

/* Of the cases of a plan; `room` columns are the variant's and the backend's, a gap included. */
void case_labels_find(struct case_labels *l, const struct bench_case *cases, int n, int room);

/* "layer  batch=1  layers=1  d=512 ...". Cases with the same heading stand under one. */
void case_heading(const struct case_labels *l, const struct bench_case *c, char *buf, size_t size);
bool same_heading(const struct case_labels *l, const struct bench_case *a,
                  const struct bench_case *b);

/* The variant, its choices that not all have, and where its context is if it is another place. */
void case_variant(const struct case_labels *l, const struct bench_case *c, char *buf, size_t size);
