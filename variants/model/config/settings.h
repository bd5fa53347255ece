/* SPDX-License-Identifier: MIT
 *
 * Numbers of a model that a user may set by name, such as experts, a window or compressed rows, if
 * the model has them. They are the rows of parts and of keys.h with `setting`. What users compare
 * has an option (choices.h). */
#pragma once

#include "variants/variant.h"

/* A walk through the settings of all models; it begins as {0}. */
struct settings {
    int key;
    size_t parts;
    const struct choice *row;
};
/* The next one; NULL after the last. */
const struct choice *setting_next(struct settings *walk);
bool setting_applies(const struct choice *row, const struct config *c);
/* Does it have the part that the setting is of, whether other choices make it count or not? */
bool setting_belongs(const struct choice *row, const struct config *c);

enum { SETTINGS_TEXT = 512 };

/* The first setting that a text gives and `taken`, in the order of setting_next, has not; NULL. */
enum { SETTINGS_MOST = 256 };
const struct choice *settings_untaken(const char *text, const bool taken[SETTINGS_MOST]);

/* "experts=8,moe_k=2": set those that apply and leave the others. All other choices of the model,
 * such as the length of its memory, must have been made. With `core` only those that attention
 * alone has. E_USAGE names what is unknown or out of range, whether it applies or not. */
enum status settings_parse(struct config *c, const char *text, bool core, struct err *e);
/* E_USAGE where they do not fit a model that is made for its memory. */
enum status settings_fit(const struct config *c, struct err *e);
/* Those that apply, with their values, as settings_parse reads them; "" where there is none. With
 * `changed`, and of rows that say `if_changed`, only those whose value is not what the model has
 * without settings. */
void settings_print(char text[SETTINGS_TEXT], const struct config *c, bool changed, bool core);

/* The row that has this key in files, of a model or of any part; NULL. */
const struct choice *row_of_key(const char *key);

/* Set what files call `key`, setting or not. E_USAGE where the model has nothing of that name. */
enum status config_set(struct config *c, const char *key, const char *text, struct err *e);

/* Are two models the same in everything that can be chosen, settings included? */
bool model_choices_equal(const struct config *a, const struct config *b, enum scope scope);
