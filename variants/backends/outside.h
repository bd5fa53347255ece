/* SPDX-License-Identifier: MIT
 *
 * Backends that are kernels from files, any name with a '/', or processes, "exec:COMMAND". A process that
 * measures loads the file or starts the process (engine_open), and one only; the others know its name. */
#pragma once

#include "backend.h"

static inline bool backend_is_process(const char *name) { return strncmp(name, "exec:", 5) == 0; }
static inline bool backend_is_outside(const char *name)
{
    return backend_is_process(name) || strchr(name, '/');
}

/* How long one may be silent. Processes load packages, and compile. */
static inline int outside_patience_s(const char *name)
{
    return backend_is_process(name) ? 300 : 60;
}

/* The backend of that path, whether or not the file can be loaded; NULL for other names. */
const struct backend *outside_find(const char *name);

/* Load it, by its path alone, and fill the backend with what it has. E_CHILD. */
enum status outside_open(const struct backend *b, int threads, struct err *e);
void outside_close(void);

/* Who starts a process, fills its table, and notes in a word what a call of it costs; or ends this one. */
struct bk_kernel;
typedef void outside_start(const char *command, int threads, struct bk_kernel *k, char note[64]);
void outside_processes(outside_start *start);

/* What is open in this process: name@version, its functions (enum bk_function), and their calls so far. */
const char *outside_name(void);
bool outside_has(int function);
long outside_calls(int function);

/* What the kernel has changed of this process's state since it was opened, and has to restore, such as
 * the rounding; NULL = nothing. */
const char *outside_changed(void);
