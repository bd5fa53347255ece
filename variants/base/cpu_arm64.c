/* SPDX-License-Identifier: MIT
 *
 * arm64, by what the kernel tells: hardware bits and the identification register. */
#include "cpu.h"

#include <asm/hwcap.h>
#include <sys/auxv.h>

enum isa cpu_isa_unmasked(void) { return getauxval(AT_HWCAP) & HWCAP_ASIMD ? ISA_NEON : ISA_BASE; }

bool cpu_has_dot4_unmasked(enum isa level)
{
    return level == ISA_NEON && (getauxval(AT_HWCAP) & HWCAP_ASIMDDP);
}

/* MIDR_EL1: implementer in bits 31 to 24, part in bits 15 to 4. Cores that are not in the table are
 * named by these numbers. */
void cpu_name(char *buf, size_t size)
{
    static const struct {
        unsigned implementer, part;
        const char *name;
    } known[] = {
        {0x41, 0xd03, "Cortex-A53"},  {0x41, 0xd07, "Cortex-A57"},  {0x41, 0xd08, "Cortex-A72"},
        {0x41, 0xd0b, "Cortex-A76"},  {0x41, 0xd0c, "Neoverse N1"}, {0x41, 0xd40, "Neoverse V1"},
        {0x41, 0xd49, "Neoverse N2"}, {0x41, 0xd4f, "Neoverse V2"}, {0xc0, 0xac3, "Ampere-1"},
    };
    static const char path[] = "/sys/devices/system/cpu/cpu0/regs/identification/midr_el1";
    FILE *const f = fopen(path, "r");
    unsigned long midr = 0;
    const bool read = f && fscanf(f, "%lx", &midr) == 1;

    if (f)
        fclose(f);
    snprintf(buf, size, "unknown CPU");
    if (!read)
        return;
    const unsigned implementer = midr >> 24 & 0xff, part = midr >> 4 & 0xfff;
    snprintf(buf, size, "arm64 implementer 0x%x part 0x%x", implementer, part);
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (known[i].implementer == implementer && known[i].part == part)
            snprintf(buf, size, "%s", known[i].name);
}

/* The architecture has no instruction that tells. */
void cpu_hypervisor(char signature[HYPERVISOR_SIZE]) { memset(signature, 0, HYPERVISOR_SIZE); }

void cpu_flush_denormals(void)
{
    const uint64_t flush_to_zero = 1u << 24;
    uint64_t fpcr;

    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    __asm__ volatile("msr fpcr, %0" : : "r"(fpcr | flush_to_zero));
}
