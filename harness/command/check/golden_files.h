/* SPDX-License-Identifier: MIT
 *
 * Which golden files a path stands for. */
#pragma once

#include "variants/base/base.h"

struct golden_files {
    struct golden_file {
        char *path;
        bool other; /* of a kind that `make golden` reads */
    } * at;
    int n;
    bool folder;
};

/* The file at `path`, or what a folder has, by name. Free `f` in either case. */
enum status golden_files_list(struct golden_files *f, const char *path, struct err *e);
void golden_files_free(struct golden_files *f);
