/* SPDX-License-Identifier: MIT
 *
 * Loops that a compiler vectorises, one operation of Box and Muller each; the file that includes
 * this one names the function, NORMALS, and by its own name the instructions. Logarithm, sine and
 * cosine are the reductions and polynomials of fdlibm: within one unit in the last place of a
 * double. */
#include "normals.h"

#include <math.h>
#include <string.h>

static inline double double_of(uint64_t bits)
{
    double x;

    memcpy(&x, &bits, sizeof(x));
    return x;
}

static inline uint64_t bits_of(double x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

/* ln x = k ln 2 + ln(1 + f), 1 + f in [sqrt(1/2), sqrt(2)). */
static inline double logarithm(double x)
{
    const uint64_t root_half = 0x3fe6a09e667f3bcd, one = 0x3ff0000000000000;
    const uint64_t shifted = bits_of(x) + (one - root_half);
    const double k = double_of(0x4330000000000000 | shifted >> 52) - (0x1p52 + 1023);
    const double f = double_of((shifted & 0x000fffffffffffff) + root_half) - 1;
    const double s = f / (2 + f), z = s * s, w = z * z, half = 0.5 * f * f;
    const double even = w * (3.999999999940941908e-01 +
                             w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
    const double odd = z * (6.666666666666735130e-01 +
                            w * (2.857142874366239149e-01 +
                                 w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));

    return k * 6.93147180369123816490e-01 -
           ((half - (s * (half + even + odd) + k * 1.90821492927058770002e-10)) - f);
}

/* On [-pi/4, pi/4]. */
static inline double sine(double x)
{
    const double z = x * x;
    const double tail =
        8.33333333332248946124e-03 +
        z * (-1.98412698298579493134e-04 +
             z * (2.75573137070700676789e-06 +
                  z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)));

    return x + z * x * (-1.66666666666666324348e-01 + z * tail);
}

static inline double cosine(double x)
{
    const double z = x * x, half = 0.5 * z, most = 1 - half;
    const double tail =
        z * (4.16666666666666019037e-02 +
             z * (-1.38888888888741095749e-03 +
                  z * (2.48015872894767294178e-05 +
                       z * (-2.75573143513906633035e-07 +
                            z * (2.08757232129817482790e-09 - z * 1.13596475577881948265e-11)))));

    return most + ((1 - most - half) + z * tail);
}

void NORMALS(double z[2][NORMALS_PAIRS], const uint32_t u[NORMALS_PAIRS],
             const uint32_t v[NORMALS_PAIRS])
{
    const double turn = 6.283185307179586;
    double radius[NORMALS_PAIRS];

#pragma omp simd
    for (int p = 0; p < NORMALS_PAIRS; p++)
        radius[p] = sqrt(-2.0 * logarithm(rng_unit(u[p])));
        /* The angle is a number of quarter turns, to the nearest, and a rest, both exact. */
#pragma omp simd
    for (int p = 0; p < NORMALS_PAIRS; p++) {
        const double t = rng_unit(v[p]), shifted = 4 * t + 0x1p52;
        const uint64_t quarter = bits_of(shifted);
        const double rest = turn * (t - 0.25 * (shifted - 0x1p52));
        const double s = sine(rest), c = cosine(rest);
        /* Odd quarters swap the two; bit 1 of quarter + 1 or of quarter is the sign. */
        const uint64_t swap = 0 - (quarter & 1);
        const uint64_t x = (bits_of(c) & ~swap) | (bits_of(s) & swap);
        const uint64_t y = (bits_of(s) & ~swap) | (bits_of(c) & swap);
        z[0][p] = radius[p] * double_of(x ^ ((quarter + 1) >> 1 & 1) << 63);
        z[1][p] = radius[p] * double_of(y ^ (quarter >> 1 & 1) << 63);
    }
}
