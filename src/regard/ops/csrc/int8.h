// Products of activations x (M, K) with a matrix W (N, K) in int8 that has a scale per row; K is a multiple of 64.
//
// Each row of x is scaled by its own largest number to integers of up to 16 bits, of which no sum overflows; the sums
// are exact, and no row's result depends on the rows beside it. Numbers are multiplied in pairs, as the instruction
// does: int16 times int16, two products added to an int32. The rest is as in linear.c, but rows of W are widened into
// the buffer before they are multiplied, and a small batch is multiplied row by row without being transposed.
#pragma once
#include "simd.h"

#ifdef __AVX2__
#include <immintrin.h>

#define CHUNK 1024          // numbers of a row of W in the buffer
#define STRIDE (CHUNK + 32) // their distance there: no power of two
#define PAIR 2
#define TINY 1.2e-38f                // squares below this underflow
#define TRANSPOSED 64                // columns of x that are transposed at once
#define SMALL_BATCH 8                // rows of x up to which it is not transposed
#define INT16_WIDTH (2 * SIMD_WIDTH) // int16 in a vector

#ifdef AVX512
typedef __m512i ivec16;
INLINE ivec16 load_ivec16(const void *from) { return _mm512_loadu_si512(from); }
INLINE void store_ivec16(void *to, ivec16 values) { _mm512_storeu_si512(to, values); }
INLINE ivec16 widen(const int8_t *from) { return _mm512_cvtepi8_epi16(_mm256_loadu_si256((const void *)from)); }
INLINE ivec16 broadcast_pair(const int16_t *pair) {
    int32_t both;
    memcpy(&both, pair, sizeof both);
    return _mm512_set1_epi32(both);
}
INLINE ivec16 add_pairs(ivec16 sum, ivec16 one, ivec16 other) {
#ifdef __AVX512VNNI__
    return _mm512_dpwssd_epi32(sum, one, other);
#else
    return _mm512_add_epi32(sum, _mm512_madd_epi16(one, other));
#endif
}
#else
typedef __m256i ivec16;
INLINE ivec16 load_ivec16(const void *from) { return _mm256_loadu_si256(from); }
INLINE void store_ivec16(void *to, ivec16 values) { _mm256_storeu_si256(to, values); }
INLINE ivec16 widen(const int8_t *from) { return _mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)from)); }
INLINE ivec16 broadcast_pair(const int16_t *pair) {
    int32_t both;
    memcpy(&both, pair, sizeof both);
    return _mm256_set1_epi32(both);
}
INLINE ivec16 add_pairs(ivec16 sum, ivec16 one, ivec16 other) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(one, other));
}
#endif

// Activations x (M, K) as integers: x[m] is about levels[m] · rounded[m].
typedef struct {
    long batch, k, padded;         // padded: the batch in full vectors, or as it is if small
    int16_t *rounded, *transposed; // (M, K), and in transposed panels (K, TILE_COLUMNS)
    float *levels;                 // (padded)
} integer_batch;

// Returns 1 if there is not enough memory.
INLINE int allocate_batch(integer_batch *w) {
    int is_small = w->batch <= SMALL_BATCH;
    w->padded = is_small ? w->batch : (w->batch + SIMD_WIDTH - 1) / SIMD_WIDTH * SIMD_WIDTH;
    w->rounded = allocate(w->batch * w->k * sizeof(int16_t));
    w->transposed = is_small ? 0 : allocate(w->padded * w->k * sizeof(int16_t));
    w->levels = calloc(w->padded, sizeof(float));
    return !w->rounded || (!is_small && !w->transposed) || !w->levels;
}

INLINE void free_batch(integer_batch *w) {
    free(w->rounded);
    free(w->transposed);
    free(w->levels);
}

// x (K) is about level · rounded (K). NaN and infinity make the level NaN.
static void round_row(const float *x, long k, float max_level, float *level, int16_t *rounded) {
    vec maximum = {}, not_finite = {};
    for (long i = 0; i < k; i += SIMD_WIDTH) {
        vec values = load(x + i);
        maximum = max_vec(abs_vec(values), maximum);
        not_finite += values * 0; // NaN if it is not finite
    }
    float largest = reduce_max(maximum), damage = reduce_sum(not_finite);
    *level = largest / max_level + damage;
    vec factor = broadcast(largest > 1e-30f && damage == 0 ? max_level / largest : 0);
    for (long i = 0; i < k; i += SIMD_WIDTH) {
        ivec levels_int = round_to_ints(load(x + i) * factor);
        for (int lane = 0; lane < SIMD_WIDTH; lane++) rounded[i + lane] = (int16_t)levels_int[lane];
    }
}

// Transpose panel `first`, columns `start` to `start + TRANSPOSED`, in pairs.
static void transpose_panel(const integer_batch *w, long first, long start) {
    long width = min_long(TILE_COLUMNS, w->padded - first), filled = min_long(width, w->batch - first);
    int16_t *to = w->transposed + first * w->k + start * width;
    if (filled < width) memset(to, 0, TRANSPOSED * width * sizeof(int16_t));
    transpose((const float *)(w->rounded + first * w->k + start), w->k / PAIR, (float *)to, width, filled,
              TRANSPOSED / PAIR);
}

// Called by all threads of the team.
static void round_batch(const float *x, float max_level, const integer_batch *w) {
#pragma omp for
    for (long m = 0; m < w->batch; m++) round_row(x + m * w->k, w->k, max_level, w->levels + m, w->rounded + m * w->k);
    if (w->batch <= SMALL_BATCH) return;
#pragma omp for collapse(2)
    for (long first = 0; first < w->padded; first += TILE_COLUMNS)
        for (long start = 0; start < w->k; start += TRANSPOSED) transpose_panel(w, first, start);
}

INLINE void dot_products(const int count, const int16_t *rounded, long k, const int8_t *row, int32_t *sums) {
    ivec16 sum[SMALL_BATCH];
    UNROLL for (int m = 0; m < count; m++) sum[m] = (ivec16){};
    for (long i = 0; i < k; i += INT16_WIDTH) {
        ivec16 values = widen(row + i);
        UNROLL for (int m = 0; m < count; m++) sum[m] = add_pairs(sum[m], values, load_ivec16(rounded + m * k + i));
    }
    UNROLL for (int m = 0; m < count; m++) sums[m] = reduce_sum_ints((ivec)sum[m]);
}

// The products of a small batch with one row of W; not inlined, so that each sum has a register.
static NOINLINE void small_batch_products(long batch, const int16_t *rounded, long k, const int8_t *row,
                                          int32_t *sums) {
    switch (batch) {
    case 1: return dot_products(1, rounded, k, row, sums);
    case 2: return dot_products(2, rounded, k, row, sums);
    case 3: return dot_products(3, rounded, k, row, sums);
    case 4: return dot_products(4, rounded, k, row, sums);
    case 5: return dot_products(5, rounded, k, row, sums);
    case 6: return dot_products(6, rounded, k, row, sums);
    case 7: return dot_products(7, rounded, k, row, sums);
    case 8: return dot_products(8, rounded, k, row, sums);
    }
}

// sums[r][m] += Σ near[r][i] x[i][m] for one tile of TILE_ROWS rows and one or two vectors of the batch.
INLINE void add_products(const int vecs, const int16_t *near, const int16_t *batch, long length, int32_t *sums,
                         long stride, const int8_t *ahead, long ahead_stride) {
    ivec16 sum[TILE_ROWS][2];
    UNROLL for (int r = 0; r < TILE_ROWS; r++)
        UNROLL for (int v = 0; v < vecs; v++) sum[r][v] = load_ivec16(sums + r * stride + v * SIMD_WIDTH);
    for (long i = 0; i < length; i += PAIR) {
        if (ahead && i % 64 == 0) // once a cache line
            for (int r = 0; r < TILE_ROWS; r++) __builtin_prefetch(ahead + r * ahead_stride + i, 0, 2);
        ivec16 column[2];
        UNROLL for (int v = 0; v < vecs; v++) column[v] = load_ivec16(batch + (i * vecs + v * PAIR) * SIMD_WIDTH);
        UNROLL for (int r = 0; r < TILE_ROWS; r++) {
            ivec16 pair = broadcast_pair(near + r * STRIDE + i);
            UNROLL for (int v = 0; v < vecs; v++) sum[r][v] = add_pairs(sum[r][v], column[v], pair);
        }
    }
    UNROLL for (int r = 0; r < TILE_ROWS; r++)
        UNROLL for (int v = 0; v < vecs; v++) store_ivec16(sums + r * stride + v * SIMD_WIDTH, sum[r][v]);
}

static NOINLINE void tile_one(const int16_t *near, const int16_t *batch, long length, int32_t *sums, long stride,
                              const int8_t *ahead, long ahead_stride) {
    add_products(1, near, batch, length, sums, stride, ahead, ahead_stride);
}
static NOINLINE void tile_two(const int16_t *near, const int16_t *batch, long length, int32_t *sums, long stride,
                              const int8_t *ahead, long ahead_stride) {
    add_products(2, near, batch, length, sums, stride, ahead, ahead_stride);
}

// sums[r][m] = Σ W[row + r][i] rounded[m][i] for TILE_ROWS rows, of which `rows` exist, and the whole batch.
static void multiply_rows(const integer_batch *w, const int8_t *weight, long n, long row, long rows, int16_t *near,
                          int32_t *sums) {
    if (w->batch <= SMALL_BATCH) {
        for (long r = 0; r < rows; r++)
            small_batch_products(w->batch, w->rounded, w->k, weight + (row + r) * w->k, sums + r * w->padded);
        return;
    }
    memset(sums, 0, TILE_ROWS * w->padded * sizeof(int32_t));
    for (long start = 0; start < w->k; start += CHUNK) {
        long length = min_long(CHUNK, w->k - start);
        const int8_t *from = weight + row * w->k + start;
        for (long r = 0; r < rows; r++)
            for (long i = 0; i < length; i += INT16_WIDTH)
                store_ivec16(near + r * STRIDE + i, widen(from + r * w->k + i));
        for (long first = 0; first < w->padded; first += TILE_COLUMNS) {
            const int8_t *ahead = first == 0 && row + 2 * TILE_ROWS <= n ? from + TILE_ROWS * w->k : 0;
            int two = w->padded - first >= TILE_COLUMNS;
            const int16_t *panel = w->transposed + first * w->k + start * (two ? TILE_COLUMNS : SIMD_WIDTH);
            (two ? tile_two : tile_one)(near, panel, length, sums + first, w->padded, ahead, w->k);
        }
    }
}
#endif
