// x Wᵀ + b for activations x (M, K) and a matrix W (N, K) in int8 with a scale per row; and quantizing a matrix so.
#include "int8.h"
#include <math.h>
#include <omp.h>

#ifdef __AVX2__
int int8_is_supported(void) { return 1; }

// Row n of a matrix (N, K) is about scales[n] · rounded[n], zero-padded to `columns` numbers. errors[n] is the norm of
// what rounding left out, norms[n] that of the row; both are NaN if a number is. row_sums[n] is Σ rounded[n].
void quantize_rows(const float *weight, long n, long k, long columns, int8_t *rounded, float *scales, float *errors,
                   float *norms, int32_t *row_sums, int threads) {
#pragma omp parallel for num_threads(threads)
    for (long row = 0; row < n; row++) {
        const float *from = weight + row * k;
        int8_t *to = rounded + row * columns;
        vec maximum = {}, error = {}, size = {}, not_finite = {};
        ivec total = {};
        for (long i = 0; i < k; i += SIMD_WIDTH) maximum = max_vec(abs_vec(load_partial(from + i, k - i)), maximum);
        float scale = fmaxf(reduce_max(maximum), 1e-12f) / 127, factor = 1 / scale;
        for (long i = 0; i < k; i += SIMD_WIDTH) {
            vec values = load_partial(from + i, k - i), level = round_vec(values * factor),
                left = values - level * scale, damage = values * 0; // NaN if it is not finite
            level = blend(damage == 0, level, broadcast(0)); // NaN has no integer
            ivec levels_int = __builtin_convertvector(level, ivec);
            for (long lane = 0; lane < min_long(SIMD_WIDTH, k - i); lane++) to[i + lane] = (int8_t)levels_int[lane];
            total += levels_int;
            not_finite += damage;
            error += left * left;
            size += values * values;
        }
        memset(to + k, 0, columns - k);
        scales[row] = scale + reduce_sum(not_finite);
        errors[row] = sqrtf(reduce_sum(error) + k * TINY);
        norms[row] = sqrtf(reduce_sum(size) + k * TINY);
        row_sums[row] = reduce_sum_ints(total);
    }
}

// bias (N) may be NULL. out is (M, N). Returns OUT_OF_MEMORY on failure.
int linear_int8(const float *x, const int8_t *weight, const float *scales, const float *bias, float *out, long batch,
                long n, long k, float max_level, int threads) {
    integer_batch w = {.batch = batch, .k = k};
    int out_of_memory = allocate_batch(&w);
    int32_t *all_sums = allocate(threads * TILE_ROWS * w.padded * sizeof(int32_t));
    out_of_memory |= !all_sums;
#pragma omp parallel num_threads(threads) if (!out_of_memory)
    if (!out_of_memory) {
        round_batch(x, max_level, &w);
        int16_t near[TILE_ROWS * STRIDE];
        memset(near, 0, sizeof near);
        int32_t *sums = all_sums + (long)omp_get_thread_num() * TILE_ROWS * w.padded;
        float *results = (float *)sums; // in the same memory
#pragma omp for
        for (long row = 0; row < n; row += TILE_ROWS) {
            long rows = min_long(TILE_ROWS, n - row);
            multiply_rows(&w, weight, n, row, rows, near, sums);
            for (long r = 0; r < rows; r++)
                for (long m = 0; m < w.padded; m++) {
                    float exact = sums[r * w.padded + m];
                    results[r * w.padded + m] = exact * (w.levels[m] * scales[row + r]) + (bias ? bias[row + r] : 0);
                }
            for (long m = 0; m < batch; m += SIMD_WIDTH) // so that cache lines are written in full
                transpose(results + m, w.padded, out + m * n + row, n, rows, min_long(SIMD_WIDTH, batch - m));
        }
    }
    free_batch(&w);
    free(all_sums);
    return out_of_memory;
}
#else
int int8_is_supported(void) { return 0; }
void quantize_rows(const float *weight, long n, long k, long columns, int8_t *rounded, float *scales, float *errors,
                   float *norms, int32_t *row_sums, int threads) {
    (void)weight, (void)n, (void)k, (void)columns, (void)rounded, (void)scales, (void)errors, (void)norms,
        (void)row_sums;
    (void)threads;
}
int linear_int8(const float *x, const int8_t *weight, const float *scales, const float *bias, float *out, long batch,
                long n, long k, float max_level, int threads) {
    (void)x, (void)weight, (void)scales, (void)bias, (void)out, (void)batch, (void)n, (void)k, (void)max_level,
        (void)threads;
    return 1;
}
#endif
