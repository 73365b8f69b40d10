// What all kernels share: vectors as wide as the machine's registers, in the words of GCC and Clang.
#pragma once
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef __AVX512F__
#define LANES 16 // numbers in a vector
#define ROWS 12  // rows of a matrix that are multiplied at once: ROWS × 2 sums fill the registers
#else
#define LANES 8
#define ROWS 6
#endif
#define PANEL (2 * LANES) // words that are multiplied at once

#define INLINE static inline __attribute__((always_inline))
#define ALONE __attribute__((noinline))
#define UNROLL _Pragma("GCC unroll 16")

// Aligned as a single number is: they may begin anywhere.
typedef float vec __attribute__((vector_size(4 * LANES), aligned(4)));
typedef int32_t ints __attribute__((vector_size(4 * LANES), aligned(4)));
typedef float four __attribute__((vector_size(16), aligned(4)));

INLINE vec load(const float *from) { return *(const vec *)from; }
INLINE void store(float *to, vec numbers) { *(vec *)to = numbers; }
INLINE vec all(float number) { return number - (vec){}; }
INLINE vec choose(ints which, vec yes, vec no) { return (vec)(((ints)yes & which) | ((ints)no & ~which)); }
INLINE vec larger(vec one, vec other) { return choose(one > other, one, other); }
INLINE long smaller(long one, long other) { return one < other ? one : other; }

// A vector folded in halves until one number is left.
#define HALF8(v) __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7)
#define REST8(v) __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15)
#define HALF4(v) __builtin_shufflevector(v, v, 0, 1, 2, 3)
#define REST4(v) __builtin_shufflevector(v, v, 4, 5, 6, 7)
#if LANES == 16
#define FOLD8(v, join) join(HALF8(v), REST8(v))
#else
#define FOLD8(v, join) (v)
#endif
#define PLUS(one, other) ((one) + (other))

INLINE float sum_of(vec numbers) {
    __auto_type eight = FOLD8(numbers, PLUS);
    __auto_type four = HALF4(eight) + REST4(eight);
    return (four[0] + four[2]) + (four[1] + four[3]);
}

INLINE int32_t whole_sum_of(ints numbers) {
    __auto_type eight = FOLD8(numbers, PLUS);
    __auto_type four = HALF4(eight) + REST4(eight);
    return (four[0] + four[2]) + (four[1] + four[3]);
}

INLINE float largest_of(vec numbers) {
    float best = numbers[0];
    UNROLL for (int i = 1; i < LANES; i++) best = numbers[i] > best ? numbers[i] : best;
    return best;
}

#define MAGIC 12582912.0f // 1.5 · 2^23: adding it rounds a float below 2^22 to a whole number
INLINE vec rounded_of(vec x) { return (x + MAGIC) - MAGIC; }
INLINE ints whole_of(vec x) { return __builtin_convertvector(rounded_of(x), ints); }

// e^x for x ≤ 0, right to 2e-7 of itself: 2^n e^r with |r| ≤ ln 2 / 2, e^r by its series; 0 below -87; NaN stays NaN.
INLINE vec exponential(vec x) {
    vec n = rounded_of(x * 1.44269504f);
    vec r = x - n * 0.693359375f + n * 2.12194440e-4f; // ln 2 in two parts, the first of few bits
    vec series = all(1.0f / 5040);
    series = series * r + 1.0f / 720;
    series = series * r + 1.0f / 120;
    series = series * r + 1.0f / 24;
    series = series * r + 1.0f / 6;
    series = series * r + 0.5f;
    series = series * r + 1.0f;
    series = series * r + 1.0f;
    ints power = (__builtin_convertvector(n, ints) + 127) << 23;
    return choose(x < -87.0f, all(0), series * (vec)power);
}

// to[c][r] = from[r][c], four by four.
static inline void transpose(const float *from, long from_stride, float *to, long to_stride, long rows, long columns) {
    long r = 0;
    for (; r + 4 <= rows; r += 4) {
        long c = 0;
        for (; c + 4 <= columns; c += 4) {
            const float *at = from + r * from_stride + c;
            four a = *(const four *)at, b = *(const four *)(at + from_stride);
            four d = *(const four *)(at + 2 * from_stride), e = *(const four *)(at + 3 * from_stride);
            four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab2 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
            four de = __builtin_shufflevector(d, e, 0, 4, 1, 5), de2 = __builtin_shufflevector(d, e, 2, 6, 3, 7);
            float *there = to + c * to_stride + r;
            *(four *)there = __builtin_shufflevector(ab, de, 0, 1, 4, 5);
            *(four *)(there + to_stride) = __builtin_shufflevector(ab, de, 2, 3, 6, 7);
            *(four *)(there + 2 * to_stride) = __builtin_shufflevector(ab2, de2, 0, 1, 4, 5);
            *(four *)(there + 3 * to_stride) = __builtin_shufflevector(ab2, de2, 2, 3, 6, 7);
        }
        for (; c < columns; c++)
            for (int i = 0; i < 4; i++) to[c * to_stride + r + i] = from[(r + i) * from_stride + c];
    }
    for (; r < rows; r++)
        for (long c = 0; c < columns; c++) to[c * to_stride + r] = from[r * from_stride + c];
}
