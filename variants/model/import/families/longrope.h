/* SPDX-License-Identifier: MIT */
#pragma once

#include "variants/model/import/config_json.h"
#include "variants/variant.h"

struct longrope {
    const json_t *how;  /* the object that describes it */
    const char *name;   /* of that */
    int pairs;          /* of a head that are rotated */
    int usual_original; /* tokens of the training where no key says it, 0 = the context */
};

/* Say both lists, and what cosines and sines are multiplied by; refuse what contradicts itself. */
void import_put_longrope(struct config_json *j, const struct longrope *l);

/* A number of that object, `absent` without the key. */
double import_number_in(struct config_json *j, const json_t *object, const char *name,
                        const char *key, double absent, double least, double most);
