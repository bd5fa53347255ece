/* SPDX-License-Identifier: MIT
 *
 * The systems of the papers that this harness began with, and what became of each: built, so that
 * one command runs it, or it is not built, for a reason. docs/systems.md is made of this list. */
#pragma once

/* A system is either run or explained. */
struct system {
    const char *name, *paper;
    const char *run; /* options of bench; NULL = it is not built */
    const char *why; /* one sentence; NULL = it is built */
};

extern const struct system systems[]; /* the last has no name */
