/* SPDX-License-Identifier: MIT
 *
 * Published models: a folder with config.json and safetensors files becomes a config of ours, and
 * its tensors our parameters. Nothing in it is trusted. What it needs is checked, by name, type and
 * shape, before any of its numbers is read. */
#pragma once

#include "opened.h"

#define PUBLISHED_CONFIG "config.json"
#define PUBLISHED_GGUF "model.gguf" /* in place of it, in folders of golden files */

/* A folder, a .safetensors file that is not ours beside a config.json, or a GGUF file. */
bool published_is(const char *path);

enum { PUBLISHED_PATH = 4096 };
/* The folder of either. E_IO where its path is too long. */
enum status published_folder(char dir[PUBLISHED_PATH], const char *path, struct err *e);

/* E_IO naming the checkpoint, and what in it is missing, unknown, of another type or shape. */
enum status published_open(struct published *p, const char *path, struct err *e);
void published_close(struct published *p);

/* Widen its tensors into the parameters of a model of p->config. E_IO where one holds a value that
 * is not finite. */
enum status published_load(const struct published *p, struct params *params, struct err *e);
