/* SPDX-License-Identifier: MIT
 *
 * Operands of VEX instructions of three bytes before the opcode (Intel, Software Developer's Manual 2):
 * C4, ~R ~X ~B and the map, W ~vvvv L pp, the opcode, then registers or an address. For handlers that
 * do what an instruction would. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

struct vex {
    int reg, vvvv, rm; /* rm: where there is no address */
    bool in_memory;
    uint64_t base, index; /* address = base + index, scaled */
    const uint8_t *next;  /* instruction */
};

static inline uint64_t vex_general(const ucontext_t *c, int i)
{
    static const int order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                  REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                  REG_R12, REG_R13, REG_R14, REG_R15};

    return (uint64_t)c->uc_mcontext.gregs[order[i]];
}

static inline int64_t vex_displacement(const uint8_t *p, int bytes)
{
    int8_t one;
    int32_t four;

    memcpy(&one, p, sizeof(one));
    memcpy(&four, p, sizeof(four));
    return bytes == 1 ? one : bytes == 4 ? four : 0;
}

static inline struct vex vex_decode(const ucontext_t *c, const uint8_t *p)
{
    const uint8_t *const modrm = p + 4;
    const int r = p[1] & 0x80 ? 0 : 8, x = p[1] & 0x40 ? 0 : 8, b = p[1] & 0x20 ? 0 : 8;
    const int mod = *modrm >> 6, rm = *modrm & 7;
    struct vex v = {.reg = (*modrm >> 3 & 7) | r,
                    .vvvv = ~p[2] >> 3 & 15,
                    .rm = rm | b,
                    .in_memory = mod != 3,
                    .next = modrm + 1};
    if (!v.in_memory)
        return v;
    const bool has_index = rm == 4, relative = rm == 5 && mod == 0;
    const int scaled = modrm[1], base = has_index ? scaled & 7 : rm;
    const bool no_base = base == 5 && mod == 0;
    const int bytes = mod == 1 ? 1 : mod == 2 || no_base ? 4 : 0;
    const uint8_t *const disp = modrm + 1 + has_index;
    const int index = (scaled >> 3 & 7) | x;

    v.next = disp + bytes;
    v.base = (uint64_t)vex_displacement(disp, bytes);
    if (has_index && index != 4)
        v.index = vex_general(c, index) << (scaled >> 6);
    if (!no_base)
        v.base += vex_general(c, base | b);
    if (relative)
        v.base += (uint64_t)(uintptr_t)v.next;
    return v;
}
