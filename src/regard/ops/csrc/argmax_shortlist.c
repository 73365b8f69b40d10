// Which row n of W (N, K) gives the largest W[n] · x[m] + bias[n], for each row x[m] (K) of a batch, in float32.
//
// The matrix in int8 gives each product up to a margin: what rounding left out of W[n] and of x[m], each bounded by the
// product of norms (Cauchy-Schwarz). Only rows whose margin allows them to be the largest, a few of many thousands, are
// multiplied in float32. The answer is exact.
//
// x is rounded to int16, as in int8.h. With VNNI instructions, and if no row of x has outliers that 8 bits cannot
// represent well, it is rounded to bytes instead, which is twice as fast.
#include "int8.h"
#include <math.h>
#include <omp.h>

#ifdef __AVX2__
#define ROUNDING 6e-8f // relative rounding error of one float32 operation

// W in float32, and in int8 with what quantize_rows says of it.
typedef struct {
    const float *weight, *bias; // bias (N) may be NULL; -inf bans a row
    const int8_t *rounded;
    const float *scales, *errors, *row_norms;
    const int32_t *row_sums;
    long n;
} output_matrix;

// How far the product of x[m] and W[n] may be from the integer one: norms[m] · errors[n] for what rounding W[n] left
// out, and errors[m] · (norms[n] + errors[n]) for what rounding x[m] did; and float32 rounding.
typedef struct {
    float *norms, *errors; // (padded)
} margins;

#if defined(__AVX512VNNI__) && defined(AVX512)
#define HAS_BYTES 1
#define QUAD 4
#define BYTE_CHUNK 1024               // bytes of a row of W in the buffer
#define BYTE_STRIDE (BYTE_CHUNK + 64) // their distance there: no power of two
#define MAX_BYTE_ERROR 0.03f          // the share of a row's norm that rounding to bytes may leave out
#define MAX_BYTE_COLUMNS 65536        // columns up to which no sum of byte products overflows

// Round a row to bytes, 128 for zero; `rest` is the norm of what that leaves out. Returns 0 if that is too much.
static int to_bytes(const float *x, long k, float length, uint8_t *bytes, float *level, float *rest) {
    vec best = {}, squares = {};
    for (long i = 0; i < k; i += SIMD_WIDTH) best = max_vec(abs_vec(load(x + i)), best);
    *level = reduce_max(best) / 127;
    vec factor = broadcast(*level > 1e-30f ? 1 / *level : 0);
    for (long i = 0; i < k; i += SIMD_WIDTH) {
        vec rounded = round_vec(load(x + i) * factor), remainder = load(x + i) - rounded * *level;
        squares += remainder * remainder;
        __m512i above = (__m512i)(__builtin_convertvector(rounded, ivec) + 128);
        _mm_storeu_si128((void *)(bytes + i), _mm512_cvtepi32_epi8(above));
    }
    *rest = sqrtf(reduce_sum(squares) + k * TINY);
    return *rest <= MAX_BYTE_ERROR * length;
}

// sums[r][m] += Σ near[r][i] x[i][m] for one tile of TILE_ROWS rows and one or two vectors of the batch.
INLINE void add_quads(const int vecs, const int8_t *near, const uint8_t *batch, long length, int32_t *sums, long stride,
                      const int8_t *ahead, long ahead_stride) {
    ivec16 sum[TILE_ROWS][2];
    UNROLL for (int r = 0; r < TILE_ROWS; r++)
        UNROLL for (int v = 0; v < vecs; v++) sum[r][v] = load_ivec16(sums + r * stride + v * SIMD_WIDTH);
    for (long i = 0; i < length; i += QUAD) {
        if (ahead && i % 64 == 0)
            for (int r = 0; r < TILE_ROWS; r++) __builtin_prefetch(ahead + r * ahead_stride + i, 0, 2);
        ivec16 column[2];
        UNROLL for (int v = 0; v < vecs; v++) column[v] = load_ivec16(batch + (i * vecs + v * QUAD) * SIMD_WIDTH);
        UNROLL for (int r = 0; r < TILE_ROWS; r++) {
            int32_t quad;
            memcpy(&quad, near + r * BYTE_STRIDE + i, sizeof quad);
            UNROLL for (int v = 0; v < vecs; v++)
                sum[r][v] = _mm512_dpbusd_epi32(sum[r][v], column[v], _mm512_set1_epi32(quad));
        }
    }
    UNROLL for (int r = 0; r < TILE_ROWS; r++)
        UNROLL for (int v = 0; v < vecs; v++) store_ivec16(sums + r * stride + v * SIMD_WIDTH, sum[r][v]);
}
static NOINLINE void quads_one(const int8_t *near, const uint8_t *batch, long length, int32_t *sums, long stride,
                               const int8_t *ahead, long ahead_stride) {
    add_quads(1, near, batch, length, sums, stride, ahead, ahead_stride);
}
static NOINLINE void quads_two(const int8_t *near, const uint8_t *batch, long length, int32_t *sums, long stride,
                               const int8_t *ahead, long ahead_stride) {
    add_quads(2, near, batch, length, sums, stride, ahead, ahead_stride);
}

static void transpose_bytes(const integer_batch *w, const uint8_t *bytes, uint8_t *transposed, long first, long start) {
    long width = min_long(TILE_COLUMNS, w->padded - first), filled = min_long(width, w->batch - first);
    uint8_t *to = transposed + first * w->k + start * width;
    if (filled < width) memset(to, 0, TRANSPOSED * width);
    transpose((const float *)(bytes + first * w->k + start), w->k / QUAD, (float *)to, width, filled,
              TRANSPOSED / QUAD);
}

// As multiply_rows, with x in bytes.
static void multiply_bytes(const output_matrix *t, const integer_batch *w, const uint8_t *transposed, long row, long rows,
                           int8_t *near, int32_t *sums) {
    long k = w->k, padded = w->padded;
    for (long r = 0; r < TILE_ROWS; r++)
        for (long m = 0; m < padded; m += SIMD_WIDTH)
            *(ivec *)(sums + r * padded + m) = (ivec){} - (r < rows ? 128 * t->row_sums[row + r] : 0);
    for (long start = 0; start < k; start += BYTE_CHUNK) {
        long length = min_long(BYTE_CHUNK, k - start);
        const int8_t *from = t->rounded + row * k + start;
        for (long r = 0; r < rows; r++) memcpy(near + r * BYTE_STRIDE, from + r * k, length);
        for (long first = 0; first < padded; first += TILE_COLUMNS) {
            const int8_t *ahead = first == 0 && row + 2 * TILE_ROWS <= t->n ? from + TILE_ROWS * k : 0;
            int two = padded - first >= TILE_COLUMNS;
            const uint8_t *panel = transposed + first * k + start * (two ? TILE_COLUMNS : SIMD_WIDTH);
            (two ? quads_two : quads_one)(near, panel, length, sums + first, padded, ahead, k);
        }
    }
}
#else // never called
#define HAS_BYTES 0
#define MAX_BYTE_COLUMNS 0
static int to_bytes(const float *x, long k, float length, uint8_t *bytes, float *level, float *rest) {
    return (void)x, (void)k, (void)length, (void)bytes, (void)level, (void)rest, 0;
}
static void transpose_bytes(const integer_batch *w, const uint8_t *bytes, uint8_t *transposed, long first, long start) {
    (void)w, (void)bytes, (void)transposed, (void)first, (void)start;
}
static void multiply_bytes(const output_matrix *t, const integer_batch *w, const uint8_t *transposed, long row, long rows,
                           int8_t *near, int32_t *sums) {
    (void)t, (void)w, (void)transposed, (void)row, (void)rows, (void)near, (void)sums;
}
#endif

// For a block of rows and each x[m]: the upper bound of its products, and in `floors` the lower bound of the largest.
static void bound(const output_matrix *t, const integer_batch *w, const margins *margins_of_x, long row, long rows,
                  const int32_t *sums, float *ceilings, float *floors) {
    float rounding = ROUNDING * (w->k / SIMD_WIDTH + 16); // of a float32 sum of K products
    for (long m = 0; m < w->padded; m += SIMD_WIDTH) {
        long count = w->padded - m; // a full vector, except for a small batch
        vec levels = load_partial(w->levels + m, count), norms = load_partial(margins_of_x->norms + m, count);
        vec x_errors = load_partial(margins_of_x->errors + m, count), ceiling = broadcast(-INFINITY),
            floor = load_partial(floors + m, count);
        for (long r = 0; r < rows; r++) {
            ivec sum = (ivec)load_partial((const float *)(sums + r * w->padded + m), count);
            float row_norm = t->row_norms[row + r], error = t->errors[row + r], bias = t->bias ? t->bias[row + r] : 0;
            vec estimate = __builtin_convertvector(sum, vec) * (levels * t->scales[row + r]) + bias;
            vec margin = norms * (error + rounding * row_norm) + x_errors * (row_norm + error) + rounding * fabsf(bias);
            ceiling = max_vec(estimate + margin, ceiling);
            floor = max_vec(estimate - margin, floor);
        }
        store_partial(ceilings + m, ceiling, count);
        store_partial(floors + m, floor, count);
    }
}

// For up to SIMD_WIDTH rows of x the best row of W, among the blocks that may have it; -1 if a product is not finite.
static void best_rows(const output_matrix *t, const float *x, long k, long batch, const float *ceilings, long stride,
                      const float *floors, int64_t *found) {
    float best[SIMD_WIDTH];
    vec floor = broadcast(INFINITY);
    ivec is_damaged = {};
    for (long m = 0; m < batch; m++) best[m] = -INFINITY, found[m] = -1, floor[m] = floors[m];
    for (long row = 0; row < t->n; row += TILE_ROWS) {
        vec ceiling = load_partial(ceilings + row / TILE_ROWS * stride, batch);
        ivec is_candidate = ceiling >= floor; // -1 is true
        if (!reduce_sum_ints(is_candidate)) continue;
        for (long m = 0; m < batch; m++)
            for (long r = row; is_candidate[m] && r < min_long(row + TILE_ROWS, t->n); r++) {
                float value = dot_product(x + m * k, t->weight + r * k, k) + (t->bias ? t->bias[r] : 0);
                is_damaged[m] |= !(value < INFINITY); // or NaN
                if (value > best[m]) best[m] = value, found[m] = r;
            }
    }
    for (long m = 0; m < batch; m++) found[m] = is_damaged[m] ? -1 : found[m];
}

// Round the batch, to bytes if that is fine enough for all rows, and compute what that leaves out. Called by all
// threads of the team; they share `coarse`, which becomes 1 if bytes are too coarse.
static void round_to_bytes_or_int16(const float *x, const float *padded_x, long k, float max_level, integer_batch *w,
                                    margins *margins_of_x, uint8_t *bytes, uint8_t *transposed, int *coarse) {
#pragma omp for
    for (long m = 0; m < w->batch; m++) {
        margins_of_x->norms[m] = sqrtf(dot_product(x + m * k, x + m * k, k) + k * TINY);
        if (bytes && !to_bytes(padded_x + m * w->k, w->k, margins_of_x->norms[m], bytes + m * w->k, w->levels + m,
                               margins_of_x->errors + m)) {
#pragma omp atomic write
            *coarse = 1;
        }
    }
    if (*coarse) { // the same for all threads: the loop above has a barrier
        round_batch(padded_x, max_level, w);
#pragma omp for
        for (long m = 0; m < w->batch; m++) margins_of_x->errors[m] = w->levels[m] * 0.5f * sqrtf(k) + sqrtf(k * TINY);
    } else {
#pragma omp for collapse(2)
        for (long first = 0; first < w->padded; first += TILE_COLUMNS)
            for (long start = 0; start < w->k; start += TRANSPOSED) transpose_bytes(w, bytes, transposed, first, start);
    }
}

// `padded_x` (M, columns) is x (M, K), zero-padded. Returns OUT_OF_MEMORY on failure.
int argmax_shortlist(const float *x, const float *padded_x, const float *weight, const float *bias,
                     const int8_t *rounded, const float *scales, const float *errors, const float *row_norms,
                     const int32_t *row_sums, long batch, long n, long k, long columns, float max_level, int64_t *found,
                     int threads) {
    output_matrix t = {weight, bias, rounded, scales, errors, row_norms, row_sums, n};
    integer_batch w = {.batch = batch, .k = columns};
    int coarse = !HAS_BYTES || batch <= SMALL_BATCH || columns > MAX_BYTE_COLUMNS, out_of_memory = allocate_batch(&w);
    long blocks = (n + TILE_ROWS - 1) / TILE_ROWS;
    int32_t *all_sums = allocate(threads * TILE_ROWS * w.padded * sizeof(int32_t));
    float *ceilings = allocate(blocks * w.padded * sizeof(float)),
          *floors = allocate(threads * w.padded * sizeof(float));
    uint8_t *bytes = coarse ? 0 : allocate(batch * columns), *transposed = coarse ? 0 : allocate(w.padded * columns);
    margins margins_of_x = {calloc(w.padded, sizeof(float)), calloc(w.padded, sizeof(float))};
    out_of_memory |= !all_sums || !ceilings || !floors || !margins_of_x.norms || !margins_of_x.errors;
    out_of_memory |= !coarse && (!bytes || !transposed);
#pragma omp parallel num_threads(threads) if (!out_of_memory)
    if (!out_of_memory) {
        round_to_bytes_or_int16(x, padded_x, k, max_level, &w, &margins_of_x, bytes, transposed, &coarse);
        int16_t near[TILE_ROWS * STRIDE];
        memset(near, 0, sizeof near);
        int32_t *sums = all_sums + (long)omp_get_thread_num() * TILE_ROWS * w.padded;
        float *own = floors + omp_get_thread_num() * w.padded;
        for (long m = 0; m < w.padded; m++) own[m] = -INFINITY;
#pragma omp for
        for (long block = 0; block < blocks; block++) {
            long row = block * TILE_ROWS, rows = min_long(TILE_ROWS, n - row);
            if (coarse) multiply_rows(&w, rounded, n, row, rows, near, sums);
            else multiply_bytes(&t, &w, transposed, row, rows, (int8_t *)near, sums);
            bound(&t, &w, &margins_of_x, row, rows, sums, ceilings + block * w.padded, own);
        }
#pragma omp for
        for (long m = 0; m < w.padded; m++) // the best lower bound of any thread
            for (long thread = 1; thread < omp_get_num_threads(); thread++)
                floors[m] = fmaxf(floors[m], floors[thread * w.padded + m]);
#pragma omp for schedule(dynamic)
        for (long m = 0; m < batch; m += SIMD_WIDTH)
            best_rows(&t, x + m * k, k, min_long(SIMD_WIDTH, batch - m), ceilings + m, w.padded, floors + m, found + m);
    }
    free_batch(&w);
    free(all_sums), free(ceilings), free(floors), free(bytes), free(transposed), free(margins_of_x.norms),
        free(margins_of_x.errors);
    return out_of_memory;
}
#else
int argmax_shortlist(const float *x, const float *padded_x, const float *weight, const float *bias,
                     const int8_t *rounded, const float *scales, const float *errors, const float *row_norms,
                     const int32_t *row_sums, long batch, long n, long k, long columns, float max_level, int64_t *found,
                     int threads) {
    (void)row_sums, (void)x, (void)padded_x, (void)weight, (void)bias, (void)rounded, (void)scales, (void)errors,
        (void)row_norms, (void)batch;
    (void)n, (void)k, (void)columns, (void)max_level, (void)found, (void)threads;
    return 1;
}
#endif
