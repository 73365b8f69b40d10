// Products with a packed matrix: W (N, K) in blocks of 32 numbers of 4, 6 or 8 bits, as GGUF files have them.
//
// A panel is PANEL rows of W side by side: for each block first the codes, so ordered that one vector instruction
// multiplies four numbers of every row, then the scales of all rows in float16. The bytes are those of the file in
// another order, and are read once for all rows of x.
//
// A number is scale · (code - offset), or, in the layout MINIMUM, scale · code + minimum. In the layout HALVES each half
// of a block has a scale of its own. Rows of x are rounded to 8 bits with a scale for every block, so that the products
// within a block are sums of integers, and exact.
#pragma once
#include "simd.h"

#ifdef __AVX2__
#include <immintrin.h>
#endif

#define PANEL 16 // rows
#define PACKED_BLOCK 32
#define HALF_BLOCK 16
#define PARTS (PANEL / SIMD_WIDTH)
#define GROUPS_OF_FOUR (PACKED_BLOCK / 4)

enum { SYMMETRIC, MINIMUM, HALVES }; // as in ops/packed.py

typedef struct {
    const uint8_t *panels;
    long n, k, blocks; // rows, columns, blocks of a row
    int bits, layout;
} packed_matrix;

// 32 numbers of a row of x, each about level · numbers[i], and level times the sum of all and of each half.
typedef struct {
    int8_t numbers[PACKED_BLOCK];
    float level, sum, half_sums[2];
} rounded_block;

// Rows of x (M, K), rounded: block b of row m is blocks[b · M + m], so that one pointer finds that of several rows.
typedef struct {
    long rows;
    rounded_block *blocks;
} rounded_rows;

INLINE long code_bytes(int bits) { return PANEL * PACKED_BLOCK * bits / 8; }
INLINE long panel_block_bytes(int bits, int layout) { return code_bytes(bits) + PANEL * (layout == SYMMETRIC ? 2 : 4); }
INLINE long panel_bytes(const packed_matrix *w) { return w->blocks * panel_block_bytes(w->bits, w->layout); }
INLINE int code_offset(int bits, int layout) { return layout == MINIMUM ? 0 : 1 << (bits - 1); }

INLINE float half_to_float(uint16_t half) {
    uint32_t sign = (uint32_t)(half >> 15) << 31, exponent = half >> 10 & 31, fraction = half & 1023, bits;
    if (exponent == 31) bits = sign | 0x7f800000 | fraction << 13;
    else if (exponent) bits = sign | (exponent + 112) << 23 | fraction << 13;
    else { // zero, or so small that the first bit of the fraction is not implied
        float value = fraction * 0x1p-24f;
        return sign ? -value : value;
    }
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

INLINE float half_at(const uint8_t *from) {
    uint16_t half;
    memcpy(&half, from, sizeof half);
    return half_to_float(half);
}

// Round to nearest, ties to even; too large a number becomes infinite.
INLINE uint16_t float_to_half(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    if (size > 0x7f800000) return sign | 0x7e00;
    if (size < 0x38800000) { // below the smallest normal number
        float shifted;
        memcpy(&shifted, &size, sizeof shifted);
        shifted += 0.5f; // the unit of 0.5 is 2^-24, that of the small numbers
        memcpy(&size, &shifted, sizeof size);
        return sign | (size - 0x3f000000);
    }
    size += 0xfff + (size >> 13 & 1);
    return size >= 0x47800000 ? sign | 0x7c00 : sign | (size - 0x38000000) >> 13;
}

// `SIMD_WIDTH` rows of a panel: their scales, codes, and sums of products.
#if defined(AVX512)
typedef __m512i bytes;
INLINE vec load_halves(const uint8_t *from) { return (vec)_mm512_cvtph_ps(_mm256_loadu_si256((const void *)from)); }
#elif defined(__AVX2__) && defined(__F16C__)
typedef __m256i bytes;
INLINE vec load_halves(const uint8_t *from) { return (vec)_mm256_cvtph_ps(_mm_loadu_si128((const void *)from)); }
#else
typedef uint8_t bytes __attribute__((vector_size(4 * SIMD_WIDTH)));
INLINE vec load_halves(const uint8_t *from) {
    vec values;
    uint16_t halves[SIMD_WIDTH];
    memcpy(halves, from, sizeof halves);
    for (int i = 0; i < SIMD_WIDTH; i++) values[i] = half_to_float(halves[i]);
    return values;
}
#endif
typedef uint32_t word_lanes __attribute__((vector_size(4 * SIMD_WIDTH), aligned(1)));
INLINE word_lanes load_words(const uint8_t *from) { return *(const word_lanes *)from; }

// sums[lane] += Σ of the four products of unsigned codes and signed numbers of each lane; the same four for all lanes.
INLINE ivec add_four_products(const int bits, ivec sums, word_lanes codes, const int8_t *four_numbers) {
    int32_t four_bytes;
    memcpy(&four_bytes, four_numbers, sizeof four_bytes);
    (void)bits;
#if defined(AVX512) && defined(__AVX512VNNI__)
    return (ivec)_mm512_dpbusd_epi32((bytes)sums, (bytes)codes, _mm512_set1_epi32(four_bytes));
#elif defined(AVX512)
    bytes x = _mm512_set1_epi32(four_bytes), ones = _mm512_set1_epi16(1);
    if (bits < 8) return sums + (ivec)_mm512_madd_epi16(_mm512_maddubs_epi16((bytes)codes, x), ones);
    bytes even = _mm512_and_si512((bytes)codes, _mm512_set1_epi16(255)), odd = _mm512_srli_epi16((bytes)codes, 8);
    bytes x_even = _mm512_srai_epi16(_mm512_slli_epi16(x, 8), 8), x_odd = _mm512_srai_epi16(x, 8);
    return sums + (ivec)_mm512_madd_epi16(even, x_even) + (ivec)_mm512_madd_epi16(odd, x_odd);
#elif defined(__AVX2__)
    bytes x = _mm256_set1_epi32(four_bytes), ones = _mm256_set1_epi16(1);
    if (bits < 8) return sums + (ivec)_mm256_madd_epi16(_mm256_maddubs_epi16((bytes)codes, x), ones);
    bytes even = _mm256_and_si256((bytes)codes, _mm256_set1_epi16(255)), odd = _mm256_srli_epi16((bytes)codes, 8);
    bytes x_even = _mm256_srai_epi16(_mm256_slli_epi16(x, 8), 8), x_odd = _mm256_srai_epi16(x, 8);
    return sums + (ivec)_mm256_madd_epi16(even, x_even) + (ivec)_mm256_madd_epi16(odd, x_odd);
#else
    for (int j = 0; j < 4; j++) sums += (ivec)(codes >> 8 * j & 255) * four_numbers[j];
    return sums;
#endif
}

// The codes of group g of a block (numbers 4g to 4g + 3 of each row), one to a byte. Groups 0 to 3 are the low four
// bits, groups 4 to 7 the high ones; of 6-bit codes the two high bits follow, four groups in a byte.
INLINE word_lanes unpack_codes(const int bits, const uint8_t *codes, const int g, const int part) {
    const long at = part * 4 * SIMD_WIDTH;
    if (bits == 8) return load_words(codes + g * 4 * PANEL + at);
    word_lanes low = load_words(codes + g % 4 * 4 * PANEL + at);
    low = (g < 4 ? low : low >> 4) & 0x0f0f0f0f;
    if (bits == 4) return low;
    word_lanes high = load_words(codes + (4 + g / 4) * 4 * PANEL + at);
    return low | (high >> 2 * (g % 4) & 0x03030303) << 4;
}

// out[m] = W[rows of a panel] · x[m] for `count` rows of x from `first` on; the scales are applied block by block. The
// offset of the codes, as a minimum of -offset · scale, is multiplied with the sums of x.
INLINE void panel_products(const int bits, const int layout, const int count, const packed_matrix *w,
                           const uint8_t *panel, const rounded_rows *x, long first, float *out) {
    const float offset = code_offset(bits, layout);
    const int in_halves = layout == HALVES || count == 1; // of one row two chains of sums, which wait less
    for (int part = 0; part < PARTS; part++) {
        vec totals[8];
        UNROLL for (int m = 0; m < count; m++) totals[m] = (vec){};
        const uint8_t *codes = panel;
        const rounded_block *numbers = x->blocks + first;
        for (long b = 0; b < w->blocks; b++, codes += panel_block_bytes(bits, layout), numbers += x->rows) {
            const uint8_t *scales = codes + code_bytes(bits) + part * 2 * SIMD_WIDTH;
            vec scale = load_halves(scales), other = layout == SYMMETRIC ? scale : load_halves(scales + 2 * PANEL);
            ivec sums[8], more[8];
            UNROLL for (int m = 0; m < count; m++) sums[m] = more[m] = (ivec){};
            UNROLL for (int g = 0; g < GROUPS_OF_FOUR / 2; g++) {
                word_lanes low = unpack_codes(bits, codes, g, part), high = unpack_codes(bits, codes, g + 4, part);
                UNROLL for (int m = 0; m < count; m++) {
                    ivec *last = in_halves ? more : sums;
                    sums[m] = add_four_products(bits, sums[m], low, numbers[m].numbers + 4 * g);
                    last[m] = add_four_products(bits, last[m], high, numbers[m].numbers + 4 * g + HALF_BLOCK);
                }
            }
            vec minimum = layout == MINIMUM ? other : -offset * scale;
            UNROLL for (int m = 0; m < count; m++) {
                if (layout == HALVES) {
                    totals[m] += __builtin_convertvector(sums[m], vec) * (scale * numbers[m].level);
                    totals[m] += __builtin_convertvector(more[m], vec) * (other * numbers[m].level);
                    totals[m] += minimum * numbers[m].half_sums[0] - offset * other * numbers[m].half_sums[1];
                } else {
                    ivec sum = in_halves ? sums[m] + more[m] : sums[m];
                    totals[m] += __builtin_convertvector(sum, vec) * (scale * numbers[m].level);
                    totals[m] += minimum * numbers[m].sum;
                }
            }
        }
        UNROLL for (int m = 0; m < count; m++) store(out + m * PANEL + part * SIMD_WIDTH, totals[m]);
    }
}

#ifdef AVX512
#define PACKED_ROWS 8 // rows of x that share the unpacked codes
#else
#define PACKED_ROWS 4
#endif

// Separate functions, so that the compiler has all registers for each.
typedef void panel_kernel(const packed_matrix *, const uint8_t *panel, const rounded_rows *, long first, float *out);
#define PACKED_KERNEL(bits, layout, count)                                                                             \
    static NOINLINE void panel_##bits##_##layout##_##count(const packed_matrix *w, const uint8_t *panel,               \
                                                           const rounded_rows *x, long first, float *out) {             \
        panel_products(bits, layout, count, w, panel, x, first, out);                                                  \
    }
#define PACKED_KERNELS(bits, layout)                                                                                   \
    PACKED_KERNEL(bits, layout, 1)                                                                                     \
    PACKED_KERNEL(bits, layout, 2)                                                                                     \
    PACKED_KERNEL(bits, layout, 4)                                                                                     \
    PACKED_KERNEL(bits, layout, 8)                                                                                     \
    static panel_kernel *kernel_##bits##_##layout(long count) {                                                        \
        return count == 8   ? panel_##bits##_##layout##_8                                                              \
               : count == 4 ? panel_##bits##_##layout##_4                                                              \
               : count == 2 ? panel_##bits##_##layout##_2                                                              \
                            : panel_##bits##_##layout##_1;                                                             \
    }
PACKED_KERNELS(4, SYMMETRIC)
PACKED_KERNELS(4, MINIMUM)
PACKED_KERNELS(6, SYMMETRIC)
PACKED_KERNELS(6, MINIMUM)
PACKED_KERNELS(6, HALVES)
PACKED_KERNELS(8, SYMMETRIC)

static panel_kernel *find_kernel(const packed_matrix *w, long count) {
    if (w->bits == 4) return w->layout == MINIMUM ? kernel_4_MINIMUM(count) : kernel_4_SYMMETRIC(count);
    if (w->bits == 8) return kernel_8_SYMMETRIC(count);
    return w->layout == MINIMUM  ? kernel_6_MINIMUM(count)
           : w->layout == HALVES ? kernel_6_HALVES(count)
                                 : kernel_6_SYMMETRIC(count);
}

// Round one block of x, of which `filled` numbers exist. NaN and infinity make the level NaN.
static void round_block(const float *x, long filled, rounded_block *to) {
    float numbers[PACKED_BLOCK] = {0};
    memcpy(numbers, x, filled * sizeof(float));
    vec maximum = {}, not_finite = {};
    UNROLL for (int i = 0; i < PACKED_BLOCK; i += SIMD_WIDTH) {
        maximum = max_vec(abs_vec(load(numbers + i)), maximum);
        not_finite += load(numbers + i) * 0; // NaN if it is not finite
    }
    float largest = reduce_max(maximum), damage = reduce_sum(not_finite);
    to->level = largest / 127 + damage;
    vec factor = broadcast(largest > 1e-30f && damage == 0 ? 127 / largest : 0);
    for (int half = 0; half < 2; half++) {
        ivec total = {};
        UNROLL for (int i = 0; i < HALF_BLOCK; i += SIMD_WIDTH) {
            ivec levels = damage == 0 ? round_to_ints(load(numbers + half * HALF_BLOCK + i) * factor) : (ivec){};
            total += levels;
            for (int lane = 0; lane < SIMD_WIDTH; lane++)
                to->numbers[half * HALF_BLOCK + i + lane] = (int8_t)levels[lane];
        }
        to->half_sums[half] = to->level * reduce_sum_ints(total);
    }
    to->sum = to->half_sums[0] + to->half_sums[1];
}

// Round blocks `from` to `to` of row m of x (M, K).
static void round_blocks(const float *x, long k, const rounded_rows *rows, long m, long from, long to) {
    for (long b = from; b < to; b++)
        round_block(x + m * k + b * PACKED_BLOCK, min_long(PACKED_BLOCK, k - b * PACKED_BLOCK),
                    rows->blocks + b * rows->rows + m);
}

// out[m · stride + row] = W[row] · x[m] + bias[row] + residual[m · stride + row], for the rows of a panel; bias and
// residual may be NULL.
static void multiply_panel(const packed_matrix *w, long panel, const rounded_rows *x, const float *bias,
                           const float *residual, float *out, long stride) {
    float products[8 * PANEL];
    long row = panel * PANEL, rows = min_long(PANEL, w->n - row);
    for (long first = 0, count; first < x->rows; first += count) {
        long left = x->rows - first;
        count = left >= PACKED_ROWS ? PACKED_ROWS : left >= 4 ? 4 : left >= 2 ? 2 : 1;
        find_kernel(w, count)(w, w->panels + panel * panel_bytes(w), x, first, products);
        for (long m = 0; m < count; m++) {
            float *to = out + (first + m) * stride + row;
            for (long r = 0; r < rows; r++) {
                float value = products[m * PANEL + r] + (bias ? bias[row + r] : 0);
                to[r] = residual ? value + residual[(first + m) * stride + row + r] : value;
            }
        }
    }
}

// Row `row` of a packed matrix in float32.
static inline void unpack_row(const packed_matrix *w, long row, float *out) {
    const uint8_t *at = w->panels + row / PANEL * panel_bytes(w);
    long lane = row % PANEL, offset = code_offset(w->bits, w->layout);
    for (long b = 0; b < w->blocks; b++, at += panel_block_bytes(w->bits, w->layout)) {
        const uint8_t *scales = at + code_bytes(w->bits) + 2 * lane;
        float scale = half_at(scales), other = w->layout == SYMMETRIC ? 0 : half_at(scales + 2 * PANEL);
        for (long i = 0; i < min_long(PACKED_BLOCK, w->k - b * PACKED_BLOCK); i++) {
            long g = i / 4, byte = lane * 4 + i % 4;
            int code = w->bits == 8 ? at[g * 4 * PANEL + byte] : at[g % 4 * 4 * PANEL + byte] >> (g < 4 ? 0 : 4) & 15;
            if (w->bits == 6) code |= (at[(4 + g / 4) * 4 * PANEL + byte] >> 2 * (g % 4) & 3) << 4;
            out[b * PACKED_BLOCK + i] = w->layout == MINIMUM ? scale * code + other
                                        : w->layout == HALVES && i >= HALF_BLOCK ? other * (code - offset)
                                                                                 : scale * (code - offset);
        }
    }
}
