/* SPDX-License-Identifier: MIT
 *
 * The levels of instructions and their mask. */
#include "cpu.h"

#define NAME(ID, name, flags) #name,
#define FLAGS(ID, name, flags) flags,
const char *const isa_name[ISA_COUNT + 1] = {"ref", ISA_LIST(NAME)};
const char *const isa_needs[ISA_COUNT] = {"", ISA_LIST(FLAGS)};

static enum isa limit = ISA_COUNT - 1;

enum isa cpu_isa(void)
{
    const enum isa have = cpu_isa_unmasked();
    return have < limit ? have : limit;
}

bool cpu_has_dot4(enum isa level)
{
    return (limit > level || limit == ISA_COUNT - 1) && cpu_has_dot4_unmasked(level);
}

void cpu_limit(enum isa most) { limit = most; }
